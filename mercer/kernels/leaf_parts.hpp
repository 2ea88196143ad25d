// What leaves are written with; see leaves-inl.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <span>
#include <string_view>
#include <vector>

#include "mercer/core/rng.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::kernels {

/// How a leaf sees a pair of points:
///   distance  r2 = sum_f (a_f - b_f)^2 of its features;
///   dot       s = sum_f a_f b_f;
///   constant  not at all.
enum class Family { distance, dot, constant };

/// The features of an input: the input divided by its lengthscale, or the point on a circle whose
/// circumference is the period (cosine and sine, divided by the lengthscale).
enum class InputMap { plain, circle };

/// For grammar, --help and docs/kernels.md.
struct LeafWords {
  std::string_view name;                         // as the user types it and as it is printed
  std::array<std::string_view, 2> aliases = {};  // other names that are understood
  std::string_view formula;
  std::string_view remark;
};

/// The positive number of its own that a leaf may have beside its lengthscales; it is learned.
struct ShapeParameter {
  std::string_view name;  // empty: there is none
  double start = 0;
  double least = 0;  // no learned or given value lies below `least` or above `most`
  double most = std::numeric_limits<double>::infinity();
};

/// A whole number of its own, which is given and not learned.
struct DegreeParameter {
  int start = 0;  // 0: there is none
  int most = 0;
};

/// Values of both.
struct OwnNumbers {
  double shape = 0;
  int degree = 1;
};

/// (s + offset)^degree: a dot leaf as a polynomial, which random features multiply out.
struct PowerForm {
  double offset = 0;
  int degree = 1;
};

/// What a leaf has unless it says otherwise.
struct LeafDefaults {
  static constexpr InputMap inputs = InputMap::plain;
  static constexpr bool has_lengthscale = true;
  static constexpr bool has_iso_lengthscale = true;
  static constexpr ShapeParameter shape = {};
  static constexpr DegreeParameter degree = {};
};
struct DistanceLeaf : LeafDefaults {
  static constexpr Family family = Family::distance;
};
struct DotLeaf : LeafDefaults {
  static constexpr Family family = Family::dot;
};
struct ConstantLeaf : LeafDefaults {
  static constexpr Family family = Family::constant;
  static constexpr bool has_lengthscale = false;
};

template <class... Leaves>
struct LeafList {
  static constexpr std::size_t size = sizeof...(Leaves);
};

/// A Gamma variable of mean 1, by inversion: a frequency then moves smoothly with the shape.
double unit_gamma(double shape, Rng& rng);

}  // namespace mercer::kernels
MERCER_API_END
