// Draws from the posterior of f that are functions: they can be evaluated anywhere, piece by piece,
// and values of one draw at different points belong together. With u_s = H^-1 (f0_s(X) + e_s),
//     f_s(x) = mean(x) + f0_s(x) - k(x, X) u_s,     e_s ~ N(0, D), D the noise,
// where f0_s is a draw from the prior: random Fourier features with normal weights. With a mean of
// basis A, b_s = M^-1 A'u_s (M = A'H^-1 A) is what the trend would make of that draw, and
//     f_s(x) = mean(x) + f0_s(x) - a(x)'b_s - k(x, X) (u_s - H^-1 A b_s).
// Functions that are coupled in a row have C draws at a time, and with the root R of their
// curvature
//     u = R B^-1 (R'f0 + e),  e ~ N(0, I),
// has the covariance R B^-1 R' = (K + W^-1)^-1 without a division by W.
//   Source: Wilson et al. (2020), Efficiently sampling functions from Gaussian process posteriors.
//   Cost:   one solve with H per draw, all in a block, once; after that N kernel values, F features
//           and 2 (N + F) flops per draw for a point.
//   When not: variances alone: over t draws they are known to a share of sqrt(2/t) of themselves,
//           and the F features stand in for the prior to about sqrt(2/F).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mercer/approximations/random_features.hpp"
#include "mercer/core/options.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct PathwiseOptions {
  Index count = 64;  // draws; the first ones do not depend on how many there are
  Index features = 4096;
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(PathwiseOptions& o, Visitor&& field) {
  field("count", o.count, Positive{});
  field("features", o.features, Positive{});
}

class PathwiseDraws {
 public:
  /// u = H^-1 b for a block of columns.
  using Solve = std::function<void(ConstMatrixView b, MatrixView u)>;

  /// `x` must outlive this; `noise` has the noise variance of each of its rows. Throws
  /// InvalidArgument when refusal(kernel) gives a reason.
  PathwiseDraws(const Problem& problem, const Matrix& x, ConstVectorView noise,
                const Weights& weights, const PathwiseOptions& options, const Solve& solve);

  /// The same for any posterior: u of the prior draws at the rows of x, N x options.count.
  using Update = std::function<Matrix(const Matrix& prior)>;
  PathwiseDraws(const Problem& problem, const Matrix& x, const PathwiseOptions& options,
                const Update& update);

  Index count() const { return coefficients_.cols(); }
  /// f_s - mean at the rows of `at`, one column per draw.
  Matrix deviations(ConstMatrixView at) const;

  /// Why there are no draws for this kernel, as a sentence; empty when there are.
  static std::string refusal(const kernels::Kernel& kernel);

  /// For the planner: beside the data (building included), and of one point for all draws.
  static double bytes(Index n, const PathwiseOptions& options);
  static double flops(Index n, Index d, const PathwiseOptions& options);

 private:
  Problem problem_;
  const Matrix& x_;
  approximations::RandomFeatures features_;
  Matrix coefficients_;  // F x count: normal weights of the features
  Matrix weights_;       // N x count: u_s - H^-1 A b_s
  Matrix trend_;         // q x count: b_s
};

}  // namespace mercer::inference
MERCER_API_END
