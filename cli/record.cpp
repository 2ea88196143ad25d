#include "cli/record.hpp"

#include <cmath>
#include <set>

#include "cli/approximation.hpp"
#include "cli/exit_code.hpp"
#include "cli/model_text.hpp"
#include "cli/option_list.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

Json values_json(const models::Hyperparameters& values) {
  Json json;
  put(json, "signal_variance", values.signal_variance);
  if (values.noise_variance) put(json, "noise_variance", *values.noise_variance);
  json["lengthscales"] = values.lengthscales();
  json["leaves"] = Json::array();
  for (const auto& leaf : values.leaves) {
    Json entry = {
        {"kernel", leaf.kernel}, {"inputs", leaf.inputs}, {"lengthscales", leaf.lengthscales}};
    if (std::set<Index>(leaf.shared.begin(), leaf.shared.end()).size() < leaf.shared.size())
      entry["shared"] = leaf.shared;
    if (!leaf.periods.empty()) entry["periods"] = leaf.periods;
    json["leaves"].push_back(std::move(entry));
  }
  return json;
}

// How systems are solved; an approximation has none.
void put_system(Json& json, const models::Plan& plan) {
  if (plan.approximate) {
    for (const char* name : {"solver", "preconditioner", "operator", "precision"})
      json[name] = nullptr;
    return;
  }
  json["solver"] = plan.system.solver;
  json["preconditioner"] = plan.system.preconditioner;
  json["operator"] = operator_name(plan.system);
  json["precision"] = std::string(to_string(plan.system.precision));
}

}  // namespace

void put(Json& json, const std::string& key, double value) {
  if (std::isfinite(value)) {
    json[key] = value;
    return;
  }
  json[key] = nullptr;
  json[key + "_reason"] = "not a finite number";
}

void print_json(const Json& json) {
  const auto text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  print_exactly(data::printable(with_dashes(text), data::Plain::json) + "\n");
}

Json data_json(const data::Dataset& data, const std::string& path) {
  return {{"path", path},
          {"rows_read", data.rows_read},
          {"rows_missing_target", data.rows_missing_target},
          {"rows_dropped_missing", data.rows_dropped_missing},
          {"cells_filled", data.cells_filled},
          {"duplicate_inputs", data.duplicate_inputs},
          {"comment_lines", data.csv.comment_lines},
          {"delimiter", std::string(1, data.csv.separator)},
          {"generated_header", data.csv.generated_header},
          {"dropped_constant", data.schema.dropped_constant},
          {"inputs", data.schema.encoded_names()},
          {"target", data.schema.target},
          {"log_target", data.schema.log_target},
          {"noise_column", data.schema.noise_column},
          {"count_column", data.schema.count_column},
          {"id_column", data.schema.id_column},
          {"messages", data.messages}};
}

Json plan_json(const models::Plan& plan) {
  Json json = {{"reason", plan.reason}};
  json["trains"] = plan.trains;
  json["train_rows"] = plan.train_rows;
  if (plan.trains) json["train_method"] = plan.train_method;
  if (plan.trains && (plan.train_by_solves || plan.approximate))
    json["solve_levels"] = plan.solve_levels;
  if (plan.trains && plan.train_by_solves)
    json["train_budget"] = plan.train_budget ? Json(*plan.train_budget) : Json(nullptr);
  if (!plan.inference.empty()) json["inference"] = plan.inference;
  json["approximate"] = plan.approximate;
  json["streamed"] = plan.streamed;
  if (plan.streamed) {
    json["reservoir_rows"] = plan.reservoir;
    json["least_passes"] = plan.passes;
    json["most_passes"] = plan.most_passes;
  }
  put_system(json, plan);
  put(json, "budget_bytes", plan.budget_bytes);
  put(json, "base_bytes", plan.base_bytes);
  put(json, "peak_bytes", plan.peak_bytes);
  put(json, "seconds", plan.seconds);
  json["methods"] = Json::array();
  for (const auto& row : plan.rows) {
    Json entry = {{"stage", row.stage}, {"method", row.method}};
    put(entry, "bytes", row.bytes);
    put(entry, "build_seconds", row.build_seconds);
    put(entry, "seconds", row.seconds);
    entry["fits"] = row.fits;
    entry["allowed"] = row.allowed;
    entry["chosen"] = row.chosen;
    entry["note"] = row.note;
    json["methods"].push_back(std::move(entry));
  }
  return json;
}

Json hyperparameters_json(const inference::Problem& problem, const data::Scaling& scaling) {
  Json json = values_json(models::original(problem, scaling));
  Json scaled = values_json(models::standardised(problem));
  Json parameters = Json::object();
  const auto names = problem.parameter_names();
  const Vector logs = problem.log_parameters();
  for (std::size_t i = 0; i < names.size(); ++i)
    put(parameters, names[i], std::exp(logs[static_cast<Index>(i)]));
  scaled["parameters"] = std::move(parameters);
  json["standardised"] = std::move(scaled);
  return json;
}

