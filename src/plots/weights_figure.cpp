#include "iclflow/plots/weights_figure.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double page_cm = 17.8;  // two journal columns
constexpr double left_points = 46.0;
constexpr double bar_points = 52.0;  // colour bar and its numbers
constexpr double gutter_points = 9.0;
constexpr double largest_map = 92.0;  // points
constexpr double heading_points = 11.0;
constexpr double row_gap_points = 21.0;  // names of the columns' blocks stand there
constexpr double layer_name_points = 10.0;
constexpr std::size_t longest_label = 24;

int size_of(const std::vector<WeightBlock>& blocks) {
  int size = 0;
  for (const WeightBlock& block : blocks) size += block.size;
  return size;
}

/// One product of one layer, all its maps.
struct MapRow {
  std::string symbol;  ///< enhanced text
  const std::vector<WeightBlock>* blocks;
  std::vector<const std::vector<double>*> values;
  double largest = 0.0;
};

MapRow map_row(const WeightLayer& layer, bool key_query) {
  MapRow row{key_query ? "{/:Italic W}_k^T{/:Italic W}_q" : "{/:Italic P W}_v",
             key_query ? &layer.key_query_blocks : &layer.output_value_blocks,
             {},
             0.0};
  for (const WeightMap& map : layer.maps) {
    const std::vector<double>& values = key_query ? map.key_query : map.output_value;
    row.values.push_back(&values);
    for (const double value : values) {
      if (std::isfinite(value)) row.largest = std::max(row.largest, std::abs(value));
    }
  }
  if (!(row.largest > 0.0)) row.largest = 1.0;
  return row;
}

/// Cells, the first coordinate in the upper left corner.
std::vector<Drawing::Row> cells(const std::vector<double>& values, int size) {
  std::vector<Drawing::Row> rows;
  rows.reserve(values.size());
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      rows.push_back(
          {static_cast<double>(j), static_cast<double>(i), values[static_cast<std::size_t>(i * size + j)], NAN});
    }
  }
  return rows;
}

/// Lines between blocks, and their names: of rows to the left of the first map, of columns below every map.
void write_blocks(std::ostream& out, const std::vector<WeightBlock>& blocks, bool first) {
  double begin = -0.5;
  for (const WeightBlock& block : blocks) {
    if (begin > 0.0) {
      const std::string at = number(begin);
      out << "set arrow from " << at << ", graph 0 to " << at << ", graph 1 nohead front lc rgb '#444444' lw 0.6\n"
          << "set arrow from graph 0, first " << at << " to graph 1, first " << at
          << " nohead front lc rgb '#444444' lw 0.6\n";
    }
    if (!block.symbol.empty()) {
      const std::string middle = number(begin + 0.5 * block.size);
      out << "set label '" << block.symbol << "' at first " << middle
          << ", graph 0 center offset 0,character -0.75 font ',6'\n";
      if (first) {
        out << "set label '" << block.symbol << "' at graph 0, first " << middle
            << " right offset character -0.5,0 font ',6'\n";
      }
    }
    begin += block.size;
  }
}

void write_colour_bar(std::ostream& out, const MapRow& row, const Panel& last, const Size& size) {
  out << "set colorbox user origin screen " << number((last.right + 10.0) / size.width_points()) << ", screen "
      << number(last.bottom / size.height_points()) << " size screen " << number(6.0 / size.width_points())
      << ", screen " << number((last.top - last.bottom) / size.height_points()) << "\nset cbtics ("
      << number(-row.largest) << ", 0, " << number(row.largest) << ") font ',6' offset -0.6,0\nset format cb '%.2g'\n";
}

class Page {
 public:
  explicit Page(const WeightsFigure& figure) : figure_(figure) {
    std::size_t columns = 1;
    for (const WeightLayer& layer : figure.layers) columns = std::max(columns, layer.maps.size());
    const double room = page_cm * Size::points_per_cm - left_points - bar_points;
    const auto count = static_cast<double>(columns);
    side_ = std::min(largest_map, (room - gutter_points * (count - 1.0)) / count);
    width_ = left_points + count * side_ + gutter_points * (count - 1.0) + bar_points;
    if (figure.layers.size() > 1) heading_ += layer_name_points;
  }
  [[nodiscard]] double width_cm() const { return width_ / Size::points_per_cm; }
  [[nodiscard]] double body_points() const {
    return static_cast<double>(figure_.layers.size()) * (heading_ + 2.0 * (side_ + row_gap_points));
  }

