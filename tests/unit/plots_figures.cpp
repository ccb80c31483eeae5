#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "unit/plots_sample.hpp"

namespace fs = std::filesystem;

namespace {

/// A folder of its own that is gone at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "iclflow figures' $(id) XXXXXX").string();
    BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(path_)) found.insert(entry.path().filename().string());
    return found;
  }

 private:
  fs::path path_;
};

/// Changes the working folder for a while.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) { fs::current_path(folder); }
  ~WorkingFolder() { fs::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  fs::path before_;
};

/// Sets an environment variable for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    had_ = before != nullptr;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

/// Sends what this process writes to its standard error into a file for a while.
class CapturedError {
 public:
  explicit CapturedError(const fs::path& file) : before_(dup(STDERR_FILENO)) {
    const int fd = open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    close(fd);
  }
  ~CapturedError() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  CapturedError(const CapturedError&) = delete;
  CapturedError& operator=(const CapturedError&) = delete;

 private:
  int before_;
};

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Programs named gnuplot that do what `script` says, first in PATH.
void plant(const Folder& programs, const std::string& script) {
  const fs::path program = programs.path() / "gnuplot";
  std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
  fs::permissions(program, fs::perms::owner_all);
}

std::string with_path(const Folder& programs) { return programs.path().string() + ":" + std::getenv("PATH"); }

template <typename Figure>
std::string complaint(const Figure& figure, const fs::path& folder) {
  try {
    iclflow::draw(figure, {folder, "figure"});
  } catch (const iclflow::FigureError& error) {
    return error.what();
  }
  return "";
}

template <typename Figure>
void draws(const Figure& figure) {
  const Folder folder;
  iclflow::draw(figure, {folder.path() / "figures", "figure"});
  const fs::path figures = folder.path() / "figures";
  BOOST_TEST(std::distance(fs::directory_iterator(figures), fs::directory_iterator()) == 3);
  const std::string svg = content(figures / "figure.svg");
  BOOST_TEST(svg.find("</svg>") != std::string::npos);
  BOOST_TEST(svg.find("sans-serif") != std::string::npos);
  BOOST_TEST(content(figures / "figure.png").substr(1, 3) == "PNG");
  const std::string pdf = content(figures / "figure.pdf");
  BOOST_TEST(pdf.substr(0, 5) == "%PDF-");
  BOOST_TEST(pdf.find("%%EOF") != std::string::npos);
  BOOST_TEST(iclflow::caption(figure).size() > 40U);
}

/// More data than a pipe holds, so that a gnuplot that has died is written to.
iclflow::LossFigure large_figure() {
  iclflow::LossFigure figure = plots_sample::loss();
  while (figure.theory.size() < 20) figure.theory.push_back(figure.theory.front());
  return figure;
}

const std::string hostile =
    "`touch stolen` $(touch stolen) 'x' \"y\" {/*42 z}_a^b @m %s \\\n!touch stolen\nsystem('touch stolen') <b>&amp;";

}  // namespace

BOOST_AUTO_TEST_SUITE(plots_figures)

BOOST_AUTO_TEST_CASE(every_kind_is_written_whole_in_three_formats) {
  draws(plots_sample::loss());
  draws(plots_sample::spectrum());
  draws(plots_sample::allocation());
  draws(plots_sample::leakage());
  BOOST_TEST(iclflow::figure_kinds().size() == 14U);
}

BOOST_AUTO_TEST_CASE(unusual_shapes_are_drawn) {
  draws(plots_sample::spectrum(12, 3));
  draws(plots_sample::spectrum(1, 14));
  draws(plots_sample::allocation(40, 20));
  iclflow::AllocationFigure unreached = plots_sample::allocation();
  unreached.rows[1].maps[3].share.clear();
  unreached.rows[0].maps[0].share[0] = -0.5;
  draws(unreached);
  iclflow::LossFigure logarithmic = plots_sample::loss();
  logarithmic.logarithmic_time = true;
  for (double& loss : logarithmic.theory[0].values) loss = std::max(loss - 2.1999, 0.0);  // zeros on a log axis
  draws(logarithmic);
}

BOOST_AUTO_TEST_CASE(too_little_data_is_drawn_too) {
  iclflow::LossFigure one = plots_sample::loss();
  for (auto* curves : {&one.theory, &one.simulation, &one.difference}) {
    (*curves)[0] = {"one sample", {0.0}, {1.0}, {}};
  }
  draws(one);
  draws(iclflow::LossFigure{});
  iclflow::LeakageFigure zero = plots_sample::leakage();
  for (auto& curve : zero.series[0].norms) {
    curve.values.assign(curve.values.size(), 0.0);
    curve.standard_error.clear();
  }
  draws(zero);
  iclflow::LossFigure broken = plots_sample::loss();
  broken.theory[0].values[10] = std::numeric_limits<double>::quiet_NaN();
  draws(broken);
}

