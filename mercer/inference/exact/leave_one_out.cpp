#include "mercer/inference/exact/leave_one_out.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/weights.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {

LeaveOneOut leave_one_out(const Problem& problem, const Observations& rows) {
  const Index n = rows.size();
  if (rows.replicates.merged_rows() > 0)
    throw InvalidArgument("leave-one-out: rows were merged; it is about each observation");
  const Vector y = rows.target();
  const Vector noise = rows.noise.at(problem.noise()).vector(n);
  const Matrix basis = problem.basis(rows.x);
  Matrix h(n, n);
  operators::dense_matrix(problem.kernel, rows.x, h);
  const Vector prior = h.diagonal();
  h.diagonal() += noise;
  linalg::Cholesky factor(std::move(h));

  Matrix solves(n, 1 + basis.cols());
  solves << y, basis;
  factor.solve_in_place(solves);
  // w = P y, beta_covariance = (A'Q A)^-1.
  const Weights weights = combine_solves(solves, basis);
  const Vector q = std::move(factor).inverse().diagonal();
  Vector p = q;
  if (basis.cols() > 0)
    p -= (weights.basis_solves * weights.beta_covariance)
             .cwiseProduct(weights.basis_solves)
             .rowwise()
             .sum();
  // What is left is rounding when the row alone determines a coefficient of the trend.
  constexpr double smallest_share = 1e-9;
  for (Index i = 0; i < n; ++i)
    if (!(p(i) > smallest_share * q(i)))
      throw DataError(fmt::format(
          "the trend of the mean cannot be estimated without row {} of those used: leave-one-out "
          "has no prediction for it; use `mean=constant` or zero, or `folds=10`",
          i + 1));
  LeaveOneOut out;
  out.mean = y - weights.w.cwiseQuotient(p);
  out.variance = p.cwiseInverse();
  // The difference loses digits where the noise dominates; f is never known beyond rounding.
  out.latent_variance = (out.variance - noise).cwiseMax(1e-12 * prior);
  return out;
}

double leave_one_out_bytes(Index n) { return linalg::cholesky_bytes(n); }

}  // namespace mercer::inference
