#include "mercer/preconditioners/jacobi.hpp"

#include "mercer/core/error.hpp"

namespace mercer::preconditioners {
namespace {

Built make_jacobi(const Target& target, const PreconditionerOptions&) {
  Built built;
  built.preconditioner = std::make_unique<Jacobi>(target.k, target.noise);
  built.report.bytes = 8.0 * static_cast<double>(target.k.size());
  built.report.kernel_values = static_cast<double>(target.k.size());
  return built;
}

Cost jacobi_cost(Index n, Index, const PreconditionerOptions&) {
  const auto points = static_cast<double>(n);
  return {.bytes = 8 * points,
          .peak_bytes = 16 * points,
          .kernel_values = points,
          .apply_flops = points};
}

}  // namespace

PreconditionerInfo jacobi_info() {
  return {.name = "jacobi",
          .summary = "the diagonal of K plus noise",
          .make = make_jacobi,
          .cost = jacobi_cost,
          .over_ranks = OverRanks::whole,
          .expected_gain = 1};
}

Jacobi::Jacobi(const operators::KernelOperator& k, const linalg::Diagonal& noise)
    : space_(k.row_space()), d_(k.diagonal() + noise.vector(k.size())) {
  if (space_.any(d_.size() > 0 && (!(d_.minCoeff() > 0) || !d_.allFinite())))
    throw InvalidArgument(
        "jacobi: the diagonal of the kernel matrix plus noise must be positive and finite");
}

void Jacobi::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size()) throw DimensionMismatch("Jacobi: rows of r", r.rows(), "size", size());
  for (Index j = 0; j < r.cols(); ++j) z.col(j).array() = r.col(j).array() / d_.array();
}

double Jacobi::log_det() const { return space_.sum(d_.array().log().sum()); }

void Jacobi::sample(Rng& rng, MatrixView z) const {
  if (z.rows() != size()) throw DimensionMismatch("Jacobi: rows of z", z.rows(), "size", size());
  linalg::fill_normal(rng, space_, z);
  for (Index j = 0; j < z.cols(); ++j) z.col(j).array() *= d_.array().sqrt();
}

}  // namespace mercer::preconditioners
