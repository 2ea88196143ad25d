// Lines with points over two logarithmic axes, as a picture that any browser shows: error against
// time, one line for each method.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer::report {

struct ChartPoint {
  double x = 0, y = 0;  // positive; others are left out
  std::string label;    // beside the point; may be empty
};

struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;  // joined in this order
};

struct LineChart {
  std::string title, subtitle;
  std::string x_title, y_title;
  std::vector<ChartLine> lines;
  std::optional<double> mark;  // a broken line upwards at this x
  std::string mark_label;
};

/// The picture as SVG. Throws InvalidArgument when no line has a point.
std::string svg(const LineChart& chart);

}  // namespace mercer::report
MERCER_API_END
