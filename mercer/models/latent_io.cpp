// A model with a likelihood as an array file: see array_file.hpp for the container.
#include "mercer/models/input_names.hpp"
#include "mercer/models/latent.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/version.hpp"

namespace mercer::models {
namespace {

// The first format version with likelihoods.
constexpr std::uint32_t kLatentVersion = 3;

Classes classes_from(const nlohmann::json& header) {
  Classes out;
  out.labels = header.at("classes").get<std::vector<std::string>>();
  const auto values = header.at("class_values").get<std::vector<double>>();
  out.values = Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
  bool ascending = true;
  for (Index c = 1; c < out.count(); ++c)
    ascending = ascending && out.values(c - 1) < out.values(c);
  if (out.labels.size() != values.size() || !ascending || out.count() == 1 ||
      out.count() > kMostClasses)
    throw ModelFileError("its classes make no sense");
  return out;
}

const char* task_of(const LatentModel& model) {
  return model.classifies() ? "classification" : "likelihood";
}

LatentModel model_from_file(ArrayFile file) {
  const auto& header = file.header;
  if (file.version != kLatentVersion)
    throw ModelFileError("its format version does not agree with its likelihood");
  LatentModel model;
  model.schema = header.at("schema").get<data::Schema>();
  model.scaling = header.at("scaling").get<data::Scaling>();
  model.classes = classes_from(header);
  model.map_only = header.at("map_only").get<bool>();
  const Index n = header.at("n").get<Index>();
  const Index d = model.schema.dimension();
  if (n < 1 || model.scaling.input_sd.size() != d)
    throw ModelFileError("number of rows or inputs does not agree");
  auto kernel =
      kernels::Kernel::parse(header.at("kernel").get<std::string>(), input_names(model.schema));
  auto likelihood = likelihoods::make(header.at("likelihood").get<std::string>());
  const auto& levels = model.schema.target_levels;
  if (likelihood->is_binary() != model.classifies() || header.at("task") != task_of(model) ||
      (!levels.empty() && levels != model.classes.labels))
    throw ModelFileError("its task, its likelihood and its classes do not agree");
  model.problem = {std::move(kernel), std::move(likelihood)};
  const Index p = model.problem.log_parameters().size();
  model.problem.set_log_parameters(take(file, "log_parameters", p, 1).col(0));
  const Index c = model.classifies() ? model.classes.functions() : 1;
  model.x = take(file, "inputs", n, d);
  model.a = take(file, "weights", n, c);
  model.w = take(file, "curvature", n, c);
  model.offset = take(file, "offset", c, 1).col(0);
  model.certificate.residual = take(file, "residual", c, 1).col(0);
  model.certificate.mean_error_bound = header.at("mean_error_bound").get<double>();
  model.certificate.rigorous = model.problem.likelihood->log_concave();
  if (!(model.w.minCoeff() >= 0) || !(model.certificate.residual.minCoeff() >= 0))
    throw ModelFileError("a curvature or a residual is negative");
  model.method = method_from_json(header.at("method"));
  model.record = header.at("record");
  return model;
}

}  // namespace

void LatentModel::save(const std::string& path) const {
  ArrayFile file;
  file.version = kLatentVersion;
  file.header = {
      {"kind", "model"},
      {"mercer", version()},
      {"task", task_of(*this)},
      {"n", x.rows()},
      {"schema", schema},
      {"scaling", scaling},
      {"classes", classes.labels},
      {"class_values", std::vector<double>(classes.values.begin(), classes.values.end())},
      {"map_only", map_only},
      {"kernel", problem.kernel.text()},
      {"likelihood", problem.likelihood->text()},
      {"mean_error_bound", certificate.mean_error_bound},
      {"method", method_json(method)},
      {"record", record}};
  file.arrays["log_parameters"] = problem.log_parameters();
  file.arrays["inputs"] = x;
  file.arrays["weights"] = a;
  file.arrays["curvature"] = w;
  file.arrays["offset"] = offset;
  file.arrays["residual"] = certificate.residual;
  write_array_file(path, file);
}

LatentModel LatentModel::from_file(ArrayFile file, const std::string& name) {
  return undamaged(name, [&] { return model_from_file(std::move(file)); });
}

LatentModel LatentModel::load(const std::string& path) {
  return from_file(read_array_file(path, "model"), path);
}

}  // namespace mercer::models
