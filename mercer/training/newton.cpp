// Newton's steps with the Hessian of fewer rows, which gradients by solves on all rows correct.
// With the same probes every time these are the gradients of one function, close to the evidence.
//   Cost:     a Hessian of fewer rows by differences, and usually two to four gradients.
//   When not: many parameters: the noise of a few probes is too much for its steps (take adam).
#include <fmt/format.h>

#include <limits>

#include "mercer/optim/quasi_newton.hpp"
#include "mercer/training/archive.hpp"
#include "mercer/training/gradients.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

constexpr int kMostSteps = 20;
// Log evidence that may be left to gain; a typical Hessian per entry of y, where none is known.
constexpr double kGainLeft = 0.1, kTypicalHessian = 0.05;

class Newton {
 public:
  explicit Newton(Search& search) : search_(search), gradients_(search) {}
  Vector run(const Vector& start);

 private:
  Matrix first_hessian(const Vector& start);
  optim::NoisyGradient gradient(ConstVectorView theta, int step);

  Search& search_;
  GradientsBySolves gradients_;
  // [gradient; standard error] of every step: an interrupted run is played back from it.
  Matrix history_;
};

Matrix Newton::first_hessian(const Vector& start) {
  Matrix out;
  if (!search_.choice().levels.empty()) {
    const Index most = search_.choice().levels.back();
    const bool many = start.size() > kMostNewtonParameters;
    out = search_.hessian(search_.rows(many ? std::min(kFewRows, most) : most), start);
  }
  if (out.size() == 0) out = kTypicalHessian * Matrix::Identity(start.size(), start.size());
  return out;
}

optim::NoisyGradient Newton::gradient(ConstVectorView theta, int step) {
  const Index p = theta.size();
  if (step < history_.cols()) {  // answered from the checkpoint
    ++search_.report.resumed_gradients;
    const Vector error = history_.col(step).tail(p);
    return {history_.col(step).head(p), error.allFinite() ? error : Vector()};
  }
  const auto estimate = gradients_.evaluate(theta, {kTightTolerance, kErrorPasses});
  if (gradients_.stopped() || gradients_.over_budget()) return {};
  const double entries = gradients_.entries();
  optim::NoisyGradient out{-estimate.gradient / entries, estimate.standard_error / entries};
  history_.conservativeResize(2 * p, step + 1);
  history_.col(step).head(p) = out.gradient;
  history_.col(step).tail(p) = out.standard_error.size() > 0
                                   ? out.standard_error
                                   : Vector::Constant(p, std::numeric_limits<double>::quiet_NaN());
  return out;
}

Vector Newton::run(const Vector& start) {
  const Index p = start.size();
  const auto& levels = search_.choice().levels;
  // Before the state is loaded: an exact evaluation is answered from the log of the search.
  const Matrix hessian = first_hessian(start);
  if (!search_.trainer_state().empty()) {
    Archive archive(search_.trainer_state());
    archive.array("history", history_);
    archive.number("products", search_.report.products);
    if (history_.rows() != 2 * p)
      throw ModelFileError("the checkpoint is damaged: it is of another number of parameters");
    archive.method(gradients_.method(), gradients_.problem());
  } else if (!levels.empty()) {
    gradients_.method().start_from(search_.warm_start(
        search_.rows(std::min(kFewRows, levels.back())), gradients_.rows().size(), start));
  }
  optim::QuasiNewtonOptions options;
  options.steps = search_.options().steps.value_or(kMostSteps);
  options.gain_tolerance = kGainLeft / gradients_.entries();
  auto& report = search_.report;
  const auto result = optim::quasi_newton(
      [this](ConstVectorView theta, int step) { return gradient(theta, step); }, start, hessian,
      search_.box(), options,
      [&](const optim::QuasiNewtonStep& step) {
        ++report.steps;
        if (step.accepted) search_.reached(step.theta);
        if (!report.history.empty() && report.history.back().number == step.number) {
          report.history.back().predicted_gain = gradients_.entries() * step.gain;
          report.history.back().noise_gain = gradients_.entries() * step.noise;
          Archive archive;
          archive.array("history", history_);
          archive.number("products", report.products);
          archive.method(gradients_.method(), gradients_.problem());
          search_.keep(archive.state());
        }
        if (search_.stopped("learn (all rows)", static_cast<double>(step.number) / options.steps,
                            fmt::format("step {}", step.number)))
          gradients_.stop();
        return gradients_.stopped() ? Action::stop : Action::proceed;
      });
  report.stop = gradients_.over_budget() ? StopReason::iteration_limit : result.stop;
  report.budget_spent = gradients_.over_budget();
  if (gradients_.rows().size() == search_.all().size())
    search_.warm = gradients_.method().warm_start();
  return result.theta;
}

}  // namespace

TrainerInfo newton_info() {
  return {.name = "newton",
          .summary = "Newton's steps: the Hessian of fewer rows, gradients by solves on all",
          .by_solves = true,
          .from_start_values = false,
          .on_surrogate = false,
          .warns_at_limit = true,
          .words = "Newton's steps",
          .preference =
              [](const inference::Problem& problem) {
                return problem.kernel.num_parameters() <= kMostNewtonParameters ? 2 : 0;
              },
          .refusal = [](const inference::Problem& problem) -> std::string {
            if (!problem.gaussian()) return {};
            return "`train=newton` is for classes, counts and outliers; with Gaussian noise "
                   "`train=lbfgs` does better: it corrects the Vecchia likelihood by exact "
                   "gradients";
          },
          .run = [](Search& search, const Vector& start) { return Newton(search).run(start); }};
}

}  // namespace mercer::training