BOOST_AUTO_TEST_CASE(hostile_text_is_shown_and_harms_nothing) {
  const Folder folder;
  iclflow::LossFigure figure = plots_sample::loss();
  figure.title = hostile;
  figure.theory[0].label = "`touch stolen` {/*42 z}_a";
  figure.levels = {{"'; !touch stolen", 2.0}, {"{/*42 z}_a^b @m %s '0", 1.0}};
  const WorkingFolder here(folder.path());
  iclflow::draw(figure, {folder.path(), "figure"});
  iclflow::AllocationFigure allocation = plots_sample::allocation();
  allocation.title = hostile;
  allocation.moments[0] = allocation.rows[0].label = "' `touch stolen`";
  iclflow::draw(allocation, {folder.path(), "allocation"});
  BOOST_TEST(folder.names().size() == 6U);  // nothing but the figures
  const std::string svg = content(folder.path() / "figure.svg");
  BOOST_TEST(svg.find("`touch stolen` $(touch stolen)") != std::string::npos);
  BOOST_TEST(svg.find("{/*42 z}_a^b @m %s ") != std::string::npos);
  BOOST_TEST(svg.find("`touch stolen` {/*42 z}_a") != std::string::npos);
  BOOST_TEST(svg.find("!touch stolen</text>") != std::string::npos);
  BOOST_TEST(svg.find("<b>") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(broken_text_leaves_a_readable_svg) {
  const Folder folder;
  iclflow::LossFigure figure = plots_sample::loss();
  figure.title = "\xff\xfe half \xc3 nul\x01 \xed\xa0\x80 end";
  iclflow::draw(figure, {folder.path(), "figure"});
  const std::string svg = content(folder.path() / "figure.svg");
  BOOST_TEST(svg.find('\xff') == std::string::npos);
  BOOST_TEST(svg.find('\x01') == std::string::npos);
  BOOST_TEST(svg.find("\xEF\xBF\xBD half \xEF\xBF\xBD nul") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(arrays_that_do_not_fit_are_refused) {
  const Folder folder;
  iclflow::LossFigure loss = plots_sample::loss();
  loss.simulation[0].values.pop_back();
  BOOST_CHECK_THROW(iclflow::draw(loss, {folder.path(), "figure"}), std::invalid_argument);
  iclflow::SpectrumFigure spectrum = plots_sample::spectrum();
  spectrum.series[1].omega_standard_error.pop_back();
  BOOST_CHECK_THROW(iclflow::draw(spectrum, {folder.path(), "figure"}), std::invalid_argument);
  iclflow::AllocationFigure allocation = plots_sample::allocation();
  allocation.rows[0].maps[1].share.pop_back();
  BOOST_CHECK_THROW(iclflow::draw(allocation, {folder.path(), "figure"}), std::invalid_argument);
  BOOST_TEST(folder.names().empty());
}

BOOST_AUTO_TEST_CASE(missing_gnuplot_is_said_and_leaves_nothing) {
  const Folder folder;
  const Folder elsewhere;
  std::string what;
  {
    const Variable path("PATH", elsewhere.path().string());
    const CapturedError error(elsewhere.path() / "stderr");
    what = complaint(large_figure(), folder.path());
  }
  BOOST_TEST(what.find("gnuplot was not found") != std::string::npos);
  BOOST_TEST(what.find("data are kept") != std::string::npos);
  BOOST_TEST(what.find("iclflow report") != std::string::npos);
  BOOST_TEST(folder.names().empty());
  BOOST_TEST(content(elsewhere.path() / "stderr") == "");
}

BOOST_AUTO_TEST_CASE(gnuplot_that_dies_hangs_or_does_nothing) {
  const Folder folder;
  const Folder programs;
  std::ofstream(folder.path() / "figure.svg") << "older";
  const Variable path("PATH", with_path(programs));
  const CapturedError error(programs.path() / "stderr");
  plant(programs, "head -c 100 >/dev/null\nkill -9 $$");
  BOOST_TEST(complaint(large_figure(), folder.path()).find("killed by signal 9") != std::string::npos);
  plant(programs, "cat >/dev/null\necho partial >figure.svg\necho 'no such font' >&2\nexit 1");
  BOOST_TEST(complaint(large_figure(), folder.path()).find("gnuplot says: no such font") != std::string::npos);
  plant(programs, "cat >/dev/null");
  BOOST_TEST(complaint(large_figure(), folder.path()).find("left no valid svg") != std::string::npos);
  {
    const Variable limit("ICLFLOW_GNUPLOT_TIMEOUT", "1");
    plant(programs, "exec sleep 30");
    BOOST_TEST(complaint(large_figure(), folder.path()).find("did not end within 1 s") != std::string::npos);
  }
  BOOST_TEST(content(folder.path() / "figure.svg") == "older");
  BOOST_TEST(folder.names().size() == 1U);
  BOOST_TEST(content(programs.path() / "stderr") == "");
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_is_said) {
  const Folder folder;
  std::ofstream(folder.path() / "file") << "not a folder";
  BOOST_TEST(complaint(plots_sample::loss(), folder.path() / "file").find("cannot write") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
