#include "mercer/models/task.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/laplace/laplace.hpp"
#include "mercer/inference/laplace/local_likelihood.hpp"
#include "mercer/inference/solvers.hpp"
#include "mercer/models/input_names.hpp"
#include "mercer/models/merging.hpp"
#include "mercer/models/scaled_data.hpp"

namespace mercer::models {
namespace {

// Counts and outliers: what the likelihood cannot observe is named by its row.
void check_target(const likelihoods::Likelihood& likelihood, const data::Dataset& data) {
  for (Index i = 0; i < data.size(); ++i)
    if (const auto why = likelihood.fault(data.target(i)); !why.empty())
      throw DataError(
          fmt::format("the target '{}' holds {} (row {} of those used): with the "
                      "likelihood {} it {}",
                      data.schema.target, data.target(i), i + 1, likelihood.text(), why));
}

// "bernoulli-logit, bernoulli-probit or ...".
std::string class_likelihoods() {
  std::vector<std::string> names;
  for (const auto& info : likelihoods::likelihoods())
    if (info.make({})->is_binary()) names.emplace_back(info.name);
  return fmt::format("{}", fmt::join(names, " or "));
}

// Options, classes and targets that do not go with the likelihood are refused.
void check_request(const data::Dataset& data, const FitOptions& options,
                   const likelihoods::Likelihood& likelihood) {
  const bool classes = options.classes.count() > 0;
  if (likelihood.is_binary() != classes)
    throw InvalidArgument(fmt::format("the likelihood {} is {}", options.likelihood,
                                      likelihood.is_binary()
                                          ? std::string("one of classes; say `task=classification`")
                                          : "not one of classes; give " + class_likelihoods()));
  if (data.schema.log_target && !likelihood.gaussian_noise())
    throw InvalidArgument(fmt::format(
        "`log_target` is for Gaussian noise: what is predicted of y is then log-normal{}; leave "
        "it or the likelihood {} out",
        options.likelihood.starts_with("student-t") ? ", while exp of Student's t has no mean" : "",
        options.likelihood));
  if (data.schema.log_target && options.mean_only)
    throw InvalidArgument(
        "`log_target` needs variances, from which the mean of y follows, and `method=krr` has "
        "none; fit with `method=gp`");
  if (likelihood.gaussian_noise()) return;
  if (options.method.noise)
    throw InvalidArgument(
        "`noise` is that of Gaussian regression; the likelihood has its own spread");
  if (data.noise.variance.size() > 0)
    throw InvalidArgument("known noise variances are those of Gaussian regression");
  inference::check_coupling(likelihood, inference::mean_kind(options.method.mean),
                            options.method.preconditioner);
  if (!classes) check_target(likelihood, data);
}

// Throws DataError when all rows have the same class.
std::vector<std::string> class_warnings(const Classes& classes, const Matrix& y) {
  std::vector<std::string> out;
  const auto rows = static_cast<double>(y.rows());
  for (Index c = 0; c < classes.count(); ++c) {
    const double members = y.cols() > 1 ? y.col(c).sum() : (c == 1 ? y.sum() : rows - y.sum());
    const auto& label = classes.labels[static_cast<std::size_t>(c)];
    if (members == rows)
      throw DataError(
          fmt::format("all rows to learn from have class '{}'; there is nothing to learn", label));
    if (members == 0)
      out.push_back(fmt::format("no row to learn from has class '{}'", label));
    else if (members == 1)
      out.push_back(
          fmt::format("class '{}' has one row only; what is said of it rests on that row", label));
  }
  return out;
}

double median(Vector values) {
  auto* middle = values.data() + values.size() / 2;
  std::nth_element(values.data(), middle, values.data() + values.size());
  return *middle;
}

data::Scaling likelihood_scaling(const data::Dataset& data, const FitOptions& options,
                                 const likelihoods::Likelihood& likelihood) {
  auto scaling = scaling_of(data, options.standardize, options.method.isotropic);
  if (!likelihood.scalable()) {
    scaling.target_mean = 0;
    scaling.target_sd = 1;
  } else if (options.standardize) {
    // Outliers may not set the scale: median and median absolute deviation, where that is not zero.
    const double middle = median(data.target);
    const double spread = 1.4826 * median((data.target.array() - middle).abs());
    scaling.target_mean = middle;
    if (spread > 0) scaling.target_sd = spread;
  }
  return scaling;
}

// The noise that the systems K + W^-1 will have, by the curvatures at the offset: 4 for classes.
double expected_noise(const likelihoods::Likelihood& likelihood,
                      const inference::Observations& rows) {
  return 1 / std::max(inference::mean_curvature(likelihood, rows), 1e-300);
}

// Numbers with Gaussian noise, merged where inputs repeat.
Task gaussian_task(const data::Dataset& data, const FitOptions& options,
                   const KernelMachine* learned) {
  Task task;
  auto scaled = learned != nullptr ? scale(data, learned->scaling)
                                   : scale(data, options.standardize, options.method.isotropic);
  task.scaling = std::move(scaled.scaling);
  task.rows = std::move(scaled.data);
  task.start = learned != nullptr
                   ? learned->problem
                   : start_problem(options.method, data.schema, task.rows.x, task.rows.target());
  task.start.trend_left_out = inference::dependent_inputs(task.start.mean, task.rows.x);
  // Last: scale, start values and trend are those of all rows, merged or not. Merged rows have a
  // noise of their own, which not every solver can have.
  const auto& solver = options.method.solver;
  if (options.merge && (solver == "auto" || inference::solver(solver).takes_row_noise))
    task.rows = merge_replicates(std::move(task.rows));
  task.merged_rows = task.rows.replicates.merged_rows();
  task.system_noise = task.rows.noise.at(task.start.noise()).harmonic_mean();
  return task;
}

// Classes, counts and numbers with outliers: a column of y and an offset for every latent function.
Task likelihood_task(const data::Dataset& data, const FitOptions& options,
                     std::unique_ptr<likelihoods::Likelihood> likelihood,
                     const KernelMachine* learned) {
  Task task;
  task.scaling =
      learned != nullptr ? learned->scaling : likelihood_scaling(data, options, *likelihood);
  auto& rows = task.rows;
  rows.x = data.inputs;
  task.scaling.scale_inputs(rows.x);
  if (options.classes.count() > 0) {
    rows.y = options.classes.indicators(data.target, likelihood->coupled() != nullptr);
    task.warnings = class_warnings(options.classes, rows.y);
  } else {
    Vector y = data.target;
    task.scaling.scale_target(y);
    rows.y = y;
  }
  check_noise_columns(data.noise, data.size());
  rows.noise.weight = data.noise.count;
  rows.offset.resize(rows.functions());
  for (Index c = 0; c < rows.functions(); ++c) rows.offset(c) = likelihood->offset(rows.y.col(c));
  // f is of order one whatever the target, so the start values are those of a variance of one.
  const auto mean = inference::mean_kind(options.method.mean);
  if (learned != nullptr)
    task.start = learned->problem;
  else
    task.start = {start_kernel(options.method, data.schema, rows.x, 1.0), std::move(likelihood),
                  mean};
  task.start.trend_left_out = inference::dependent_inputs(mean, rows.x);
  task.system_noise = expected_noise(*task.start.likelihood, rows);
  return task;
}

// Base points of the user are inputs like those of the data.
void scale_base(const data::Dataset& data, Task& task) {
  auto& points = task.approximation.points;
  if (points.size() == 0) return;
  if (points.cols() != data.dimension())
    throw DimensionMismatch("base points: columns", points.cols(), "inputs of the data",
                            data.dimension());
  if (points.rows() < 2)
    throw InvalidArgument(
        "the file that `base` names has one row; an approximation on one base point is a constant: "
        "give at least two");
  task.scaling.scale_inputs(points);
  inference::check_base(points, points.cols());
}

// Start values from two rows whose means and standard deviations are those of all.
inference::Problem start_of_all(const data::StreamedData& data, const FitOptions& options,
                                const data::Scaling& scaling) {
  const auto& all = data.moments;
  Matrix x(2, all.input_mean.size());
  x.row(0) = (all.input_mean - all.input_sd).transpose();
  x.row(1) = (all.input_mean + all.input_sd).transpose();
  Vector y(2);
  y << all.target_mean - all.target_sd, all.target_mean + all.target_sd;
  scaling.scale_inputs(x);
  scaling.scale_target(y);
  return start_problem(options.method, data.sample.schema, x, y);
}

}  // namespace

Task make_task(const data::Dataset& data, const FitOptions& options, const KernelMachine* learned) {
  auto likelihood = likelihoods::make(options.likelihood);
  check_request(data, options, *likelihood);
  auto task = likelihood->gaussian_noise()
                  ? gaussian_task(data, options, learned)
                  : likelihood_task(data, options, std::move(likelihood), learned);
  task.approximation = options.approximation;
  scale_base(data, task);
  return task;
}

Task make_task(const data::StreamedData& data, const FitOptions& options) {
  const auto likelihood = likelihoods::make(options.likelihood);
  check_request(data.sample, options, *likelihood);
  if (!likelihood->gaussian_noise())
    throw InvalidArgument(fmt::format(
        "rows that are read in passes are learned with Gaussian noise, not with the likelihood {}; "
        "give more `memory`, or learn from a part of the rows",
        likelihood->text()));
  Task task;
  const auto& sample = data.sample;
  task.scaling = options.standardize ? data.moments : data::Scaling::identity(sample.dimension());
  if (options.standardize)
    data::share_scale(task.scaling, data.range,
                      isotropic_columns(options.method.isotropic, sample.schema));
  task.rows = scale(sample, task.scaling).data;
  task.start = start_of_all(data, options, task.scaling);
  task.start.trend_left_out = inference::dependent_inputs(task.start.mean, task.rows.x);
  task.system_noise = task.rows.noise.at(task.start.noise()).harmonic_mean();
  task.approximation = options.approximation;
  task.stream = planning::StreamSetting{data.rows, data.seconds};
  scale_base(sample, task);
  return task;
}

}  // namespace mercer::models
