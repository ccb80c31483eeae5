#include <algorithm>
#include <cmath>

#include "style.hpp"

namespace iclflow::plots {
namespace {

// Points at the 7 point text of all figures; 3.9 is a generous mean width of a character.
constexpr double character_width = 3.9;
constexpr double title_character_width = 4.8;
constexpr double row_height = 10.0;
constexpr double title_height = 11.5;
constexpr double sample_width = 20.0;
constexpr double gap = 14.0;
constexpr double edge = 6.0;
constexpr double to_panels = 13.0;  // room for marks above the panels
constexpr std::size_t most_title_lines = 2;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the first `count` characters.
std::size_t prefix_bytes(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size() && count > 0) {
    ++at;
    while (at < text.size() && continues(text[at])) ++at;
    --count;
  }
  return at;
}

// Lines of at most `longest` characters, broken at spaces where there are any.
std::vector<std::string> wrapped(std::string text, std::size_t longest) {
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < most_title_lines) {
    if (characters(text) <= longest) {
      lines.push_back(text);
      return lines;
    }
    if (lines.size() + 1 == most_title_lines) break;
    const std::size_t limit = prefix_bytes(text, longest);
    const std::size_t space = text.rfind(' ', limit);
    const std::size_t cut = space == std::string::npos || space == 0 ? limit : space;
    lines.push_back(text.substr(0, cut));
    text.erase(0, cut);
    text.erase(0, text.find_first_not_of(' '));
  }
  if (!text.empty()) lines.push_back(shortened(text, longest));
  return lines;
}

// Characters that will be seen of an entry's text.
std::size_t visible_characters(const LegendEntry& entry) {
  if (!entry.enhanced) return characters(entry.text);
  constexpr std::string_view italic = "{/:Italic ";
  std::size_t hidden = 0;
  for (std::size_t at = entry.text.find(italic); at != std::string::npos; at = entry.text.find(italic, at + 1)) {
    hidden += italic.size() + 1;
  }
  return characters(entry.text) - hidden;
}

double entry_width(const LegendEntry& entry) {
  return sample_width + gap + character_width * static_cast<double>(visible_characters(entry));
}

void write_sample(std::ostream& out, const LegendEntry& entry, double x, double y, const Size& size) {
  const auto at = [&](double px, double py) {
    return "screen " + number(px / size.width_points()) + ", screen " + number(py / size.height_points());
  };
  if (!entry.band.empty()) {
    out << "set object rectangle from " << at(x, y - 2.6) << " to " << at(x + sample_width - 4, y + 2.6)
        << " fillcolor rgb '" << entry.band << "' fillstyle solid 1 noborder front\n";
  }
  if (!entry.line.empty()) {
    out << "set arrow from " << at(x, y) << " to " << at(x + sample_width - 4, y) << " nohead front " << entry.line
        << "\n";
  }
  if (!entry.point.empty()) {
    out << "set label '' at " << at(x + 0.5 * (sample_width - 4), y) << " point " << entry.point << " front\n";
  }
  out << "set label " << (entry.enhanced ? "'" + entry.text + "'" : literal(entry.text)) << " at "
      << at(x + sample_width, y) << " left front\n";
}

}  // namespace

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string shortened(const std::string& text, std::size_t longest) {
  if (characters(text) <= longest) return text;
  return text.substr(0, prefix_bytes(text, longest - 1)) + "…";
}

Head::Head(const std::string& title, std::vector<LegendEntry> legend, double width_cm) : legend_(std::move(legend)) {
  const double width = width_cm * Size::points_per_cm - 2.0 * edge;
  title_lines_ = wrapped(title, static_cast<std::size_t>(width / title_character_width));
  double widest = 1.0;
  for (const LegendEntry& entry : legend_) widest = std::max(widest, entry_width(entry));
  columns_ =
      std::clamp<std::size_t>(static_cast<std::size_t>(width / widest), 1, std::max<std::size_t>(legend_.size(), 1));
}

std::size_t Head::rows() const { return (legend_.size() + columns_ - 1) / columns_; }

double Head::height_cm() const {
  return (2.0 + title_height * static_cast<double>(title_lines_.size()) + row_height * static_cast<double>(rows()) +
          to_panels) /
         Size::points_per_cm;
}

void Head::write(Drawing& drawing) const {
  std::ostream& out = drawing.commands();
  const Size& size = drawing.size();
  double y = size.height_points() - 2.0;
  for (const std::string& line : title_lines_) {
    out << "set label " << literal(line) << " at screen 0.5, screen "
        << number((y - 0.5 * title_height) / size.height_points()) << " center front font ',8'\n";
    y -= title_height;
  }
  double width = 0.0;
  for (const LegendEntry& entry : legend_) width = std::max(width, entry_width(entry));
  for (std::size_t k = 0; k < legend_.size(); ++k) {
    const auto row = static_cast<double>(k / columns_);
    const auto column = static_cast<double>(k % columns_);
    write_sample(out, legend_[k], edge + column * width, y - (row + 0.5) * row_height, size);
  }
}

}  // namespace iclflow::plots
