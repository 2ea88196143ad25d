/* The C interface, from C11: against a dense solve written here, and with everything a caller can
 * get wrong. Usage: c_test FOLDER (for files). Exits 0 when all checks hold. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mercer/c/mercer.h"

static int failures = 0;

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      printf("%s:%d: %s does not hold (last error: %s)\n", __FILE__, __LINE__, #condition, \
             mercer_last_error());                                                         \
      ++failures;                                                                          \
    }                                                                                      \
  } while (0)

#define REFUSED(call, status, words)                     \
  do {                                                   \
    CHECK((call) == (status));                           \
    CHECK(strstr(mercer_last_error(), (words)) != NULL); \
  } while (0)

enum { ROWS = 40, NEW_ROWS = 7, COLUMNS = 2 };

/* Points of a lattice that fills the unit square evenly (Weyl's sequence). */
static void fill_points(double* x, size_t rows, double shift) {
  for (size_t i = 0; i < rows; ++i) {
    x[i * COLUMNS] = fmod(shift + 0.618033988749895 * (double)(i + 1), 1.0);
    x[i * COLUMNS + 1] = fmod(shift + 0.414213562373095 * (double)(i + 1), 1.0);
  }
}

static double truth(const double* x) { return sin(4 * x[0]) + x[1]; }

static void options(mercer_options* o, const char* const* pairs) {
  for (; *pairs != NULL; pairs += 2) CHECK(mercer_options_set(o, pairs[0], pairs[1]) == MERCER_OK);
}

/* k(x, z) = exp(-|x - z|^2 / (2 l^2)), the unit variance and l of the options below. */
static const double lengthscale = 0.5, noise = 0.01;

static double kernel(const double* x, const double* z) {
  double r2 = 0;
  for (int j = 0; j < COLUMNS; ++j) r2 += (x[j] - z[j]) * (x[j] - z[j]);
  return exp(-r2 / (2 * lengthscale * lengthscale));
}

/* Solves H b = b in place by Cholesky, H symmetric positive definite and overwritten. */
static void solve(double h[ROWS][ROWS], double* b) {
  for (int j = 0; j < ROWS; ++j) {
    for (int k = 0; k < j; ++k)
      for (int i = j; i < ROWS; ++i) h[i][j] -= h[i][k] * h[j][k];
    const double root = sqrt(h[j][j]);
    for (int i = j; i < ROWS; ++i) h[i][j] /= root;
  }
  for (int i = 0; i < ROWS; ++i) {
    for (int k = 0; k < i; ++k) b[i] -= h[i][k] * b[k];
    b[i] /= h[i][i];
  }
  for (int i = ROWS - 1; i >= 0; --i) {
    for (int k = i + 1; k < ROWS; ++k) b[i] -= h[k][i] * b[k];
    b[i] /= h[i][i];
  }
}

static double dot_solve(const double* x, const double* k, const double* b) {
  static double h[ROWS][ROWS];
  double u[ROWS], sum = 0;
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < ROWS; ++j)
      h[i][j] = kernel(x + i * COLUMNS, x + j * COLUMNS) + (i == j ? noise : 0);
  memcpy(u, b, sizeof(u));
  solve(h, u);
  for (int i = 0; i < ROWS; ++i) sum += k[i] * u[i];
  return sum;
}

static const char* const fixed[] = {"kernel", "rbf:iso",         "lengthscale", "0.5",   "noise",
                                    "0.01",   "signal_variance", "1",           "train", "none",
                                    "solver", "cholesky",        "standardize", "false", NULL};

/* Mean and standard deviations of the textbook: k*'H^-1 y and k** - k*'H^-1 k*. Both sides solve
 * with a matrix of condition below ROWS / noise = 4e3, so that 1e-10 is 2e2 roundings times that.
 */
