// How exactly a check of approximate variances is solved. For u with the residual r = k* - H u,
//   k*'H^-1 k* = 2 k*'u - u'H u + r'H^-1 r = k*'u + u'r + r'H^-1 r:
// without the last term the variance is too large by r'H^-1 r, which is second order in the error
// of u, lies in [0, r'D^-1 r], and is estimated from the coefficients of conjugate gradients. The
// solve ends when what that leaves open of a standard deviation is little against the error that
// is being measured, rather than at a fixed residual.
//   Cost: protein, 20,000 rows, matern32: 21 iterations to a relative residual of 1e-2, which
//         leaves a third of the error open; 32 to 1e-3 (1 %); 60 and more to what exact variances
//         take.
//   When not: where the variances themselves are wanted (FunctionQuery::exact_variances).
#pragma once

#include <optional>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// Variances of C functions at M rows, to check approximate ones by.
struct CheckedVariances {
  Matrix variance;   // M x C
  Matrix truncated;  // M x C: by how much `variance` is too large, estimated
  Matrix bound;      // M x C: by how much at most, rounding included
  int iterations = 0;
  std::int64_t matvecs = 0;

  /// A block of rows of some functions, from this row and function on.
  void put(Index first_row, Index first_function, const CheckedVariances& some);
};

/// How far sqrt(variance) is above the root of a variance that is `less` smaller.
double sd_excess(double variance, double less);

class CheckTolerance {
 public:
  /// `exact` is the tolerance of exact variances, which a check never falls below; `given` is used
  /// as it is.
  CheckTolerance(double exact, std::optional<double> given);
  /// Of the next solve, relative to the right-hand sides.
  double value() const { return value_; }
  /// Whether the check of the standard deviations `sd` is accurate enough, or as accurate as it may
  /// become; when not, value() is smaller from now on.
  bool suffices(ConstMatrixView sd, ConstMatrixView variance, ConstMatrixView truncated);

 private:
  double value_, least_;
};

}  // namespace mercer::inference
MERCER_API_END
