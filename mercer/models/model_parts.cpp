#include "mercer/models/model_parts.hpp"

namespace mercer::models {
namespace {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// `rank` stands beside these: the first version of the format had nothing else.
nlohmann::json preconditioning_json(const preconditioners::PreconditionerOptions& o) {
  return {{"neighbours", or_null(o.neighbours)},
          {"blocks", or_null(o.blocks)},
          {"delta", or_null(o.delta)},
          {"inner_tolerance", or_null(o.inner_tolerance)},
          {"drop", or_null(o.drop)}};
}

preconditioners::PreconditionerOptions preconditioning_from_json(const nlohmann::json& method) {
  preconditioners::PreconditionerOptions o;
  const auto read = [](const nlohmann::json& from, const char* key, auto& field) {
    using T = typename std::decay_t<decltype(field)>::value_type;
    if (const auto found = from.find(key); found != from.end() && !found->is_null())
      field = found->template get<T>();
  };
  read(method, "rank", o.rank);
  if (const auto found = method.find("preconditioning"); found != method.end()) {
    read(*found, "neighbours", o.neighbours);
    read(*found, "blocks", o.blocks);
    read(*found, "delta", o.delta);
    read(*found, "inner_tolerance", o.inner_tolerance);
    read(*found, "drop", o.drop);
  }
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
