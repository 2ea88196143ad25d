#include "mercer/preconditioners/registry.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/linalg/reductions.hpp"
#include "mercer/preconditioners/block_jacobi.hpp"
#include "mercer/preconditioners/fitc.hpp"
#include "mercer/preconditioners/hybrid.hpp"
#include "mercer/preconditioners/ilu.hpp"
#include "mercer/preconditioners/jacobi.hpp"
#include "mercer/preconditioners/local_rows.hpp"
#include "mercer/preconditioners/nystrom.hpp"
#include "mercer/preconditioners/pitc.hpp"
#include "mercer/preconditioners/pivoted_cholesky.hpp"
#include "mercer/preconditioners/regularized.hpp"
#include "mercer/preconditioners/rpcholesky.hpp"
#include "mercer/preconditioners/ski.hpp"
#include "mercer/preconditioners/spectral.hpp"
#include "mercer/preconditioners/ssor.hpp"
#include "mercer/preconditioners/svd.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::preconditioners {
namespace {

PreconditionerInfo none_info() {
  return {.name = "none",
          .summary = "no preconditioner",
          .make = [](const Target&, const PreconditionerOptions&) { return Built{}; },
          .cost = [](Index, Index, const PreconditionerOptions&) { return Cost{}; },
          .over_ranks = OverRanks::whole,
          .expected_gain = 1};
}

}  // namespace

// "none" first; the rest from the simplest to the default.
Registry<PreconditionerInfo>& preconditioners() {
  // clang-format off
  static Registry<PreconditionerInfo> all("preconditioner", {
      none_info(),
      jacobi_info(),
      block_jacobi_info(),
      ssor_info(),
      ilu_info(),
      regularized_info(),
      ski_info(),
      spectral_info(),
      svd_info(),
      nystrom_info(),
      fitc_info(),
      pitc_info(),
      pivoted_cholesky_info(),
      rpcholesky_info(),
      vecchia_info(),
      hybrid_info(),
  });
  // clang-format on
  return all;
}

void check(const PreconditionerInfo& info, PreconditionerOptions options) {
  validate(options);
  visit_options(options, info.takes, [&](const char* field, const auto& value, bool taken) {
    if (value && !taken)
      throw InvalidArgument(
          fmt::format("`{}` has no meaning for the preconditioner '{}'", field, info.name));
  });
}

Built make(const PreconditionerInfo& info, const Target& target,
           const PreconditionerOptions& options) {
  check(info, options);
  const auto space = target.k.row_space();
  linalg::check_on_all_ranks(space, "preconditioner", [&] {
    target.noise.require_size(target.k.size(), "preconditioner");
    if (space.split()) target.noise.require_nonnegative("preconditioner");
  });
  if (info.refusal != nullptr) {
    const auto& x = target.k.points();
    const auto reason = info.refusal(target.k.kernel(), x.rows(), x.cols());
    if (!reason.empty()) throw InvalidArgument(fmt::format("{}: {}", info.name, reason));
  }
  const Timer timer;
  const bool whole = !space.split() || info.over_ranks == OverRanks::whole;
  Built built = whole ? info.make(target, options) : make_on_local_rows(info, target, options);
  built.report.name = info.name;
  built.report.build_seconds = timer.seconds();
  return built;
}

Built make(std::string_view name, const Target& target, const PreconditionerOptions& options) {
  return make(preconditioner(name), target, options);
}

Built make(std::string_view name, const operators::KernelOperator& k, const linalg::Diagonal& noise,
           const PreconditionerOptions& options) {
  return make(name, Target{k, noise}, options);
}

}  // namespace mercer::preconditioners
