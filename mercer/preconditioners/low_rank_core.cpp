#include "mercer/preconditioners/low_rank_core.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/approximations/nystrom.hpp"
#include "mercer/linalg/reductions.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {

namespace {

// No more kernel values than uniform; half its iterations, or about as many
// (approximations/landmarks.hpp).
constexpr auto default_landmarks = Landmarks::kmeans;

}  // namespace

Built build_low_rank(approximations::LowRank approximation, const linalg::Diagonal& d,
                     const linalg::RowSpace& space, std::string notes) {
  auto core = std::make_unique<Woodbury>(std::move(approximation.factor), d, space);
  Built built;
  built.report.rank = core->rank();
  built.report.kernel_values = approximation.kernel_values;
  built.report.products = approximation.products;
  built.report.bytes = Woodbury::bytes(core->size(), core->rank());
  built.report.notes = std::move(notes);
  const Index left_out = approximation.clipped + core->dropped();
  if (left_out > 0)
    built.report.notes += fmt::format("{} directions below rounding left out; ", left_out);
  if (approximation.trace > 0)
    built.report.notes += fmt::format("{:.3g} % of the trace of K left",
                                      100 * approximation.trace_error / approximation.trace);
  built.preconditioner = std::move(core);
  return built;
}

std::string exhausted_note(const approximations::LowRank& approximation) {
  if (!approximation.exhausted) return "";
  return fmt::format("nothing of K was left after rank {}; ", approximation.rank());
}

approximations::LandmarkOptions landmark_options(const Target& target,
                                                 const PreconditionerOptions& options) {
  auto landmarks = landmark_options(target.points(), options);
  landmarks.noise_variance = linalg::harmonic_mean(target.k.row_space(), target.noise);
  return landmarks;
}

approximations::LandmarkOptions landmark_options(Index n, const PreconditionerOptions& options) {
  return {.count = std::max<Index>(effective_rank(n, options), 1),
          .choice = options.landmarks.value_or(default_landmarks),
          .noise_variance = 1.0,
          .seed = options.seed};
}

Cost nystrom_cost(Index n, const approximations::LandmarkOptions& landmarks) {
  const Index rank = std::min(landmarks.count, n);
  const double bytes = Woodbury::bytes(n, rank);
  return {
      .bytes = bytes,
      .peak_bytes = std::max(bytes, approximations::nystrom_bytes(n, landmarks)),
      .kernel_values = approximations::nystrom_kernel_values(n, landmarks),
      .build_flops = approximations::nystrom_flops(n, landmarks) + Woodbury::build_flops(n, rank),
      .apply_flops = Woodbury::apply_flops(n, rank)};
}

}  // namespace mercer::preconditioners
