#include "mercer/core/error.hpp"

#include <fmt/format.h>

namespace mercer {

DimensionMismatch::DimensionMismatch(std::string_view what, Index value, std::string_view other,
                                     Index other_value)
    : InvalidArgument(fmt::format("{} is {}, but {} is {}", what, value, other, other_value)) {}

}  // namespace mercer
