#include "mercer/models/predict_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace mercer::models {
namespace {

// Averages over f are right to about 1e-12, which is little against this.
constexpr double kLeastProbability = 1e-6;

}  // namespace

// The variances that a model without them is asked for.
void settle_variances(const KernelMachine& model, VarianceOptions& options) {
  if (!model.mean_only) return;
  if ((options.method != "auto" && options.method != "none") || options.joint_samples > 0)
    throw InvalidArgument(fmt::format(
        "kernel {} regression has no uncertainty of f; leave `variance` and `samples` out, or fit "
        "with `method=gp`",
        model.problem.gaussian() ? "ridge" : "logistic"));
  options.method = "none";
}

// The probabilities of a model of numbers with variances; none of others, which are asked in vain.
std::vector<double> settled_quantiles(const KernelMachine& model, const PredictOptions& options) {
  auto probabilities = options.quantiles;
  const bool without = options.variance.method == "none";
  if (!probabilities.empty() && (model.classifies() || without))
    throw InvalidArgument(model.classifies()
                              ? "`quantiles` are those of numbers; this model predicts classes, "
                                "each with its probability"
                              : "`quantiles` need standard deviations, which this prediction has "
                                "not; leave it or `variance=none` out");
  if (model.classifies() || without) return {};
  if (probabilities.empty()) probabilities = {0.05, 0.95};
  for (const double p : probabilities) {
    if (!(p >= kLeastProbability && p <= 1 - kLeastProbability))
      throw InvalidArgument(
          fmt::format("`quantiles` has {}, but must lie between {} and 1 - {}: what is further "
                      "out says more about the model than about y",
                      p, kLeastProbability, kLeastProbability));
    if (std::count(probabilities.begin(), probabilities.end(), p) > 1)
      throw InvalidArgument(fmt::format("`quantiles` has {} twice; name it once", p));
  }
  return probabilities;
}

// Kernels that grow with the inputs (linear, poly) overflow far enough out: throws for the first
// such row.
void check_range(const char* what, ConstMatrixView values) {
  for (Index i = 0; i < values.rows(); ++i)
    if (!values.row(i).allFinite())
      throw PredictionOverflow(
          i, fmt::format("{} overflows double precision: the inputs of this row lie too far "
                         "from the training data for this kernel; correct or remove the row",
                         what));
}

std::string quantile_name(double p) {
  char digits[400];
  const auto end = std::to_chars(digits, digits + sizeof digits, p, std::chars_format::fixed).ptr;
  const std::string text(digits, end);
  std::string name = "q" + text.substr(std::min<std::size_t>(text.size(), 2));  // without "0."
  while (name.size() < 3) name += '0';
  return name;
}

PredictionOverflow::PredictionOverflow(Index row_index, const std::string& why)
    : DataError(fmt::format("row {}: {}", row_index + 1, why)), row(row_index), reason(why) {}

}  // namespace mercer::models
