#include "mercer/krylov/registry.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/inference/entries.hpp"

namespace mercer::inference {

Registry<InferenceInfo>& methods() {
  static Registry<InferenceInfo> all(
      "inference method",
      {exact_info(), exact_solves_info(), laplace_info(), laplace_solves_info(), vecchia_info(),
       kernel_cg_info(), subset_info(), srm_info(), dtc_info(), rra_info(), fitc_info(),
       pitc_info(), pic_info(), vfe_info(), bcm_info(), rbcm_info()});
  return all;
}

std::unique_ptr<Inference> make(std::string_view name, const Problem& problem,
                                const InferenceSetup& setup) {
  const auto& entry = methods().find(name);
  if (const auto why = entry.refusal(problem, setup.rows); !why.empty())
    throw InvalidArgument(fmt::format("inference by {}: {}", entry.name, why));
  return entry.make(setup);
}

std::string_view posterior_method(const Problem& problem, const Observations& rows,
                                  std::string_view solver) {
  std::string reasons;
  const auto& all = methods().all();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    const auto& entry = *it;
    if (!entry.abilities.posterior || entry.abilities.approximate || !entry.takes_solver(solver))
      continue;
    const auto why = entry.refusal(problem, rows);
    if (why.empty()) return entry.name;
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", why);
  }
  throw InvalidArgument(
      reasons.empty() ? fmt::format("no inference method takes `solver={}`", solver) : reasons);
}

std::string_view evidence_method(const Problem& problem, EvidenceBy by) {
  const Observations no_rows;
  for (const auto& entry : methods())
    if (entry.abilities.evidence == by && !entry.abilities.approximate &&
        entry.refusal(problem, no_rows).empty())
      return entry.name;
  throw InvalidArgument(fmt::format(
      "no inference method finds the evidence of the likelihood {} {}", problem.likelihood->text(),
      by == EvidenceBy::factorisation ? "by factorisations"
      : by == EvidenceBy::solves      ? "by solves"
                                      : "by a surrogate"));
}

const Matrix& saved_array(const State& state, const std::string& name, std::optional<Index> size) {
  const auto found = state.find(name);
  if (found == state.end() || (size && found->second.size() != *size))
    throw ModelFileError(
        fmt::format("the checkpoint is damaged: its array '{}' is missing or incomplete", name));
  return found->second;
}

std::string needs_gaussian_noise(const Problem& problem, const Observations& /*rows*/) {
  if (problem.gaussian()) return {};
  return fmt::format("exact inference needs Gaussian noise, not the likelihood {}",
                     problem.likelihood->text());
}

std::string needs_laplace(const Problem& problem, const Observations& /*rows*/) {
  return problem.gaussian() ? "with Gaussian noise inference is exact, not Laplace's approximation"
                            : "";
}

bool is_cholesky(std::string_view solver) { return solver == kCholesky; }
bool is_iterative(std::string_view solver) {
  return krylov::solvers().contains(solver) && !krylov::solver(solver).unbiased;
}

std::string Inference::unbiased_refusal() const {
  return "its gradient is not linear or quadratic in solves, so that solves which are right on "
         "average do not make it right on average; they are for Gaussian noise";
}

Posterior Inference::posterior(const Problem& /*at*/, const PosteriorRequest& /*request*/,
                               const ProgressCallback& /*progress*/) {
  throw InvalidArgument("this inference method has an evidence but no posterior");
}

void Inference::use_base(Matrix /*points*/) {
  throw InvalidArgument("this inference method takes no base points");
}

Evidence Inference::evaluate_with_base(const Problem& /*at*/, const Ask& /*ask*/,
                                       Matrix& /*base_gradient*/) {
  throw InvalidArgument("this inference method has no gradient in base points");
}

}  // namespace mercer::inference
