// A regression model as an array file: see array_file.hpp for the container.
#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/models/array_file.hpp"
#include "mercer/models/regression.hpp"
#include "mercer/models/version.hpp"

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

Matrix take(ArrayFile& file, const char* name, Index rows, Index columns) {
  const auto found = file.arrays.find(name);
  if (found == file.arrays.end()) throw ModelFileError(fmt::format("array '{}' is missing", name));
  Matrix array = std::move(found->second);
  if (array.rows() != rows || array.cols() != columns || !array.allFinite())
    throw ModelFileError(fmt::format("array '{}' is not what the header says", name));
  return array;
}

std::vector<Index> trend_left_out(const nlohmann::json& header, inference::MeanKind mean, Index d) {
  auto inputs = header.value("trend_left_out", std::vector<Index>());
  Index least = 0;
  for (const Index input : inputs) {
    if (mean != inference::MeanKind::linear || input < least || input >= d)
      throw ModelFileError("the inputs left out of its trend make no sense");
    least = input + 1;
  }
  return inputs;
}

RegressionModel model_from_file(ArrayFile file) {
  const auto& header = file.header;
  const auto schema = header.at("schema").get<data::Schema>();
  const auto scaling = header.at("scaling").get<data::Scaling>();
  const Index n = header.at("n").get<Index>();
  const Index d = schema.dimension();
  if (n < 1 || scaling.input_sd.size() != d)
    throw ModelFileError("number of rows or inputs does not agree");

  auto kernel = kernels::Kernel::parse(header.at("kernel").get<std::string>(), d);
  const Matrix theta = take(file, "log_parameters", kernel.num_parameters() + 1, 1);
  inference::RegressionProblem problem{std::move(kernel), 1.0,
                                       inference::mean_kind(header.at("mean").get<std::string>())};
  problem.set_log_parameters(theta.col(0));
  problem.trend_left_out = trend_left_out(header, problem.mean, d);

  RegressionModel model{schema, scaling, std::move(problem), 0, {}, {}, {}, {}, {}};
  const Index q = inference::mean_basis_size(model.problem.mean, d) -
                  static_cast<Index>(model.problem.trend_left_out.size());
  // Version 2 has a noise for each row; the version itself is under no checksum.
  if (header.at("noise").is_null() != (file.version == 2))
    throw ModelFileError("its format version does not agree with its noise");
  model.noise = header.at("noise").is_null() ? linalg::Diagonal(take(file, "noise", n, 1).col(0))
                                             : header.at("noise").get<double>();
  model.noise.require_positive("noise");
  model.x = take(file, "inputs", n, d);
  model.weights.w = take(file, "weights", n, 1).col(0);
  if (q > 0) {
    model.weights.beta = take(file, "beta", q, 1).col(0);
    model.weights.basis_solves = take(file, "basis_solves", n, q);
    model.weights.beta_covariance = take(file, "beta_covariance", q, q);
  } else {
    model.weights.basis_solves.resize(n, 0);
  }
  const Matrix certificate = take(file, "certificate", 4, 1);
  model.certificate = {certificate(0),
                       certificate(1),
                       certificate(2),
                       certificate(3),
                       header.value("trend_residual", 0.0),
                       0.0};
  // Files of version 1 know one noise for all rows.
  model.certificate.weighted_residual = header.value(
      "weighted_residual", model.certificate.residual_norm / std::sqrt(model.noise.least()));
  if (!(model.certificate.trend_residual >= 0) || !(model.certificate.weighted_residual >= 0))
    throw ModelFileError("a residual is negative");
  model.method = method_from_json(header.at("method"));
  model.record = header.at("record");
  return model;
}

}  // namespace

void RegressionModel::save(const std::string& path) const {
  ArrayFile file;
  file.header = {{"kind", "model"},
                 {"mercer", version()},
                 {"task", "regression"},
                 {"n", x.rows()},
                 {"schema", schema},
                 {"scaling", scaling},
                 {"kernel", problem.kernel.text()},
                 {"mean", std::string(to_string(problem.mean))},
                 {"trend_left_out", problem.trend_left_out},
                 {"trend_residual", certificate.trend_residual},
                 {"weighted_residual", certificate.weighted_residual},
                 {"method", method_json(method)},
                 {"record", record}};
  if (noise.uniform()) {
    file.header["noise"] = noise(0);
  } else {
    file.header["noise"] = nullptr;
    file.arrays["noise"] = noise.vector(x.rows());
    file.version = 2;
  }
  file.arrays["log_parameters"] = problem.log_parameters();
  file.arrays["inputs"] = x;
  file.arrays["weights"] = weights.w;
  if (weights.beta.size() > 0) {
    file.arrays["beta"] = weights.beta;
    file.arrays["basis_solves"] = weights.basis_solves;
    file.arrays["beta_covariance"] = weights.beta_covariance;
  }
  file.arrays["certificate"] =
      Eigen::Vector4d(certificate.relative_residual, certificate.residual_norm,
                      certificate.trend_defect, certificate.mean_error_bound);
  write_array_file(path, file);
}

RegressionModel RegressionModel::from_file(ArrayFile file, const std::string& name) {
  try {
    return model_from_file(std::move(file));
  } catch (const nlohmann::json::exception& error) {
    throw ModelFileError(fmt::format("'{}' is damaged: {}", name, error.what()));
  } catch (const ModelFileError& error) {
    throw ModelFileError(fmt::format("'{}' is damaged: {}", name, error.what()));
  } catch (const InvalidArgument& error) {
    throw ModelFileError(fmt::format("'{}' is damaged: {}", name, error.what()));
  }
}

RegressionModel RegressionModel::load(const std::string& path) {
  return from_file(read_array_file(path, "model"), path);
}

}  // namespace mercer::models
