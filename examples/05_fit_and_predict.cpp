// From a table to certified predictions, and a model file in between.
#include <cstdio>
#include <filesystem>

#include "mercer/mercer.hpp"

using namespace mercer;

int main() {
  // Friedman's function: five inputs matter, three do not; the noise has standard deviation 1.
  const auto train = data::friedman(400, {.dimension = 8, .noise_sd = 1, .seed = 5});
  const auto test = data::friedman(200, {.dimension = 8, .noise_sd = 1, .seed = 6});

  const auto result = models::fit(data::make_dataset(train.inputs, train.target),
                                  {.method = {.kernel = "rbf"}, .train = {.restarts = 0}});
  std::printf("%s\n", result.plan.reason.c_str());
  std::printf("log marginal likelihood %.2f after %d steps\n", result.likelihood.value,
              result.training.steps);
  std::printf("every mean is within %.1e of the exact one\n",
              result.model.certificate.mean_error_bound);

  const auto path = (std::filesystem::temp_directory_path() / "mercer-example-05.mcr").string();
  result.model.save(path);
  const models::Predictor predictor(models::KernelMachine::load(path), {});
  std::filesystem::remove(path);
  const auto predictions = predictor.predict(test.inputs);

  models::ScoreKeeper keeper;
  keeper.add(test.target, predictions.mean, predictions.sd_obs);
  const auto scores = keeper.scores();
  std::printf("test rmse %.3f (the noise alone has 1), 95 %% intervals cover %.1f %%\n",
              scores.rmse, 100 * scores.coverage95);
  // 200 targets: a calibrated model covers 95 % +- 4.6 % (three standard errors).
  return scores.rmse < 1.4 && scores.coverage95 > 0.90 ? 0 : 1;
}
