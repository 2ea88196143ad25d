// mercer info: what a model file holds.
#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/record.hpp"
#include "cli/shared_options.hpp"
#include "cli/verbs.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

// Rows that were learned from, those merged into others included.
Index merged_rows(const models::KernelMachine& model) {
  return Json::parse(model.record).value("merged_rows", Index{0});
}

Json info_json(const std::string& path, const models::KernelMachine& model) {
  Json json = {{"model", path}};
  put_model(json, model);
  json["n"] = model.num_rows() + merged_rows(model);
  json["merged_rows"] = merged_rows(model);
  json["d"] = model.x.cols();
  json["target"] = model.schema.target;
  json["inputs"] = model.schema.encoded_names();
  json["noise_column"] = model.schema.noise_column;
  json["count_column"] = model.schema.count_column;
  json["id_column"] = model.schema.id_column;
  json["hyperparameters"] = hyperparameters_json(model.problem, model.scaling);
  json["draws"] = model.num_draws();
  json["certificate"] = certificate_json(model);
  json["record"] = Json::parse(model.record);
  return json;
}

std::string inputs_text(const data::Schema& schema) {
  std::string text;
  for (std::size_t j = 0; j < schema.inputs.size(); ++j) {
    const auto& column = schema.inputs[j];
    text += fmt::format(
        "{}{}{}{}", j == 0 ? "" : ", ", data::printable(column.name),
        column.categorical ? fmt::format(" ({})", plural(column.width(), "category level"))
        : column.date      ? " (dates, in days since 1970-01-01)"
                           : "",
        column.fills()
            ? fmt::format(" [missing: {}]", column.categorical ? data::printable(column.fill_level)
                                                               : number(*column.fill))
            : "");
  }
  return text;
}

std::string info_text(const std::string& path, const models::KernelMachine& model) {
  const Index merged = merged_rows(model);
  std::string text = fmt::format("File         {}\nModel        {}\nLikelihood   {}\n", path,
                                 model_text(model), wrapped(likelihood_text(model), 13));
  text += fmt::format(
      "Learned on   {}, {}{}\n", plural(model.num_rows() + merged, "row"),
      plural(model.x.cols(), "input"),
      merged > 0 ? fmt::format("; {} after merging equal inputs", count(model.num_rows())) : "");
  text += fmt::format("Target       {}{}\n", data::printable(model.schema.target),
                      model.schema.log_target ? ", learned as its logarithm" : "");
  text += fmt::format("Inputs       {}\n", inputs_text(model.schema));
  if (!model.schema.id_column.empty())
    text += fmt::format("Id           {}\n", data::printable(model.schema.id_column));
  if (!model.schema.noise_column.empty())
    text += fmt::format("Noise        known variances in {}\n",
                        data::printable(model.schema.noise_column));
  if (!model.schema.count_column.empty())
    text += fmt::format("Counts       {}\n", data::printable(model.schema.count_column));
  return text + hyperparameters_text(model.problem, model.scaling, model.schema) +
         certificate_text(model);
}

}  // namespace

int run_info(const Words& words) {
  Arguments arguments("info", "  mercer info concrete.mcr", "Shows what a model file holds.");
  std::string path;
  RunOptions run;
  arguments.positional("MODEL", path, "model file written by mercer fit");
  arguments.add(run, without({"threads"}));
  if (!arguments.parse(words)) return exit_ok;
  const auto model = load_model(path);
  if (run.json)
    print_json(info_json(path, model));
  else
    print_out(info_text(path, model));
  return exit_ok;
}

}  // namespace mercer::cli
