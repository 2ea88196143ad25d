// Two earlier solutions of a solve, so that its last change is known when it ends: the error that
// is left is estimated from it (docs/certificate.md).
#pragma once

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

class Trail {
 public:
  struct Point {
    Vector x;
    double residual = 0;  // |b - A x|, as the solver believes
  };

  /// The solution x / scale, whose residual / scale has this norm; solutions come in order. It is
  /// kept when its residual is a third of the last one kept, or less.
  void offer(ConstVectorView x, double residual, double scale = 1);
  /// The residuals of solutions so far were not what the solver believed: this is the first.
  void restart(ConstVectorView x, double residual, double scale = 1);
  /// The last one kept whose residual is at least three times `residual`; null when there is none.
  const Point* before(double residual) const;

 private:
  Point last_, previous_;
};

}  // namespace mercer::krylov
MERCER_API_END