static mercer_model* check_numbers(const double* x, const double* y) {
  double z[NEW_ROWS * COLUMNS], mean[NEW_ROWS], sd[NEW_ROWS], sd_obs[NEW_ROWS], bound[NEW_ROWS];
  const mercer_predictions out = {mean, sd, sd_obs, bound};
  mercer_options* o = mercer_fit_options_new();
  mercer_model* model = NULL;
  mercer_predictor* predictor = NULL;
  options(o, fixed);
  CHECK(mercer_fit(x, y, ROWS, COLUMNS, o, NULL, NULL, &model) == MERCER_OK);
  mercer_options_free(o);
  CHECK(mercer_model_columns(model) == COLUMNS);
  CHECK(mercer_model_classes(model) == 0);
  CHECK(mercer_model_record(model) != NULL && mercer_model_record(model)[0] == '{');
  CHECK(mercer_predictor_new(model, NULL, &predictor) == MERCER_OK);
  fill_points(z, NEW_ROWS, 0.3);
  CHECK(mercer_predict(predictor, z, NEW_ROWS, COLUMNS, NULL, NULL, &out) == MERCER_OK);
  for (int i = 0; i < NEW_ROWS; ++i) {
    double k[ROWS];
    for (int j = 0; j < ROWS; ++j) k[j] = kernel(x + j * COLUMNS, z + i * COLUMNS);
    const double variance = 1 - dot_solve(x, k, k);
    CHECK(fabs(mean[i] - dot_solve(x, k, y)) < 1e-10);
    CHECK(fabs(sd[i] * sd[i] - variance) < 1e-10);
    CHECK(fabs(sd_obs[i] * sd_obs[i] - variance - noise) < 1e-10);
    CHECK(bound[i] >= 0 && bound[i] < 1e-6);
  }
  mercer_predictor_free(predictor);
  return model;
}

/* Options by name reach approximations; no bound is known of them. With every row as a base point
 * the variational posterior is the exact one but for the jitter, which the kernel matrix of so
 * smooth a kernel needs: 1e-12 of its diagonal, over the noise. */
static void check_approximation(const double* x, const double* y, const mercer_model* exact) {
  double z[NEW_ROWS * COLUMNS], mean[NEW_ROWS], sd[NEW_ROWS], bound[NEW_ROWS], truths[NEW_ROWS];
  const mercer_predictions out = {mean, sd, NULL, bound};
  const mercer_predictions of_exact = {truths, NULL, NULL, NULL};
  mercer_options* o = mercer_fit_options_new();
  mercer_model* model = NULL;
  mercer_predictor* predictor = NULL;
  static const char* const sparse[] = {"kernel",
                                       "rbf:iso",
                                       "lengthscale",
                                       "0.5",
                                       "noise",
                                       "0.01",
                                       "signal_variance",
                                       "1",
                                       "train",
                                       "none",
                                       "standardize",
                                       "false",
                                       "approximation",
                                       "vfe",
                                       "rank",
                                       "40",
                                       "base",
                                       "random",
                                       NULL};
  options(o, sparse);
  CHECK(mercer_fit(x, y, ROWS, COLUMNS, o, NULL, NULL, &model) == MERCER_OK);
  mercer_options_free(o);
  fill_points(z, NEW_ROWS, 0.3);
  CHECK(mercer_predictor_new(model, NULL, &predictor) == MERCER_OK);
  CHECK(mercer_predict(predictor, z, NEW_ROWS, COLUMNS, NULL, NULL, &out) == MERCER_OK);
  mercer_predictor_free(predictor);
  CHECK(mercer_predictor_new(exact, NULL, &predictor) == MERCER_OK);
  CHECK(mercer_predict(predictor, z, NEW_ROWS, COLUMNS, NULL, NULL, &of_exact) == MERCER_OK);
  mercer_predictor_free(predictor);
  for (int i = 0; i < NEW_ROWS; ++i) {
    CHECK(fabs(mean[i] - truths[i]) < 1e-8);
    CHECK(sd[i] > 0 && isnan(bound[i]));
  }
  mercer_model_free(model);
}

