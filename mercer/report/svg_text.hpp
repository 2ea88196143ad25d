// Text in an SVG picture.
#pragma once

#include <string>

namespace mercer::report {

/// A text element at a point; `style` are further attributes.
std::string svg_text(double x, double y, const std::string& what, const std::string& style);

}  // namespace mercer::report
