#include "mercer/models/sampling/sample.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/options_json.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/core/version.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/task.hpp"
#include "mercer/planning/sampling_plan.hpp"
#include "mercer/training/training.hpp"

namespace mercer::models {
namespace {

// What a checkpoint of chains must have been made from. How many draws the model keeps is no part
// of it.
std::uint64_t sampling_identity(const data::Dataset& data, const SamplingOptions& options,
                                const Plan& plan) {
  const auto text =
      fmt::format("{}|{}|{}|{}|{}|{}", version(), data.fingerprint, identity_text(options.fit),
                  identity_text(options.sample), plan.train_method, identity_of(plan.train_system));
  return fingerprint(text.data(), text.size());
}

nlohmann::json sampling_record(const data::Dataset& data, const SamplingOptions& options,
                               const SampleResult& result) {
  return {{"data_hash", fmt::format("{:016x}", data.fingerprint)},
          {"rows_read", data.rows_read},
          {"duplicate_inputs", data.duplicate_inputs},
          {"merged_rows", result.merged_rows},
          {"options", options_json(options)},
          {"train_method", result.plan.train_method},
          {"train_rows", result.plan.train_rows},
          {"chains", result.draws.chains.size()},
          {"kept_draws", result.draws.size()},
          {"inference", result.plan.inference},
          {"solver", result.plan.system.solver},
          {"preconditioner", result.plan.system.preconditioner},
          {"stop", std::string(to_string(result.solve_stop))}};
}

// Rows of the draws, evenly spaced over all chains.
std::vector<Index> thinned(Index kept, Index wanted) {
  const Index count = std::min(kept, wanted);
  std::vector<Index> out;
  for (Index i = 0; i < count; ++i) out.push_back((2 * i + 1) * kept / (2 * count));
  return out;
}

inference::Certificate in_target_units(inference::Certificate c, const data::Scaling& scaling) {
  c.mean_error_bound = scaling.unscale_width(c.mean_error_bound);
  if (c.mean_error_estimate) c.mean_error_estimate = scaling.unscale_width(*c.mean_error_estimate);
  return c;
}

// The weights at every thinned draw.
void add_draws(const Task& task, const SamplingOptions& options, const ProgressCallback& progress,
               SampleResult& result) {
  const auto& plan = result.plan;
  const auto& method = options.fit.method;
  const auto inference = inference::make(
      plan.inference, task.start, {.rows = task.rows, .system = plan.system, .seed = method.seed});
  auto problem = task.start;
  const auto rows = thinned(result.draws.size(), options.draws);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    problem.set_log_parameters(result.draws.phi.row(rows[i]).transpose());
    const ProgressCallback share = !progress ? ProgressCallback() : [&](Progress now) {
      now.stage = "solve";
      now.detail = fmt::format("draw {} of {}{}{}", i + 1, rows.size(),
                               now.detail.empty() ? "" : ", ", now.detail);
      const double done = std::max(0.0, now.fraction);
      now.fraction = (static_cast<double>(i) + done) / static_cast<double>(rows.size());
      return progress(now);
    };
    auto posterior = inference->posterior(
        problem, {.tolerance = method.tolerance, .accuracy = method.accuracy}, share);
    inference->start_from(inference->warm_start());
    if (result.solve_stop == StopReason::converged) result.solve_stop = posterior.solve.stop;
    result.solve_iterations += posterior.solve.iterations;
    auto certificate = in_target_units(std::move(posterior.certificate), task.scaling);
    if (i == 0) {
      result.model.problem = problem;
      result.model.functions = std::move(posterior.functions);
      result.model.certificate = std::move(certificate);
    } else {
      result.model.draws.push_back(
          {problem, std::move(posterior.functions), std::move(certificate)});
    }
  }
}

void check_request(const SamplingOptions& options) {
  validate(options.sample);
  if (options.draws < 1) throw InvalidArgument("`draws` must be positive");
  if (options.fit.mean_only)
    throw InvalidArgument(
        "draws of hyperparameters are those of a Gaussian process; leave `method` out");
  if (options.fit.approximation.asked())
    throw InvalidArgument(
        "draws of hyperparameters are made from the exact evidence, not from "
        "that of an approximation; leave `method` out");
}

void warn_of_chains(const SamplingOptions& options, SampleResult& result) {
  if (!options.fit.standardize && options.sample.prior.empty())
    result.warnings.push_back(fmt::format(
        "the default prior {} is meant for standardised data, and these are not; say what is known "
        "in their units with `prior`",
        training::kDefaultPrior));
  if (options.sample.chains == 1)
    result.warnings.push_back(
        "R-hat compares chains, and there is one only: it is not available; give more `chains`");
}

void warn_of_draws(SampleResult& result) {
  Index gradients = 0, unsolved = 0;
  for (const auto& chain : result.draws.chains) {
    gradients += chain.solves.gradients;
    unsolved += chain.solves.unsolved;
  }
  if (unsolved > 0)
    result.warnings.push_back(fmt::format(
        "solves of {} of {} gradients did not reach their tolerance, so that these are biased and "
        "the draws with them; give more `max_iterations`, or another `preconditioner`",
        unsolved, gradients));
  const auto& all = result.parameters;
  if (std::any_of(all.begin(), all.end(), [](const auto& s) { return s.chain_stands; }))
    result.warnings.push_back(
        "all draws of a chain are equal: every proposal was refused, and these are no draws from "
        "the posterior; give more `iterations` and `warmup`, or other priors");
  else if (std::all_of(all.begin(), all.end(), [](const auto& s) { return !s.rhat && !s.ess; }))
    result.warnings.push_back(
        "there are too few draws to say how far they can be trusted; give more `iterations`");
}

}  // namespace

