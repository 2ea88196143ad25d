// What a comparison of solvers and preconditioners says of itself: table, JSON, CSV and heat maps.
#pragma once

#include <string>

#include "cli/record.hpp"
#include "mercer/report/heat_map.hpp"
#include "mercer/studies/compare.hpp"

namespace mercer::cli {

/// `given` are the options as the words gave them.
Json compare_json(const studies::CompareResult& result, const studies::CompareOptions& options,
                  const Json& given, const data::Dataset& data, const std::string& path);
/// One row per run, with a header.
std::string compare_csv(const studies::CompareResult& result);
/// `name` is that of the data, for the title.
report::HeatMap compare_picture(const studies::CompareResult& result, const std::string& name,
                                const std::string& kernel);
/// For people: a table of methods for one cell, or tables of iterations for a grid.
std::string compare_text(const studies::CompareResult& result,
                         const studies::CompareOptions& options);

}  // namespace mercer::cli
