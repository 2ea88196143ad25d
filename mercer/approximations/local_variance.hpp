// The variance of f at a new point, given only the m training points J that it is most correlated
// with:  k** - k_J'(K_JJ + D_J)^-1 k_J,  D the noise. Never below the variance given all points:
// who knows less is less certain. That holds for every J, so the search for J may be rough.
//   Source: Vecchia (1988); Katzfuss, Guinness, Gong & Zilber (2020) for predictions.
//   Cost:   m^2/2 kernel values and m^3/3 flops a point. Neighbours: by kd-tree for d <= 6, else
//           N d float32 flops; N kernel values for a kernel that is not one distance.
//   When not: long lengthscales and much noise, where thousands of points share in the answer.
#pragma once

#include <optional>

#include "mercer/approximations/neighbours.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

class LocalVariance {
 public:
  /// `x` must outlive this; `noise` has the noise variance of each of its rows.
  LocalVariance(kernels::Kernel kernel, const Matrix& x, Vector noise, Index neighbours);

  /// m: what was asked for, or all points.
  Index neighbours() const { return neighbours_; }
  /// k_J'(K_JJ + D_J)^-1 k_J for the rows of `at`.
  Vector explained(ConstMatrixView at) const;

  /// For the planner: beside the data, and of one new point.
  static double bytes(Index n, Index d, Index neighbours);
  static double flops(Index n, Index d, Index neighbours);
  static double kernel_values(const kernels::Kernel& kernel, Index n, Index neighbours);

 private:
  /// `neighbours` indices to a row of `at`.
  std::vector<std::int32_t> find(ConstMatrixView at) const;
  void find_most_correlated(ConstMatrixView at, std::int32_t* out) const;

  kernels::Kernel kernel_;
  const Matrix& x_;
  Vector noise_;
  Index neighbours_;
  ScaledMetric metric_;
  std::optional<NearestPoints> nearest_;  // when the most correlated are the nearest
  Vector deviation_;                      // sqrt(k_jj + D_jj), when they are not
};

}  // namespace mercer::approximations
MERCER_API_END
