// The C interface: handles around the C++ one. Every call goes through `guarded`, which turns what
// is thrown into a status and a text, so that nothing is ever thrown into a caller's C.
#include "mercer/c/mercer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <new>
#include <string>
#include <variant>

#include "mercer/core/error.hpp"
#include "mercer/core/options_text.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/version.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/predictor.hpp"

using mercer::Index;
using mercer::Matrix;
using mercer::Vector;

struct mercer_options {
  std::variant<mercer::models::FitOptions, mercer::models::PredictOptions> values;
};
struct mercer_model {
  mercer::models::KernelMachine machine;
};
struct mercer_predictor {
  mercer::models::Predictor predictor;
};

namespace {

// Of fixed size: saying what went wrong must not need memory.
thread_local std::array<char, 2048> last_error{};

mercer_status failed(mercer_status status, const char* text) {
  std::snprintf(last_error.data(), last_error.size(), "%s", text);
  return status;
}

mercer_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const mercer::InvalidArgument& e) {
    return failed(MERCER_INVALID_ARGUMENT, e.what());
  } catch (const mercer::DataError& e) {
    return failed(MERCER_DATA, e.what());
  } catch (const mercer::DoesNotFit& e) {
    return failed(MERCER_MEMORY, e.what());
  } catch (const std::bad_alloc&) {
    return failed(MERCER_MEMORY, "the machine refused more memory; a smaller `memory` may help");
  } catch (const mercer::ToleranceNotReached& e) {
    return failed(MERCER_TOLERANCE, e.what());
  } catch (const mercer::NotPositiveDefinite& e) {
    return failed(MERCER_TOLERANCE, e.what());
  } catch (const mercer::ModelFileError& e) {
    return failed(MERCER_MODEL_FILE, e.what());
  } catch (const mercer::IoError& e) {
    return failed(MERCER_IO, e.what());
  } catch (const mercer::Interrupted& e) {
    return failed(MERCER_CANCELLED, e.what());
  } catch (const std::exception& e) {
    return failed(MERCER_INTERNAL, e.what());
  } catch (...) {
    return failed(MERCER_INTERNAL, "an exception of unknown type");
  }
}

template <class Body>
mercer_status guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    return status_of_exception();
  }
}

void require(bool given, const char* what) {
  if (!given) throw mercer::InvalidArgument(fmt::format("{} is NULL", what));
}

/// Row-major numbers as a matrix; refuses what no memory can hold before it is read.
Matrix matrix(const double* x, std::size_t rows, std::size_t columns) {
  if (rows == 0 || columns == 0)
    throw mercer::InvalidArgument(
        fmt::format("x has {} rows and {} columns, but needs one of each", rows, columns));
  require(x != nullptr, "x");
  constexpr auto most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(double);
  if (rows > most / columns)
    throw mercer::InvalidArgument(
        fmt::format("x has {} rows of {} numbers: more than an array can "
                    "have",
                    rows, columns));
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(x, static_cast<Index>(rows), static_cast<Index>(columns));
}

/// New inputs of a model. A wrong number of columns is refused before any of them is read: the
/// caller's array has another size.
Matrix new_inputs(const mercer::models::KernelMachine& machine, const double* x, std::size_t rows,
                  std::size_t columns) {
  if (columns != static_cast<std::size_t>(machine.x.cols()))
    throw mercer::InvalidArgument(fmt::format("x has {} columns, but this model was fitted to {}",
                                              columns, machine.x.cols()));
  return matrix(x, rows, columns);
}

mercer::ProgressCallback callback(mercer_observer observer, void* user) {
  if (observer == nullptr) return {};
  return [observer, user](const mercer::Progress& progress) {
    const mercer_progress told{progress.stage.c_str(), progress.fraction, progress.detail.c_str()};
    return observer(&told, user) == 0 ? mercer::Action::proceed : mercer::Action::stop;
  };
}

