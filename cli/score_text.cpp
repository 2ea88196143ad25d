#include "cli/score_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/format.hpp"

namespace mercer::cli {

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

std::string scores_text(const models::ClassificationScores& scores) {
  Table table("lrl", {"score", "value", ""});
  table.row(
      {"error_rate", fmt::format("{:.2f} %", 100 * scores.error_rate), "labels that are wrong"});
  table.row({"nll", number(scores.nll), "mean negative log probability of the true class"});
  table.row(
      {"brier", number(scores.brier), "squared distance of the probabilities from the truth"});
  table.row({"auc", scores.auc ? number(*scores.auc) : "none",
             scores.auc ? "area under the ROC curve"
                        : "area under the ROC curve: a class is missing among the rows"});
  table.row({"calibration", number(scores.calibration_error),
             "mean distance of confidence and accuracy"});
  Table bins("lrrr", {"confidence", "rows", "mean confidence", "accuracy"});
  for (const auto& bin : scores.calibration)
    bins.row({fmt::format("{:.1f} to {:.1f}", bin.low, bin.high), count(bin.n),
              number(bin.confidence, 3), number(bin.accuracy, 3)});
  return table.text() + "\n" + bins.text();
}

std::string scores_text(const models::Scores& scores) {
  return scores.classes ? scores_text(*scores.classes) : scores_text(*scores.numbers);
}

Json scores_json(const models::RegressionScores& scores) {
  Json json;
  json["n"] = scores.n;
  put(json, "rmse", scores.rmse);
  put(json, "mae", scores.mae);
  if (scores.smse) {
    put(json, "smse", *scores.smse);
  } else {
    json["smse"] = nullptr;
    json["smse_reason"] = "the targets do not vary: there is no variance to compare with";
  }
  for (const auto& [name, value] : {std::pair("nll", scores.nll),
                                    {"crps", scores.crps},
                                    {"coverage90", scores.coverage90},
                                    {"coverage95", scores.coverage95}})
    if (scores.has_sd)
      put(json, name, value);
    else
      json[name] = nullptr;
  if (!scores.has_sd)
    json["nll_reason"] = "--variance none: there is no predictive distribution";
  else if (std::isnan(scores.crps))
    json["crps_reason"] = "known for Gaussian predictions only";
  return json;
}

Json scores_json(const models::ClassificationScores& scores) {
  Json json = {{"n", scores.n}};
  put(json, "error_rate", scores.error_rate);
  put(json, "nll", scores.nll);
  put(json, "brier", scores.brier);
  if (scores.auc) {
    put(json, "auc", *scores.auc);
  } else {
    json["auc"] = nullptr;
    json["auc_reason"] = "a class, or all others, are missing among the rows";
  }
  put(json, "calibration_error", scores.calibration_error);
  json["calibration"] = Json::array();
  for (const auto& bin : scores.calibration) {
    Json entry = {{"low", bin.low}, {"high", bin.high}, {"n", bin.n}};
    put(entry, "confidence", bin.confidence);
    put(entry, "accuracy", bin.accuracy);
    json["calibration"].push_back(std::move(entry));
  }
  return json;
}

Json scores_json(const models::Scores& scores) {
  return scores.classes ? scores_json(*scores.classes) : scores_json(*scores.numbers);
}

}  // namespace mercer::cli
