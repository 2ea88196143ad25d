/* mercer for programs in C, and for languages that call C: fit from arrays, predict, save, load.
 *
 *   mercer_model* model = NULL;
 *   if (mercer_fit(x, y, rows, columns, NULL, NULL, NULL, &model) != MERCER_OK)
 *     fprintf(stderr, "%s\n", mercer_last_error());
 *
 * No function throws, aborts or prints. Arrays belong to the caller and are row-major: the inputs
 * of row i begin at x + i * columns. Handles (model, predictor, options) belong to the caller, who
 * frees them; freeing NULL does nothing. Threads may share a model or a predictor, which no call
 * changes. Each function that can fail returns a status, and mercer_last_error says in words what
 * happened. docs/embedding.md has examples. */
#ifndef MERCER_C_MERCER_H
#define MERCER_C_MERCER_H

#include <stddef.h>

#if defined(__GNUC__)
#define MERCER_C_API __attribute__((visibility("default")))
#else
#define MERCER_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are the exit codes of the program mercer, but for MERCER_IO. */
typedef enum mercer_status {
  MERCER_OK = 0,
  MERCER_INTERNAL = 1,         /* a fault of mercer */
  MERCER_INVALID_ARGUMENT = 2, /* an argument or an option that cannot be */
  MERCER_DATA = 3,             /* x or y cannot be used: the text names row and column */
  MERCER_MEMORY = 4,           /* does not fit into the memory */
  MERCER_TOLERANCE = 5,        /* a solve missed its tolerance */
  MERCER_MODEL_FILE = 6,       /* a model file that is damaged, or of a newer mercer */
  MERCER_IO = 7,               /* a file that cannot be read or written */
  MERCER_CANCELLED = 130       /* the observer said stop */
} mercer_status;

typedef struct mercer_options mercer_options;
typedef struct mercer_model mercer_model;
typedef struct mercer_predictor mercer_predictor;

/* "0.1.0" */
MERCER_C_API const char* mercer_version(void);

/* What went wrong in the last call of this thread that did not return MERCER_OK; "" before the
 * first. Valid until the next call of this thread. Options are named in backquotes: `noise`. */
MERCER_C_API const char* mercer_last_error(void);

/* Threads that mercer computes on, for the whole process: all cores unless set. Results have the
 * same bits with any number. Not while another thread is inside a call. */
MERCER_C_API mercer_status mercer_set_threads(int count);
MERCER_C_API int mercer_threads(void);

/* Options by name, with the values and defaults of docs/options.md: ("kernel", "matern32"),
 * ("lengthscale", "0.5,2"), ("memory", "8G"), ("merge", "false"). Of fit also `likelihood`: the
 * target is a number with "gaussian" (the default), "poisson" and the like, and a class with
 * "bernoulli-logit" and "softmax". NULL when there is no memory for them. */
MERCER_C_API mercer_options* mercer_fit_options_new(void);
MERCER_C_API mercer_options* mercer_predict_options_new(void);
/* MERCER_INVALID_ARGUMENT, and no change, when there is no such option or it cannot have the value.
 */
MERCER_C_API mercer_status mercer_options_set(mercer_options* options, const char* name,
                                              const char* value);
MERCER_C_API void mercer_options_free(mercer_options* options);

/* How far a call is. */
typedef struct mercer_progress {
  const char* stage;  /* "learn", "solve", ... */
  double fraction;    /* 0 .. 1, negative when it is not known */
  const char* detail; /* may be empty */
} mercer_progress;

/* Called now and then from the thread that called mercer; anything but 0 ends the call. `user` is
 * the pointer that came with the observer. */
typedef int (*mercer_observer)(const mercer_progress* progress, void* user);

/* Learns from `rows` rows of `columns` inputs and their targets y. `options` may be NULL (all
 * defaults), `observer` too. On MERCER_OK *model is the certified model, otherwise NULL, with two
 * exceptions: on MERCER_TOLERANCE it may be a model whose solve stopped early (its error bound says
 * how far it is off), and on MERCER_CANCELLED the model of what had been learned until then,
 * where the observer ended the learning once and then let the solve go on. An observer that keeps
 * saying stop gets NULL. */
MERCER_C_API mercer_status mercer_fit(const double* x, const double* y, size_t rows, size_t columns,
                                      const mercer_options* options, mercer_observer observer,
                                      void* user, mercer_model** model);

/* Model files are those of the program mercer. */
MERCER_C_API mercer_status mercer_save(const mercer_model* model, const char* path);
MERCER_C_API mercer_status mercer_load(const char* path, mercer_model** model);
MERCER_C_API void mercer_model_free(mercer_model* model);

/* Inputs that a row has; 0 when model is NULL. */
MERCER_C_API size_t mercer_model_columns(const mercer_model* model);
/* Classes of the target; 0 when it is a number. */
MERCER_C_API size_t mercer_model_classes(const mercer_model* model);
/* The value of y that stands for a class, ascending with `index`; NaN when there is no such class.
 */
MERCER_C_API double mercer_model_class_value(const mercer_model* model, size_t index);
/* How the model came about, as a JSON object: options, learning, evidence. NULL when model is. */
MERCER_C_API const char* mercer_model_record(const mercer_model* model);

/* What predictions need, built once. `options` may be NULL; the model may be freed afterwards. */
MERCER_C_API mercer_status mercer_predictor_new(const mercer_model* model,
                                                const mercer_options* options,
                                                mercer_predictor** predictor);
MERCER_C_API void mercer_predictor_free(mercer_predictor* predictor);

/* Arrays of `rows` numbers to be filled; those that are NULL are not asked for. */
typedef struct mercer_predictions {
  double* mean;        /* of the target */
  double* sd_latent;   /* of the function; of exp(f) where the logarithm was learned */
  double* sd_obs;      /* of an observation: the function and its noise */
  double* error_bound; /* |mean - exact mean| is at most this; not Gaussian: of the latent mean */
} mercer_predictions;

/* Predicts numbers. NaN stands for what the model cannot say: standard deviations with the option
 * `variance` = "none", error bounds where there is no rigorous one. On failure the arrays are left
 * as they were. */
MERCER_C_API mercer_status mercer_predict(const mercer_predictor* predictor, const double* x,
                                          size_t rows, size_t columns, mercer_observer observer,
                                          void* user, const mercer_predictions* out);

/* Predicts classes: probabilities of all classes of row i from probabilities + i * classes on. */
MERCER_C_API mercer_status mercer_predict_classes(const mercer_predictor* predictor,
                                                  const double* x, size_t rows, size_t columns,
                                                  mercer_observer observer, void* user,
                                                  double* probabilities);

#ifdef __cplusplus
}
#endif

#endif
