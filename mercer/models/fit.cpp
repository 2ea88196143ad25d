#include "mercer/models/fit.hpp"

#include <fmt/format.h>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/models/fit_method.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/version.hpp"

namespace mercer::models {
namespace {

std::unique_ptr<FitMethod> make_method(const data::Dataset& data, const FitOptions& options) {
  check(options.method);
  check(options.train);
  return likelihoods::make(options.likelihood)->gaussian_noise() ? make_exact_fit(data, options)
                                                                 : make_laplace_fit(data, options);
}

// What a checkpoint must have been made from to be resumed: data and everything that steers.
std::uint64_t run_identity(const data::Dataset& data, const FitOptions& options, const Plan& plan) {
  const auto& m = options.method;
  const auto& t = options.train;
  const std::string text =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", version(), data.fingerprint, options.likelihood,
                  m.kernel, fmt::join(m.lengthscale, ","), m.signal_variance.value_or(-1),
                  m.noise.value_or(-1), m.mean, m.seed, options.standardize) +
      fmt::format("|{}|{}|{}|{}|{}|{}|{}", options.merge, t.train, t.steps.value_or(-1), t.restarts,
                  t.subset.value_or(-1), t.probes, t.probe_kind) +
      fmt::format("|{}|{}|{}|{}", plan.train_method, plan.train_rows, plan.start_rows,
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
          {"standardize", options.standardize},
          {"seed", options.method.seed},
          {"kernel", options.method.kernel},
          {"train", options.train.train},
          {"train_method", result.plan.train_method},
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

KernelMachine machine(const data::Dataset& data, const FitOptions& options, const FitMethod& method,
                      const inference::Problem& problem, Posterior posterior) {
  KernelMachine model;
  model.schema = data.schema;
  model.scaling = method.scaling;
  model.classes = options.classes;
  model.problem = problem;
  model.functions = std::move(posterior.functions);
  model.certificate = std::move(posterior.certificate);
  model.method = options.method;
  model.mean_only = options.mean_only;
  return model;
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

}  // namespace

FitResult fit(const data::Dataset& data, const FitOptions& options,
              const ProgressCallback& progress, const Validation* validation) {
  const Timer timer;
  const auto method = make_method(data, options);
  FitResult result;
  result.plan = method->plan;
  result.warnings = method->warnings;
  result.merged_rows = method->merged_rows;
  auto problem = method->start;
  if (result.plan.trains) {
    StepObserver on_step;
    if (validation != nullptr)
      on_step = [&](const inference::Problem& here, int step, double seconds) {
        auto model =
            machine(data, options, *method, here, method->posterior(here, {.watching = true}, {}));
        model.x = method->points();
        validation->on_step({step, seconds, score(std::move(model), *validation)});
      };
    auto learned = method->learn({options.train, options.method.seed,
                                  run_identity(data, options, result.plan), progress, on_step});
    problem = std::move(learned.problem);
    result.training = std::move(learned.report);
    result.likelihood = std::move(learned.likelihood);
  }
  auto posterior =
      method->posterior(problem, {.with_evidence = !result.likelihood.known}, progress);
  if (!result.likelihood.known) result.likelihood = std::move(posterior.evidence);
  result.solve = std::move(posterior.solve);
  result.newton_steps = posterior.newton_steps;
  result.halvings = posterior.halvings;
  result.jitter = posterior.jitter;
  result.preconditioner = std::move(posterior.preconditioner);
  result.build_seconds = posterior.build_seconds;
  result.model = machine(data, options, *method, problem, std::move(posterior));
  result.model.x = std::move(method->points());
  result.model.record = fit_record(data, options, result);
  result.seconds = timer.seconds();
  return result;
}

Plan plan_fit(const data::Dataset& data, const FitOptions& options) {
  return make_method(data, options)->plan;
}

}  // namespace mercer::models
