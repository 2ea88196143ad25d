#include "mercer/models/classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mercer/core/error.hpp"

namespace mercer::models {
namespace {

constexpr std::size_t kFewValues = 10;
constexpr Index kRowsEach = 5;

// The values of the target, ascending; at most one more than `most`.
std::set<double> distinct(ConstVectorView target, std::size_t most) {
  std::set<double> values;
  for (const double value : target) {
    values.insert(value);
    if (values.size() > most) break;
  }
  return values;
}

bool is_integer(double value) { return value == std::round(value) && std::abs(value) < 1e15; }

}  // namespace

std::optional<Index> Classes::find(double value) const {
  const auto* end = values.data() + values.size();
  const auto* found = std::lower_bound(values.data(), end, value);
  if (found == end || *found != value) return {};
  return found - values.data();
}

Matrix Classes::indicators(ConstVectorView target, bool coupled) const {
  Matrix out = Matrix::Zero(target.size(), functions(coupled));
  for (Index i = 0; i < target.size(); ++i) {
    const auto place = find(target(i));
    if (!place)
      throw DataError(fmt::format("row {}: {} is none of the {} classes that were learned", i + 1,
                                  target(i), count()));
    if (out.cols() > 1)
      out(i, *place) = 1;
    else
      out(i, 0) = static_cast<double>(*place);
  }
  return out;
}

Classes find_classes(const data::Dataset& data) {
  const auto& schema = data.schema;
  Classes out;
  if (!schema.target_levels.empty()) {
    out.labels = schema.target_levels;
    out.values = Vector::LinSpaced(static_cast<Index>(out.labels.size()), 0,
                                   static_cast<double>(out.labels.size()) - 1);
  } else {
    const auto values = distinct(data.target, kMostClasses);
    out.values.resize(static_cast<Index>(values.size()));
    std::copy(values.begin(), values.end(), out.values.data());
    for (const double value : values) {
      if (!is_integer(value))
        throw DataError(fmt::format(
            "the target '{}' holds {}, which is no integer: classes are integers or text; say "
            "`task=regression` to learn numbers, or `categorical={}` to take its values as text",
            schema.target, value, schema.target));
      out.labels.push_back(fmt::format("{}", static_cast<long long>(value)));
    }
  }
  if (out.count() > kMostClasses)
    throw DataError(fmt::format(
        "the target '{}' has more than {} classes, and each costs a latent function; group them{}",
        schema.target, kMostClasses,
        schema.target_levels.empty() ? ", or say `task=regression` if its values are numbers"
                                     : ""));
  if (out.count() < 2)
    throw DataError(
        fmt::format("the target '{}' has one class only, '{}'; there is nothing to learn",
                    schema.target, out.labels.empty() ? "" : out.labels[0]));
  return out;
}

namespace {

/// The integers that the target holds, if it holds at most `most` different values, all of them
/// integers, each in five rows or more on average.
std::vector<long long> repeated_integers(const data::Dataset& data, std::size_t most) {
  const auto values = distinct(data.target, most);
  if (values.size() > most || data.size() < kRowsEach * static_cast<Index>(values.size()) ||
      !std::all_of(values.begin(), values.end(), is_integer))
    return {};
  return {values.begin(), values.end()};
}

}  // namespace

bool looks_like_classes(const data::Dataset& data) {
  return !data.schema.target_levels.empty() || !repeated_integers(data, 2).empty();
}

std::vector<long long> few_integers(const data::Dataset& data) {
  auto values = repeated_integers(data, kFewValues);
  if (!data.schema.target_levels.empty() || values.size() < 3) values.clear();
  return values;
}

}  // namespace mercer::models
