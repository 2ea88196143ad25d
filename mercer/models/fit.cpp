#include "mercer/models/fit.hpp"

#include <fmt/format.h>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/options_json.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/core/version.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/sparse/streamed.hpp"
#include "mercer/models/approximation_check.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/sparse/row_passes.hpp"
#include "mercer/models/sparse/sparse_file.hpp"
#include "mercer/models/task.hpp"
#include "mercer/training/training.hpp"

namespace mercer::models {
namespace {

// What a checkpoint must have been made from to be resumed: data and everything that steers.
std::uint64_t run_identity(const data::Dataset& data, const FitOptions& options, const Plan& plan) {
  const auto& points = plan.sparse.points;
  const std::string text = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}", version(), data.fingerprint, identity_text(options),
      plan.train_method, plan.train_rows, plan.start_rows, plan.reservoir,
      identity_of(plan.train_system),
      fingerprint(points.data(), static_cast<std::size_t>(points.size()) * sizeof(double)));
  return fingerprint(text.data(), text.size());
}

nlohmann::json fit_record(const data::Dataset& data, const FitOptions& options,
                          const FitResult& result) {
  const auto& likelihood = result.likelihood;
  return {{"data_hash", fmt::format("{:016x}", data.fingerprint)},
          {"rows_read", data.rows_read},
          {"duplicate_inputs", data.duplicate_inputs},
          {"merged_rows", result.merged_rows},
          {"streamed", result.plan.streamed},
          {"reservoir", result.plan.reservoir},
          {"options", options_json(options)},
          {"train_method", result.plan.trains ? result.plan.train_method : "none"},
          {"train_rows", result.plan.train_rows},
          {"steps", result.training.steps},
          {"bounds_hit", result.training.bounds_hit},
          {"inference", result.plan.inference},
          {"solver", result.plan.approximate ? "none" : result.plan.system.solver},
          {"preconditioner", result.plan.approximate ? "none" : result.plan.system.preconditioner},
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
  if (posterior.sparse) {
    model.method = planning::without_base(options.method);
    model.certificate.rigorous = false;
    model.certificate.mean_error_estimate.reset();
    model.functions = latent_functions(*posterior.sparse);
    model.certificate.residual = Vector::Zero(model.num_functions());
    model.sparse_rows = task.stream ? task.stream->rows : task.rows.size();
    model.x = posterior.sparse->x.rows() > 0 ? posterior.sparse->x : posterior.sparse->base;
    model.sparse = std::move(posterior.sparse);
  }
  return model;
}

Plan plan_task(const Task& task, const FitOptions& options) {
  return planning::plan_fit(task.start, task.system_noise, task.rows, options.method, options.train,
                            task.approximation, task.stream);
}

std::unique_ptr<inference::Inference> posterior_method(const Task& task, const FitOptions& options,
                                                       const Plan& plan) {
  return inference::make(plan.inference, task.start,
                         {.rows = task.rows,
                          .system = plan.system,
                          .seed = options.method.seed,
                          .sparse = plan.sparse});
}

// Negative when there is no estimate.
double planned_solve_seconds(const Plan& plan) {
  for (const auto& row : plan.rows)
    if ((row.stage == "solve" || row.stage == "passes") && row.chosen) return row.seconds;
  return -1;
}

Scores score(KernelMachine model, const Validation& validation) {
  // Kernel ridge regression learns as the process does, so it is scored as one.
  if (model.problem.gaussian()) model.mean_only = false;
  PredictOptions options;
  // Neighbours know nothing of functions that are coupled: those are scored at their mode.
  const bool at_mode = model.mean_only || model.coupled();
  if (!model.sparse) options.variance.method = at_mode ? "none" : "vecchia";
  if (!at_mode && !model.sparse) options.variance.check_rows = 0;
  const Predictor predictor(std::move(model), options);
  PredictionScores scores(predictor);
  scores.add(predictor.predict(validation.inputs, {}, validation.noise), validation.target,
             [](Index row) { return fmt::format("row {} of the validation data", row + 1); });
  return scores.scores();
}

// The base points that a step of learning had; where there are none yet, or those of other rows,
// the ones of its values.
void use_base_of(const inference::Inference* learning, const inference::Problem& here,
                 bool same_rows, inference::Inference& method) {
  if (learning != nullptr && same_rows)
    method.load(learning->save(), here);
  else
    method.renew(here);
}

// One fit.
struct Run {
  const Task& task;
  const data::Dataset& data;  // or the sample of what is read in passes
  const FitOptions& options;
  const Validation* validation;
  std::unique_ptr<inference::Inference> method;  // of the posterior, or of that of the sample
  FitResult& result;
  RowPasses* passes = nullptr;                          // null: all rows are in memory
  std::shared_ptr<inference::Inference> streamed = {};  // of the posterior, over all rows

  const Plan& plan() const { return result.plan; }
};

// Tells the validation of every step: the posterior at its values, scored.
training::StepObserver watcher(Run& run) {
  if (run.validation == nullptr) return {};
  return [&run](const training::StepReached& reached) {
    const auto& here = reached.problem;
    const double tolerance = std::max(run.options.method.tolerance, kWatchingTolerance);
    if (run.plan().approximate)
      use_base_of(reached.approximation, here, run.plan().train_rows == run.task.rows.size(),
                  *run.method);
    auto model = machine(run.data, run.options, run.task, here,
                         run.method->posterior(here, {tolerance}, {}));
    if (!model.sparse) model.x = run.task.rows.x;
    run.validation->on_step(
        {reached.step, reached.seconds, score(std::move(model), *run.validation)});
  };
}

// Learns, and leaves the method ready for the posterior at what was learned.
inference::Problem learn(Run& run, const ProgressCallback& progress) {
  const auto& plan = run.plan();
  const auto on_step = watcher(run);
  training::FullRows full;
  if (run.passes != nullptr) {
    run.passes->set_learning(true);
    full = {std::ref(*run.passes), run.task.stream->rows, run.task.stream->gradients};
  }
  auto learned = training::train(
      run.task.start, run.task.rows,
      {plan.train_method, plan.train_rows, plan.train_levels, plan.solve_levels, plan.train_budget,
       plan.factorable_rows, plan.train_system, plan.approximate ? plan.inference : std::string(),
       plan.sparse, plan.moves_base},
      {run.options.train, run.options.method.seed, run_identity(run.data, run.options, plan),
       progress, on_step, run.passes != nullptr ? &full : nullptr});
  if (run.passes != nullptr) run.passes->set_learning(false);
  run.streamed = std::move(learned.streamed);
  run.result.training = std::move(learned.report);
  run.result.likelihood = std::move(learned.likelihood);
  if (planning::plan_again(learned.problem, run.task.rows, run.options.method, run.result.plan))
    run.method = posterior_method(run.task, run.options, plan);
  run.method->start_from(learned.warm_start);
  if (!learned.approximation.empty()) run.method->load(learned.approximation, learned.problem);
  run.result.approximation = std::move(learned.approximation);
  return std::move(learned.problem);
}

void add_posterior(Run& run, const inference::Problem& problem, inference::Posterior posterior) {
  auto& result = run.result;
  result.solve = std::move(posterior.solve);
  result.newton_steps = posterior.newton_steps;
  result.newton_decrement = posterior.newton_decrement;
  result.halvings = posterior.halvings;
  result.jitter = posterior.jitter;
  result.preconditioner = std::move(posterior.preconditioner);
  result.build_seconds = posterior.build_seconds;
  result.model = machine(run.data, run.options, run.task, problem, std::move(posterior));
}

// The gradient of an approximate evidence, which its posterior does not have.
void add_gradient(Run& run, const inference::Problem& problem) {
  if (!run.plan().approximate || !run.options.gradient || run.result.likelihood.gradient.size() > 0)
    return;
  auto& method = run.streamed ? *run.streamed : *run.method;
  run.result.likelihood.gradient = method.evaluate(problem, {}).gradient;
}

// With given hyperparameters nothing has chosen base points yet: those of the sample.
void stream_as_given(Run& run) {
  if (run.passes == nullptr || run.streamed) return;
  run.method->renew(run.task.start);
  run.streamed = inference::make_streamed(run.plan().inference, run.task.start,
                                          std::ref(*run.passes), run.method->base_points());
}

void report_passes(Run& run) {
  if (run.passes == nullptr) return;
  const auto& report = run.passes->report();
  run.result.passes = 1 + report.passes;
  if (report.seconds > 0)
    run.result.rows_per_second = static_cast<double>(report.passes) *
                                 static_cast<double>(run.task.stream->rows) / report.seconds;
}

// What was learned is worth more than the check of it: where that cannot be made, the model stays.
void check_approximation(Run& run, const ProgressCallback& progress) {
  auto& result = run.result;
  try {
    auto measured = measure_approximation(result.model, run.data, run.options,
                                          *run.options.approximation.check_rows, progress);
    result.model.check = measured.check;
    for (auto& warning : measured.warnings) result.warnings.push_back(std::move(warning));
  } catch (const DoesNotFit& error) {
    result.warnings.push_back(
        fmt::format("the distance from the exact posterior was not measured: {}", error.what()));
  } catch (const NotPositiveDefinite& error) {
    result.warnings.push_back(
        fmt::format("the distance from the exact posterior was not measured: {}", error.what()));
  }
}

FitResult fit_to(Task task, const data::Dataset& data, const FitOptions& options,
                 const ProgressCallback& callback, const Validation* validation,
                 const data::StreamedData* stream = nullptr,
                 const inference::State& approximation = {}) {
  const ObservedCall call(callback);
  const Timer timer;
  FitResult result;
  result.plan = plan_task(task, options);
  result.warnings = task.warnings;
  result.merged_rows = task.merged_rows;
  Run run{task, data, options, validation, posterior_method(task, options, result.plan), result};
  auto problem = task.start;
  if (!approximation.empty()) run.method->load(approximation, problem);
  const double solve_seconds = planned_solve_seconds(result.plan);
  bool learned_all = false;
  const ProgressCallback progress = !call.progress() ? ProgressCallback() : [&](Progress now) {
    now.seconds_after = solve_seconds;
    now.learned = now.learned || learned_all;
    return call.progress()(now);
  };
  std::optional<RowPasses> passes;
  if (stream != nullptr) run.passes = &passes.emplace(*stream, task.scaling, progress);
  if (result.plan.trains) {
    problem = learn(run, progress);
    learned_all = true;
    // A wish to stop learning ends with it: from here on it is about the model.
    if (progress && progress({"solve", -1, "with what was learned"}) == Action::stop)
      throw Interrupted("interrupted before the solve");
  }
  const bool with_evidence = options.evidence && !result.likelihood.known;
  stream_as_given(run);
  auto& method = run.streamed ? *run.streamed : *run.method;
  const bool with_gradient =
      options.gradient && !(result.plan.approximate && result.likelihood.gradient.size() > 0);
  auto posterior = method.posterior(
      problem, {options.method.tolerance, with_evidence, with_gradient, options.method.accuracy},
      progress);
  if (with_evidence)
    result.likelihood = std::move(posterior.evidence);
  else if (result.plan.approximate && with_gradient)
    result.likelihood.gradient = std::move(posterior.evidence.gradient);
  if (!result.likelihood.known && !options.evidence) {
    result.likelihood.method = "none";
    result.likelihood.reason = "it was not asked for";
  }
  add_gradient(run, problem);
  add_posterior(run, problem, std::move(posterior));
  if (!result.model.sparse) result.model.x = std::move(task.rows.x);
  if (options.approximation.check_rows) check_approximation(run, progress);
  report_passes(run);
  result.model.record = fit_record(data, options, result).dump();
  result.seconds = timer.seconds();
  return result;
}

}  // namespace

FitResult fit(const data::Dataset& data, const FitOptions& options,
              const ProgressCallback& progress, const Validation* validation) {
  return fit_to(make_task(data, options), data, options, progress, validation);
}

FitResult fit(const data::StreamedData& data, const FitOptions& options,
              const ProgressCallback& progress, const Validation* validation) {
  if (options.approximation.check_rows)
    throw InvalidArgument(
        "`check_rows` compares with the exact posterior of all rows, which needs them in memory, "
        "and these are read in passes; leave it out");
  return fit_to(make_task(data, options), data.sample, options, progress, validation, &data);
}

FitResult refit(const KernelMachine& learned, const data::Dataset& data, FitOptions options,
                const ProgressCallback& progress, const inference::State& approximation) {
  options.train.train = "none";
  options.approximation.optimize_base = false;  // base points are chosen, not learned
  return fit_to(make_task(data, options, &learned), data, options, progress, nullptr, nullptr,
                approximation);
}

Plan plan_fit(const data::Dataset& data, const FitOptions& options) {
  return plan_task(make_task(data, options), options);
}

Plan plan_fit(const data::StreamedData& data, const FitOptions& options) {
  return plan_task(make_task(data, options), options);
}

}  // namespace mercer::models
