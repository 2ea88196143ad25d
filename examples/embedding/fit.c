/* The same from C: fit, save, load, predict. Every call returns a status. */
#include <math.h>
#include <mercer/c/mercer.h>
#include <stdio.h>

enum { ROWS = 200, COLUMNS = 2 };

static int on_progress(const mercer_progress* progress, void* user) {
  (void)user;
  fprintf(stderr, "%s\n", progress->stage);
  return 0; /* anything else ends the fit */
}

int main(void) {
  static double x[ROWS * COLUMNS], y[ROWS]; /* row-major */
  for (int i = 0; i < ROWS; ++i) {
    x[2 * i] = fmod(0.618034 * (i + 1), 1);
    x[2 * i + 1] = fmod(0.414214 * (i + 1), 1);
    y[i] = sin(4 * x[2 * i]) + x[2 * i + 1] + 0.1 * sin(100 * i); /* with errors */
  }

  const double point[COLUMNS] = {0.5, 0.5};
  double mean = NAN, sd = NAN, bound = NAN;
  const mercer_predictions out = {.mean = &mean, .sd_latent = &sd, .error_bound = &bound};
  mercer_options* options = mercer_fit_options_new();
  mercer_model *model = NULL, *loaded = NULL;
  mercer_predictor* predictor = NULL;

  const int failed = mercer_options_set(options, "kernel", "matern52") ||
                     mercer_fit(x, y, ROWS, COLUMNS, options, on_progress, NULL, &model) ||
                     mercer_save(model, "fit_c.mcr") || mercer_load("fit_c.mcr", &loaded) ||
                     mercer_predictor_new(loaded, NULL, &predictor) ||
                     mercer_predict(predictor, point, 1, COLUMNS, NULL, NULL, &out);
  if (failed)
    fprintf(stderr, "%s\n", mercer_last_error());
  else
    printf("f(0.5, 0.5) = %.4f +- %.4f, exactly %.4f; solved to within %.1e\n", mean, sd,
           sin(2) + 0.5, bound);

  mercer_predictor_free(predictor);
  mercer_model_free(loaded);
  mercer_model_free(model);
  mercer_options_free(options);
  return !failed && fabs(mean - sin(2) - 0.5) < 0.1 ? 0 : 1;
}
