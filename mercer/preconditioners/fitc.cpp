#include "mercer/preconditioners/fitc.hpp"

#include <fmt/format.h>

#include "mercer/approximations/nystrom.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/linalg/reductions.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"

namespace mercer::preconditioners {
namespace {

// K - F F' is the difference of numbers of size K: below minus this, it is more than rounding.
constexpr double kLeastDifference = 1e-10;

Built make_fitc(const Target& target, const PreconditionerOptions& options) {
  const auto space = target.k.row_space();
  linalg::check_on_all_ranks(space, "fitc", [&] {
    if (target.k.size() > 0) target.noise.require_positive("fitc");
  });
  const auto landmarks = landmark_options(target, options);
  auto approximation = approximations::nystrom(target.k, landmarks);
  const Vector diagonal = target.k.diagonal();
  Vector d = diagonal - linalg::squared_rows(approximation.factor);
  const auto negative = static_cast<Index>(
      space.sum(static_cast<double>((d.array() < -kLeastDifference * diagonal.array()).count())));
  d = d.cwiseMax(0.0) + target.noise.vector(target.k.size());
  std::string notes = rank_note(target.points(), options);
  if (approximation.exhausted)
    notes += fmt::format("only {} distinct landmarks; ", approximation.pivots.size());
  if (negative > 0)
    notes += fmt::format("{} entries of the diagonal of K - F F' raised to zero; ", negative);
  return build_low_rank(std::move(approximation), d, space, std::move(notes));
}

Cost fitc_cost(Index n, Index, const PreconditionerOptions& options) {
  auto cost = nystrom_cost(n, landmark_options(n, options));
  cost.peak_bytes += 24.0 * static_cast<double>(n);
  return cost;
}

}  // namespace

PreconditionerInfo fitc_info() {
  return {.name = "fitc",
          .summary = "landmark columns and the whole diagonal of K plus noise",
          .make = make_fitc,
          .cost = fitc_cost,
          .takes = {.rank = true, .landmarks = true},
          .over_ranks = OverRanks::whole};
}

}  // namespace mercer::preconditioners
