#include "mercer/krylov/trail.hpp"

#include <utility>

namespace mercer::krylov {
namespace {

constexpr double kApart = 3;  // so that most of the earlier error is gone in the later solution

}  // namespace

void Trail::offer(ConstVectorView x, double residual, double scale) {
  const double unscaled = residual / scale;
  if (last_.x.size() > 0 && !(kApart * unscaled <= last_.residual)) return;
  std::swap(previous_, last_);
  last_.x = x / scale;
  last_.residual = unscaled;
}

void Trail::restart(ConstVectorView x, double residual, double scale) {
  previous_ = last_ = {};
  offer(x, residual, scale);
}

const Trail::Point* Trail::before(double residual) const {
  for (const Point* point : {&last_, &previous_})
    if (point->residual > 0 && point->residual >= kApart * residual) return point;
  return nullptr;
}

}  // namespace mercer::krylov
