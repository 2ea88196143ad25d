// mercer info: what a model file holds.
#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/latent_text.hpp"
#include "cli/model_text.hpp"
#include "cli/record.hpp"
#include "cli/shared_options.hpp"
#include "cli/verbs.hpp"

namespace mercer::cli {
namespace {

Json info_json(const std::string& path, const models::RegressionModel& model) {
  Json json = {{"model", path}, {"task", "regression"}, {"method", model.mean_only ? "krr" : "gp"}};
  const Index merged = model.record.value("merged_rows", Index{0});
  json["n"] = model.x.rows() + merged;
  json["merged_rows"] = merged;
  json["d"] = model.x.cols();
  json["kernel"] = model.problem.kernel.text();
  json["mean"] = std::string(to_string(model.problem.mean));
  json["trend_left_out"] = trend_left_out(model);
  json["target"] = model.schema.target;
  json["inputs"] = model.schema.encoded_names();
  json["noise_column"] = model.schema.noise_column;
  json["count_column"] = model.schema.count_column;
  json["hyperparameters"] = hyperparameters_json(model.problem, model.scaling);
  json["certificate"] = certificate_json(model.certificate);
  json["record"] = Json::parse(model.record.dump());
  return json;
}

std::string info_text(const std::string& path, const models::RegressionModel& model) {
  std::string text = fmt::format("File         {}\n", path);
  text += fmt::format("Model        {}, kernel {}, mean {}\n",
                      model.mean_only ? "kernel ridge regression" : "Gaussian process regression",
                      model.problem.kernel.text(), to_string(model.problem.mean));
  const Index merged = model.record.value("merged_rows", Index{0});
  text += fmt::format(
      "Learned on   {}, {}{}\n", plural(model.x.rows() + merged, "row"),
      plural(model.x.cols(), "input"),
      merged > 0 ? fmt::format("; {} after merging equal inputs", count(model.x.rows())) : "");
  text += fmt::format("Target       {}\n", model.schema.target);
  text += "Inputs       ";
  for (std::size_t j = 0; j < model.schema.inputs.size(); ++j) {
    const auto& column = model.schema.inputs[j];
    text += fmt::format(
        "{}{}{}", j == 0 ? "" : ", ", column.name,
        column.categorical ? fmt::format(" ({})", plural(column.width(), "category level")) : "");
  }
  if (!model.schema.noise_column.empty())
    text += fmt::format("\nNoise        known variances in {}", model.schema.noise_column);
  if (!model.schema.count_column.empty())
    text += fmt::format("\nCounts       {}", model.schema.count_column);
  text += '\n' + hyperparameters_text(model) + certificate_text(model);
  return text;
}

Json latent_json(const std::string& path, const models::LatentModel& model) {
  Json json = {{"model", path},
               {"task", model.classifies() ? "classification" : "regression"},
               {"method", model.map_only ? "klr" : "gp"},
               {"likelihood", model.problem.likelihood->text()}};
  put_classes(json, model);
  json["n"] = model.x.rows();
  json["d"] = model.x.cols();
  json["kernel"] = model.problem.kernel.text();
  json["target"] = model.schema.target;
  json["inputs"] = model.schema.encoded_names();
  json["hyperparameters"] = latent_hyperparameters_json(model);
  json["certificate"] = latent_certificate_json(model);
  json["record"] = Json::parse(model.record.dump());
  return json;
}

std::string latent_text(const std::string& path, const models::LatentModel& model) {
  return fmt::format("File         {}\nModel        {}\nLikelihood   {}\n", path,
                     latent_model_text(model), wrapped(latent_target_text(model), 13)) +
         fmt::format("Learned on   {}, {}\nTarget       {}\n", plural(model.x.rows(), "row"),
                     plural(model.x.cols(), "input"), model.schema.target) +
         latent_hyperparameters_text(model) + latent_certificate_text(model);
}

}  // namespace

int run_info(const Words& words) {
  Arguments arguments("info", "  mercer info concrete.mcr", "Shows what a model file holds.");
  std::string path;
  bool json = false;
  bool quiet = false;
  arguments.positional("MODEL", path, "model file written by mercer fit");
  arguments.flag("--json", json, "print one JSON object, and nothing else");
  arguments.flag("--quiet", quiet, "no notes on standard error (info has none)");
  if (!arguments.parse(words)) return exit_ok;
  const auto any = load_any_model(path);
  if (const auto* latent = std::get_if<models::LatentModel>(&any)) {
    if (json)
      print_json(latent_json(path, *latent));
    else
      print_out(latent_text(path, *latent));
    return exit_ok;
  }
  const auto& model = std::get<models::RegressionModel>(any);
  if (json)
    print_json(info_json(path, model));
  else
    print_out(info_text(path, model));
  return exit_ok;
}

}  // namespace mercer::cli
