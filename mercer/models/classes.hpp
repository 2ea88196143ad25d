// Classes of a target: which values there are, what they are called, and whether a column of
// numbers means classes at all.
#pragma once

#include <string>
#include <vector>

#include "mercer/data/dataset.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// More than this are refused: each class has a latent function of its own.
inline constexpr Index kMostClasses = 100;

/// Labels and the numbers they are coded as, ascending; text labels are coded 0, 1, ...
struct Classes {
  std::vector<std::string> labels;
  Vector values;

  Index count() const { return values.size(); }
  /// Number of latent functions: one per class; a single one, that of the second class, for two
  /// classes whose likelihood does not couple functions.
  Index functions(bool coupled = false) const { return count() == 2 && !coupled ? 1 : count(); }
  /// The place of a value, unset when it is none of them.
  std::optional<Index> find(double value) const;
  /// 0 and 1, N x functions(coupled). Throws DataError when a value is no class.
  Matrix indicators(ConstVectorView target, bool coupled = false) const;
};

/// Throws DataError when there are more than kMostClasses, or a number is not an integer.
Classes find_classes(const data::Dataset& data);

/// True when a target is taken for classes without being asked: text, or two different integers in
/// ten rows or more. More than two integers may be ratings or counts, which are numbers.
bool looks_like_classes(const data::Dataset& data);

/// The integers of a target that might be classes and is learned as numbers: three to ten of them,
/// each in five rows or more on average, ascending; empty otherwise.
std::vector<long long> few_integers(const data::Dataset& data);

}  // namespace mercer::models
MERCER_API_END
