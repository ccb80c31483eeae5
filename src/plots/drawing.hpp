#pragma once

#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow::plots {

/// Text from outside as a gnuplot string that is shown literally: a double-quoted string in which every mark that could
/// mean something (quotes, backticks, backslashes, semicolons, @, ...) is written as an octal number, followed by
/// noenhanced. Single quotes would not do: gnuplot 5.4 ends the string 'x at its first quote when x begins with one.
/// Control characters become spaces, broken UTF-8 becomes U+FFFD.
[[nodiscard]] std::string literal(std::string_view text);
/// A number as gnuplot reads it; not finite: NaN.
[[nodiscard]] std::string number(double value);

struct Size {
  double width_cm;
  double height_cm;
  [[nodiscard]] double width_points() const { return width_cm * points_per_cm; }
  [[nodiscard]] double height_points() const { return height_cm * points_per_cm; }
  static constexpr double points_per_cm = 72.0 / 2.54;
};

/// One figure in the making: data blocks and the commands that plot them. Nothing reaches gnuplot before finish().
class Drawing {
 public:
  using Row = std::array<double, 4>;

  explicit Drawing(Size size) : size_(size) {}
  /// Keeps rows and returns the name of their data block, e.g. "$data3". No rows: one row of NaN.
  [[nodiscard]] std::string block(std::vector<Row> rows);
  /// Commands, run once per format after the common style.
  [[nodiscard]] std::ostream& commands() { return commands_; }
  [[nodiscard]] const Size& size() const { return size_; }
  /// Draws svg, pdf and png and puts all three in place. Throws FigureError.
  void finish(const FigureFile& target) const;

 private:
  void send(const std::string& command) const;

  Size size_;
  std::vector<std::vector<Row>> blocks_;
  std::ostringstream commands_;
};

}  // namespace iclflow::plots
