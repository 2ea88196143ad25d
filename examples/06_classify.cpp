// Classes: probabilities that are averages over what is not known of the latent function, and
// counts of how often they are right.
#include <cmath>
#include <cstdio>

#include "mercer/mercer.hpp"

using namespace mercer;

namespace {

// Three sectors of the plane; one label in ten is wrong.
data::Dataset sectors(Index n, std::uint64_t seed) {
  Matrix x(n, 2);
  Rng rng(seed, "sectors");
  rng.fill_normal(x);
  Vector y(n);
  for (Index i = 0; i < n; ++i) {
    const double turn = (std::atan2(x(i, 1), x(i, 0)) + 3.1416) / 6.2833;
    y[i] = rng.uniform() < 0.1 ? static_cast<double>(rng.index(3)) : std::floor(2.999 * turn);
  }
  return data::make_dataset(std::move(x), std::move(y));
}

}  // namespace

int main() {
  const auto train = sectors(300, 1);
  const auto test = sectors(200, 2);

  const auto classes = models::find_classes(train);
  models::FitOptions options;
  options.likelihood = "bernoulli-logit";
  options.method.kernel = "matern52:iso";
  options.train.restarts = 0;
  options.classes = classes;
  const auto fit = models::fit(train, options);
  std::printf("%d classes, log evidence %.2f\n", static_cast<int>(classes.count()),
              fit.likelihood.value);
  std::printf("every latent mean is within %.1e of the one at the exact mode\n",
              fit.model.certificate.mean_error_bound);

  const models::Predictor predictor(fit.model, {});
  const auto p = predictor.predict(test.inputs);
  std::vector<Index> truth;
  for (const double y : test.target) truth.push_back(*classes.find(y));
  models::ClassScoreKeeper keeper;
  keeper.add(p.probabilities, truth);
  const auto scores = keeper.scores();
  std::printf("test error %.1f %%, nll %.3f, auc %.3f\n", 100 * scores.error_rate, scores.nll,
              scores.auc.value_or(0));
  for (const auto& bin : scores.calibration)
    std::printf("  confidence %.2f: right %.2f of %d times\n", bin.confidence, bin.accuracy,
                static_cast<int>(bin.n));
  // One label in fifteen is wrong by design; three times that would be a bad model.
  return scores.error_rate < 0.2 && scores.nll < 0.7 ? 0 : 1;
}
