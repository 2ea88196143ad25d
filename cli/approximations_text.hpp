// What `compare --methods` found, in words, as JSON, as CSV and as a picture.
#pragma once

#include <string>

#include "cli/record.hpp"
#include "mercer/report/line_chart.hpp"
#include "mercer/studies/compare_approximations.hpp"

namespace mercer::cli {

std::string approximations_text(const studies::ApproximationsResult& result,
                                const std::string& learn);
Json approximations_json(const studies::ApproximationsResult& result);
std::string approximations_csv(const studies::ApproximationsResult& result);
/// Distance of the mean from the exact one against the seconds of fit and predictions; without an
/// exact fit the first score instead.
report::LineChart approximations_picture(const studies::ApproximationsResult& result,
                                         const std::string& name);

}  // namespace mercer::cli
