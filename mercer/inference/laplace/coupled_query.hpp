// Mean, covariance and draws of latent functions that are coupled in a row (softmax), given
// Laplace's approximation at its mode. At x* they are jointly normal,
//   mean_c = k*'a_c + offset_c,   covariance = k** I - [k*'Q_cd k*],   Q = R B^-1 R'.
//   Source: Rasmussen & Williams (2006), section 3.5.2.
//   Cost:   by factors 5 C N^2 flops a row; by solves C right-hand sides a row, each with C columns
//           of products with K an iteration. `samples`: one such right-hand side a draw, once; then
//           N kernel values a row and 2 C (N + F) flops a draw.
//   When not: variances of single functions given their neighbours (vecchia) would need the coupled
//           system of those neighbours for every row.
#pragma once

#include <memory>

#include "mercer/inference/laplace/laplace_system.hpp"
#include "mercer/inference/pathwise.hpp"
#include "mercer/inference/query.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// The posterior at the mode. `problem` and `x` are referred to.
struct CoupledPosterior {
  const Problem& problem;
  const Matrix& x;
  Matrix a;                   // N x C
  Matrix w;                   // N x C: the weights of the curvature
  Vector offset;              // C
  Vector bound_per_prior_sd;  // C: times sqrt(k**) it bounds the error of the mean
};

enum class CoupledVariance { none, exact, samples };

struct CoupledQueryOptions {
  CoupledVariance variance = CoupledVariance::exact;
  SystemChoice system;              // "cholesky", or an iterative one
  Index block_rows = 16;            // rows whose covariances are found together
  Index draws = 64;                 // samples: that a covariance is taken over
  Index joint_samples = 0;          // draws that are returned
  std::optional<double> tolerance;  // of iterative solves; unset: a variance is known to 1e-4 k**
  std::uint64_t seed = 0;
};

class CoupledQuery final : public Query {
 public:
  /// Builds the system, unless neither variances nor draws are asked for.
  CoupledQuery(CoupledPosterior posterior, CoupledQueryOptions options);
  ~CoupledQuery() override;
  Moments moments(const QueryBlock& block, const QueryProgress& progress) override;
  CheckedVariances check_variances(const QueryBlock& block, ConstMatrixView sd,
                                   const QueryProgress& progress) override;

  /// Of the system and its factors beside the data, for the planner.
  static double factor_bytes(Index n, Index functions);
  static double factor_flops(Index n, Index functions);
  /// Of one more row of a block: by factors, and of its vectors by solves.
  static double row_flops(Index n, Index functions);
  static double factored_row_bytes(Index n, Index functions);
  static double row_bytes(Index n, Index functions);
  /// Of one more draw while the draws are made.
  static double draw_bytes(Index n, Index functions);

 private:
  Moments exact_variances(const QueryBlock& block, const QueryProgress& progress);
  CheckedVariances check_some(const QueryBlock& block, ConstMatrixView sd,
                              const Observer& observer);
  const PathwiseDraws& make_draws(const QueryProgress& progress, std::int64_t& matvecs);
  Matrix update_of(const Matrix& prior, const QueryProgress& progress, std::int64_t& matvecs);
  double tolerance_for(ConstMatrixView cross) const;
  void sample_covariance(ConstMatrixView deviations, Moments& out) const;
  void settle(const Vector& prior, Moments& out) const;

  CoupledPosterior posterior_;
  CoupledQueryOptions options_;
  double prior_sd_ = 1;  // the largest at the points
  std::unique_ptr<LaplaceSystem> system_;
  std::optional<PathwiseDraws> draws_;
};

}  // namespace mercer::inference
MERCER_API_END
