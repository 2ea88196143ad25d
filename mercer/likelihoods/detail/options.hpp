// Options of a likelihood as users type them, and checks of its parameters.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "mercer/core/error.hpp"
#include "mercer/core/types.hpp"

namespace mercer::likelihoods::detail {

inline void refuse_options(std::string_view name, std::string_view options) {
  if (!options.empty())
    throw InvalidArgument(
        fmt::format("the likelihood '{}' has no options, but '{}' follows it", name, options));
}

/// exp(theta) of the one parameter of a likelihood.
inline double only_parameter(std::string_view name, ConstVectorView theta) {
  if (theta.size() != 1)
    throw DimensionMismatch("likelihood: parameters given", theta.size(),
                            fmt::format("parameters of {}", name), 1);
  const double value = std::exp(theta(0));
  if (!std::isnormal(value))
    throw InvalidArgument(fmt::format("{}: the log parameter {} is out of range", name, theta(0)));
  return value;
}

/// Refuses another number of slopes than that of the one parameter of a likelihood.
inline void check_one_slope(std::string_view name, std::size_t asked) {
  if (asked != 1)
    throw DimensionMismatch("likelihood: slopes asked for", static_cast<Index>(asked),
                            fmt::format("parameters of {}", name), 1);
}

}  // namespace mercer::likelihoods::detail
