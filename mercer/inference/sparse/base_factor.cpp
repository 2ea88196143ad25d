#include "mercer/inference/sparse/base_factor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

constexpr double kLeastJitter = 1e-14, kMostJitter = 1e-4;  // of the mean diagonal
// Squared pivots below this share of the mean diagonal are rounding errors.
constexpr double kRoundingPivot = 4 * std::numeric_limits<double>::epsilon();

Matrix gram_of_base(const kernels::Kernel& kernel, const Matrix& base) {
  Matrix s(base.rows(), base.rows());
  operators::lower_matrix(kernel, base, s);
  return s;
}

double mean_diagonal(const Matrix& s) {
  const double diagonal = s.rows() > 0 ? s.diagonal().mean() : 1;
  if (diagonal > 0) return diagonal;
  throw NotPositiveDefinite(
      fmt::format("the prior variance at the base points is {}; it must be positive", diagonal), 0);
}

}  // namespace

BaseFactor::BaseFactor(const kernels::Kernel& kernel, Matrix base)
    : kernel_(kernel), base_(std::move(base)) {
  const Matrix s = gram_of_base(kernel_, base_);
  const double diagonal = mean_diagonal(s);
  if (!try_factor(s, 0, kRoundingPivot * diagonal)) raise_jitter(s, kLeastJitter * diagonal);
  relative_jitter_ = jitter_ / diagonal;
}

// The jitter of a fit does, except where another processor rounds S_bb so that it needs more.
BaseFactor::BaseFactor(const kernels::Kernel& kernel, Matrix base, double jitter)
    : kernel_(kernel), base_(std::move(base)) {
  const Matrix s = gram_of_base(kernel_, base_);
  const double diagonal = mean_diagonal(s);
  if (!try_factor(s, jitter, 0)) raise_jitter(s, std::max(10 * jitter, kLeastJitter * diagonal));
  relative_jitter_ = jitter_ / diagonal;
}

void BaseFactor::raise_jitter(const Matrix& s, double from) {
  const double most = 1.5 * kMostJitter * mean_diagonal(s);
  for (double jitter = from; jitter <= most; jitter *= 10)
    if (try_factor(s, jitter, 0)) return;
  throw NotPositiveDefinite(
      fmt::format("K of the {} base points is not positive definite, not even with {} of its mean "
                  "diagonal added to the diagonal",
                  base_.rows(), kMostJitter),
      0);
}

bool BaseFactor::try_factor(const Matrix& s, double jitter, double least_pivot) {
  Matrix a = s;
  a.diagonal().array() += jitter;
  try {
    factor_ = linalg::Cholesky(std::move(a)).factor();
  } catch (const NotPositiveDefinite&) {
    return false;
  }
  factor_.triangularView<Eigen::StrictlyUpper>().setZero();
  if (factor_.rows() > 0 && factor_.diagonal().cwiseAbs2().minCoeff() < least_pivot) return false;
  jitter_ = jitter;
  return true;
}

Matrix BaseFactor::whitened(ConstMatrixView x) const {
  Matrix v(x.rows(), base_.rows());
  operators::cross_matrix(kernel_, x, base_, v);
  linalg::solve_lower_right(factor_, linalg::Transpose::yes, v);
  return v;
}

void BaseFactor::to_kernel_weights(MatrixView x) const {
  linalg::solve_lower(factor_, linalg::Transpose::yes, x);
}

Vector unexplained(const kernels::Kernel& kernel, ConstMatrixView x, const Matrix& v) {
  return (kernel.diagonal(x) - linalg::squared_rows(v)).cwiseMax(0.0);
}

}  // namespace mercer::inference
