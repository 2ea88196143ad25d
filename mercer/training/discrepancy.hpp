// What exact gradients add to those of the surrogate, as a linear function of theta:
//   D(theta) = g_exact(theta) - g_surrogate(theta) = c + B (theta - at),   B symmetric.
// c is the last difference seen. B follows from the changes of D between exact gradients: where a
// move s turned out too long, because the likelihood is more curved than the surrogate, B has the
// slope along s that was seen, and is changed in no direction that is conjugate to s in the metric
// of the information matrix F, so that it does not depend on the units of the parameters. B is
// never positive: what is less curved than the surrogate only takes a step more.
//   Source: the part along s of the symmetric secant updates (Dennis & Schnabel 1983, chapter 11).
//           Their other part has both signs, and has made the corrected likelihood unbounded. Both
//           c and B are sums over rows, so that those of fewer rows serve more rows, scaled by
//           their numbers.
//   Cost:   p^3 for p parameters.
#pragma once

#include "mercer/core/types.hpp"
#include "mercer/training/archive.hpp"

namespace mercer::training {

class Discrepancy {
 public:
  explicit Discrepancy(Index parameters);

  /// D at theta. B learns from the change since the last, of the same rows and the same surrogate.
  void observe(const Vector& theta, const Vector& difference, const Matrix& information);
  /// The same of another surrogate: B is kept as it is.
  void replace(const Vector& theta, const Vector& difference);
  /// For so many times the rows.
  void scale(double factor);

  Vector at(ConstVectorView theta) const { return c_ + b_ * (theta - at_); }
  /// Whose gradient it is; 0 where the last difference was seen.
  double integral(ConstVectorView theta) const;
  const Matrix& slope() const { return b_; }

  void visit_state(Archive& archive);

 private:
  bool known_ = false;
  Vector at_, c_;
  Matrix b_;
};

}  // namespace mercer::training
