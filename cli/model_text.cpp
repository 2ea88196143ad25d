#include "cli/model_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/approximation.hpp"
#include "cli/format.hpp"
#include "cli/option_list.hpp"
#include "mercer/data/text.hpp"
#include "mercer/krylov/registry.hpp"

namespace mercer::cli {
namespace {

constexpr std::size_t kLengthscalesShown = 12;
constexpr std::size_t kClassesShown = 12;

// Inputs that share a lengthscale that is one number in their units too: the place of the first of
// them, for each input.
std::vector<std::size_t> first_of_shared(const models::LeafValues& leaf) {
  constexpr double rounding = 1e-12;
  std::vector<std::size_t> first(leaf.lengthscales.size());
  for (std::size_t k = 0; k < first.size(); ++k)
    for (first[k] = 0; first[k] < k; ++first[k])
      if (leaf.shared[first[k]] == leaf.shared[k] &&
          std::abs(leaf.lengthscales[first[k]] - leaf.lengthscales[k]) <=
              rounding * leaf.lengthscales[k])
        break;
  return first;
}

// A table of lengthscales, shortest first when there are many.
std::string leaf_text(const models::LeafValues& leaf, const std::vector<std::string>& names) {
  if (leaf.lengthscales.empty()) return "";
  const auto first = first_of_shared(leaf);
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < first.size(); ++k)
    if (first[k] == k) order.push_back(k);
  const auto rows = static_cast<Index>(order.size());
  const bool all = order.size() <= kLengthscalesShown;
  // Of many inputs, those that matter most: the shortest lengthscales.
  if (!all)
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return leaf.lengthscales[a] < leaf.lengthscales[b];
    });
  Table table(leaf.periods.empty() ? "lr" : "lrr",
              leaf.periods.empty()
                  ? std::vector<std::string>{leaf.kernel, "lengthscale"}
                  : std::vector<std::string>{leaf.kernel, "lengthscale", "period"});
  order.resize(std::min(order.size(), kLengthscalesShown));
  for (const std::size_t c : order) {
    std::vector<std::string> sharing;
    for (std::size_t k = c; k < first.size(); ++k)
      if (first[k] == c)
        sharing.push_back(data::printable(names[static_cast<std::size_t>(leaf.inputs[k])]));
    std::vector<std::string> row = {fmt::format("{}", fmt::join(sharing, ", ")),
                                    number(leaf.lengthscales[c])};
    if (!leaf.periods.empty()) row.push_back(number(leaf.periods[c]));
    table.row(std::move(row));
  }
  const auto hidden = rows - static_cast<Index>(order.size());
  return table.text(13) +
         (hidden > 0 ? fmt::format("{:13}and {} (see --json)\n", "", plural(hidden, "longer one"))
                     : "");
}

// ", noise sd 0.1 (units of y)", or the parameters of another likelihood.
std::string spread_text(const inference::Problem& problem, const data::Scaling& scaling,
                        const std::string& target, const models::Hyperparameters& values) {
  if (values.noise_variance)
    return fmt::format(", noise sd {} (units of {})", number(std::sqrt(*values.noise_variance)),
                       data::printable(target));
  std::string text = " (of the latent function)";
  const auto own = problem.likelihood->parameter_names();
  const Vector logs = problem.likelihood->log_parameters();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double value = std::exp(logs(static_cast<Index>(i)));
    text += fmt::format(", {} {}", own[i],
                        number(own[i] == "scale" ? scaling.unscale_width(value) : value));
  }
  return text;
}

}  // namespace

models::KernelMachine load_model(const std::string& path) {
  return io_errors_as(exit_model, [&] { return models::KernelMachine::load(path); });
}

std::string model_text(const models::KernelMachine& model) {
  const bool gaussian = model.problem.gaussian();
  const std::string approximated =
      model.sparse
          ? fmt::format(", approximated by {}{}", model.sparse->method,
                        model.sparse->base.rows() > 0
                            ? fmt::format(" on {}", plural(model.sparse->base.rows(), "base point"))
                            : "")
          : "";
  const std::string kind =
      model.mean_only ? (gaussian ? "kernel ridge regression" : "kernel logistic regression")
      : gaussian      ? "Gaussian process"
                      : "Gaussian process, Laplace's approximation";
  return fmt::format("{}{}{}, kernel {}{}{}", kind, approximated,
                     model.num_draws() > 1 ? fmt::format(", mixed over {} of its hyperparameters",
                                                         plural(model.num_draws(), "draw"))
                                           : "",
                     model.problem.kernel.text(),
                     gaussian || model.problem.mean != inference::MeanKind::zero
                         ? fmt::format(", mean {}", to_string(model.problem.mean))
                         : "",
                     model.coupled()             ? ", classes that compete"
                     : model.num_functions() > 1 ? ", one class against the rest"
                                                 : "");
}

std::string likelihood_text(const models::KernelMachine& model) {
  std::string text = model.problem.likelihood->text();
  if (!model.classifies()) return text;
  auto labels = model.classes.labels;
  const auto hidden = labels.size() > kClassesShown ? labels.size() - kClassesShown : 0;
  labels.resize(labels.size() - hidden);
  for (auto& label : labels) label = data::printable(label);
  return fmt::format("{}, {} classes: {}{}", text, model.classes.count(), fmt::join(labels, ", "),
                     hidden > 0 ? fmt::format(" and {} more", hidden) : "");
}

std::string hyperparameters_text(const inference::Problem& problem, const data::Scaling& scaling,
                                 const data::Schema& schema) {
  const auto values = models::original(problem, scaling);
  const auto names = schema.encoded_names();
  std::string text =
      fmt::format("Parameters   signal sd {}{}\n", number(std::sqrt(values.signal_variance)),
                  spread_text(problem, scaling, schema.learned_name(), values));
  for (const auto& leaf : values.leaves) text += leaf_text(leaf, names);
  return text;
}