static void means_of(const mercer_model* model, double* mean) {
  double z[NEW_ROWS * COLUMNS];
  const mercer_predictions out = {mean, NULL, NULL, NULL};
  mercer_predictor* predictor = NULL;
  fill_points(z, NEW_ROWS, 0.3);
  CHECK(mercer_predictor_new(model, NULL, &predictor) == MERCER_OK);
  CHECK(mercer_predict(predictor, z, NEW_ROWS, COLUMNS, NULL, NULL, &out) == MERCER_OK);
  mercer_predictor_free(predictor);
}

static void check_files(const mercer_model* model, const char* folder) {
  char path[4096];
  double before[NEW_ROWS], after[NEW_ROWS];
  mercer_model* loaded = NULL;
  snprintf(path, sizeof(path), "%s/c_test.mcr", folder);
  CHECK(mercer_save(model, path) == MERCER_OK);
  CHECK(mercer_load(path, &loaded) == MERCER_OK);
  means_of(model, before);
  means_of(loaded, after);
  CHECK(memcmp(before, after, sizeof(before)) == 0);
  mercer_model_free(loaded);

  FILE* file = fopen(path, "r+b");
  CHECK(file != NULL && fseek(file, -9, SEEK_END) == 0 && fputc('x', file) == 'x');
  if (file != NULL) fclose(file);
  REFUSED(mercer_load(path, &loaded), MERCER_MODEL_FILE, "damaged");
  CHECK(loaded == NULL);
  CHECK(remove(path) == 0);
  REFUSED(mercer_load(path, &loaded), MERCER_IO, "cannot read");
  CHECK(mercer_save(model, "/no/such/folder/m.mcr") == MERCER_IO);
}

/* What a model cannot say is NaN. */
static void check_without_variance(const mercer_model* model) {
  double z[NEW_ROWS * COLUMNS], mean[NEW_ROWS], sd[NEW_ROWS];
  const mercer_predictions out = {mean, sd, NULL, NULL};
  mercer_options* o = mercer_predict_options_new();
  mercer_predictor* predictor = NULL;
  fill_points(z, NEW_ROWS, 0.3);
  CHECK(mercer_options_set(o, "variance", "none") == MERCER_OK);
  CHECK(mercer_predictor_new(model, o, &predictor) == MERCER_OK);
  CHECK(mercer_predict(predictor, z, NEW_ROWS, COLUMNS, NULL, NULL, &out) == MERCER_OK);
  CHECK(isfinite(mean[0]) && isnan(sd[0]));
  REFUSED(mercer_predict_classes(predictor, z, NEW_ROWS, COLUMNS, NULL, NULL, sd),
          MERCER_INVALID_ARGUMENT, "numbers");
  REFUSED(mercer_predict(predictor, z, NEW_ROWS, COLUMNS + 1, NULL, NULL, &out),
          MERCER_INVALID_ARGUMENT, "columns");
  mercer_predictor_free(predictor);
  mercer_options_free(o);
}

