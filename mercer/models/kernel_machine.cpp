// A model as an array file of format version 5, 6 with an approximation, or 7 with draws of
// hyperparameters: see array_file.hpp for the container.
#include "mercer/models/kernel_machine.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/version.hpp"
#include "mercer/data/data_json.hpp"
#include "mercer/models/input_names.hpp"
#include "mercer/models/legacy_file.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/sparse/sparse_file.hpp"

namespace mercer::models {
namespace {

// W^-1 must be a number. Times 1 / k(x, x): a point of less curvature would take less than this
// share of a variance away.
constexpr double kLeastCurvature = 1e-8;

const char* task_of(const KernelMachine& model) {
  return model.classifies() ? "classification" : "regression";
}

nlohmann::json to_json(const Certificate& c) {
  nlohmann::json json = {{"mean_error_bound", c.mean_error_bound},
                         {"relative_residual", c.relative_residual},
                         {"residual_norm", c.residual_norm},
                         {"trend_defect", c.trend_defect},
                         {"trend_residual", c.trend_residual},
                         {"jitter", c.jitter},
                         {"accuracy", c.accuracy},
                         {"accuracy_missed", c.accuracy_missed}};
  if (c.mean_error_estimate) json["mean_error_estimate"] = *c.mean_error_estimate;
  return json;
}

// The record is a text, so that the header needs no JSON library.
nlohmann::json record_json(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw InvalidArgument("save: `record` of the model is no JSON object");
  return json;
}

Certificate certificate_from(const nlohmann::json& json) {
  Certificate c;
  c.mean_error_bound = json.at("mean_error_bound").get<double>();
  c.relative_residual = json.at("relative_residual").get<double>();
  c.residual_norm = json.at("residual_norm").get<double>();
  c.trend_defect = json.at("trend_defect").get<double>();
  c.trend_residual = json.at("trend_residual").get<double>();
  // Files of earlier programs do not have these.
  c.jitter = json.value("jitter", 0.0);
  c.accuracy = json.value("accuracy", 0.0);
  c.accuracy_missed = json.value("accuracy_missed", std::string());
  if (json.contains("mean_error_estimate")) {
    c.mean_error_estimate = json.at("mean_error_estimate").get<double>();
    if (!(*c.mean_error_estimate >= 0)) throw ModelFileError("an error estimate is negative");
  }
  if (!(c.trend_residual >= 0)) throw ModelFileError("a residual is negative");
  if (!(c.jitter >= 0)) throw ModelFileError("its jitter is negative");
  return c;
}

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

std::vector<Index> trend_left_out(const nlohmann::json& header, inference::MeanKind mean, Index d) {
  auto inputs = header.at("trend_left_out").get<std::vector<Index>>();
  Index least = 0;
  for (const Index input : inputs) {
    if (mean != inference::MeanKind::linear || input < least || input >= d)
      throw ModelFileError("the inputs left out of its trend make no sense");
    least = input + 1;
  }
  return inputs;
}

inference::Problem problem_from(data::ArrayFile& file, const data::Schema& schema) {
  const auto& header = file.header;
  const Index d = schema.dimension();
  const auto mean = inference::mean_kind(header.at("mean").get<std::string>());
  inference::Problem problem(
      kernels::Kernel::parse(header.at("kernel").get<std::string>(), input_names(schema)),
      likelihoods::make(header.at("likelihood").get<std::string>()), mean,
      trend_left_out(header, mean, d));
  const Index p = problem.log_parameters().size();
  problem.set_log_parameters(take(file, "log_parameters", p, 1).col(0));
  return problem;
}

linalg::Diagonal noise_from(data::ArrayFile& file, Index n) {
  const auto& value = file.header.at("noise");
  linalg::Diagonal noise = value.is_null() ? linalg::Diagonal(take(file, "noise", n, 1).col(0))
                                           : linalg::Diagonal(value.get<double>());
  noise.require_positive("noise");
  return noise;
}

void read_functions(data::ArrayFile& file, KernelMachine& model) {
  const Index n = model.x.rows();
  const Index count = model.classifies() ? model.classes.functions(model.coupled()) : 1;
  const Index q = inference::mean_basis_size(model.problem.mean, model.x.cols()) -
                  static_cast<Index>(model.problem.trend_left_out.size());
  const bool gaussian = model.problem.gaussian();
  const Matrix w = take(file, "weights", n, count);
  const Matrix offset = take(file, "offset", count, 1);
  Matrix curvature, beta, solves, covariance;
  if (!gaussian) curvature = take(file, "curvature", n, count);
  if (!gaussian && !(curvature.minCoeff() >= 0)) throw ModelFileError("a curvature is negative");
  if (q > 0) {
    beta = take(file, "beta", q, count);
    solves = take(file, "basis_solves", n, q * count);
    covariance = take(file, "beta_covariance", q, q * count);
  }
  for (Index c = 0; c < count; ++c) {
    LatentFunction f;
    f.weights.w = w.col(c);
    f.weights.basis_solves.resize(n, 0);
    f.offset = offset(c);
    if (gaussian)
      f.noise = noise_from(file, n);
    else
      f.curvature = curvature.col(c);
    if (q > 0) {
      f.weights.beta = beta.col(c);
      f.weights.basis_solves = solves.middleCols(c * q, q);
      f.weights.beta_covariance = covariance.middleCols(c * q, q);
    }
    model.functions.push_back(std::move(f));
  }
}

// The arrays of a draw have its number before their names, those of the first draw have none.
std::string draw_prefix(std::size_t number) { return fmt::format("draw{}_", number); }

// Each draw is a model of its own in a file of its own, but for inputs and what is not of a draw.
void read_draws(data::ArrayFile& file, KernelMachine& model) {
  const auto& list = file.header.at("draws");
  if (!list.is_array() || list.empty() || model.sparse)
    throw ModelFileError("its draws make no sense");
  for (std::size_t i = 0; i < list.size(); ++i) {
    data::ArrayFile own;
    own.header = file.header;
    own.header["noise"] = list[i].at("noise");
    const auto prefix = draw_prefix(i + 1);
    for (auto& [name, values] : file.arrays)
      if (name.starts_with(prefix)) own.arrays[name.substr(prefix.size())] = std::move(values);
    KernelMachine part;
    part.classes = model.classes;
    part.problem = problem_from(own, model.schema);
    part.x = std::move(model.x);
    try {
      read_functions(own, part);
    } catch (...) {
      model.x = std::move(part.x);
      throw;
    }
    model.x = std::move(part.x);
    auto certificate = certificate_from(list[i].at("certificate"));
    certificate.rigorous = model.certificate.rigorous;
    certificate.residual = take(own, "residual", model.num_functions(), 1).col(0);
    if (!(certificate.residual.minCoeff() >= 0)) throw ModelFileError("a residual is negative");
    model.draws.push_back(
        {std::move(part.problem), std::move(part.functions), std::move(certificate)});
  }
}

KernelMachine model_from_file(data::ArrayFile file) {
  // The number in front of the header is under no checksum; from version 5 on it is here, too.
  const std::uint32_t format = file.header.value("format", std::min(file.version, 4U));
  if (format != file.version)
    throw ModelFileError("its format version does not agree with its header");
  if (file.version < kModelVersion) file = upgraded(std::move(file));
  const auto& header = file.header;
  KernelMachine model;
  model.schema = header.at("schema").get<data::Schema>();
  model.scaling = header.at("scaling").get<data::Scaling>();
  const Index n = header.at("n").get<Index>();
  const Index d = model.schema.dimension();
  if (n < 1 || model.scaling.input_sd.size() != d)
    throw ModelFileError("number of rows or inputs does not agree");
  model.classes = classes_from(header);
  model.problem = problem_from(file, model.schema);
  const auto& levels = model.schema.target_levels;
  if (model.problem.likelihood->is_binary() != model.classifies() ||
      header.at("task") != task_of(model) || (!levels.empty() && levels != model.classes.labels))
    throw ModelFileError("its task, its likelihood and its classes do not agree");
  model.x = take(file, "inputs", n, d);
  if (header.contains("approximation"))
    read_sparse(file, model);
  else
    read_functions(file, model);
  model.certificate = certificate_from(header.at("certificate"));
  model.certificate.rigorous = !model.sparse && (model.problem.gaussian() ||
                                                 (model.problem.likelihood->log_concave() &&
                                                  model.problem.mean == inference::MeanKind::zero));
  model.certificate.residual = take(file, "residual", model.num_functions(), 1).col(0);
  if (!(model.certificate.residual.minCoeff() >= 0)) throw ModelFileError("a residual is negative");
  model.mean_only = header.at("mean_only").get<bool>();
  if (model.schema.log_target && (!model.problem.gaussian() || model.mean_only))
    throw ModelFileError("a target is learned as its logarithm with Gaussian noise only");
  model.method = method_from_json(header.at("method"));
  model.record = header.at("record").dump();
  if (header.contains("draws")) read_draws(file, model);
  return model;
}

// The functions side by side, as arrays.
void write_functions(const KernelMachine& model, data::ArrayFile& file) {
  const Index n = model.x.rows(), count = model.num_functions();
  const Index q = model.function().weights.beta.size();
  Matrix w(n, count), offset(count, 1), curvature(n, count);
  Matrix beta(q, count), solves(n, q * count), covariance(q, q * count);
  for (Index c = 0; c < count; ++c) {
    const auto& f = model.function(c);
    w.col(c) = f.weights.w;
    offset(c) = f.offset;
    if (f.curvature.size() > 0) curvature.col(c) = f.curvature;
    if (q == 0) continue;
    beta.col(c) = f.weights.beta;
    solves.middleCols(c * q, q) = f.weights.basis_solves;
    covariance.middleCols(c * q, q) = f.weights.beta_covariance;
  }
  file.arrays["weights"] = std::move(w);
  file.arrays["offset"] = std::move(offset);
  file.header["noise"] = nullptr;
  const auto& noise = model.function().noise;
  if (!model.problem.gaussian())
    file.arrays["curvature"] = std::move(curvature);
  else if (noise.uniform())
    file.header["noise"] = noise(0);
  else
    file.arrays["noise"] = noise.vector(n);
  if (q == 0) return;
  file.arrays["beta"] = std::move(beta);
  file.arrays["basis_solves"] = std::move(solves);
  file.arrays["beta_covariance"] = std::move(covariance);
}

void write_draws(const KernelMachine& model, data::ArrayFile& file) {
  if (model.draws.empty()) return;
  auto list = nlohmann::json::array();
  for (std::size_t i = 0; i < model.draws.size(); ++i) {
    const auto& draw = model.draws[i];
    KernelMachine part;
    part.problem = draw.problem;
    part.functions = draw.functions;
    part.x = model.x;
    data::ArrayFile own;
    write_functions(part, own);
    own.arrays["log_parameters"] = draw.problem.log_parameters();
    own.arrays["residual"] = draw.certificate.residual;
    for (auto& [name, values] : own.arrays)
      file.arrays[draw_prefix(i + 1) + name] = std::move(values);
    list.push_back({{"noise", own.header.at("noise")}, {"certificate", to_json(draw.certificate)}});
  }
  file.header["draws"] = std::move(list);
}

}  // namespace

linalg::Diagonal KernelMachine::noise(Index c) const {
  const auto& f = function(c);
  if (f.curvature.size() == 0) return f.noise;
  const double prior = problem.kernel.diagonal(x).maxCoeff();
  const double floor = kLeastCurvature / std::max(prior, 1e-300);
  return Vector(f.curvature.cwiseMax(floor).cwiseInverse());
}

KernelMachine KernelMachine::draw(Index i) const {
  KernelMachine out;
  out.schema = schema;
  out.scaling = scaling;
  out.classes = classes;
  out.x = x;
  out.method = method;
  out.record = record;
  out.mean_only = mean_only;
  if (i == 0) {
    out.problem = problem;
    out.functions = functions;
    out.certificate = certificate;
    return out;
  }
  const auto& from = draws[static_cast<std::size_t>(i - 1)];
  out.problem = from.problem;
  out.functions = from.functions;
  out.certificate = from.certificate;
  out.method.seed = Rng(method.seed, "draw", static_cast<std::uint64_t>(i)).bits64();
  return out;
}

inference::Certificate KernelMachine::certificate_of_all() const {
  auto out = certificate;
  for (const auto& draw : draws) {
    const auto& c = draw.certificate;
    out.residual = out.residual.cwiseMax(c.residual);
    out.mean_error_bound = std::max(out.mean_error_bound, c.mean_error_bound);
    if (out.mean_error_estimate && c.mean_error_estimate)
      out.mean_error_estimate = std::max(*out.mean_error_estimate, *c.mean_error_estimate);
    else
      out.mean_error_estimate.reset();
    if (out.accuracy_missed.empty()) out.accuracy_missed = c.accuracy_missed;
    out.relative_residual = std::max(out.relative_residual, c.relative_residual);
    out.residual_norm = std::max(out.residual_norm, c.residual_norm);
    out.trend_defect = std::max(out.trend_defect, c.trend_defect);
    out.trend_residual = std::max(out.trend_residual, c.trend_residual);
    out.jitter = std::max(out.jitter, c.jitter);
  }
  return out;
}

std::string KernelMachine::method_name() const {
  if (sparse) return sparse->method;
  if (!mean_only) return "gp";
  return problem.gaussian() ? "krr" : "klr";
}

void KernelMachine::save(const std::string& path) const {
  data::ArrayFile file;
  file.version = !draws.empty() ? kModelVersion : sparse ? kSparseModelVersion : kExactModelVersion;
  file.header = {
      {"kind", "model"},
      {"format", file.version},
      {"mercer", version()},
      {"task", task_of(*this)},
      {"n", x.rows()},
      {"schema", schema},
      {"scaling", scaling},
      {"classes", classes.labels},
      {"class_values", std::vector<double>(classes.values.begin(), classes.values.end())},
      {"kernel", problem.kernel.text()},
      {"mean", std::string(to_string(problem.mean))},
      {"trend_left_out", problem.trend_left_out},
      {"likelihood", problem.likelihood->text()},
      {"mean_only", mean_only},
      {"certificate", to_json(certificate)},
      {"method", method_json(method)},
      {"record", record_json(record)}};
  file.arrays["log_parameters"] = problem.log_parameters();
  file.arrays["inputs"] = x;
  file.arrays["residual"] = certificate.residual;
  if (sparse)
    write_sparse(*this, file);
  else
    write_functions(*this, file);
  write_draws(*this, file);
  write_array_file(path, file);
}

KernelMachine KernelMachine::from_file(data::ArrayFile file, const std::string& name) {
  return undamaged(name, [&] { return model_from_file(std::move(file)); });
}

KernelMachine KernelMachine::load(const std::string& path) {
  return from_file(data::read_array_file(path, "model"), path);
}

}  // namespace mercer::models