template <class Options>
Options options_or_default(const mercer_options* given, const char* call) {
  if (given == nullptr) return {};
  if (const auto* values = std::get_if<Options>(&given->values)) return *values;
  throw mercer::InvalidArgument(fmt::format("these options are not those of {}", call));
}

template <class Options>
mercer_options* new_options() noexcept {
  try {
    return new mercer_options{Options{}};
  } catch (...) {
    status_of_exception();
    return nullptr;
  }
}

template <class Options>
void set(Options& options, const std::string& name, const std::string& value) {
  auto changed = options;
  if (!mercer::set_option(changed, name, value))
    throw mercer::InvalidArgument(fmt::format("there is no option `{}` here; there are: {}", name,
                                              fmt::join(mercer::option_names(options), ", ")));
  options = std::move(changed);
}

mercer::models::FitResult fit(const double* x, const double* y, std::size_t rows,
                              std::size_t columns, mercer::models::FitOptions options,
                              const mercer::ProgressCallback& progress) {
  Matrix inputs = matrix(x, rows, columns);
  require(y != nullptr, "y");
  Vector target = Eigen::Map<const Vector>(y, static_cast<Index>(rows));
  const auto data =
      mercer::data::make_dataset(std::move(inputs), std::move(target), {}, options.standardize);
  if (mercer::likelihoods::make(options.likelihood)->is_binary())
    options.classes = mercer::models::find_classes(data);
  return mercer::models::fit(data, options, progress);
}

/// A vector into an array that may not be asked for; what the model cannot say is NaN.
void fill(double* out, std::size_t rows, const Vector& values) {
  if (out == nullptr) return;
  if (values.size() == static_cast<Index>(rows))
    std::copy(values.begin(), values.end(), out);
  else
    std::fill_n(out, rows, std::numeric_limits<double>::quiet_NaN());
}

Vector first_column(const Matrix& values) {
  return values.cols() > 0 ? Vector(values.col(0)) : Vector();
}

}  // namespace

const char* mercer_version(void) { return mercer::version(); }

const char* mercer_last_error(void) { return last_error.data(); }

mercer_status mercer_set_threads(int count) {
  return guarded([&] {
    mercer::set_num_threads(count);
    return MERCER_OK;
  });
}

int mercer_threads(void) { return mercer::num_threads(); }

mercer_options* mercer_fit_options_new(void) { return new_options<mercer::models::FitOptions>(); }

mercer_options* mercer_predict_options_new(void) {
  return new_options<mercer::models::PredictOptions>();
}

mercer_status mercer_options_set(mercer_options* options, const char* name, const char* value) {
  return guarded([&] {
    require(options != nullptr, "options");
    require(name != nullptr, "name");
    require(value != nullptr, "value");
    std::visit([&](auto& values) { set(values, name, value); }, options->values);
    return MERCER_OK;
  });
}

void mercer_options_free(mercer_options* options) { delete options; }

mercer_status mercer_fit(const double* x, const double* y, size_t rows, size_t columns,
                         const mercer_options* options, mercer_observer observer, void* user,
                         mercer_model** model) {
  return guarded([&] {
    require(model != nullptr, "model");
    *model = nullptr;
    auto result = fit(x, y, rows, columns,
                      options_or_default<mercer::models::FitOptions>(options, "mercer_fit"),
                      callback(observer, user));
    *model = new mercer_model{std::move(result.model)};
    if (result.interrupted()) return failed(MERCER_CANCELLED, "learning was told to stop");
    if (result.solve.stop == mercer::StopReason::converged) return MERCER_OK;
    return failed(MERCER_TOLERANCE,
                  fmt::format("the solve stopped before its tolerance: {}; {}",
                              mercer::to_string(result.solve.stop),
                              result.plan.system.direct()
                                  ? "a factorisation reaches no more in double precision: raise "
                                    "`noise` or `tolerance`, or take a rougher `kernel`"
                                  : "raise `max_iterations` or `tolerance`, or take another "
                                    "`preconditioner`")
                      .c_str());
  });
}

