#include "drawing.hpp"

// The only place that sees gnuplot-iostream.
#include <gnuplot-iostream.h>
#include <signal.h>
#include <stdlib.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace iclflow::plots {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> formats{"svg", "pdf", "png"};

FigureError failure(const FigureFile& target, const std::string& why) {
  return FigureError("figure '" + target.stem + "' was not drawn: " + why +
                     "; the run's data are kept, draw again with: iclflow report RUN");
}

// gnuplot that dies must show as a failed write, not as the end of this process. The signal is held back in this
// thread only and taken off the queue, so that nobody else's handling of it changes.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    const timespec now{0, 0};
    if (!sigismember(&before_, SIGPIPE)) {
      while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

// Where gnuplot works: next to the target, so that renaming is atomic; gone with the object.
class Workshop {
 public:
  explicit Workshop(const FigureFile& target) {
    std::error_code error;
    fs::create_directories(target.folder, error);
    std::string name = fs::absolute(target.folder / ".drawing-XXXXXX", error).string();
    if (error || mkdtemp(name.data()) == nullptr) {
      throw failure(target, "cannot write in folder '" + target.folder.string() + "'");
    }
    folder_ = name;
  }
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Seconds after which gnuplot counts as hung; ICLFLOW_GNUPLOT_TIMEOUT overrides.
int time_limit() {
  int seconds = 120;
  if (const char* given = std::getenv("ICLFLOW_GNUPLOT_TIMEOUT")) {
    int value = 0;
    const std::string_view text(given);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size() && value > 0) seconds = value;
  }
  return seconds;
}

// The shell itself always succeeds (gnuplot-iostream would otherwise write to stderr); gnuplot's messages and status
// go to a file.
std::string command_line(const fs::path& folder) {
  return "cd " + shell_quoted(folder.string()) + " && { if command -v gnuplot >/dev/null; then timeout -k 5 " +
         std::to_string(time_limit()) + " gnuplot -d; else (exit 127); fi; echo \"status $?\"; } >messages 2>&1; true";
}

struct Ending {
  int status = -1;
  std::string message;   // what gnuplot complained of
  double seconds = 0.0;  // how long it took
};

Ending read_ending(const fs::path& folder, double seconds) {
  Ending ending;
  ending.seconds = seconds;
  std::ifstream messages(folder / "messages");
  for (std::string line; std::getline(messages, line);) {
    if (line.rfind("status ", 0) == 0) {
      ending.status = std::atoi(line.c_str() + 7);
    } else if (line.find("line ") != std::string::npos || ending.message.empty()) {
      // gnuplot repeats the command and points at the spot before the line that says what is wrong
      const std::size_t begin = line.find_first_not_of(" \t^");
      if (begin != std::string::npos) ending.message = line.substr(begin);
    }
  }
  return ending;
}

std::string explain(const Ending& ending) {
  if (ending.status == 127) return "gnuplot was not found";
  if (ending.status == 124 || (ending.status == 137 && ending.seconds > time_limit())) {
    return "gnuplot did not end within " + std::to_string(time_limit()) + " s and was stopped";
  }
  if (ending.status > 128) return "gnuplot was killed by signal " + std::to_string(ending.status - 128);
  if (ending.message.empty()) return "gnuplot ended with status " + std::to_string(ending.status);
  return "gnuplot says: " + ending.message;
}

// Whether a file is there and begins as its format does.
bool whole(const fs::path& file, std::string_view format) {
  const std::string_view mark = format == "svg" ? "<?xml" : format == "pdf" ? "%PDF-" : "\x89PNG";
  std::ifstream in(file, std::ios::binary);
  std::string begin(mark.size(), '\0');
  return in.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == mark;
}

void replace_all(std::string& text, std::string_view given, std::string_view wanted) {
  for (std::size_t at = text.find(given); at != std::string::npos; at = text.find(given, at + wanted.size())) {
    text.replace(at, given.size(), wanted);
  }
}

// A reader without DejaVu gets the font of the same widths rather than a serif default, and ]]> in a title, which
// gnuplot leaves as it is, becomes XML.
void mend_svg(const fs::path& svg) {
  std::string text;
  {
    std::ifstream in(svg, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  replace_all(text, "font-family=\"DejaVu Sans\"", "font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\"");
  replace_all(text, "]]>", "]]&gt;");
  std::ofstream(svg, std::ios::binary) << text;
}

std::string terminal(std::string_view format, const Size& size) {
  // Lengths are points (1/72 inch) everywhere; png has 300 dots an inch.
  const std::string font = " font 'DejaVu Sans,7' ";
  const std::string points = number(size.width_points()) + "," + number(size.height_points());
  if (format == "svg")
    return "svg enhanced size " + points + " dynamic" + font + "linewidth 0.7 background rgb 'white'";
  if (format == "pdf") {
    return "pdfcairo enhanced color size " + number(size.width_cm) + "cm," + number(size.height_cm) + "cm" + font +
           "linewidth 1.4 fontscale 0.75 background rgb 'white'";
  }
  constexpr double scale = 300.0 / 72.0;
  constexpr double font_scale = 300.0 / 96.0;  // pango measures a point at 96 dots an inch
  return "pngcairo enhanced color size " + std::to_string(std::lround(scale * size.width_points())) + "," +
         std::to_string(std::lround(scale * size.height_points())) + font + "fontscale " + number(font_scale) +
         " linewidth 2.9 pointscale 4.2 background rgb 'white'";
}

constexpr std::string_view common_style = R"(set encoding utf8
set tics nomirror out scale 0.6
set border 3 linewidth 0.8 linecolor rgb '#333333'
set tics textcolor rgb 'black'
set style fill solid 1.0 noborder
set minussign
set dashtype 11 (12,4)
set dashtype 12 (2,3)
set dashtype 13 (10,3,2,3)
set dashtype 14 (7,4)
set dashtype 15 (6,2)
set xtics offset 0,0.3
set ytics offset 0.4,0
)";

}  // namespace

std::string Drawing::block(std::vector<Row> rows) {
  if (rows.empty()) rows.push_back({NAN, NAN, NAN, NAN});
  blocks_.push_back(std::move(rows));
  return "$data" + std::to_string(blocks_.size() - 1);
}

void Drawing::send(const std::string& command) const {
  const WithoutPipeSignal guard;
  Gnuplot gnuplot(command);
  gnuplot.precision(9);
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    // send1d ends its rows with a line "e", which serves as the end mark of the data block.
    gnuplot << "$data" << k << " << e\n";
    gnuplot.send1d(blocks_[k]);
  }
  for (const std::string_view format : formats) {
    gnuplot << "reset\nset terminal " << terminal(format, size_) << "\nset output 'figure." << format << "'\n"
            << "mark = " << (format == "svg" ? 0.75 : 0.55) << "\n"  // svg counts point sizes in other units
            << common_style << commands_.str() << "unset output\n";
  }
  gnuplot << "exit\n" << std::flush;
}

void Drawing::finish(const FigureFile& target) const {
  const Workshop workshop(target);
  const auto start = std::chrono::steady_clock::now();
  try {
    send(command_line(workshop.folder()));
  } catch (const std::ios_base::failure&) {
    // The pipe broke; the messages below say why.
  }
  const Ending ending =
      read_ending(workshop.folder(), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (ending.status != 0) throw failure(target, explain(ending));
  for (const std::string_view format : formats) {
    if (!whole(workshop.folder() / ("figure." + std::string(format)), format)) {
      throw failure(target, "gnuplot left no valid " + std::string(format) +
                                (ending.message.empty() ? std::string() : " and says: " + ending.message));
    }
  }
  mend_svg(workshop.folder() / "figure.svg");
  for (const std::string_view format : formats) {
    std::error_code error;
    fs::rename(workshop.folder() / ("figure." + std::string(format)),
               target.folder / (target.stem + "." + std::string(format)), error);
    if (error) throw failure(target, "cannot write in folder '" + target.folder.string() + "'");
  }
}

}  // namespace iclflow::plots
