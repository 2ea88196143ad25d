#include "mercer/models/approximation_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/count_text.hpp"
#include "mercer/core/rng.hpp"

namespace mercer::models {
namespace {

// KL(N(m0, v0) || N(m1, v1)).
double normal_divergence(double m0, double v0, double m1, double v1) {
  const double ratio = v0 / v1, apart = m0 - m1;
  return 0.5 * (ratio - 1 - std::log(ratio) + apart * apart / v1);
}

}  // namespace

double noise_in_target_units(const KernelMachine& model) {
  if (!model.problem.gaussian()) return 0;
  return model.problem.noise() * model.scaling.target_sd * model.scaling.target_sd;
}

ApproximationCheck distance_from_exact(const Predictions& exact, const Predictions& approximate,
                                       double noise) {
  ApproximationCheck out;
  out.rows = exact.rows();
  const Matrix mean = approximate.latent_mean - exact.latent_mean;
  const Matrix sd = approximate.latent_sd - exact.latent_sd;
  const auto entries = static_cast<double>(mean.size());
  out.mean_rms = std::sqrt(mean.squaredNorm() / entries);
  out.mean_max = mean.cwiseAbs().maxCoeff();
  out.sd_rms = std::sqrt(sd.squaredNorm() / entries);
  out.sd_max = sd.cwiseAbs().maxCoeff();
  for (Index c = 0; c < mean.cols(); ++c)
    for (Index i = 0; i < mean.rows(); ++i)
      out.kl += normal_divergence(
          exact.latent_mean(i, c), std::pow(exact.latent_sd(i, c), 2) + noise,
          approximate.latent_mean(i, c), std::pow(approximate.latent_sd(i, c), 2) + noise);
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
  Matrix inputs(count, data.dimension());
  for (Index i = 0; i < count; ++i)
    inputs.row(i) = data.inputs.row(order[static_cast<std::size_t>(i)]);
  PredictOptions with;
  with.memory = options.method.memory;
  with.variance.rows = count;
  const auto approximate = Predictor(model, with).predict(inputs, progress);
  with.variance.method = "exact";
  const auto truth = Predictor(std::move(exact.model), with).predict(inputs, progress);
  out.check = distance_from_exact(truth, approximate, noise_in_target_units(model));
  return out;
}

}  // namespace mercer::models
