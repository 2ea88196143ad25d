#include "mercer/planning/sampling_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/count_text.hpp"
#include "mercer/core/options_json.hpp"
#include "mercer/core/planned_threads.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/planning/training_plan.hpp"
#include "mercer/training/sampling/side_by_side.hpp"
#include "mercer/training/training.hpp"

namespace mercer::planning {
namespace {

constexpr double kLongestSampling = 3600;

Index planned_iterations(const training::TrainerInfo& sampler,
                         const training::SampleOptions& sample) {
  return sample.iterations.value_or(sampler.draws->iterations);
}

// Of one evidence with its gradient.
inference::EvaluationCost cost_of(const inference::Problem& problem,
                                  const inference::Observations& rows, inference::EvidenceBy by,
                                  const inference::SystemChoice& system, Index probes,
                                  const inference::Speeds& speed) {
  return inference::methods()
      .find(inference::evidence_method(problem, by))
      .cost({.n = rows.size(),
             .d = rows.x.cols(),
             .functions = {rows.functions(), problem.likelihood->coupled() != nullptr},
             .columns = 1 + inference::mean_basis_size(problem.mean, rows.x.cols()),
             .parameters = problem.kernel.num_parameters(),
             .probes = probes,
             .system = system,
             .speed = speed});
}

double sampling_seconds(const training::TrainerInfo& sampler, double evaluation,
                        const training::SampleOptions& sample) {
  return evaluation * sampler.draws->evaluations *
         static_cast<double>(planned_iterations(sampler, sample) * sample.chains);
}

// Chains of few rows compute at the same time.
double exact_bytes(double one, Index rows, Index chains) {
  if (rows > training::kSideBySideRows) return one;
  return one * static_cast<double>(std::min<Index>(chains, kPlannedThreads));
}

const training::TrainerInfo& sampler_for(const inference::Problem& problem,
                                         const inference::Observations& rows,
                                         const training::SampleOptions& sample,
                                         const MethodOptions& method) {
  if (sample.sampler != "auto") {
    const auto& asked = training::trainers().find(sample.sampler);
    if (!asked.draws)
      throw InvalidArgument(fmt::format("`sampler={}` is no sampler; there are: {}", sample.sampler,
                                        fmt::join(training::sampler_names(), ", ")));
    return asked;
  }
  const auto exact = cost_of(problem, rows, inference::EvidenceBy::factorisation, {}, 0,
                             inference::nominal_speeds(problem.kernel, rows.x.cols()));
  const double base = base_bytes(rows.size(), rows.x.cols());
  const double room = memory_budget(method, base) - base;
  const training::TrainerInfo* by_solves = nullptr;
  for (const auto& trainer : training::trainers()) {
    if (!trainer.draws || !trainer.refusal(problem).empty()) continue;
    if (trainer.by_solves && by_solves == nullptr) by_solves = &trainer;
    if (trainer.draws->preferred &&
        sampling_seconds(trainer, exact.seconds, sample) <= kLongestSampling &&
        exact_bytes(exact.bytes, rows.size(), sample.chains) <= room)
      return trainer;
  }
  if (by_solves == nullptr)
    throw InvalidArgument("no sampler goes by solves; name one with `sampler`");
  return *by_solves;
}

// An option that another sampler has would be ignored.
void refuse_options_of_others(const training::TrainerInfo& sampler,
                              const training::SampleOptions& sample) {
  const auto given = options_json(sample), usual = options_json(training::SampleOptions());
  for (const auto& other : training::trainers()) {
    if (!other.draws || other.name == sampler.name) continue;
    for (const auto option : other.draws->options)
      if (const std::string name(option); given.at(name) != usual.at(name))
        throw InvalidArgument(fmt::format(
            "`{}` belongs to the sampler {}, and {} is taken; leave it out, or say `sampler={}`",
            name, other.name, sampler.name, other.name));
  }
}

// Where the evidence is factorised no trace is estimated.
void refuse_probes(const TrainOptions& train, const training::TrainerInfo& sampler) {
  const auto given = options_json(train), usual = options_json(TrainOptions());
  for (const std::string name : {"probes", "probe_kind"})
    if (given.at(name) != usual.at(name))
      throw InvalidArgument(fmt::format(
          "`{}` is for evidences by solves, and {} takes exact ones of these rows; leave it out",
          name, sampler.name));
}

}  // namespace

Plan plan_sampling(const inference::Problem& problem, double noise,
                   const inference::Observations& rows, const MethodOptions& method,
                   TrainOptions train, const training::SampleOptions& sample) {
  validate(sample);
  const auto& sampler = sampler_for(problem, rows, sample, method);
  if (const auto why = sampler.refusal(problem); !why.empty()) throw InvalidArgument(why);
  refuse_options_of_others(sampler, sample);
  const bool by_solves = sampler.by_solves && rows.size() > sampler.draws->factored_rows;
  if (!by_solves) refuse_probes(train, sampler);
  train.train = "none";
  train.budget.reset();
  Plan plan = plan_fit(problem, noise, rows, method, train);
  const auto reason = plan.reason;
  if (by_solves) {
    train.train = sampler.name;
    plan_training(problem, noise, rows, method, train, 0, plan);
  }
  const auto by = by_solves ? inference::EvidenceBy::solves : inference::EvidenceBy::factorisation;
  const auto cost = cost_of(problem, rows, by, plan.train_system, train.probes, plan.calibration);
  PlanRow row;
  row.stage = "train";
  row.method = fmt::format("{}, {} of {}", sampler.name, plural(sample.chains, "chain"),
                           plural(planned_iterations(sampler, sample), "iteration"));
  row.seconds = sampling_seconds(sampler, cost.seconds, sample);
  // By solves every chain keeps its preconditioner and its last solutions.
  row.bytes = by_solves ? cost.bytes * static_cast<double>(sample.chains)
                        : exact_bytes(cost.bytes, rows.size(), sample.chains);
  row.fits = plan.base_bytes + row.bytes <= plan.budget_bytes;
  row.note = fmt::format("{:.2g} s {}", cost.seconds,
                         sampler.draws->values ? "an evidence" : "a gradient");
  if (!row.fits) refuse(plan, {row}, "sampling", method);
  row.chosen = true;
  // In place of what was planned for learning by the same gradients.
  for (const auto& old : plan.rows)
    if (old.stage == row.stage && old.chosen) plan.seconds -= old.seconds;
  std::erase_if(plan.rows, [&](const PlanRow& old) { return old.stage == row.stage; });
  plan.seconds += row.seconds;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + row.bytes);
  plan.rows.insert(plan.rows.begin(), row);
  plan.trains = true;
  plan.train_method = sampler.name;
  plan.train_by_solves = by_solves;
  plan.train_rows = rows.size();
  plan.train_levels.clear();
  plan.solve_levels.clear();
  plan.start_rows = 0;
  plan.train_budget.reset();
  plan.reason = fmt::format("Hyperparameters are drawn by {} on {} ({} {}). {}", sampler.name,
                            plural(rows.size(), "row"),
                            problem.gaussian() ? "likelihood" : "Laplace evidence",
                            !by_solves              ? "by factorisations"
                            : sampler.draws->values ? "by solves"
                                                    : "gradients by solves",
                            reason);
  return plan;
}

std::string describe_samplers() {
  std::string text = fmt::format("  {:<18} {}\n", "auto",
                                 "what takes less than an hour by exact evidences, else by solves");
  for (const auto& entry : training::trainers())
    if (entry.draws) text += fmt::format("  {:<18} {}\n", entry.name, entry.summary);
  return text;
}

}  // namespace mercer::planning
