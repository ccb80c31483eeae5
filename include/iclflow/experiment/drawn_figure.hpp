#pragma once

#include <filesystem>
#include <string>

#include "iclflow/experiment/system.hpp"
#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// Draws a figure of any kind as folder/kind.{svg,pdf,png}; one that cannot be drawn says why and nothing is thrown for
/// it. Throws std::invalid_argument when the figure's arrays do not fit.
template <typename Figure>
[[nodiscard]] DrawnFigure drawn_figure(const std::string& kind, const Figure& figure,
                                       const std::filesystem::path& folder) {
  DrawnFigure drawn{kind, caption(figure), {}};
  try {
    draw(figure, {folder, kind});
  } catch (const FigureError& error) {
    drawn.problem = error.what();
  }
  return drawn;
}

}  // namespace iclflow
