#include "cli/cv_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/score_text.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

constexpr std::size_t kFoldsShown = 20;

// "10 random parts of 103 rows (seed 0)", "the 3 values of 'site'".
std::string folds_text(const CvCommand& command, const studies::CvResult& result) {
  if (result.leave_one_out) return "leave one row out";
  if (!command.fold_column.empty())
    return fmt::format("the {} values of {}", result.folds_asked, data::shown(command.fold_column));
  return fmt::format("{} random parts (--seed {})", result.folds_asked,
                     command.fit.fit.method.seed);
}

// What was found anew for each part.
std::string learned_text(const CvCommand& command, const studies::CvResult& result) {
  const bool learns = command.fit.fit.train.train != "none";
  const std::string values = learns ? "hyperparameters" : "hyperparameters as given";
  if (result.closed_form)
    return fmt::format(
        "in closed form: {} and scaling are those of all rows, the weights{} those "
        "of all others",
        values, command.fit.fit.method.mean == "zero" ? "" : " and the trend");
  if (result.leave_one_out)
    return fmt::format(
        "a refit each: {} and scaling are those of all rows, the weights those of "
        "all others",
        values);
  return learns ? "hyperparameters, scaling and weights are learned anew from the other parts"
                : "hyperparameters as given; scaling and weights are those of the other parts";
}

std::string shown_score(const std::string& name, double value) {
  const bool share = name == "error_rate" || name.starts_with("coverage");
  return share ? fmt::format("{:.1f} %", 100 * value) : number(value);
}

std::string score_table(const studies::CvResult& result) {
  std::vector<std::string> head = {"fold", "rows"};
  for (const auto& score : result.summary) head.push_back(score.name);
  Table table("l" + std::string(head.size() - 1, 'r'), head);
  const auto add = [&](const std::string& name, const std::string& rows, const auto& value_of) {
    std::vector<std::string> cells = {name, rows};
    for (std::size_t s = 0; s < result.summary.size(); ++s) {
      const std::optional<double> value = value_of(s);
      cells.push_back(value ? shown_score(result.summary[s].name, *value) : "none");
    }
    table.row(std::move(cells));
  };
  for (std::size_t f = 0; f < std::min(result.folds.size(), kFoldsShown); ++f) {
    const auto values = studies::score_values(result.folds[f].scores);
    add(result.folds[f].name, count(result.folds[f].rows),
        [&](std::size_t s) { return s < values.size() ? values[s].value : std::nullopt; });
  }
  add("all", count(result.rows_done), [&](std::size_t s) { return result.summary[s].value; });
  add("+-", "", [&](std::size_t s) { return result.summary[s].standard_error; });
  const std::string more =
      result.folds.size() > kFoldsShown
          ? fmt::format("  and {} more folds (see --json)\n", result.folds.size() - kFoldsShown)
          : "";
  return table.text() + more +
         fmt::format("  +- is the standard error of the mean over the {}\n",
                     result.leave_one_out ? "rows" : "folds");
}

// The smallest and the largest value of each hyperparameter, in the units of the data.
std::string parameters_text(const studies::CvResult& result) {
  if (result.all_rows) {
    const auto& model = result.all_rows->model;
    return hyperparameters_text(model.problem, model.scaling, model.schema);
  }
  return "";
}

Json fold_json(const studies::CvFold& fold) {
  Json json = {{"fold", fold.name}, {"n", fold.rows}};
  json["scores"] = scores_json(fold.scores);
  json["hyperparameters"] = hyperparameters_json(*fold.problem, fold.scaling);
  json["variance"] = fold.variance;
  json["converged"] = fold.converged();
  json["warnings"] = fold.warnings;
  put(json, "seconds", fold.seconds);
  return json;
}

std::string label_of(const models::Classes& classes, Index place) {
  return classes.labels[static_cast<std::size_t>(place)];
}

}  // namespace

