#include "cli/approximation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/row_source.hpp"
#include "mercer/data/text.hpp"
#include "mercer/inference/inference.hpp"

namespace mercer::cli {
namespace {

// Options of a system that an approximation does not solve.
void refuse_solver_options(const Arguments& arguments, const std::string& method) {
  const auto why = fmt::format("`method={}` is an approximation that solves no system", method);
  refuse_given(arguments,
               {"solver", "preconditioner", "operator", "precision", "accuracy", "max_iterations",
                "landmarks", "neighbours", "delta", "inner_tolerance", "drop"},
               why);
  refuse_given(
      arguments, {"probes", "probe_kind", "budget"},
      fmt::format("the evidence of `method={}` has an exact gradient without solves", method));
}

}  // namespace

bool names_base_choice(const std::string& base) {
  const auto choices = inference::base_choices();
  return std::find(choices.begin(), choices.end(), base) != choices.end();
}

std::vector<std::string> method_names() {
  std::vector<std::string> names = {"auto", "gp", "krr", "klr"};
  for (auto& name : planning::approximation_names()) names.push_back(std::move(name));
  return names;
}

bool is_approximation(const std::string& method) {
  const auto names = planning::approximation_names();
  return std::find(names.begin(), names.end(), method) != names.end();
}

void settle_approximation(FitCommand& command, const Arguments& arguments) {
  auto& approximation = command.fit.approximation;
  approximation.method = is_approximation(command.method) ? command.method : "";
  if (approximation.asked()) refuse_solver_options(arguments, command.method);
  auto known = approximation;
  if (approximation.asked() && !names_base_choice(known.base)) {
    if (std::error_code ignored; !std::filesystem::exists(known.base, ignored))
      throw InvalidArgument(
          fmt::format("`base` is {}, which is neither the name of a file nor one of {}",
                      data::shown(known.base), fmt::join(inference::base_choices(), ", ")));
    if (command.fit.method.preconditioning.rank)
      throw InvalidArgument(
          "`rank` is the number of rows of the file that `base` names; leave it out");
    // Its rows are read with the columns of the data.
    if (inference::methods().find(approximation.method).abilities.base) known.base = "auto";
  }
  planning::check(known, command.fit.method);
}

Matrix read_base(const std::string& path, const data::Dataset& data,
                 const data::DataOptions& options, std::optional<std::uint64_t> memory) {
  auto schema = data.schema;
  schema.noise_column.clear();
  schema.count_column.clear();
  schema.id_column.clear();
  PredictionRows source(path, schema, row_options(data::TargetUse::ignored, options, memory));
  auto rows = source.all();
  if (rows.rows() < 2)
    throw DataError(fmt::format("{}: {} of base points; an approximation needs two at least", path,
                                rows.rows() == 0 ? "there is no row" : "there is one row"));
  return std::move(rows.inputs);
}

void complete_approximation(FitCommand& command, const Arguments& arguments,
                            const data::Dataset& data) {
  auto& approximation = command.fit.approximation;
  if (!approximation.asked()) return;
  if (command.fit.likelihood == "gaussian")
    refuse_given(arguments, {"tolerance"},
                 fmt::format("`method={}` solves no system", approximation.method));
  if (names_base_choice(approximation.base)) return;
  approximation.points =
      read_base(approximation.base, data, command.data.options, command.fit.method.memory);
}

std::string evidence_kind(const std::string& inference, bool gaussian) {
  const auto kind = inference::methods().find(inference).abilities.kind;
  // Laplace's evidence is itself an approximation.
  if (kind == inference::EvidenceKind::exact && !gaussian) return "approximate";
  return std::string(to_string(kind));
}

Json approximation_json(const models::KernelMachine& model) {
  if (!model.sparse) return nullptr;
  const auto& check = model.check;
  Json json = {{"method", model.sparse->method},
               {"evidence_kind", evidence_kind(model.sparse->method, model.problem.gaussian())},
               {"base_points", model.sparse->base.rows()},
               {"blocks", model.sparse->blocks_learned > 0 ? Json(model.sparse->blocks_learned)
                                                           : Json(nullptr)}};
  put(json, "jitter", model.sparse->jitter);
  json["checked_rows"] = check.rows;
  for (const auto& [name, value] : {std::pair("mean_rms", check.mean_rms),
                                    {"mean_max", check.mean_max},
                                    {"sd_rms", check.sd_rms},
                                    {"sd_max", check.sd_max},
                                    {"kl", check.kl}}) {
    if (check.rows > 0)
      put(json, name, value);
    else
      json[name] = nullptr;
  }
  if (check.rows == 0)
    json["reason"] = "the distance from the exact posterior was not measured (`check_rows`)";
  json["kl_of"] = model.problem.gaussian() ? "y" : "f";
  return json;
}

std::string approximation_text(const models::KernelMachine& model) {
  const auto& check = model.check;
  const auto& name = model.sparse->method;
  std::string sentence = fmt::format("none: the posterior is that of {}, an approximation. ", name);
  if (check.rows == 0)
    sentence +=
        "Its distance from the exact one was not measured; --check-rows does that, where all rows "
        "are in memory";
  else
    sentence += fmt::format(
        "On {} its means are {} from the exact ones (rms; at most {}), its standard deviations of "
        "f {} (at most {}); KL {} nats a row",
        plural(check.rows, "random row"), number(check.mean_rms, 3), number(check.mean_max, 3),
        number(check.sd_rms, 3), number(check.sd_max, 3), number(check.kl, 3));
  std::string text = fmt::format("Certificate  {}\n", wrapped(sentence, 13));
  if (model.sparse->jitter > 0)
    text += fmt::format(
        "Jitter       {} was added to the diagonal of the kernel matrix of the base points\n",
        number(model.sparse->jitter, 2));
  return text;
}

}  // namespace mercer::cli