  void draw_layer(Drawing& drawing, std::size_t index, double top) const {
    const WeightLayer& layer = figure_.layers[index];
    top -= static_cast<double>(index) * (heading_ + 2.0 * (side_ + row_gap_points)) + heading_;
    for (const bool key_query : {true, false}) {
      draw_row(drawing, layer, map_row(layer, key_query), key_query, top);
      top -= side_ + row_gap_points;
    }
  }

 private:
  void draw_row(Drawing& drawing, const WeightLayer& layer, const MapRow& row, bool headed, double top) const {
    std::ostream& out = drawing.commands();
    const int size = size_of(*row.blocks);
    out << "set cbrange [" << number(-row.largest) << ":" << number(row.largest) << "]\nset xrange [-0.5:" << size - 0.5
        << "]\nset yrange [" << size - 0.5 << ":-0.5]\n";
    for (std::size_t k = 0; k < row.values.size(); ++k) {
      const double left = left_points + static_cast<double>(k) * (side_ + gutter_points);
      const Panel panel{left, left + side_, top - side_, top};
      place(drawing, panel);
      if (k == 0) write_axis_name(drawing, panel, "'" + row.symbol + "'");
      if (headed) {
        const std::string above = ", graph " + number(1.0 + 5.0 / side_);
        out << "set label " << literal(shortened(layer.maps[k].label, longest_label)) << " at graph 0.5" << above
            << " center\n";
        if (k == 0 && figure_.layers.size() > 1) {
          out << "set label " << literal(shortened(layer.name, longest_label)) << " at graph 0, graph "
              << number(1.0 + 15.0 / side_) << " left\n";
        }
      }
      write_blocks(out, *row.blocks, k == 0);
      if (k + 1 == row.values.size()) {
        write_colour_bar(out, row, panel, drawing.size());
      } else {
        out << "unset colorbox\n";
      }
      {
        PlotList list(out);
        list.add(drawing.block(cells(*row.values[k], size)) + " using 1:2:3 with image pixels");
      }
      out << "unset label\nunset arrow\n";
    }
  }

  const WeightsFigure& figure_;
  double side_ = 0.0;
  double width_ = 0.0;
  double heading_ = heading_points;
};

void check(const WeightsFigure& figure) {
  if (figure.layers.empty()) throw std::invalid_argument("a weights figure needs a layer");
  const auto fits = [](const std::vector<double>& values, const std::vector<WeightBlock>& blocks) {
    const auto size = static_cast<std::size_t>(size_of(blocks));
    return size > 0 && values.size() == size * size;
  };
  for (const WeightLayer& layer : figure.layers) {
    if (layer.maps.empty()) throw std::invalid_argument("layer '" + layer.name + "' of a weights figure has no map");
    for (const WeightMap& map : layer.maps) {
      if (!fits(map.key_query, layer.key_query_blocks) || !fits(map.output_value, layer.output_value_blocks)) {
        throw std::invalid_argument("map '" + map.label + "' is not a square over its blocks");
      }
    }
  }
}

}  // namespace

void draw(const WeightsFigure& figure, const FigureFile& target) {
  check(figure);
  const Page page(figure);
  const Head head(figure.title, {}, page.width_cm());
  const double head_cm = head.height_cm() - 0.35;  // no marks stand above these panels
  Drawing drawing({page.width_cm(), head_cm + page.body_points() / Size::points_per_cm});
  drawing.commands() << "set multiplot\nset border 15 lw 0.6\nunset key\nunset xtics\nunset ytics\n"
                     << "set palette defined (-1 '#8A3D00', -0.5 '#E08A4B', 0 '#FFFFFF', 0.5 '#56A5D8', 1 '#00385C')\n";
  head.write(drawing);
  for (std::size_t k = 0; k < figure.layers.size(); ++k) {
    page.draw_layer(drawing, k, page.body_points());
  }
  drawing.commands() << "unset multiplot\n";
  drawing.finish(target);
}

std::string caption(const WeightsFigure& figure) {
  std::string text =
      "Products of the attention weights: W_k^T W_q (row: coordinate of the key's token, column: of the query's token) "
      "and P "
      "W_v (row: coordinate written, column: read). White is 0, blue positive, orange negative; one scale per row of "
      "maps. Lines: channels of the token.";
  if (figure.layers.size() > 1) text += " Two rows of maps per layer.";
  return text;
}

}  // namespace iclflow