static void check_classes(const double* x, const char* likelihood, size_t classes) {
  double y[ROWS], p[NEW_ROWS * 3];
  mercer_options* o = mercer_fit_options_new();
  mercer_model* model = NULL;
  mercer_predictor* predictor = NULL;
  for (int i = 0; i < ROWS; ++i)
    y[i] = 10 + floor((double)classes * x[i * COLUMNS]); /* by the first input: 10, 11, .. */
  CHECK(mercer_options_set(o, "likelihood", likelihood) == MERCER_OK);
  CHECK(mercer_options_set(o, "train", "none") == MERCER_OK);
  CHECK(mercer_fit(x, y, ROWS, COLUMNS, o, NULL, NULL, &model) == MERCER_OK);
  CHECK(mercer_model_classes(model) == classes);
  CHECK(mercer_model_class_value(model, 1) == 11);
  CHECK(isnan(mercer_model_class_value(model, classes)));
  CHECK(mercer_predictor_new(model, NULL, &predictor) == MERCER_OK);
  mercer_model_free(model); /* the predictor does not need it */
  /* At the first points of the data, where the class is known. */
  CHECK(mercer_predict_classes(predictor, x, NEW_ROWS, COLUMNS, NULL, NULL, p) == MERCER_OK);
  for (size_t i = 0; i < NEW_ROWS; ++i) {
    double sum = 0, largest = 0;
    size_t likely = 0;
    for (size_t c = 0; c < classes; ++c) {
      sum += p[i * classes + c];
      if (p[i * classes + c] > largest) {
        largest = p[i * classes + c];
        likely = c;
      }
    }
    CHECK(fabs(sum - 1) < 1e-12);
    CHECK(10 + (double)likely == y[i] || largest < 0.6); /* near an edge either is likely */
  }
  const mercer_predictions out = {p, NULL, NULL, NULL};
  REFUSED(mercer_predict(predictor, x, NEW_ROWS, COLUMNS, NULL, NULL, &out),
          MERCER_INVALID_ARGUMENT, "classes");
  mercer_predictor_free(predictor);
  mercer_options_free(o);
}

struct calls {
  int count, stop_at;
};

static int count_calls(const mercer_progress* progress, void* user) {
  struct calls* calls = user;
  CHECK(progress->stage != NULL && progress->detail != NULL && progress->fraction <= 1);
  return ++calls->count == calls->stop_at;
}

static int stop_always(const mercer_progress* progress, void* user) {
  (void)progress;
  (void)user;
  return 1;
}

static void check_observer(const double* x, const double* y) {
  struct calls all = {0, -1}, first = {0, 1};
  mercer_model* model = NULL;
  CHECK(mercer_fit(x, y, ROWS, COLUMNS, NULL, count_calls, &all, &model) == MERCER_OK);
  CHECK(all.count > 0);
  mercer_model_free(model);
  REFUSED(mercer_fit(x, y, ROWS, COLUMNS, NULL, count_calls, &first, &model), MERCER_CANCELLED, "");
  mercer_model_free(model);
  model = NULL;
  REFUSED(mercer_fit(x, y, ROWS, COLUMNS, NULL, stop_always, NULL, &model), MERCER_CANCELLED, "");
  CHECK(model == NULL);
}

static void check_options(void) {
  mercer_options* o = mercer_fit_options_new();
  CHECK(mercer_options_set(o, "lengthscale", "0.5,2") == MERCER_OK);
  CHECK(mercer_options_set(o, "memory", "500M") == MERCER_OK);
  CHECK(mercer_options_set(o, "merge", "false") == MERCER_OK);
  REFUSED(mercer_options_set(o, "lengthscales", "1"), MERCER_INVALID_ARGUMENT, "lengthscale,");
  REFUSED(mercer_options_set(o, "noise", "-1"), MERCER_INVALID_ARGUMENT, "`noise`");
  REFUSED(mercer_options_set(o, "noise", "low"), MERCER_INVALID_ARGUMENT, "not a number");
  REFUSED(mercer_options_set(o, "solver", "magic"), MERCER_INVALID_ARGUMENT, "cholesky");
  REFUSED(mercer_options_set(o, "merge", "perhaps"), MERCER_INVALID_ARGUMENT, "true");
  REFUSED(mercer_options_set(o, "seed", ""), MERCER_INVALID_ARGUMENT, "`seed`");
  REFUSED(mercer_options_set(o, NULL, "1"), MERCER_INVALID_ARGUMENT, "name");
  REFUSED(mercer_options_set(o, "noise", NULL), MERCER_INVALID_ARGUMENT, "value");
  REFUSED(mercer_options_set(NULL, "noise", "1"), MERCER_INVALID_ARGUMENT, "options");
  mercer_options_free(o);
  mercer_options_free(NULL);
}

