#include "mercer/models/fit.hpp"

#include <fmt/format.h>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/options_json.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/core/version.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/task.hpp"
#include "mercer/training/training.hpp"

namespace mercer::models {
namespace {

// What a checkpoint must have been made from to be resumed: data and everything that steers.
std::uint64_t run_identity(const data::Dataset& data, const FitOptions& options, const Plan& plan) {
  const std::string text =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", version(), data.fingerprint, identity_text(options),
                  plan.train_method, plan.train_rows, plan.start_rows, plan.factorable_rows,
                  identity_of(plan.train_system));
  return fingerprint(text.data(), text.size());
}

nlohmann::json fit_record(const data::Dataset& data, const FitOptions& options,
                          const FitResult& result) {
  const auto& likelihood = result.likelihood;
  return {{"data_hash", fmt::format("{:016x}", data.fingerprint)},
          {"rows_read", data.rows_read},
          {"duplicate_inputs", data.duplicate_inputs},
          {"merged_rows", result.merged_rows},
          {"options", options_json(options)},
          {"train_method", result.plan.trains ? result.plan.train_method : "none"},
          {"train_rows", result.plan.train_rows},
          {"steps", result.training.steps},
          {"bounds_hit", result.training.bounds_hit},
          {"solver", result.plan.system.solver},
          {"preconditioner", result.plan.system.preconditioner},
          {"newton_steps", result.newton_steps},
          {"jitter", result.jitter},
          {"stop", std::string(to_string(result.solve.stop))},
          {"likelihood_method", likelihood.method},
          {"likelihood_rows", likelihood.rows},
          {"log_marginal_likelihood",
           likelihood.known ? nlohmann::json(likelihood.value) : nlohmann::json(nullptr)}};
}

// A step of learning is scored with no more digits than a picture shows.
constexpr double kWatchingTolerance = 1e-3;

KernelMachine machine(const data::Dataset& data, const FitOptions& options, const Task& task,
                      const inference::Problem& problem, inference::Posterior posterior) {
  KernelMachine model;
  model.schema = data.schema;
  model.scaling = task.scaling;
  model.classes = options.classes;
  model.problem = problem;
  model.functions = std::move(posterior.functions);
  model.certificate = std::move(posterior.certificate);
  model.certificate.mean_error_bound =
      task.scaling.unscale_width(model.certificate.mean_error_bound);
  if (auto& estimate = model.certificate.mean_error_estimate)
    estimate = task.scaling.unscale_width(*estimate);
  model.method = options.method;
  model.mean_only = options.mean_only;
  return model;
}

Plan plan_task(const Task& task, const FitOptions& options) {
  return planning::plan_fit(task.start, task.system_noise, task.rows, options.method,
                            options.train);
}

std::unique_ptr<inference::Inference> posterior_method(const Task& task, const FitOptions& options,
                                                       const Plan& plan) {
  return inference::make(plan.inference, task.start,
                         {.rows = task.rows, .system = plan.system, .seed = options.method.seed});
}

// Negative when there is no estimate.
double planned_solve_seconds(const Plan& plan) {
  for (const auto& row : plan.rows)
    if (row.stage == "solve" && row.chosen) return row.seconds;
  return -1;
}

Scores score(KernelMachine model, const Validation& validation) {
  // Kernel ridge regression learns as the process does, so it is scored as one.
  if (model.problem.gaussian()) model.mean_only = false;
  PredictOptions options;
  // Neighbours know nothing of functions that are coupled: those are scored at their mode.
  const bool at_mode = model.mean_only || model.coupled();
  options.variance.method = at_mode ? "none" : "vecchia";
  if (!at_mode) options.variance.check_rows = 0;
  const Predictor predictor(std::move(model), options);
  PredictionScores scores(predictor);
  scores.add(predictor.predict(validation.inputs, {}, validation.noise), validation.target,
             [](Index row) { return fmt::format("row {} of the validation data", row + 1); });
  return scores.scores();
}

// Tells the validation of every step: the posterior at its values, scored.
training::StepObserver watcher(const data::Dataset& data, const FitOptions& options,
                               const Task& task, inference::Inference& method,
                               const Validation* validation) {
  if (validation == nullptr) return {};
  return [&, validation](const inference::Problem& here, int step, double seconds) {
    const double tolerance = std::max(options.method.tolerance, kWatchingTolerance);
    auto model = machine(data, options, task, here, method.posterior(here, {tolerance}, {}));
    model.x = task.rows.x;
    validation->on_step({step, seconds, score(std::move(model), *validation)});
  };
}

FitResult fit_to(Task task, const data::Dataset& data, const FitOptions& options,
                 const ProgressCallback& callback, const Validation* validation) {
  const ObservedCall call(callback);
  const Timer timer;
  FitResult result;
  result.plan = plan_task(task, options);
  result.warnings = task.warnings;
  result.merged_rows = task.merged_rows;
  const auto& plan = result.plan;
  auto method = posterior_method(task, options, plan);
  auto problem = task.start;
  const double solve_seconds = planned_solve_seconds(plan);
  bool learned_all = false;
  const ProgressCallback progress = !call.progress() ? ProgressCallback() : [&](Progress now) {
    now.seconds_after = solve_seconds;
    now.learned = now.learned || learned_all;
    return call.progress()(now);
  };
  if (plan.trains) {
    const auto on_step = watcher(data, options, task, *method, validation);
    auto learned = training::train(
        task.start, task.rows,
        {plan.train_method, plan.train_rows, plan.train_levels, plan.solve_levels,
         plan.train_budget, plan.factorable_rows, plan.train_system},
        {options.train, options.method.seed, run_identity(data, options, plan), progress, on_step});
    learned_all = true;
    problem = std::move(learned.problem);
    result.training = std::move(learned.report);
    result.likelihood = std::move(learned.likelihood);
    if (planning::plan_again(problem, task.rows, options.method, result.plan))
      method = posterior_method(task, options, plan);
    method->start_from(learned.warm_start);
    // A wish to stop learning ends with it: from here on it is about the model.
    if (progress && progress({"solve", -1, "with what was learned"}) == Action::stop)
      throw Interrupted("interrupted before the solve");
  }
  const bool with_evidence = options.evidence && !result.likelihood.known;
  auto posterior = method->posterior(
      problem, {options.method.tolerance, with_evidence, options.gradient, options.method.accuracy},
      progress);
  if (with_evidence) result.likelihood = std::move(posterior.evidence);
  if (!result.likelihood.known && !options.evidence) {
    result.likelihood.method = "none";
    result.likelihood.reason = "it was not asked for";
  }
  result.solve = std::move(posterior.solve);
  result.newton_steps = posterior.newton_steps;
  result.newton_decrement = posterior.newton_decrement;
  result.halvings = posterior.halvings;
  result.jitter = posterior.jitter;
  result.preconditioner = std::move(posterior.preconditioner);
  result.build_seconds = posterior.build_seconds;
  result.model = machine(data, options, task, problem, std::move(posterior));
  result.model.x = std::move(task.rows.x);
  result.model.record = fit_record(data, options, result).dump();
  result.seconds = timer.seconds();
  return result;
}

}  // namespace

FitResult fit(const data::Dataset& data, const FitOptions& options,
              const ProgressCallback& progress, const Validation* validation) {
  return fit_to(make_task(data, options), data, options, progress, validation);
}

FitResult refit(const KernelMachine& learned, const data::Dataset& data, FitOptions options,
                const ProgressCallback& progress) {
  options.train.train = "none";
  return fit_to(make_task(data, options, &learned), data, options, progress, nullptr);
}

Plan plan_fit(const data::Dataset& data, const FitOptions& options) {
  return plan_task(make_task(data, options), options);
}

}  // namespace mercer::models
