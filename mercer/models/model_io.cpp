// A regression model as an array file: see array_file.hpp for the container.
#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/regression.hpp"
#include "mercer/models/version.hpp"

namespace mercer::models {
namespace {

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
  if (header.at("task") != "regression")
    throw ModelFileError("its task is not regression with Gaussian noise");
  const auto schema = header.at("schema").get<data::Schema>();
  const auto scaling = header.at("scaling").get<data::Scaling>();
  const Index n = header.at("n").get<Index>();
  const Index d = schema.dimension();
  if (n < 1 || scaling.input_sd.size() != d)
    throw ModelFileError("number of rows or inputs does not agree");

  auto kernel = kernels::Kernel::parse(header.at("kernel").get<std::string>(), d);
  const Matrix theta = take(file, "log_parameters", kernel.num_parameters() + 1, 1);
  inference::Problem problem{std::move(kernel), 1.0,
                             inference::mean_kind(header.at("mean").get<std::string>())};
  problem.set_log_parameters(theta.col(0));
  problem.trend_left_out = trend_left_out(header, problem.mean, d);

  RegressionModel model{schema, scaling, std::move(problem), 0, {}, {}, {}, {}, {}};
  const Index q = inference::mean_basis_size(model.problem.mean, d) -
                  static_cast<Index>(model.problem.trend_left_out.size());
  // Version 2 has a noise for each row; the version itself is under no checksum.
  if (header.at("noise").is_null() != (file.version == 2) || file.version > 2)
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
  model.mean_only = header.value("mean_only", false);
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
  if (mean_only) file.header["mean_only"] = true;
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
  return undamaged(name, [&] { return model_from_file(std::move(file)); });
}

RegressionModel RegressionModel::load(const std::string& path) {
  return from_file(read_array_file(path, "model"), path);
}

}  // namespace mercer::models