static void check_refusals(const double* x, const double* y) {
  double bad[ROWS * COLUMNS];
  mercer_model* model = NULL;
  mercer_predictor* predictor = NULL;
  mercer_options* for_predict = mercer_predict_options_new();
  REFUSED(mercer_fit(NULL, y, ROWS, COLUMNS, NULL, NULL, NULL, &model), MERCER_INVALID_ARGUMENT,
          "x is NULL");
  REFUSED(mercer_fit(x, NULL, ROWS, COLUMNS, NULL, NULL, NULL, &model), MERCER_INVALID_ARGUMENT,
          "y is NULL");
  REFUSED(mercer_fit(x, y, 0, COLUMNS, NULL, NULL, NULL, &model), MERCER_INVALID_ARGUMENT, "rows");
  REFUSED(mercer_fit(x, y, ROWS, 0, NULL, NULL, NULL, &model), MERCER_INVALID_ARGUMENT, "columns");
  REFUSED(mercer_fit(x, y, SIZE_MAX / 2, COLUMNS, NULL, NULL, NULL, &model),
          MERCER_INVALID_ARGUMENT, "array");
  REFUSED(mercer_fit(x, y, ROWS, COLUMNS, NULL, NULL, NULL, NULL), MERCER_INVALID_ARGUMENT,
          "model");
  REFUSED(mercer_fit(x, y, ROWS, COLUMNS, for_predict, NULL, NULL, &model), MERCER_INVALID_ARGUMENT,
          "mercer_fit");
  memcpy(bad, x, sizeof(bad));
  bad[5] = NAN;
  REFUSED(mercer_fit(bad, y, ROWS, COLUMNS, NULL, NULL, NULL, &model), MERCER_DATA, "3");
  CHECK(model == NULL);
  REFUSED(mercer_predictor_new(NULL, NULL, &predictor), MERCER_INVALID_ARGUMENT, "model");
  REFUSED(mercer_predict(NULL, x, 1, COLUMNS, NULL, NULL, NULL), MERCER_INVALID_ARGUMENT,
          "predictor");
  REFUSED(mercer_predict_classes(NULL, x, 1, COLUMNS, NULL, NULL, bad), MERCER_INVALID_ARGUMENT,
          "predictor");
  REFUSED(mercer_save(NULL, "x"), MERCER_INVALID_ARGUMENT, "model");
  REFUSED(mercer_load(NULL, &model), MERCER_INVALID_ARGUMENT, "path");
  REFUSED(mercer_load("x", NULL), MERCER_INVALID_ARGUMENT, "model");
  REFUSED(mercer_set_threads(0), MERCER_INVALID_ARGUMENT, "at least 1");
  CHECK(mercer_model_columns(NULL) == 0 && mercer_model_classes(NULL) == 0);
  CHECK(mercer_model_record(NULL) == NULL && isnan(mercer_model_class_value(NULL, 0)));
  mercer_model_free(NULL);
  mercer_predictor_free(NULL);
  mercer_options_free(for_predict);
}

int main(int argc, char** argv) {
  double x[ROWS * COLUMNS], y[ROWS];
  const char* folder = argc > 1 ? argv[1] : ".";
  fill_points(x, ROWS, 0);
  for (int i = 0; i < ROWS; ++i) y[i] = truth(x + i * COLUMNS);

  CHECK(strlen(mercer_version()) >= 5);
  CHECK(strcmp(mercer_last_error(), "") == 0);
  CHECK(mercer_set_threads(2) == MERCER_OK && mercer_threads() == 2);
  mercer_model* model = check_numbers(x, y);
  if (model != NULL) {
    check_files(model, folder);
    check_without_variance(model);
    check_approximation(x, y, model);
  }
  mercer_model_free(model);
  check_classes(x, "bernoulli-logit", 2);
  check_classes(x, "softmax", 3);
  check_observer(x, y);
  check_options();
  check_refusals(x, y);
  printf("%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
