#include "mercer/inference/error_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/core/rng.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

constexpr Index kProbes = 128, kColumns = 4096;
// Points more alike than this are the same point.
constexpr double kSame = 1 - 1e-12;
// The largest error at new points is about this times the one seen at the probes.
constexpr double kSafety = 2;

// For each row of `a` the row of x that is most correlated with it without being the same.
std::vector<Index> most_alike(const kernels::Kernel& kernel, ConstMatrixView a, ConstMatrixView x) {
  const Vector own = kernel.diagonal(a).cwiseMax(1e-300).cwiseSqrt();
  Vector best = Vector::Constant(a.rows(), -std::numeric_limits<double>::infinity());
  std::vector<Index> out(static_cast<std::size_t>(a.rows()), -1);
  for (Index first = 0; first < x.rows(); first += kColumns) {
    const Index count = std::min(kColumns, x.rows() - first);
    const ConstMatrixView some = x.middleRows(first, count);
    const Vector other = kernel.diagonal(some).cwiseMax(1e-300).cwiseSqrt();
    Matrix k(a.rows(), count);
    operators::cross_matrix(kernel, a, some, k);
    for (Index j = 0; j < count; ++j)
      for (Index i = 0; i < a.rows(); ++i) {
        const double correlation = k(i, j) / (own(i) * other(j));
        if (!(correlation > best(i)) || correlation > kSame) continue;
        best(i) = correlation;
        out[static_cast<std::size_t>(i)] = first + j;
      }
  }
  return out;
}

}  // namespace

Matrix probe_points(const kernels::Kernel& kernel, ConstMatrixView x, std::uint64_t seed) {
  const auto order = Rng(seed, "probe points").permutation(x.rows());
  const Index count = std::min(kProbes, x.rows());
  Matrix out(count, x.cols());
  for (Index i = 0; i < count; ++i) out.row(i) = x.row(order[static_cast<std::size_t>(i)]);
  const auto partner = most_alike(kernel, out, x);
  for (Index i = 0; i < count; ++i)
    if (const Index j = partner[static_cast<std::size_t>(i)]; j >= 0)
      out.row(i) += (i % 2 == 0 ? 0.5 : -0.5) * (x.row(j) - out.row(i));
  return out;
}

double error_estimate(const Problem& problem, ConstMatrixView x, ConstVectorView w,
                      const WeightChange& missing, std::uint64_t seed) {
  const Matrix probes = probe_points(problem.kernel, x, seed);
  Matrix change(probes.rows(), 1);
  operators::cross_apply(problem.kernel, probes, x, missing.w, operators::Precision::float64,
                         change);
  if (missing.beta.size() > 0) change.col(0) += problem.basis(probes) * missing.beta;
  // Errors of the terms of k*'w are independent of each other, so their sum grows with the root.
  const Vector prior = problem.kernel.diagonal(x);
  const double rounding = std::numeric_limits<double>::epsilon() *
                          std::sqrt(prior.maxCoeff() * prior.dot(w.cwiseAbs2()));
  return kSafety * change.cwiseAbs().maxCoeff() + rounding;
}

}  // namespace mercer::inference