Json cv_json(const CvCommand& command, const Arguments& arguments, const data::Dataset& data,
             const studies::CvResult& result) {
  Json json = {{"n", result.n}, {"d", result.d}};
  json["folds"] = result.folds_asked;
  json["folds_done"] =
      result.leave_one_out ? result.rows_done : static_cast<Index>(result.folds.size());
  json["leave_one_out"] = result.leave_one_out;
  json["method"] = result.closed_form ? "closed form" : "refit";
  json["learned"] = learned_text(command, result);
  json["task"] = command.fit.task;
  json["likelihood"] = command.fit.likelihood;
  json["interrupted"] = result.interrupted;
  json["scores"] = result.rows_done > 0 ? scores_json(result.scores) : Json(nullptr);
  Json errors = Json::object();
  for (const auto& score : result.summary)
    errors[score.name] = score.standard_error ? Json(*score.standard_error) : Json(nullptr);
  json["standard_errors"] = std::move(errors);
  json["per_fold"] = Json::array();
  for (const auto& fold : result.folds) json["per_fold"].push_back(fold_json(fold));
  if (result.all_rows)
    json["hyperparameters"] =
        hyperparameters_json(result.all_rows->model.problem, result.all_rows->model.scaling);
  json["converged"] = result.converged();
  put(json, "seconds", result.seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  json["data"] = data_json(data, command.fit.data.path);
  json["options"] = arguments.record();
  json["output"] = command.output.empty() ? Json(nullptr) : Json(command.output);
  return json;
}

std::string cv_text(const CvCommand& command, const data::Dataset& data,
                    const studies::CvResult& result) {
  std::string text = fmt::format("Data         {}: {}, {}, target {}\n", command.fit.data.path,
                                 plural(data.size(), "row"), plural(data.dimension(), "input"),
                                 data.schema.target);
  text +=
      fmt::format("Folds        {}\n",
                  wrapped(folds_text(command, result) + ": " + learned_text(command, result), 13));
  text += parameters_text(result);
  if (result.rows_done > 0) text += "\n" + score_table(result) + "\n";
  text += fmt::format("Time         {}; peak memory {}\n", duration(result.seconds),
                      format_bytes(static_cast<double>(peak_rss_bytes())));
  if (!command.output.empty() && result.rows_done > 0)
    text += fmt::format("Written      {}\n", command.output);
  return text;
}

void write_predictions(const CvCommand& command, const data::Dataset& data,
                       const studies::CvResult& result) {
  const auto& rows = result.rows;
  const auto& classes = command.fit.fit.classes;
  const bool with_sd = rows.sd_obs.size() > 0;
  std::vector<std::string> header = {"row", "fold", "target"};
  if (classes.count() > 0) {
    header.emplace_back("label");
    for (const auto& label : classes.labels) header.push_back("probability_" + label);
  } else {
    header.emplace_back("mean");
    if (with_sd) header.insert(header.end(), {"sd_latent", "sd_obs", "q05", "q95"});
  }
  data::CsvWriter writer(command.output, header);
  for (Index i = 0; i < data.size(); ++i) {
    const Index fold = rows.fold[static_cast<std::size_t>(i)];
    if (fold < 0) continue;
    writer.integer(data.row_numbers[static_cast<std::size_t>(i)]);
    writer.text(result.folds.empty() ? std::to_string(fold + 1)
                                     : result.folds[static_cast<std::size_t>(fold)].name);
    if (classes.count() > 0) {
      Index best = 0;
      rows.probabilities.row(i).maxCoeff(&best);
      writer.text(label_of(classes, *classes.find(data.target(i)))).text(label_of(classes, best));
      for (const double p : rows.probabilities.row(i)) writer.number(p);
    } else {
      writer.number(data.target(i)).number(rows.mean(i));
      if (with_sd)
        writer.number(rows.latent_sd(i))
            .number(rows.sd_obs(i))
            .number(rows.q05(i))
            .number(rows.q95(i));
    }
    writer.end_row();
  }
  writer.close();
}

}  // namespace mercer::cli
