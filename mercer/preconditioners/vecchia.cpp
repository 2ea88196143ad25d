#include "mercer/preconditioners/vecchia.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "mercer/core/error.hpp"

namespace mercer::preconditioners {
namespace {

Built make_vecchia(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  auto p = std::make_unique<Vecchia>(
      target.k, target.noise,
      approximations::VecchiaOptions{.neighbours = effective_neighbours(n, options),
                                     .seed = options.seed});
  Built built;
  built.report.neighbours = p->factor().neighbours();
  built.report.kernel_values = p->factor().kernel_values();
  built.report.bytes = approximations::Vecchia::bytes(n, p->factor().neighbours());
  built.report.notes = vecchia_notes(p->factor(), target.noise, options);
  built.preconditioner = std::move(p);
  return built;
}

Cost vecchia_cost(Index n, Index d, const PreconditionerOptions& options) {
  using approximations::Vecchia;
  const Index m = effective_neighbours(n, options);
  const double bytes = Vecchia::bytes(n, m);
  return {.bytes = bytes,
          .peak_bytes = bytes + Vecchia::building_bytes(n, d, m, 0),
          .kernel_values = Vecchia::kernel_values(n, m, false),
          .thin_flops = Vecchia::build_flops(n, d, m, 0),
          .apply_flops = Vecchia::apply_flops(n, m)};
}

}  // namespace

void Vecchia::solve(ConstMatrixView r, MatrixView z) const {
  thread_local std::vector<double> buffer;
  buffer.resize(static_cast<std::size_t>(r.size()));
  Eigen::Map<Matrix> t(buffer.data(), r.rows(), r.cols());
  factor_.multiply(r, t);
  factor_.multiply_transposed(t, z);
}

void Vecchia::sample(Rng& rng, MatrixView z) const {
  if (z.rows() != size()) throw DimensionMismatch("vecchia: rows of z", z.rows(), "size", size());
  rng.fill_normal(z);
  factor_.solve(z);
}

Index default_neighbours(Index n) {
  const Index wanted = n < 5000 ? 30 : n <= 30000 ? 60 : 100;
  return std::max<Index>(0, std::min(wanted, n - 1));
}

Index effective_neighbours(Index n, const PreconditionerOptions& options) {
  return std::max<Index>(0, std::min(options.neighbours.value_or(default_neighbours(n)), n - 1));
}

std::string vecchia_notes(const approximations::Vecchia& factor, const linalg::Diagonal& noise,
                          const PreconditionerOptions& options) {
  std::string notes;
  if (options.neighbours && *options.neighbours > factor.neighbours())
    notes += fmt::format("{} neighbours cut to the {} other points; ", *options.neighbours,
                         factor.neighbours());
  if (factor.least_noise() > noise.least())
    notes += fmt::format("noise variance {:.3g} taken as {:.3g} in the sparse factor; ",
                         noise.least(), factor.least_noise());
  if (factor.raised() > 0)
    notes += fmt::format("diagonal raised in {} rows of the sparse factor; ", factor.raised());
  if (!factor.all_pairs()) notes += "neighbours chosen among candidates; ";
  if (!notes.empty()) notes.resize(notes.size() - 2);
  return notes;
}

PreconditionerInfo vecchia_info() {
  return {.name = "vecchia",
          .summary = "sparse factor of the inverse from neighbours",
          .make = make_vecchia,
          .cost = vecchia_cost,
          .takes = {.neighbours = true},
          .expected_gain = 20};
}

}  // namespace mercer::preconditioners
