#include "cli/model_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "mercer/models/hyperparameters.hpp"

namespace mercer::cli {
namespace {

constexpr std::size_t kLengthscalesShown = 12;

}  // namespace

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
    std::vector<std::string> row = {names[static_cast<std::size_t>(leaf.inputs[c])],
                                    number(leaf.lengthscales[c])};
    if (!leaf.periods.empty()) row.push_back(number(leaf.periods[c]));
    table.row(std::move(row));
  }
  const auto hidden = static_cast<Index>(leaf.lengthscales.size() - order.size());
  return table.text(13) +
         (hidden > 0 ? fmt::format("{:13}and {} longer ones (see --json)\n", "", count(hidden))
                     : "");
}

std::string hyperparameters_text(const models::RegressionModel& model) {
  const auto values = models::original(model.problem, model.scaling);
  const auto names = model.schema.encoded_names();
  std::string text = fmt::format("Parameters   signal sd {}, noise sd {} (units of {})\n",
                                 number(std::sqrt(values.signal_variance)),
                                 number(std::sqrt(values.noise_variance)), model.schema.target);
  for (const auto& leaf : values.leaves) text += leaf_text(leaf, names);
  return text;
}

std::vector<std::string> trend_left_out(const models::RegressionModel& model) {
  const auto names = model.schema.encoded_names();
  std::vector<std::string> out;
  for (const Index input : model.problem.trend_left_out)
    out.push_back(names[static_cast<std::size_t>(input)]);
  return out;
}

std::string certificate_text(const models::RegressionModel& model) {
  const bool everywhere =
      model.problem.kernel.stationary() && model.problem.mean == inference::MeanKind::zero;
  return fmt::format(
      "Certificate  {} is within {} of the exact one (units of {});\n"
      "             relative residual {}\n",
      everywhere ? "every predicted mean" : "every mean at the training points",
      number(model.certificate.mean_error_bound, 3), model.schema.target,
      number(model.certificate.relative_residual, 3));
}

void leave_variances(const models::RegressionModel& model, models::VarianceOptions& options) {
  if (model.mean_only && options.method == "auto" && options.joint_samples == 0)
    options.method = "none";
}

std::string scores_text(const models::RegressionScores& scores) {
  Table table("lrl", {"score", "value", ""});
  table.row({"rmse", number(scores.rmse), "root mean squared error"});
  table.row({"mae", number(scores.mae), "mean absolute error"});
  table.row({"smse", scores.smse ? number(*scores.smse) : "none",
             scores.smse ? "squared error over the variance of the target"
                         : "squared error over the variance of the target, which does not vary"});
  if (!scores.has_sd) return table.text();
  table.row({"nll", number(scores.nll), "mean negative log density"});
  if (std::isfinite(scores.crps))
    table.row({"crps", number(scores.crps), "continuous ranked probability score"});
  table.row({"coverage90", fmt::format("{:.1f} %", 100 * scores.coverage90),
             "of targets inside the 90 % interval"});
  table.row({"coverage95", fmt::format("{:.1f} %", 100 * scores.coverage95),
             "of targets inside the 95 % interval"});
  return table.text();
}

}  // namespace mercer::cli
