#include "mercer/preconditioners/pivoted_cholesky.hpp"

#include <algorithm>
#include <utility>

#include "mercer/approximations/pivoted_cholesky.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {
namespace {

Built make_pivoted_cholesky(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  auto f = approximations::pivoted_cholesky(
      target.k, {.rank = std::max<Index>(effective_rank(n, options), 1)});
  auto notes = rank_note(n, options) + exhausted_note(f);
  return build_low_rank(std::move(f), target.noise, target.k.row_space(), std::move(notes));
}

Cost pivoted_cholesky_cost(Index n, Index, const PreconditionerOptions& options) {
  const Index rank = effective_rank(n, options);
  const double bytes = Woodbury::bytes(n, rank);
  return {.bytes = bytes,
          .peak_bytes = std::max(bytes, approximations::pivoted_cholesky_bytes(n, rank)),
          .kernel_values = static_cast<double>(n) * static_cast<double>(rank),
          .build_flops = Woodbury::build_flops(n, rank),
          .thin_flops = approximations::pivoted_cholesky_flops(n, rank),
          .apply_flops = Woodbury::apply_flops(n, rank)};
}

}  // namespace

PreconditionerInfo pivoted_cholesky_info() {
  return {.name = "pivoted-cholesky",
          .summary = "greedy partial Cholesky of K plus noise",
          .make = make_pivoted_cholesky,
          .cost = pivoted_cholesky_cost,
          .takes = {.rank = true}};
}

}  // namespace mercer::preconditioners
