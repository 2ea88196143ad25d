#include "mercer/models/approximation_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/count_text.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/data/split.hpp"
#include "mercer/models/scaled_data.hpp"

namespace mercer::models {
namespace {

// KL(N(m0, v0) || N(m1, v1)).
double normal_divergence(double m0, double v0, double m1, double v1) {
  const double ratio = v0 / v1, apart = m0 - m1;
  return 0.5 * (ratio - 1 - std::log(ratio) + apart * apart / v1);
}

}  // namespace

Vector noise_in_target_units(const KernelMachine& model, const data::NoiseColumns& columns,
                             Index rows) {
  if (!model.problem.gaussian()) return Vector::Zero(rows);
  const auto noise = row_noise(columns, model.scaling).at(model.problem.noise());
  return std::pow(model.scaling.target_sd, 2) * noise.vector(rows);
}

ApproximationCheck distance_from_exact(const NoisyPredictions& exact,
                                       const NoisyPredictions& approximate) {
  const auto& truth = exact.of_f;
  const auto& found = approximate.of_f;
  ApproximationCheck out;
  out.rows = truth.rows();
  const Matrix mean = found.latent_mean - truth.latent_mean;
  const Matrix sd = found.latent_sd - truth.latent_sd;
  const auto entries = static_cast<double>(mean.size());
  out.mean_rms = std::sqrt(mean.squaredNorm() / entries);
  out.mean_max = mean.cwiseAbs().maxCoeff();
  out.sd_rms = std::sqrt(sd.squaredNorm() / entries);
  out.sd_max = sd.cwiseAbs().maxCoeff();
  for (Index c = 0; c < mean.cols(); ++c)
    for (Index i = 0; i < mean.rows(); ++i)
      out.kl += normal_divergence(
          truth.latent_mean(i, c), std::pow(truth.latent_sd(i, c), 2) + exact.noise(i),
          found.latent_mean(i, c), std::pow(found.latent_sd(i, c), 2) + approximate.noise(i));
  out.kl /= entries;
  return out;
}

MeasuredApproximation measure_approximation(const KernelMachine& model, const data::Dataset& data,
                                            const FitOptions& options, Index rows,
                                            const ProgressCallback& progress) {
  auto exact_options = options;
  exact_options.approximation = {};
  exact_options.method = planning::without_base(options.method);
  exact_options.evidence = exact_options.gradient = false;
  auto exact = refit(model, data, exact_options, progress);
  MeasuredApproximation out;
  if (exact.solve.stop != StopReason::converged)
    out.warnings.push_back(fmt::format(
        "the exact posterior that the approximation is compared with did not reach its tolerance "
        "({}): the distance is that from an unconverged one",
        to_string(exact.solve.stop)));
  const auto order = Rng(options.method.seed, "check approximation").permutation(data.size());
  const Index count = std::min(rows, data.size());
  const std::vector<Index> chosen(order.begin(), order.begin() + count);
  const Matrix inputs = data::take_rows(ConstMatrixView(data.inputs), chosen);
  const Vector noise = noise_in_target_units(model, data::take_rows(data.noise, chosen), count);
  PredictOptions with;
  with.memory = options.method.memory;
  with.variance.rows = count;
  const NoisyPredictions found{Predictor(model, with).predict(inputs, progress), noise};
  with.variance.method = "exact";
  const NoisyPredictions truth{Predictor(std::move(exact.model), with).predict(inputs, progress),
                               noise};
  out.check = distance_from_exact(truth, found);
  return out;
}

}  // namespace mercer::models
