#include "cli/learning_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/format.hpp"
#include "mercer/training/training.hpp"

namespace mercer::cli {

std::string gradients_text(const models::TrainReport& training, const char* noun,
                           const char* after) {
  std::string text = plural(training.gradients(), noun) + after;
  if (training.resumed_gradients > 0)
    text += fmt::format(", {} of them from the checkpoint", count(training.resumed_gradients));
  return text;
}

std::string gain_text(const models::TrainReport& training, const char* of) {
  if (training.history.empty() || !training.history.back().predicted_gain) return "";
  return fmt::format(
      "             at the last gradient {} of {} were still to be gained; its noise\n"
      "             alone would show {}\n",
      number(*training.history.back().predicted_gain, 3), of,
      number(training.history.back().noise_gain.value_or(0), 3));
}

std::string bounds_text(const models::TrainReport& training) {
  if (training.bounds_hit.empty()) return "";
  return fmt::format("             at the edge of the allowed range: {}\n",
                     fmt::join(training.bounds_hit, ", "));
}

void tell_learning(const Arguments& arguments, const models::Plan& plan,
                   const models::TrainReport& training, const Console& console) {
  std::vector<std::string> idle;
  for (const char* option : {"probes", "probe_kind"})
    if (plan.trains && !plan.train_by_solves && arguments.given(option))
      idle.push_back(fmt::format("`{}`", option));
  if (!idle.empty())
    console.note(fmt::format("{} had no part in this: it was learned by Cholesky",
                             fmt::join(idle, " and ")));
  if (training.loose_gradients > 0)
    console.warn(fmt::format(
        "{} of {} while learning came from solves that missed their tolerance; allow more "
        "--max-iterations, or try another --preconditioner",
        training.loose_gradients, plural(training.gradients(), "gradient")));
  if (plan.trains && training::trainers().find(plan.train_method).warns_at_limit &&
      training.stop == StopReason::iteration_limit)
    console.warn(
        "learning ended at its limit of steps, not at a maximum; allow more with --steps, or "
        "--train lbfgs where that many rows can be factored");
  if (plan.trains && training.stop == StopReason::breakdown)
    console.warn(
        "learning broke down, because a value or a gradient was not a finite number: the "
        "hyperparameters are those reached until then. Begin elsewhere (--lengthscale, "
        "--signal-variance) or learn in another way (--train)");
}

}  // namespace mercer::cli
