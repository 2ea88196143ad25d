// Heat maps as a picture that any browser shows: one panel per method, one cell per pair of grid
// values, the number in each cell and a colour bar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer::report {

struct HeatMapCell {
  std::optional<double> value;  // empty: no colour
  std::string text;             // shown in the cell
};

struct HeatMapPanel {
  std::string title;
  /// cells[row][column]; as many as there are row and column labels.
  std::vector<std::vector<HeatMapCell>> cells;
  /// Colours: values below 0 blue, above 0 red, white at 0; otherwise from white (least) to dark.
  bool diverging = true;
};

struct HeatMap {
  std::string title, subtitle;
  std::string column_title, row_title;
  std::vector<std::string> columns, rows;  // labels
  std::vector<HeatMapPanel> panels;
  std::string legend;  // what the diverging colours mean
  double range = 1.5;  // a diverging colour is full at this distance from 0
  int panels_across = 3;
};

/// The picture as SVG. Throws InvalidArgument when a panel has the wrong number of cells.
std::string svg(const HeatMap& map);

}  // namespace mercer::report
MERCER_API_END
