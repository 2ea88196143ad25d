#include "mercer/approximations/randomized_svd.hpp"

#include <algorithm>
#include <limits>

#include "mercer/approximations/nystrom.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"

namespace mercer::approximations {
namespace {

using linalg::Transpose;

Matrix gram_of(const Matrix& y) {
  Matrix gram(y.cols(), y.cols());
  linalg::gram(1.0, y, 0.0, gram);
  return gram;
}

/// y := y Q max(w, floor)^-1/2 for y'y = Q w Q'. Singular values within 1e-8 of the largest become
/// 1, others are brought nearer by as much.
void flatten(Matrix& y) {
  const auto eigen = linalg::symmetric_eigen(gram_of(y));
  const Index m = eigen.values.size();
  const double largest = eigen.values(m - 1);
  if (!(largest > 0)) return;
  const double floor = static_cast<double>(m) * std::numeric_limits<double>::epsilon() * largest;
  linalg::multiply_in_place(
      y, eigen.vectors * eigen.values.cwiseMax(floor).cwiseSqrt().cwiseInverse().asDiagonal());
}

/// An orthonormal basis of the columns of y, in y. Twice flattened, every direction above rounding
/// of the largest has length 1; what is still shorter than 1/10 is rounding error.
void orthonormalise(Matrix& y) {
  flatten(y);
  flatten(y);
  const auto eigen = linalg::symmetric_eigen(gram_of(y));
  const Index m = eigen.values.size();
  Index cut = 0;
  while (cut < m && !(eigen.values(cut) > 0.01)) ++cut;
  const Index kept = m - cut;
  linalg::multiply_in_place(y, eigen.vectors.rightCols(kept) *
                                   eigen.values.tail(kept).cwiseSqrt().cwiseInverse().asDiagonal());
}

/// y := y V with the leading `rank` right singular vectors V of y.
void truncate(Matrix& y, Index rank) {
  if (y.cols() <= rank) return;
  linalg::multiply_in_place(y, linalg::symmetric_eigen(gram_of(y)).vectors.rightCols(rank));
}

Index columns_used(Index n, const RandomizedSvdOptions& options) {
  return std::min(std::min(options.rank, n) + options.oversample, n);
}

double relative_error(const operators::KernelOperator& k) {
  return k.precision() == operators::Precision::float32
             ? static_cast<double>(std::numeric_limits<float>::epsilon())
             : std::numeric_limits<double>::epsilon();
}

}  // namespace

LowRank randomized_svd(const operators::KernelOperator& k, const RandomizedSvdOptions& options) {
  validate(options);
  const Index n = k.size(), columns = columns_used(n, options);
  LowRank result;
  if (n == 0) return result;
  const Vector diagonal = k.diagonal();
  if (!diagonal.allFinite())
    throw InvalidArgument("randomised SVD: the kernel is not finite at some point");
  Matrix q(n, columns), y(n, columns);
  Rng(options.seed, "randomised svd").fill_normal(q);
  for (Index power = 0; power < options.power_iterations; ++power) {
    y.resize(n, q.cols());
    k.apply(q, y);
    result.products += static_cast<double>(q.cols());
    q.swap(y);
    orthonormalise(q);
    if (q.cols() == 0) break;
  }
  if (options.power_iterations == 0) orthonormalise(q);
  result.trace = diagonal.sum();
  result.trace_error = result.trace;
  result.factor.resize(n, 0);
  result.clipped = std::min(options.rank, n);
  if (q.cols() == 0) return result;

  y.resize(n, q.cols());
  k.apply(q, y);
  result.products += static_cast<double>(q.cols());
  Matrix core(q.cols(), q.cols());
  linalg::gemm(1.0, q, Transpose::yes, y, Transpose::no, 0.0, core);
  core = 0.5 * (core + core.transpose()).eval();
  q.resize(0, 0);
  nystrom_factor(y, core, relative_error(k));
  truncate(y, std::min(options.rank, n));
  result.clipped -= y.cols();
  result.trace_error = (diagonal - linalg::squared_rows(y)).cwiseMax(0.0).sum();
  result.factor = std::move(y);
  return result;
}

double randomized_svd_products(Index n, const RandomizedSvdOptions& options) {
  return static_cast<double>((options.power_iterations + 1) * columns_used(n, options));
}

double randomized_svd_flops(Index n, const RandomizedSvdOptions& options) {
  const auto l = static_cast<double>(columns_used(n, options));
  const auto q = static_cast<double>(std::max<Index>(options.power_iterations, 1));
  return (9 * q + 7) * static_cast<double>(n) * l * l + 9 * (3 * q + 2) * l * l * l;
}

double randomized_svd_bytes(Index n, const RandomizedSvdOptions& options) {
  const auto l = static_cast<double>(columns_used(n, options));
  // Two blocks of columns here, and the operator's copies of both while it multiplies.
  return 8 * (static_cast<double>(n) * (4 * l + 3) + 5 * l * l);
}

}  // namespace mercer::approximations
