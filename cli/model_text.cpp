#include "cli/model_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/format.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

constexpr std::size_t kLengthscalesShown = 12;
constexpr std::size_t kClassesShown = 12;

// A table of lengthscales, shortest first when there are many.
std::string leaf_text(const models::LeafValues& leaf, const std::vector<std::string>& names) {
  if (leaf.lengthscales.empty()) return "";
  std::vector<std::size_t> order(leaf.lengthscales.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
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
    std::vector<std::string> row = {
        data::printable(names[static_cast<std::size_t>(leaf.inputs[c])]),
        number(leaf.lengthscales[c])};
    if (!leaf.periods.empty()) row.push_back(number(leaf.periods[c]));
    table.row(std::move(row));
  }
  const auto hidden = static_cast<Index>(leaf.lengthscales.size() - order.size());
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
  const std::string kind =
      model.mean_only ? (gaussian ? "kernel ridge regression" : "kernel logistic regression")
      : gaussian      ? "Gaussian process"
                      : "Gaussian process, Laplace's approximation";
  return fmt::format("{}, kernel {}{}{}", kind, model.problem.kernel.text(),
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

std::vector<std::string> trend_left_out(const models::KernelMachine& model) {
  const auto names = model.schema.encoded_names();
  std::vector<std::string> out;
  for (const Index input : model.problem.trend_left_out)
    out.push_back(names[static_cast<std::size_t>(input)]);
  return out;
}

std::string no_bound_reason(const models::KernelMachine& model) {
  return model.problem.likelihood->log_concave()
             ? "the coefficients of the mean have a flat prior"
             : "the likelihood is not log-concave: the mode is a local one";
}

std::string jitter_text(double jitter) {
  return fmt::format(
      "Jitter       {} was added to the noise variance: H was not positive definite. The\n"
      "             certificate is for the noise as given, so it counts the jitter\n",
      number(jitter));
}

std::string certificate_text(const models::KernelMachine& model) {
  const auto& c = model.certificate;
  if (!c.rigorous)
    return fmt::format(
        "Certificate  the residual at the mode is {}; there is no bound, because\n"
        "             {}\n",
        number(c.residual.maxCoeff(), 3), no_bound_reason(model));
  const bool everywhere =
      model.problem.kernel.stationary() && model.problem.mean == inference::MeanKind::zero;
  if (!model.problem.gaussian())
    return fmt::format(
        "Certificate  every latent mean {}is within {} of the one at the exact mode\n",
        everywhere ? "" : "at the training points ", number(c.mean_error_bound, 3));
  const std::string jitter = c.jitter > 0 ? jitter_text(c.jitter) : "";
  return jitter + fmt::format(
                      "Certificate  {} is within {} of the exact one (units of {});\n"
                      "             relative residual {}\n",
                      everywhere ? "every predicted mean" : "every mean at the training points",
                      number(c.mean_error_bound, 3), data::printable(model.schema.learned_name()),
                      number(c.relative_residual, 3));
}

}  // namespace mercer::cli
