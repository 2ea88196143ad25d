#include "mercer/models/prediction_scores.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "mercer/data/text.hpp"
#include "mercer/models/sampling/mixture.hpp"

namespace mercer::models {

void check_targets(const Classes& classes, const likelihoods::Likelihood& likelihood,
                   ConstVectorView target, const RowName& name) {
  for (Index i = 0; i < target.size(); ++i) {
    if (classes.count() > 0) {
      if (!classes.find(target(i)))
        throw DataError(
            fmt::format("{}: the target is {}, which is none of the classes learned: {}", name(i),
                        target(i), data::shown_list(classes.labels)));
    } else if (const auto why = likelihood.fault(target(i)); !why.empty()) {
      throw DataError(fmt::format("{}: the target is {}: with the likelihood {} it {}", name(i),
                                  target(i), likelihood.text(), why));
    }
  }
}

void PredictionScores::add_log_normal(const Predictions& p, ConstVectorView target,
                                      const RowName& name) {
  std::vector<LogNormal> predictions;
  for (Index i = 0; i < target.size(); ++i) {
    if (const auto why = data::log_fault(target(i)); !why.empty())
      throw DataError(fmt::format("{}: {}", name(i), why));
    predictions.push_back(log_normal_of_ratio(p.latent_mean(i, 0), p.sd_obs(i) / p.mean(i)));
  }
  numbers_.add_log_normal(target, predictions);
}

// With Gaussian noise, of y or of log y, the parts are normal with the noise that is known of each
// row; other likelihoods have no closed form for the crps.
void PredictionScores::add_mixture(const Predictions& p, ConstVectorView target,
                                   const RowName& name) {
  const auto& model = predictor_.model();
  const bool logarithm = model.schema.log_target;
  Vector density, crps;
  if (!model.problem.gaussian()) {
    density = predictor_.log_density(p, target);
  } else {
    const auto count = static_cast<Index>(p.parts.size());
    Matrix of_draws(target.size(), count);
    if (!logarithm) crps.resize(target.size());
    Vector mean(count), sd(count);
    for (Index i = 0; i < target.size(); ++i) {
      if (const auto why = logarithm ? data::log_fault(target(i)) : ""; !why.empty())
        throw DataError(fmt::format("{}: {}", name(i), why));
      for (Index k = 0; k < count; ++k) {
        const auto& part = p.parts[static_cast<std::size_t>(k)];
        mean(k) = part.mean(i);
        sd(k) = part.sd_obs(i);
        const double z = (target(i) - mean(k)) / sd(k);
        of_draws(i, k) =
            logarithm ? log_normal_of_ratio(part.latent_mean(i, 0), sd(k) / mean(k))
                            .log_density(target(i))
                      : -0.5 * z * z - std::log(sd(k)) - 0.5 * std::log(2 * std::numbers::pi);
      }
      if (!logarithm) crps(i) = normal_mixture_crps(target(i), mean, sd);
    }
    density = log_mean_exp(of_draws);
  }
  numbers_.add(target, {p.mean, p.q025, p.q05, p.q95, p.q975, density, std::move(crps)});
}

void PredictionScores::add(const Predictions& p, ConstVectorView target, const RowName& name) {
  const auto& model = predictor_.model();
  check_targets(model.classes, *model.problem.likelihood, target, name);
  if (model.classifies()) {
    std::vector<Index> truth;
    for (const double value : target) truth.push_back(*model.classes.find(value));
    classes_.add(p.probabilities, truth);
  } else if (!p.parts.empty() && p.sd_obs.size() > 0) {
    add_mixture(p, target, name);
  } else if (model.schema.log_target && p.sd_obs.size() > 0) {
    add_log_normal(p, target, name);
  } else if (model.problem.gaussian() || p.sd_obs.size() == 0) {
    numbers_.add(target, p.mean, p.sd_obs);
  } else {
    numbers_.add(target, {p.mean, p.q025, p.q05, p.q95, p.q975, predictor_.log_density(p, target)});
  }
}

void PredictionScores::add(const PredictionScores& part) {
  classes_.add(part.classes_);
  numbers_.add(part.numbers_);
}

Scores PredictionScores::scores() const {
  Scores out;
  if (classifies_)
    out.classes = classes_.scores();
  else
    out.numbers = numbers_.scores();
  return out;
}

}  // namespace mercer::models
