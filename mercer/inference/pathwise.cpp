#include "mercer/inference/pathwise.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/core/rng.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

using approximations::RandomFeatures;
using linalg::Transpose;

Index feature_count(const kernels::Kernel& kernel, const PathwiseOptions& options) {
  validate(options);
  return std::max(options.features, RandomFeatures::smallest_count(kernel));
}

}  // namespace

PathwiseDraws::PathwiseDraws(const Problem& problem, const Matrix& x,
                             const PathwiseOptions& options, const Update& update)
    : problem_(problem),
      x_(x),
      features_(problem.kernel, feature_count(problem.kernel, options), options.seed),
      coefficients_(features_.count(), options.count) {
  for (Index s = 0; s < options.count; ++s)
    Rng(options.seed, "pathwise prior", static_cast<std::uint64_t>(s))
        .fill_normal(coefficients_.col(s));
  weights_ = update(features_.combine(x, coefficients_));
}

PathwiseDraws::PathwiseDraws(const Problem& problem, const Matrix& x, ConstVectorView noise,
                             const Weights& weights, const PathwiseOptions& options,
                             const Solve& solve)
    : PathwiseDraws(problem, x, options, [](const Matrix& prior) { return prior; }) {
  Matrix b = std::move(weights_);
  weights_ = Matrix::Zero(x.rows(), options.count);
  Vector e(x.rows());
  for (Index s = 0; s < options.count; ++s) {
    Rng(options.seed, "pathwise noise", static_cast<std::uint64_t>(s)).fill_normal(e);
    b.col(s) += noise.cwiseSqrt().cwiseProduct(e);
  }
  solve(b, weights_);
  if (weights.basis_solves.cols() == 0) return;
  Matrix moments(weights.basis_solves.cols(), options.count);  // A'u
  linalg::gemm(1.0, weights.basis_solves, Transpose::yes, b, Transpose::no, 0.0, moments);
  trend_ = weights.beta_covariance * moments;
  linalg::gemm(-1.0, weights.basis_solves, Transpose::no, trend_, Transpose::no, 1.0, weights_);
}

Matrix PathwiseDraws::deviations(ConstMatrixView at) const {
  Matrix out = features_.combine(at, coefficients_);
  Matrix learned(at.rows(), count());
  operators::cross_apply(problem_.kernel, at, x_, weights_, operators::Precision::float64, learned);
  out -= learned;
  if (trend_.rows() > 0) out -= problem_.basis(at) * trend_;
  return out;
}

std::string PathwiseDraws::refusal(const kernels::Kernel& kernel) {
  return RandomFeatures::refusal(kernel);
}

double PathwiseDraws::bytes(Index n, const PathwiseOptions& options) {
  const auto features = static_cast<double>(options.features);
  const auto count = static_cast<double>(options.count);
  return 8.0 * count * (3.0 * static_cast<double>(n) + features) +
         RandomFeatures::combine_bytes(options.features);
}

double PathwiseDraws::flops(Index n, Index d, const PathwiseOptions& options) {
  constexpr double sine = 40;  // flops that a sine or cosine takes as long as
  const auto features = static_cast<double>(options.features);
  return features * (static_cast<double>(d) + sine) +
         2 * static_cast<double>(options.count) * (static_cast<double>(n) + features);
}

}  // namespace mercer::inference
