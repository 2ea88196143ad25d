#include "mercer/models/model_parts.hpp"

namespace mercer::models {
namespace {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// `rank` stands beside the others: the first version of the format had nothing else.
constexpr std::string_view kBeside = "rank";

nlohmann::json preconditioning_json(preconditioners::PreconditionerOptions o) {
  nlohmann::json json = nlohmann::json::object();
  visit_fields(o, [&](const Field& field, const auto& value, auto) {
    if (field.name != kBeside) json[std::string(field.name)] = or_null(value);
  });
  return json;
}

preconditioners::PreconditionerOptions preconditioning_from_json(const nlohmann::json& method) {
  preconditioners::PreconditionerOptions o;
  const auto nested = method.find("preconditioning");
  visit_fields(o, [&](const Field& field, auto& value, auto) {
    using T = typename std::decay_t<decltype(value)>::value_type;
    const bool beside = field.name == kBeside;
    if (!beside && nested == method.end()) return;
    const nlohmann::json& from = beside ? method : *nested;
    if (const auto found = from.find(std::string(field.name));
        found != from.end() && !found->is_null())
      value = found->template get<T>();
  });
  return o;
}

}  // namespace

nlohmann::json method_json(const MethodOptions& method) {
  return {{"operator", method.op},
          {"precision", method.precision},
          {"solver", method.solver},
          {"preconditioner", method.preconditioner},
          {"rank", or_null(method.preconditioning.rank)},
          {"preconditioning", preconditioning_json(method.preconditioning)},
          {"landmarks", method.landmarks},
          {"tolerance", method.tolerance},
          {"max_iterations", method.max_iterations},
          {"seed", method.seed}};
}

MethodOptions method_from_json(const nlohmann::json& json) {
  MethodOptions method;
  method.op = json.at("operator").get<std::string>();
  method.precision = json.at("precision").get<std::string>();
  method.solver = json.at("solver").get<std::string>();
  method.preconditioner = json.at("preconditioner").get<std::string>();
  method.preconditioning = preconditioning_from_json(json);
  method.landmarks = json.value("landmarks", method.landmarks);
  method.tolerance = json.at("tolerance").get<double>();
  method.max_iterations = json.at("max_iterations").get<int>();
  method.seed = json.at("seed").get<std::uint64_t>();
  check(method);
  return method;
}

std::string identity_of(inference::SystemChoice choice) {
  std::string text = fmt::format("{}|{}|{}|{}|{}", choice.solver, choice.preconditioner, choice.op,
                                 to_string(choice.precision), choice.max_iterations);
  visit_fields(choice.preconditioning, [&](const Field& field, const auto& value, auto) {
    if (value) text += fmt::format("|{}={}", field.name, *value);
  });
  return text;
}

Matrix take(data::ArrayFile& file, const char* name, Index rows, Index columns) {
  const auto found = file.arrays.find(name);
  if (found == file.arrays.end()) throw ModelFileError(fmt::format("array '{}' is missing", name));
  Matrix array = std::move(found->second);
  if (array.rows() != rows || array.cols() != columns || !array.allFinite())
    throw ModelFileError(fmt::format("array '{}' is not what the header says", name));
  return array;
}

}  // namespace mercer::models
