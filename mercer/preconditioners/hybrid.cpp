#include "mercer/preconditioners/hybrid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::preconditioners {
namespace {

Built make_hybrid(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  const Index asked = std::max<Index>(effective_rank(n, options), 1);
  approximations::RpCholesky low_rank(target.k, {.rank = asked, .seed = options.seed});
  low_rank.grow(asked);
  auto p = std::make_unique<Hybrid>(
      target.k, target.noise_variance, low_rank.factor(),
      approximations::VecchiaOptions{.neighbours = effective_neighbours(n, options),
                                     .seed = options.seed});
  Built built;
  auto& report = built.report;
  report.rank = p->rank();
  report.neighbours = p->factor().neighbours();
  report.kernel_values = low_rank.kernel_values() + p->factor().kernel_values();
  report.bytes =
      Woodbury::bytes(n, p->rank()) + approximations::Vecchia::bytes(n, p->factor().neighbours());
  report.notes = rank_note(n, options);
  if (low_rank.exhausted())
    report.notes += fmt::format("nothing of K was left after rank {}; ", low_rank.rank());
  if (p->dropped() > 0)
    report.notes += fmt::format("{} directions below rounding left out; ", p->dropped());
  const auto more = vecchia_notes(p->factor(), target.noise_variance, options);
  if (!more.empty()) report.notes += more + "; ";
  const double left = low_rank.trace() > 0 ? low_rank.residual_trace() / low_rank.trace() : 0.0;
  report.notes += fmt::format("{:.3g} % of the trace of K left to the sparse factor", 100 * left);
  built.preconditioner = std::move(p);
  return built;
}

Cost hybrid_cost(Index n, Index d, const PreconditionerOptions& options) {
  using approximations::Vecchia;
  const Index rank = effective_rank(n, options), m = effective_neighbours(n, options);
  const double bytes = Woodbury::bytes(n, rank) + Vecchia::bytes(n, m);
  return {.bytes = bytes,
          .peak_bytes = bytes + approximations::rpcholesky_bytes(n, rank) +
                        Vecchia::building_bytes(n, d, m, rank),
          .kernel_values = approximations::rpcholesky_kernel_values(n, rank) +
                           Vecchia::kernel_values(n, m, true),
          .build_flops = approximations::rpcholesky_flops(n, rank) +
                         Vecchia::build_flops(n, d, m, rank) + Woodbury::build_flops(n, rank),
          .apply_flops = Vecchia::apply_flops(n, m) + Woodbury::apply_flops(n, rank)};
}

}  // namespace

Hybrid::Hybrid(const operators::KernelOperator& k, double noise_variance, ConstMatrixView f,
               const approximations::VecchiaOptions& options)
    : Hybrid(k, noise_variance, f, options, Matrix()) {}

// Members are made in order: G fills the product, which then becomes the core.
Hybrid::Hybrid(const operators::KernelOperator& k, double noise_variance, ConstMatrixView f,
               const approximations::VecchiaOptions& options, Matrix&& product)
    : factor_(k, noise_variance, f, options, &product), core_(std::move(product), 1.0) {}

void Hybrid::solve(ConstMatrixView r, MatrixView z) const {
  thread_local std::vector<double> buffer;
  buffer.resize(static_cast<std::size_t>(r.size()));
  Eigen::Map<Matrix> t(buffer.data(), r.rows(), r.cols());
  factor_.multiply(r, t);
  core_.solve(t, t);
  factor_.multiply_transposed(t, z);
}

// z = G^-1 w with w ~ N(0, I + B B').
void Hybrid::sample(Rng& rng, MatrixView z) const {
  core_.sample(rng, z);
  factor_.solve(z);
}

PreconditionerInfo hybrid_info() {
  return {.name = "hybrid",
          .summary = "low rank for what is smooth, neighbours for the rest",
          .make = make_hybrid,
          .cost = hybrid_cost,
          .takes = {.rank = true, .neighbours = true}};
}

}  // namespace mercer::preconditioners
