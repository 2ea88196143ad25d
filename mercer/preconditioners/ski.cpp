#include "mercer/preconditioners/ski.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"

namespace mercer::preconditioners {
namespace {

// Two inputs of concrete (N = 1030, matern32, s2 = 1e-3), outer and inner steps at lengthscales
// 0.3, 1, 3: tolerance 0.1: 8 of 1868, 5 of 741, 6 of 400; 1e-2: 6 of 2310, 4 of 1110, 4 of 469;
// 1e-3: 6 of 3279, 4 of 1584, 4 of 640. Outer steps are the dear ones where N is large.
constexpr double default_tolerance = 1e-2;
constexpr double typical_grid_products = 50;  // for the planner: a guess

Built make_ski(const Target& target, const PreconditionerOptions& options) {
  const double tolerance = options.inner_tolerance.value_or(default_tolerance);
  auto p = std::make_unique<Ski>(target.k.kernel(), target.k.points(), target.noise, tolerance);
  const auto& grid = p->approximation().grid();
  Built built;
  built.report.bytes = p->approximation().bytes();
  built.report.kernel_values = grid.kernel_values();
  std::string nodes;
  for (const auto& axis : grid.axes())
    nodes += fmt::format("{}{}", nodes.empty() ? "" : " x ", axis.nodes);
  built.report.notes = fmt::format("grid of {} nodes, {}, solved inside to {:.1e}", nodes,
                                   target.k.points().cols() <= approximations::most_cubic_inputs
                                       ? "cubic interpolation"
                                       : "nearest node",
                                   tolerance);
  built.preconditioner = std::move(p);
  return built;
}

// The grid of a kernel that has to be embedded, with its lengthscales resolved: the dearest there
// is.
Cost ski_cost(Index n, Index d, const PreconditionerOptions&) {
  const double grid = approximations::most_nodes_wanted(n, d);
  const double embedded =
      std::min(std::pow(2.5, static_cast<double>(d)) * grid, approximations::most_grid_nodes);
  const bool cubic = d <= approximations::most_cubic_inputs;
  const auto points = static_cast<double>(n), inputs = static_cast<double>(d);
  const double bytes = 24 * std::max(embedded, grid) + 16 * grid +
                       (cubic ? 32 * inputs + 8 : 8) * points + krylov::cg_bytes(n, 1, false);
  const double product =
      10 * embedded * std::log2(embedded + 1) + 6 * points * (cubic ? std::pow(4, inputs) : 1);
  return {.bytes = bytes,
          .peak_bytes = bytes + 16 * embedded,
          .kernel_values = std::max(grid, inputs),
          .build_flops = 10 * embedded * std::log2(embedded + 1) + 40 * points * inputs,
          .apply_flops = typical_grid_products * (product + krylov::cg_flops(n, 1))};
}

}  // namespace

PreconditionerInfo ski_info() {
  return {.name = "ski",
          .summary = "K interpolated from a grid plus noise, solved by inner iterations",
          .make = make_ski,
          .cost = ski_cost,
          .takes = {.inner_tolerance = true},
          .refusal = approximations::grid_refusal,
          .fixed = false,
          .has_log_det = false,
          .can_sample = false};
}

Ski::Ski(const kernels::Kernel& kernel, ConstMatrixView points, const linalg::Diagonal& noise,
         double inner_tolerance)
    : inner_(inner_tolerance, "ski"), k_(kernel, points), p_(k_, noise) {
  noise.require_positive("ski");
}

void Ski::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size()) throw DimensionMismatch("Ski: rows of r", r.rows(), "size", size());
  inner_(p_, nullptr, r, z);
}

}  // namespace mercer::preconditioners
