#include "mercer/preconditioners/ssor.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::preconditioners {
namespace {

using linalg::Transpose;

Cost ssor_cost(Index n, Index, const PreconditionerOptions&) {
  const double entries = static_cast<double>(n) * static_cast<double>(n);
  return {.bytes = 8 * entries,
          .peak_bytes = 8 * entries + 32 * static_cast<double>(n),
          .kernel_values = entries,
          .build_flops = entries,
          .apply_flops = 2 * entries};
}

Built make_ssor(const Target& target, const PreconditionerOptions&) {
  const Index n = target.k.size();
  Built built;
  built.preconditioner = std::make_unique<Ssor>(target.k, target.noise);
  built.report.bytes = ssor_cost(n, 1, {}).bytes;
  built.report.kernel_values = static_cast<double>(n) * static_cast<double>(n + 1) / 2;
  return built;
}

}  // namespace

PreconditionerInfo ssor_info() {
  return {.name = "ssor",
          .summary = "symmetric Gauss-Seidel on the whole of K plus noise (N^2 memory)",
          .make = make_ssor,
          .cost = ssor_cost};
}

Ssor::Ssor(const operators::KernelOperator& k, const linalg::Diagonal& noise)
    : m_(k.size(), k.size()) {
  constexpr double w = ssor_relaxation;
  operators::dense_matrix(k.kernel(), k.points(), m_);
  for (Index j = 0; j < size(); ++j) {
    const double d = m_(j, j) + noise(j);
    if (!(d > 0) || !std::isfinite(d))
      throw InvalidArgument(
          "ssor: the diagonal of the kernel matrix plus noise must be positive and finite");
    m_(j, j) = d / w;
    m_.col(j).tail(size() - j) *= std::sqrt(w / (2 - w) * w / d);
  }
}

void Ssor::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size()) throw DimensionMismatch("Ssor: rows of r", r.rows(), "size", size());
  z = r;
  linalg::solve_lower(m_, Transpose::no, z);
  linalg::solve_lower(m_, Transpose::yes, z);
}

double Ssor::log_det() const {
  double sum = 0;
  for (Index i = 0; i < size(); ++i) sum += std::log(m_(i, i));
  return 2 * sum;
}

void Ssor::sample(Rng& rng, MatrixView z) const {
  if (z.rows() != size()) throw DimensionMismatch("Ssor: rows of z", z.rows(), "size", size());
  rng.fill_normal(z);
  linalg::multiply_lower(m_, z);
}

}  // namespace mercer::preconditioners
