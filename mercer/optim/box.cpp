#include "mercer/optim/box.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::optim {
namespace {

constexpr double margin = 1e-3;  // of the width

}  // namespace

Box::Box(Vector lower, Vector upper) : lower_(std::move(lower)), upper_(std::move(upper)) {
  if (lower_.size() != upper_.size())
    throw DimensionMismatch("bounds: length of lower", lower_.size(), "length of upper",
                            upper_.size());
  for (Index i = 0; i < lower_.size(); ++i) {
    const bool finite = std::isfinite(lower_(i)) && std::isfinite(upper_(i));
    const bool none = lower_(i) == -INFINITY && upper_(i) == INFINITY;
    if ((!finite && !none) || !(lower_(i) <= upper_(i)))
      throw InvalidArgument(
          fmt::format("bounds: parameter {} has [{}, {}]; give two finite bounds in order, or none",
                      i, lower_(i), upper_(i)));
  }
}

bool Box::free(Index i) const { return !bounded() || std::isinf(lower_(i)); }

void Box::check_size(Index n) const {
  if (bounded() && n != lower_.size())
    throw DimensionMismatch("bounds: number of parameters", n, "length of the bounds",
                            lower_.size());
}

Vector Box::to_theta(ConstVectorView z) const {
  Vector theta = z;
  for (Index i = 0; i < z.size(); ++i)
    if (!free(i))
      theta(i) = half(i) == 0 ? lower_(i)
                              : std::clamp(middle(i) + half(i) * std::sin(z(i) / half(i)),
                                           lower_(i), upper_(i));
  return theta;
}

Vector Box::to_z(ConstVectorView theta) const {
  Vector z = theta;
  for (Index i = 0; i < z.size(); ++i)
    if (!free(i)) z(i) = half(i) == 0 ? 0.0 : half(i) * std::asin((theta(i) - middle(i)) / half(i));
  return z;
}

Vector Box::slope(ConstVectorView z) const {
  Vector d = Vector::Ones(z.size());
  for (Index i = 0; i < z.size(); ++i)
    if (!free(i)) d(i) = half(i) == 0 ? 0.0 : std::cos(z(i) / half(i));
  return d;
}

Vector Box::second_derivative(ConstVectorView z) const {
  Vector d = Vector::Zero(z.size());
  for (Index i = 0; i < z.size(); ++i)
    if (!free(i) && half(i) > 0) d(i) = -std::sin(z(i) / half(i)) / half(i);
  return d;
}

Vector Box::inside(ConstVectorView theta) const {
  Vector moved = theta;
  for (Index i = 0; i < theta.size(); ++i) {
    if (free(i)) continue;
    const double gap = margin * 2 * half(i);
    moved(i) = std::clamp(theta(i), lower_(i) + gap, upper_(i) - gap);
  }
  return moved;
}

int Box::hit(Index i, double theta) const {
  if (free(i)) return 0;
  const double gap = margin * 2 * half(i);
  if (theta - lower_(i) <= gap) return -1;
  return upper_(i) - theta <= gap ? 1 : 0;
}

}  // namespace mercer::optim
