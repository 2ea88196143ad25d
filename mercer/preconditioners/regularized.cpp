#include "mercer/preconditioners/regularized.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/linalg/reductions.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::preconditioners {
namespace {

using operators::Precision;
using operators::TiledOperator;

// Products of an inner solve, for the planner; on concrete with noise 1e-4 it took 30 to 170.
constexpr double typical_inner_products = 50;

linalg::Diagonal checked_shift(const linalg::Diagonal& noise, double delta) {
  noise.require_nonnegative("regularized");
  if (!(delta > 0) || !std::isfinite(delta))
    throw InvalidArgument(fmt::format("regularized: delta is {}, but must be positive", delta));
  return noise.plus(delta);
}

/// Null when the target has one, and where rows are shared among ranks: inner products are then
/// those of K itself, which knows how to share them.
std::unique_ptr<operators::KernelOperator> fast_unless_given(const Target& target) {
  if (target.fast != nullptr || target.k.row_space().split()) return nullptr;
  return std::make_unique<TiledOperator>(target.k.kernel(), target.k.points(), Precision::float32);
}

/// What default_delta needs to know of the noise, the same on all ranks.
linalg::Diagonal noise_of_all_ranks(const Target& target) {
  const auto space = target.k.row_space();
  if (!space.split()) return target.noise;
  const bool noisy = space.all(space.size() == 0 || target.noise.least() > 0);
  const double mean = linalg::harmonic_mean(space, target.noise);
  return noisy ? mean : 0.0;
}

const operators::KernelOperator& fast_of(const Target& target,
                                         const operators::KernelOperator* own) {
  if (own != nullptr) return *own;
  return target.fast != nullptr ? *target.fast : target.k;
}

Built make_regularized(const Target& target, const PreconditionerOptions& options) {
  const double delta = options.delta.value_or(default_delta(noise_of_all_ranks(target)));
  const double tolerance = options.inner_tolerance.value_or(default_inner_tolerance);
  Built built;
  built.preconditioner = std::make_unique<Regularized>(target, delta, tolerance);
  const auto& x = target.k.points();
  const bool shared = target.k.row_space().split();
  if (target.fast == nullptr && !shared)
    built.report.bytes = operators::tiled_bytes(x.rows(), x.cols(), 1);
  built.report.notes =
      fmt::format("delta {:.3g}, solved inside to {:.1e} with {} products", delta, tolerance,
                  target.fast == nullptr && shared ? "exact" : "float32");
  return built;
}

Cost regularized_cost(Index n, Index d, const PreconditionerOptions&) {
  const auto points = static_cast<double>(n);
  const double bytes = operators::tiled_bytes(n, d, 1) + krylov::cg_bytes(n, 1, false);
  return {.bytes = bytes,
          .peak_bytes = bytes,
          .build_flops = points * static_cast<double>(d) * std::log2(points + 1),
          .apply_flops = typical_inner_products * krylov::cg_flops(n, 1),
          .apply_products = typical_inner_products};
}

}  // namespace

double default_delta(const linalg::Diagonal& noise) {
  return noise.least() > 0 ? 10 * noise.harmonic_mean() : 1e-3;
}

PreconditionerInfo regularized_info() {
  return {.name = "regularized",
          .summary = "K plus more noise, solved by inner iterations in float32",
          .make = make_regularized,
          .cost = regularized_cost,
          .takes = {.delta = true, .inner_tolerance = true},
          .fixed = false,
          .has_log_det = false,
          .can_sample = false,
          .over_ranks = OverRanks::whole};
}

Regularized::Regularized(const Target& target, double delta, double inner_tolerance)
    : inner_(inner_tolerance, "regularized"),
      own_fast_(fast_unless_given(target)),
      exact_(target.k, checked_shift(target.noise, delta)),
      fast_(fast_of(target, own_fast_.get()), exact_.shift()),
      has_fast_(own_fast_ != nullptr || target.fast != nullptr) {}

void Regularized::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size())
    throw DimensionMismatch("Regularized: rows of r", r.rows(), "size", size());
  inner_(exact_, has_fast_ ? &fast_ : nullptr, r, z);
}

}  // namespace mercer::preconditioners
