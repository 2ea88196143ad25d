#include "mercer/preconditioners/hybrid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "mercer/preconditioners/rpcholesky.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::preconditioners {
namespace {

Built make_hybrid(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  BuildReport growth;
  const auto low_rank = grown_rpcholesky(target, std::max<Index>(effective_rank(n, options), 1),
                                         options.seed, growth);
  Built built = hybrid_on(target, low_rank.factor(), options);
  auto& report = built.report;
  report.kernel_values += low_rank.kernel_values();
  report.trace_left = growth.trace_left;
  report.trace_left_at_half = growth.trace_left_at_half;
  auto notes = rank_note(n, options);
  if (low_rank.exhausted())
    notes += fmt::format("nothing of K was left after rank {}; ", low_rank.rank());
  report.notes =
      notes + report.notes +
      fmt::format("{:.3g} % of the trace of K left to the sparse factor", 100 * *report.trace_left);
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
          .build_flops = approximations::rpcholesky_flops(n, rank) + Woodbury::build_flops(n, rank),
          .thin_flops = Vecchia::build_flops(n, d, m, rank),
          .apply_flops = Vecchia::apply_flops(n, m) + Woodbury::apply_flops(n, rank)};
}

}  // namespace

Hybrid::Hybrid(const operators::KernelOperator& k, const linalg::Diagonal& noise, ConstMatrixView f,
               const approximations::VecchiaOptions& options)
    : Hybrid(k, noise, f, options, Matrix()) {}

// Members are made in order: G fills the product, which then becomes the core.
Hybrid::Hybrid(const operators::KernelOperator& k, const linalg::Diagonal& noise, ConstMatrixView f,
               const approximations::VecchiaOptions& options, Matrix&& product)
    : factor_(k, noise, f, options, &product), core_(std::move(product), 1.0) {}

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

Built hybrid_on(const Target& target, ConstMatrixView f, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  auto p = std::make_unique<Hybrid>(
      target.k, target.noise, f,
      approximations::VecchiaOptions{.neighbours = effective_neighbours(n, options),
                                     .seed = options.seed});
  Built built;
  auto& report = built.report;
  report.rank = p->rank();
  report.neighbours = p->factor().neighbours();
  report.kernel_values = p->factor().kernel_values();
  report.bytes =
      Woodbury::bytes(n, p->rank()) + approximations::Vecchia::bytes(n, p->factor().neighbours());
  if (p->dropped() > 0)
    report.notes = fmt::format("{} directions below rounding left out; ", p->dropped());
  const auto more = vecchia_notes(p->factor(), target.noise, options);
  if (!more.empty()) report.notes += more + "; ";
  built.preconditioner = std::move(p);
  return built;
}

PreconditionerInfo hybrid_info() {
  return {.name = "hybrid",
          .summary = "low rank for what is smooth, neighbours for the rest",
          .make = make_hybrid,
          .cost = hybrid_cost,
          .takes = {.rank = true, .neighbours = true},
          .expected_gain = 20};
}

}  // namespace mercer::preconditioners
