#include "mercer/data/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "mercer/core/error.hpp"
#include "mercer/data/data_json.hpp"

namespace mercer::data {
namespace {

struct Moments {
  double mean = 0;
  double sd = 1;
};

/// Two passes over x 2^-e, with 2^e near the largest |x| when that is extreme, so that squares
/// neither overflow nor vanish; a power of two changes no digits. Both passes are relative to the
/// first value, then to the mean: a large common offset costs no digits. The sum of deviations,
/// zero in exact arithmetic, mends the mean (Chan, Golub & LeVeque 1983).
Moments moments(ConstVectorView column) {
  const double low = column.minCoeff();
  const double high = column.maxCoeff();
  if (low == high) return {low, 1};
  const double largest = std::max(std::abs(low), std::abs(high));
  const bool extreme = largest > 1e100 || largest < 1e-100;
  const int exponent = extreme ? std::ilogb(largest) : 0;
  Vector x = column;
  if (extreme)
    for (double& value : x) value = std::scalbn(value, -exponent);

  const auto n = static_cast<double>(x.size());
  const double origin = x[0];
  x.array() -= origin;
  double mean = x.sum() / n;
  x.array() -= mean;
  const double drift = x.sum() / n;
  mean += drift;
  const double variance = x.squaredNorm() / n - drift * drift;
  return {std::scalbn(origin + mean, exponent), std::scalbn(std::sqrt(variance), exponent)};
}

std::vector<double> numbers(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_array())
    throw ModelFileError(fmt::format("scaling: '{}' is missing or not a list", key));
  std::vector<double> out;
  for (const auto& item : *found) {
    if (!item.is_number() || !std::isfinite(item.get<double>()))
      throw ModelFileError(fmt::format("scaling: '{}' holds something that is not a number", key));
    out.push_back(item.get<double>());
  }
  return out;
}

Vector to_vector(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
}

void check_width(const char* what, Index columns, Index dimension) {
  if (columns != dimension)
    throw DimensionMismatch(fmt::format("{}: columns of the inputs", what), columns,
                            "dimension of the scaling", dimension);
}

}  // namespace

Scaling Scaling::identity(Index dimension) {
  return {Vector::Zero(dimension), Vector::Ones(dimension), 0, 1};
}

void Scaling::scale_inputs(MatrixView inputs) const {
  check_width("scale_inputs", inputs.cols(), input_mean.size());
  for (Index j = 0; j < inputs.cols(); ++j)
    inputs.col(j) = (inputs.col(j).array() - input_mean[j]) / input_sd[j];
}

void Scaling::unscale_inputs(MatrixView inputs) const {
  check_width("unscale_inputs", inputs.cols(), input_mean.size());
  for (Index j = 0; j < inputs.cols(); ++j)
    inputs.col(j) = inputs.col(j).array() * input_sd[j] + input_mean[j];
}

void Scaling::scale_target(VectorView target) const {
  target = (target.array() - target_mean) / target_sd;
}

void Scaling::unscale_target(VectorView values) const {
  values = values.array() * target_sd + target_mean;
}

Scaling fit_scaling(ConstMatrixView inputs, ConstVectorView target) {
  if (inputs.rows() != target.size())
    throw DimensionMismatch("fit_scaling: rows of the inputs", inputs.rows(), "targets",
                            target.size());
  if (inputs.rows() < 1) throw InvalidArgument("fit_scaling: there are no rows");
  Scaling scaling = Scaling::identity(inputs.cols());
  for (Index j = 0; j < inputs.cols(); ++j) {
    const Moments m = moments(inputs.col(j));
    scaling.input_mean[j] = m.mean;
    scaling.input_sd[j] = m.sd;
  }
  const Moments m = moments(target);
  scaling.target_mean = m.mean;
  scaling.target_sd = m.sd;
  return scaling;
}

void share_scale(Scaling& scaling, ConstMatrixView inputs, std::span<const Index> columns) {
  check_width("share_scale", inputs.cols(), scaling.input_sd.size());
  double norm = 0, varying = 0;
  for (const Index j : columns) {
    if (inputs.col(j).minCoeff() == inputs.col(j).maxCoeff()) continue;
    norm = std::hypot(norm, scaling.input_sd[j]);  // squares may overflow
    ++varying;
  }
  if (varying == 0) return;
  for (const Index j : columns) scaling.input_sd[j] = norm / std::sqrt(varying);
}

void to_json(nlohmann::json& json, const Scaling& scaling) {
  const auto list = [](const Vector& v) { return std::vector<double>(v.begin(), v.end()); };
  json = {{"input_mean", list(scaling.input_mean)},
          {"input_sd", list(scaling.input_sd)},
          {"target", {scaling.target_mean, scaling.target_sd}}};
}

void from_json(const nlohmann::json& json, Scaling& scaling) {
  const auto mean = numbers(json, "input_mean");
  const auto sd = numbers(json, "input_sd");
  const auto target = numbers(json, "target");
  if (mean.size() != sd.size() || target.size() != 2)
    throw ModelFileError("scaling: the lists do not have the sizes they should");
  const auto positive = [](double value) { return value > 0; };
  if (!std::all_of(sd.begin(), sd.end(), positive) || !positive(target[1]))
    throw ModelFileError("scaling: a standard deviation is not positive");
  scaling = {to_vector(mean), to_vector(sd), target[0], target[1]};
}

}  // namespace mercer::data
