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
  // Of this run: 3 on 2,500 rows, 2 on 10,000.
  std::vector<std::pair<Index, int>> levels;
  for (const auto& step : training.history) {
    if (levels.empty() || levels.back().first != step.rows) levels.emplace_back(step.rows, 0);
    ++levels.back().second;
  }
  if (levels.size() < 2) return text;
  std::vector<std::string> parts;
  parts.reserve(levels.size());
  for (const auto& [rows, number] : levels)
    parts.push_back(fmt::format("{} on {}", number, count(rows)));
  return fmt::format("{} ({})", text, fmt::join(parts, ", "));
}

std::string gain_text(const models::TrainReport& training, Index rows, const char* of) {
  if (training.history.empty() || !training.history.back().predicted_gain) return "";
  const auto& last = training.history.back();
  std::string text = fmt::format(
      "             at the last gradient {} of {} were still to be gained; its noise\n"
      "             alone would show {}\n",
      number(*last.predicted_gain, 3), of, number(last.noise_gain.value_or(0), 3));
  if (last.rows < rows)
    text +=
        fmt::format("             it was one of {}; what there is to gain on all {} is not known\n",
                    plural(last.rows, "random row"), count(rows));
  return text;
}

std::string budget_text(const models::TrainReport& training, std::optional<Index> budget) {
  if (!training.budget_spent || !budget) return "";
  return fmt::format("             the budget of {} ended it; --budget allows more\n",
                     plural(*budget, "product"));
}

std::string bounds_text(const models::TrainReport& training) {
  if (training.bounds_hit.empty()) return "";
  return fmt::format("             at the edge of the allowed range: {}\n",
                     fmt::join(training.bounds_hit, ", "));
}

void tell_learning(const Arguments& arguments, const models::Plan& plan,
                   const models::TrainReport& training, const Console& console) {
  std::vector<std::string> idle;
  for (const char* option : {"probes", "probe_kind", "budget"})
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
  if (training.failed_gradients > 0 && !training.history.empty() &&
      training.history.back().factored)
    console.note(
        "solves failed while learning, as they do where the noise is at the rounding of the "
        "signal; "
        "gradients came from factorisations instead");
  else if (training.failed_gradients > 0)
    console.warn(
        "solves failed while learning and memory does not suffice for factorisations: the rest was "
        "learned from the Vecchia likelihood. Allow more --memory or --max-iterations, or learn "
        "from fewer rows with --subset");
  if (plan.trains && training::trainers().find(plan.train_method).warns_at_limit &&
      training.stop == StopReason::iteration_limit && !training.budget_spent)
    console.warn(
        "learning ended at its limit of steps, not at a maximum; allow more with --steps, or "
        "--train lbfgs where that many rows can be factored");
  if (plan.trains && training.budget_spent && training.gradients() == 0)
    console.warn(
        "the budget did not last for one exact gradient; allow more products with --budget");
  if (plan.trains && training.stop == StopReason::breakdown)
    console.warn(
        "learning broke down, because a value or a gradient was not a finite number: the "
        "hyperparameters are those reached until then. Begin elsewhere (--lengthscale, "
        "--signal-variance) or learn in another way (--train)");
}

}  // namespace mercer::cli
