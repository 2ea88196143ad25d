// Models and predictions whose bits are compared: across threads, and across fork.
#pragma once

#include <string>

#include "mercer/core/rng.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"

namespace mercer::testing {

/// N rows of two inputs in the unit square.
inline Matrix unit_square(Index n, std::uint64_t seed) {
  Matrix x(n, 2);
  Rng(seed, "embedding-test").fill_uniform(x);
  return x;
}

/// A smooth function of two inputs; for classes cut into `classes` pieces.
inline Vector target_at(const Matrix& x, Index classes) {
  Vector y = (4.0 * x.col(0)).array().sin() + x.col(1).array();
  if (classes == 0) return y;
  const double low = y.minCoeff(), width = y.maxCoeff() - low;
  for (double& value : y)
    value = std::min<double>(std::floor((value - low) / width * static_cast<double>(classes)),
                             static_cast<double>(classes - 1));
  return y;
}

/// A model of fixed hyperparameters; `classes` 0: of numbers.
inline models::KernelMachine fixed_model(const std::string& likelihood, Index classes,
                                         const std::string& solver, Index n = 150) {
  const Matrix x = unit_square(n, 1);
  const auto data = data::make_dataset(x, target_at(x, classes));
  models::FitOptions options;
  options.likelihood = likelihood;
  if (classes > 0) options.classes = models::find_classes(data);
  options.method.kernel = "matern32";
  options.method.solver = solver;
  options.train.train = "none";
  return models::fit(data, options).model;
}

/// Everything that a prediction says, one after another.
inline std::vector<double> numbers_of(const models::Predictions& p) {
  std::vector<double> all;
  const auto add = [&](const auto& values) {
    for (Index j = 0; j < values.cols(); ++j)
      for (Index i = 0; i < values.rows(); ++i) all.push_back(values(i, j));
  };
  add(p.latent_mean);
  add(p.latent_sd);
  add(p.error_bound);
  add(p.samples);
  add(p.mean);
  add(p.sd_obs);
  add(p.probabilities);
  return all;
}

}  // namespace mercer::testing