std::string unequal_scales(const inference::Problem& problem, const data::Scaling& scaling,
                           const data::Schema& schema) {
  // Encoded inputs that are numbers; the 0/1 inputs of a category have no unit.
  std::vector<bool> numeric;
  for (const auto& column : schema.inputs) {
    numeric.push_back(!column.categorical);
    numeric.resize(numeric.size() + static_cast<std::size_t>(column.width()) - 1, false);
  }
  const auto names = schema.encoded_names();
  for (const auto& leaf : models::original(problem, scaling).leaves) {
    if (!leaf.periods.empty()) continue;
    for (const Index group : leaf.shared) {
      std::vector<std::size_t> members;
      std::vector<std::string> sharing;
      for (std::size_t k = 0; k < leaf.shared.size(); ++k)
        if (leaf.shared[k] == group && numeric[static_cast<std::size_t>(leaf.inputs[k])]) {
          members.push_back(k);
          sharing.push_back(names[static_cast<std::size_t>(leaf.inputs[k])]);
        }
      if (members.size() < 2) continue;
      const auto [low, high] = std::minmax_element(
          members.begin(), members.end(),
          [&](auto a, auto b) { return leaf.lengthscales[a] < leaf.lengthscales[b]; });
      if (leaf.lengthscales[*high] <= 1.01 * leaf.lengthscales[*low]) continue;
      const auto of = [&](std::size_t k) {
        return fmt::format("{} for {}", number(leaf.lengthscales[k]),
                           data::shown(names[static_cast<std::size_t>(leaf.inputs[k])]));
      };
      return fmt::format(
          "one lengthscale on inputs that were standardised one by one is {} {} {} in their units; "
          "if {} one unit, `isotropic={}` makes it one number there",
          of(*low), members.size() == 2 ? "and" : "up to", of(*high),
          members.size() == 2 ? "both have" : "some of them have",
          members.size() == 2 ? fmt::format("{}", fmt::join(sharing, ",")) : "A,B");
    }
  }
  return "";
}

std::vector<std::string> trend_left_out(const models::KernelMachine& model) {
  const auto names = model.schema.encoded_names();
  std::vector<std::string> out;
  for (const Index input : model.problem.trend_left_out)
    out.push_back(names[static_cast<std::size_t>(input)]);
  return out;
}

std::string no_bound_reason(const models::KernelMachine& model) {
  if (model.sparse)
    return fmt::format("the posterior is that of {}, an approximation", model.sparse->method);
  return model.problem.likelihood->log_concave()
             ? "the coefficients of the mean have a flat prior"
             : "the likelihood is not log-concave: the mode is a local one";
}

std::string solve_advice(const inference::SystemChoice& system, bool gaussian, StopReason stop) {
  if (!system.direct() && stop == StopReason::iteration_limit)
    return gaussian ? "Allow more --max-iterations, try another --preconditioner"
                    : "Allow more --max-iterations, give a larger --tolerance";
  if (!gaussian)
    return "Newton's method comes no nearer to the mode in double precision. Give a smaller "
           "--signal-variance, a shorter --lengthscale, a rougher --kernel, a larger --tolerance";
  return fmt::format(
      "Rounding allows no better: the kernel is large against the noise. Give more --noise, a "
      "shorter --lengthscale, a rougher --kernel, a larger --tolerance, {}",
      system.direct() ? fmt::format("--solver {}", krylov::default_solver().name)
                      : std::string("--precision double"));
}

std::string jitter_text(double jitter) {
  return fmt::format(
      "Jitter       {} was added to the noise variance: H was not positive definite. The\n"
      "             certificate is for the noise as given, so it counts the jitter\n",
      number(jitter));
}

std::string accuracy_missed_text(const std::string& why) {
  return fmt::format(
      "             the bound is above the accuracy asked for (--accuracy):\n"
      "             {}\n",
      with_dashes(why));
}

std::string certificate_text(const models::KernelMachine& model) {
  if (model.sparse) return approximation_text(model);
  const auto c = model.certificate_of_all();
  if (!c.rigorous)
    return fmt::format(
        "Certificate  the residual at the mode is {}{}; there is no bound, because\n"
        "             {}\n",
        number(c.residual.maxCoeff(), 3),
        c.mean_error_estimate ? fmt::format(", the error of a latent mean probably {}",
                                            number(*c.mean_error_estimate, 2))
                              : "",
        no_bound_reason(model));
  const bool everywhere =
      model.problem.kernel.stationary() && model.problem.mean == inference::MeanKind::zero;
  const std::string estimate =
      c.mean_error_estimate ? fmt::format(", probably {}", number(*c.mean_error_estimate, 2)) : "";
  if (!model.problem.gaussian())
    return fmt::format(
        "Certificate  every latent mean {}is within {} of the one at the exact mode{}\n",
        everywhere ? "" : "at the training points ", number(c.mean_error_bound, 3), estimate);
  const std::string jitter = c.jitter > 0 ? jitter_text(c.jitter) : "";
  return jitter +
         fmt::format(
             "Certificate  {} is within {} of the exact one{}\n"
             "             (units of {}); relative residual {}\n",
             everywhere ? "every predicted mean" : "every mean at the training points",
             number(c.mean_error_bound, 3), estimate, data::printable(model.schema.learned_name()),
             number(c.relative_residual, 3)) +
         (c.accuracy_missed.empty() ? "" : accuracy_missed_text(c.accuracy_missed));
}

}  // namespace mercer::cli