Json likelihood_json(const inference::LikelihoodValue& likelihood,
                     const std::vector<std::string>& names, bool standardised) {
  Json json;
  if (likelihood.known) {
    put(json, "value", likelihood.value);
    put(json, "low", likelihood.low);
    put(json, "high", likelihood.high);
  } else {
    json["value"] = json["low"] = json["high"] = nullptr;
    json["value_reason"] = "not computed: " + likelihood.reason;
  }
  json["method"] = likelihood.method;
  if (likelihood.method == "lanczos") {
    put(json, "probe_error", likelihood.probe_error);
    put(json, "solver_error", likelihood.solver_error);
  }
  json["rows"] = likelihood.rows;
  json["units"] = standardised ? "standardised" : "data";
  Json gradient = Json::object();
  for (Index i = 0; i < likelihood.gradient.size(); ++i)
    put(gradient, names[static_cast<std::size_t>(i)], likelihood.gradient[i]);
  json["gradient"] = likelihood.gradient.size() > 0 ? std::move(gradient) : Json(nullptr);
  if (likelihood.gradient.size() == 0)
    json["gradient_reason"] = likelihood.method == "cholesky" || is_approximation(likelihood.method)
                                  ? "not asked for (`gradient`)"
                                  : "known by Cholesky only";
  return json;
}

Json certificate_json(const models::KernelMachine& model) {
  const auto c = model.certificate_of_all();
  const bool gaussian = model.problem.gaussian() && !model.sparse;
  Json json;
  if (gaussian) put(json, "relative_residual", c.relative_residual);
  if (c.rigorous) {
    put(json, "mean_error_bound", c.mean_error_bound);
  } else {
    json["mean_error_bound"] = nullptr;
    json["mean_error_bound_reason"] = no_bound_reason(model);
  }
  if (c.mean_error_estimate)
    put(json, "mean_error_estimate", *c.mean_error_estimate);
  else
    json["mean_error_estimate"] = nullptr;
  if (gaussian) {
    put(json, "accuracy", c.accuracy);
    if (!c.accuracy_missed.empty()) json["accuracy_missed"] = with_dashes(c.accuracy_missed);
    put(json, "residual_norm", c.residual_norm);
    put(json, "trend_defect", c.trend_defect);
    put(json, "trend_residual", c.trend_residual);
    put(json, "weighted_residual", c.residual(0));
    put(json, "jitter", c.jitter);
  } else if (!model.sparse) {
    put(json, "residual", c.residual.maxCoeff());
  }
  json["approximation"] = approximation_json(model);
  if (model.sparse) return json;
  json["of"] = model.schema.log_target ? "the mean of " + model.schema.learned_name()
               : gaussian              ? std::string("the mean")
                                       : "the latent mean, against the exact mode";
  return json;
}

void put_model(Json& json, const models::KernelMachine& model) {
  json["task"] = model.classifies() ? "classification" : "regression";
  json["method"] = model.method_name();
  json["likelihood"] = model.problem.likelihood->text();
  if (model.classifies()) json["classes"] = model.classes.labels;
  if (model.num_functions() > 1)
    json["multiclass"] = model.coupled() ? model.problem.likelihood->text() : "one-vs-rest";
  json["kernel"] = model.problem.kernel.text();
  json["mean"] = std::string(to_string(model.problem.mean));
  json["trend_left_out"] = trend_left_out(model);
  json["log_target"] = model.schema.log_target;
}

void put_method(Json& json, const models::Plan& plan, const preconditioners::BuildReport& built) {
  put_system(json, plan);
  if (!plan.approximate) json["preconditioner"] = built.name;
  json["rank"] = built.rank;
  json["neighbours"] = built.neighbours;
}

std::string operator_name(const inference::SystemChoice& choice) {
  return std::string(choice.solver == "cholesky" ? "stored" : choice.op);
}

Json gradient_steps_json(const std::vector<models::TrainStep>& history) {
  Json list = Json::array();
  for (const auto& step : history) {
    Json row = {{"step", step.number},
                {"rows", step.rows},
                {"by", step.factored ? "cholesky" : "solves"},
                {"iterations", step.iterations},
                {"matvecs", step.matvecs}};
    put(row, "seconds", step.seconds);
    put(row, "gradient_norm", step.gradient_norm);
    put(row, "tolerance", step.tolerance);
    row["stop"] = std::string(to_string(step.stop));
    put(row, "relative_residual", step.relative_residual);
    if (step.log_likelihood) put(row, "log_likelihood", *step.log_likelihood);
    if (step.predicted_gain) put(row, "predicted_gain", *step.predicted_gain);
    if (step.noise_gain) put(row, "noise_gain", *step.noise_gain);
    list.push_back(std::move(row));
  }
  return list;
}

void put_training(Json& json, const models::Plan& plan, const models::TrainReport& training) {
  json["steps"] = training.steps;
  json["evaluations"] = training.evaluations;
  json["failed_evaluations"] = training.failed_evaluations;
  json["resumed_evaluations"] = training.resumed_evaluations;
  json["train_stop"] = plan.trains ? Json(std::string(to_string(training.stop))) : Json(nullptr);
  json["bounds_hit"] = training.bounds_hit;
  json["train_method"] = plan.trains ? Json(plan.train_method) : Json(nullptr);
}

}  // namespace mercer::cli
