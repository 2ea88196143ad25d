// Adam and AdaGrad on gradients by solves, from the start values as in the papers.
//   Source: Kingma & Ba (2015); Duchi, Hazan & Singer (2011); Cutajar et al. (2016) used AdaGrad
//           with step 1.
//   Cost:   one gradient a step.
#include <fmt/format.h>

#include "mercer/optim/stochastic.hpp"
#include "mercer/training/archive.hpp"
#include "mercer/training/gradients.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

// Steps between measurements of the noise of a gradient.
constexpr int kMeasureEvery = 10;

class Descent {
 public:
  Descent(Search& search, optim::StepRule rule) : search_(search), gradients_(search) {
    options_.rule = rule;
    options_.rate = rule == optim::StepRule::adagrad ? 1.0 : 0.1;
    options_.steps = search.options().steps.value_or(search.rules().descent_steps);
  }
  Vector run(const Vector& start);

 private:
  void visit_state(Archive& archive);
  optim::NoisyGradient gradient(ConstVectorView theta, int step);
  Action after_step(const optim::StochasticState& state);

  Search& search_;
  GradientsBySolves gradients_;
  optim::StochasticOptions options_;
  optim::StochasticState state_;
};

void Descent::visit_state(Archive& archive) {
  auto& report = search_.report;
  archive.number("step", state_.step);
  archive.number("converged", state_.converged);
  archive.number("loose_gradients", report.loose_gradients);
  archive.number("products", report.products);
  archive.array("theta", state_.theta);
  archive.array("first", state_.first);
  archive.array("second", state_.second);
  archive.columns("gradients", state_.gradients);
  archive.columns("thetas", state_.thetas);
  archive.array("standard_error", report.standard_error);
  archive.method(gradients_.method(), gradients_.problem());
}

optim::NoisyGradient Descent::gradient(ConstVectorView theta, int step) {
  const bool at_the_end = step + options_.window >= options_.steps;
  const auto estimate = gradients_.evaluate(theta, {at_the_end ? kTightTolerance : kLooseTolerance,
                                                    step % kMeasureEvery == 0 ? kErrorPasses : 0});
  if (gradients_.stopped() || gradients_.over_budget()) return {};
  const double entries = gradients_.entries();
  optim::NoisyGradient out{-estimate.gradient / entries, {}};
  const auto& error = search_.report.standard_error;
  if (error.size() > 0) out.standard_error = error / entries;
  return out;
}

Action Descent::after_step(const optim::StochasticState& state) {
  state_ = state;
  ++search_.report.steps;
  search_.reached(state.theta);
  Archive archive;
  visit_state(archive);
  search_.keep(archive.state());
  if (search_.stopped(
          "learn (all rows)", static_cast<double>(state.step) / options_.steps,
          fmt::format("step {}, gradient {:.3g}", state.step, search_.report.gradient.norm())))
    gradients_.stop();
  return gradients_.stopped() ? Action::stop : Action::proceed;
}

Vector Descent::run(const Vector& start) {
  state_.theta = start;
  auto& report = search_.report;
  if (!search_.trainer_state().empty()) {
    Archive archive(search_.trainer_state());
    visit_state(archive);
    if (state_.step > 0) search_.remember(state_.theta);
    report.resumed_gradients = state_.step;
    report.steps += state_.step;
  }
  const auto result =
      optim::descend([this](ConstVectorView theta, int step) { return gradient(theta, step); },
                     state_, search_.box(), options_,
                     [this](const optim::StochasticState& state) { return after_step(state); });
  report.stop = gradients_.over_budget() ? StopReason::iteration_limit
                : result.stop == StopReason::converged && report.loose_gradients > 0
                    ? StopReason::stagnation
                    : result.stop;
  report.budget_spent = gradients_.over_budget();
  if (gradients_.rows().size() == search_.all().size())
    search_.warm = gradients_.method().warm_start();
  if (!search_.choice().approximation.empty()) {
    report.approximate_evaluations = static_cast<int>(report.gradients());
    search_.finish_approximation(gradients_.method(), gradients_.rows());
    search_.use(nullptr);
  }
  return result.theta;
}

double descent_gradients(const inference::Problem& problem, const TrainOptions& options) {
  return options.steps.value_or(rules_for(problem).descent_steps);
}

std::string no_refusal(const inference::Problem& /*problem*/) { return {}; }

}  // namespace

TrainerInfo adam_info() {
  return {
      .name = "adam",
      .summary = "Adam on gradients by solves, from the start values",
      .by_solves = true,
      .from_start_values = true,
      .on_surrogate = false,
      .gradients = descent_gradients,
      .preference = [](const inference::Problem& problem) { return problem.gaussian() ? 0 : 1; },
      .refusal = no_refusal,
      .run = [](Search& search,
                const Vector& start) { return Descent(search, optim::StepRule::adam).run(start); }};
}

TrainerInfo adagrad_info() {
  return {.name = "adagrad",
          .summary = "AdaGrad on gradients by solves, from the start values",
          .by_solves = true,
          .from_start_values = true,
          .on_surrogate = false,
          .gradients = descent_gradients,
          .preference = [](const inference::Problem&) { return 0; },
          .refusal = no_refusal,
          .run =
              [](Search& search, const Vector& start) {
                return Descent(search, optim::StepRule::adagrad).run(start);
              }};
}

}  // namespace mercer::training
