#include "mercer/preconditioners/nystrom.hpp"

#include <fmt/format.h>

#include "mercer/approximations/nystrom.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"

namespace mercer::preconditioners {
namespace {

Built make_nystrom(const Target& target, const PreconditionerOptions& options) {
  const auto landmarks = landmark_options(target, options);
  auto approximation = approximations::nystrom(target.k, landmarks);
  std::string notes = rank_note(target.points(), options);
  if (approximation.exhausted)
    notes += fmt::format("only {} distinct landmarks; ", approximation.pivots.size());
  return build_low_rank(std::move(approximation), target.noise, target.k.row_space(),
                        std::move(notes));
}

Cost cost(Index n, Index, const PreconditionerOptions& options) {
  return nystrom_cost(n, landmark_options(n, options));
}

}  // namespace

PreconditionerInfo nystrom_info() {
  return {.name = "nystrom",
          .summary = "landmark columns of K plus noise",
          .make = make_nystrom,
          .cost = cost,
          .takes = {.rank = true, .landmarks = true},
          .over_ranks = OverRanks::whole};
}

}  // namespace mercer::preconditioners