mercer_status mercer_save(const mercer_model* model, const char* path) {
  return guarded([&] {
    require(model != nullptr, "model");
    require(path != nullptr, "path");
    model->machine.save(path);
    return MERCER_OK;
  });
}

mercer_status mercer_load(const char* path, mercer_model** model) {
  return guarded([&] {
    require(model != nullptr, "model");
    *model = nullptr;
    require(path != nullptr, "path");
    *model = new mercer_model{mercer::models::KernelMachine::load(path)};
    return MERCER_OK;
  });
}

void mercer_model_free(mercer_model* model) { delete model; }

size_t mercer_model_columns(const mercer_model* model) {
  return model == nullptr ? 0 : static_cast<std::size_t>(model->machine.x.cols());
}

size_t mercer_model_classes(const mercer_model* model) {
  return model == nullptr ? 0 : static_cast<std::size_t>(model->machine.classes.count());
}

double mercer_model_class_value(const mercer_model* model, size_t index) {
  if (index >= mercer_model_classes(model)) return std::numeric_limits<double>::quiet_NaN();
  return model->machine.classes.values(static_cast<Index>(index));
}

const char* mercer_model_record(const mercer_model* model) {
  return model == nullptr ? nullptr : model->machine.record.c_str();
}

mercer_status mercer_predictor_new(const mercer_model* model, const mercer_options* options,
                                   mercer_predictor** predictor) {
  return guarded([&] {
    require(predictor != nullptr, "predictor");
    *predictor = nullptr;
    require(model != nullptr, "model");
    auto values =
        options_or_default<mercer::models::PredictOptions>(options, "mercer_predictor_new");
    if (!values.quantiles.empty())
      throw mercer::InvalidArgument("there is no array for `quantiles`; leave it out");
    *predictor = new mercer_predictor{mercer::models::Predictor(model->machine, std::move(values))};
    return MERCER_OK;
  });
}

void mercer_predictor_free(mercer_predictor* predictor) { delete predictor; }

mercer_status mercer_predict(const mercer_predictor* predictor, const double* x, size_t rows,
                             size_t columns, mercer_observer observer, void* user,
                             const mercer_predictions* out) {
  return guarded([&] {
    require(predictor != nullptr, "predictor");
    require(out != nullptr, "out");
    const auto& machine = predictor->predictor.model();
    if (machine.classifies())
      throw mercer::InvalidArgument("this model predicts classes: call mercer_predict_classes");
    const auto found = predictor->predictor.predict(new_inputs(machine, x, rows, columns),
                                                    callback(observer, user));
    fill(out->mean, rows, found.mean);
    const bool gaussian = machine.problem.gaussian();
    fill(out->sd_latent, rows, gaussian ? found.noise_free_sd : first_column(found.latent_sd));
    fill(out->sd_obs, rows, found.sd_obs);
    fill(out->error_bound, rows,
         !machine.certificate.rigorous ? Vector()
         : gaussian                    ? found.mean_error_bound
                                       : first_column(found.error_bound));
    return MERCER_OK;
  });
}

mercer_status mercer_predict_classes(const mercer_predictor* predictor, const double* x,
                                     size_t rows, size_t columns, mercer_observer observer,
                                     void* user, double* probabilities) {
  return guarded([&] {
    require(predictor != nullptr, "predictor");
    require(probabilities != nullptr, "probabilities");
    const auto& machine = predictor->predictor.model();
    if (!machine.classifies())
      throw mercer::InvalidArgument("this model predicts numbers: call mercer_predict");
    const auto found = predictor->predictor.predict(new_inputs(machine, x, rows, columns),
                                                    callback(observer, user));
    for (Index i = 0; i < found.rows(); ++i)
      for (Index c = 0; c < found.probabilities.cols(); ++c)
        *probabilities++ = found.probabilities(i, c);
    return MERCER_OK;
  });
}
