#include "mercer/preconditioners/spectral.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/approximations/random_features.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {
namespace {

using approximations::RandomFeatures;

Built make_spectral(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.points();
  const auto space = target.k.row_space();
  const auto& kernel = target.k.kernel();
  const Index rank = effective_rank(n, options);
  const Index smallest = RandomFeatures::smallest_count(kernel);
  std::string notes = rank_note(n, options);
  if (smallest > rank)
    notes += fmt::format("{} features for a rank of {}: the kernel has no fewer; ", smallest, rank);
  const RandomFeatures features(kernel, std::max(rank, smallest), options.seed);
  approximations::LowRank approximation;
  approximation.factor.resize(space.size(), features.count());
  features.evaluate(target.k.points().middleRows(space.begin(), space.size()),
                    approximation.factor);
  return build_low_rank(std::move(approximation), target.noise, space, std::move(notes));
}

Cost spectral_cost(Index n, Index d, const PreconditionerOptions& options) {
  const Index rank = std::max<Index>(effective_rank(n, options), 2);
  const double entries = static_cast<double>(n) * static_cast<double>(rank);
  const double bytes = Woodbury::bytes(n, rank);
  // A sine and cosine are about 60 flops; features can be one pair more than points.
  return {.bytes = bytes,
          .peak_bytes = bytes + 16.0 * static_cast<double>(n),
          .build_flops = entries * (static_cast<double>(d) + 30) + Woodbury::build_flops(n, rank),
          .apply_flops = Woodbury::apply_flops(n, rank)};
}

std::string spectral_refusal(const kernels::Kernel& kernel, Index, Index) {
  return RandomFeatures::refusal(kernel);
}

}  // namespace

PreconditionerInfo spectral_info() {
  return {.name = "spectral",
          .summary = "random Fourier features plus noise",
          .make = make_spectral,
          .cost = spectral_cost,
          .takes = {.rank = true},
          .refusal = spectral_refusal,
          .over_ranks = OverRanks::whole};
}

}  // namespace mercer::preconditioners