SampleResult sample(const data::Dataset& data, const SamplingOptions& options,
                    const ProgressCallback& callback) {
  const ObservedCall call(callback);
  const Timer timer;
  check_request(options);
  auto task = make_task(data, options.fit);
  SampleResult result;
  result.plan = planning::plan_sampling(task.start, task.system_noise, task.rows,
                                        options.fit.method, options.fit.train, options.sample);
  result.warnings = task.warnings;
  result.merged_rows = task.merged_rows;
  result.names = task.start.parameter_names();
  const training::JointPrior prior(result.names, options.sample.prior);
  for (Index i = 0; i < prior.size(); ++i) result.priors.push_back(prior.of(i));
  warn_of_chains(options, result);
  const auto& plan = result.plan;
  const training::StepObserver no_observer;
  training::TrainingChoice choice;
  choice.trainer = plan.train_method;
  choice.rows = plan.train_rows;
  choice.system = plan.train_system;
  auto learned = training::train(task.start, task.rows, choice,
                                 {.options = options.fit.train,
                                  .seed = options.fit.method.seed,
                                  .identity = sampling_identity(data, options, plan),
                                  .progress = call.progress(),
                                  .on_step = no_observer,
                                  .sampling = &options.sample});
  result.training = std::move(learned.report);
  result.draws = std::move(learned.draws);
  result.parameters = training::summarise(result.draws);
  warn_of_draws(result);
  result.sample_seconds = timer.seconds();
  // A wish to stop sampling ends with it: from here on it is about the model.
  if (call.progress() &&
      call.progress()({.stage = "solve", .detail = "at the draws", .learned = true}) ==
          Action::stop)
    throw Interrupted("interrupted before the solves at the draws");
  planning::plan_again(learned.problem, task.rows, options.fit.method, result.plan);
  add_draws(task, options, call.progress(), result);
  auto& model = result.model;
  model.schema = data.schema;
  model.scaling = task.scaling;
  model.classes = options.fit.classes;
  model.method = options.fit.method;
  model.x = std::move(task.rows.x);
  model.record = sampling_record(data, options, result).dump();
  result.seconds = timer.seconds();
  result.solve_seconds = result.seconds - result.sample_seconds;
  return result;
}

}  // namespace mercer::models
