#include "cli/latent_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

constexpr std::size_t kClassesShown = 12;

// The kernel's part of the model, for what regression already knows how to show. The latent
// function has no unit, so variances stay as they are.
inference::Problem kernel_problem(const models::LatentModel& model) {
  return {model.problem.kernel, 1.0, inference::MeanKind::zero, {}};
}

data::Scaling input_scaling(const models::LatentModel& model) {
  auto scaling = model.scaling;
  scaling.target_mean = 0;
  return scaling;
}

}  // namespace

std::vector<Index> class_places(const models::Classes& classes, ConstVectorView target,
                                const RowName& name) {
  std::vector<Index> out;
  for (Index i = 0; i < target.size(); ++i) {
    const auto place = classes.find(target(i));
    if (!place)
      throw DataError(fmt::format("{}: the target is {}, which is none of the classes learned: {}",
                                  name(i), target(i), data::shown_list(classes.labels)));
    out.push_back(*place);
  }
  return out;
}

std::string latent_model_text(const models::LatentModel& model) {
  return fmt::format(
      "{}, kernel {}{}",
      model.map_only ? "kernel logistic regression" : "Gaussian process, Laplace's approximation",
      model.problem.kernel.text(), model.a.cols() > 1 ? ", one class against the rest" : "");
}

std::string latent_target_text(const models::LatentModel& model) {
  std::string text = model.problem.likelihood->text();
  if (!model.classifies()) return text;
  auto labels = model.classes.labels;
  const auto hidden = labels.size() > kClassesShown ? labels.size() - kClassesShown : 0;
  labels.resize(labels.size() - hidden);
  return fmt::format("{}, {} classes: {}{}", text, model.classes.count(), fmt::join(labels, ", "),
                     hidden > 0 ? fmt::format(" and {} more", hidden) : "");
}

std::string latent_hyperparameters_text(const models::LatentModel& model) {
  const auto values = models::original(kernel_problem(model), input_scaling(model));
  const auto names = model.schema.encoded_names();
  std::string text = fmt::format("Parameters   signal sd {} (of the latent function)",
                                 number(std::sqrt(values.signal_variance)));
  const auto own = model.problem.likelihood->parameter_names();
  const Vector logs = model.problem.likelihood->log_parameters();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double value = std::exp(logs(static_cast<Index>(i)));
    text += fmt::format(", {} {}", own[i],
                        number(own[i] == "scale" ? model.scaling.unscale_width(value) : value));
  }
  text += '\n';
  for (const auto& leaf : values.leaves) text += leaf_text(leaf, names);
  return text;
}

std::string latent_certificate_text(const models::LatentModel& model) {
  const auto& c = model.certificate;
  if (!c.rigorous)
    return fmt::format(
        "Certificate  the residual at the mode is {}; this likelihood is not log-concave, so the\n"
        "             mode is a local one and there is no bound\n",
        number(c.residual.maxCoeff(), 3));
  return fmt::format("Certificate  every latent mean {}is within {} of the one at the exact mode\n",
                     model.problem.kernel.stationary() ? "" : "at the training points ",
                     number(c.mean_error_bound, 3));
}

std::string class_scores_text(const models::ClassificationScores& scores) {
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

void put_classes(Json& json, const models::LatentModel& model) {
  if (!model.classifies()) return;
  json["classes"] = model.classes.labels;
  if (model.a.cols() > 1) json["multiclass"] = "one-vs-rest";
}

Json latent_hyperparameters_json(const models::LatentModel& model) {
  Json json = hyperparameters_json(kernel_problem(model), input_scaling(model));
  json.erase("noise_variance");
  json["standardised"].erase("noise_variance");
  Json parameters = Json::object();
  const auto names = model.problem.parameter_names();
  const Vector logs = model.problem.log_parameters();
  for (std::size_t i = 0; i < names.size(); ++i)
    put(parameters, names[i], std::exp(logs(static_cast<Index>(i))));
  json["standardised"]["parameters"] = std::move(parameters);
  return json;
}

Json latent_certificate_json(const models::LatentModel& model) {
  Json json;
  if (model.certificate.rigorous) {
    put(json, "mean_error_bound", model.certificate.mean_error_bound);
  } else {
    json["mean_error_bound"] = nullptr;
    json["mean_error_bound_reason"] = kNoBound;
  }
  put(json, "residual", model.certificate.residual.maxCoeff());
  json["of"] = "the latent mean, against the exact mode";
  return json;
}

Json class_scores_json(const models::ClassificationScores& scores) {
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

Json latent_scores_json(const models::RegressionScores& scores) {
  Json json = scores_json(scores);
  json["crps"] = nullptr;
  json["crps_reason"] = "known for Gaussian predictions only";
  return json;
}

void LatentScores::add(const models::LatentPredictor& predictor,
                       const models::LatentPredictions& predictions, ConstVectorView target,
                       const RowName& name) {
  if (model_.classifies()) {
    classes_.add(predictions.probabilities, class_places(model_.classes, target, name));
    return;
  }
  for (Index i = 0; i < target.size(); ++i)
    if (const auto why = model_.problem.likelihood->fault(target(i)); !why.empty())
      throw DataError(fmt::format("{}: the target is {}: with the likelihood {} it {}", name(i),
                                  target(i), model_.problem.likelihood->text(), why));
  numbers_.add(target, predictions, predictor.log_density(predictions, target));
}

Index LatentScores::rows() const {
  return model_.classifies() ? classes_.scores().n : numbers_.scores().n;
}

std::string LatentScores::text() const {
  return model_.classifies() ? class_scores_text(classes_.scores())
                             : scores_text(numbers_.scores());
}

Json LatentScores::json() const {
  return model_.classifies() ? class_scores_json(classes_.scores())
                             : latent_scores_json(numbers_.scores());
}

AnyModel load_any_model(const std::string& path) {
  return io_errors_as(exit_model, [&]() -> AnyModel {
    auto file = models::read_array_file(path, "model");
    const auto task = file.header.find("task");
    if (task == file.header.end() || *task == "regression")
      return models::RegressionModel::from_file(std::move(file), path);
    return models::LatentModel::from_file(std::move(file), path);
  });
}

}  // namespace mercer::cli
