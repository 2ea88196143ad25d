// A model in words: shared by fit, info, predict and demo.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_code.hpp"
#include "mercer/core/error.hpp"
#include "mercer/inference/choice.hpp"
#include "mercer/models/hyperparameters.hpp"
#include "mercer/models/kernel_machine.hpp"

namespace mercer::cli {

/// Of any format version. A file that cannot be opened is exit code 6 like one that cannot be read.
models::KernelMachine load_model(const std::string& path);

/// "Gaussian process, kernel rbf, mean zero", "kernel logistic regression, kernel rbf, ...".
std::string model_text(const models::KernelMachine& model);
/// "gaussian", "bernoulli-logit, 2 classes: 0, 1", "poisson".
std::string likelihood_text(const models::KernelMachine& model);
/// Signal, noise and lengthscales in the units of the data, with the names of the inputs.
std::string hyperparameters_text(const inference::Problem& problem, const data::Scaling& scaling,
                                 const data::Schema& schema);
/// A sentence when inputs share a lengthscale that is not one number in their units; else nothing.
std::string unequal_scales(const inference::Problem& problem, const data::Scaling& scaling,
                           const data::Schema& schema);
/// Names of the inputs that a linear trend does without, because others say the same.
std::vector<std::string> trend_left_out(const models::KernelMachine& model);
/// Why such a model has no bound of its latent mean.
std::string no_bound_reason(const models::KernelMachine& model);
/// What a factorisation added to the noise, and that the certificate counts it.
std::string jitter_text(double jitter);
/// Why the error bound is above the accuracy that was asked for.
std::string accuracy_missed_text(const std::string& why);
std::string certificate_text(const models::KernelMachine& model);
/// What helps a solve of this kind that ended so before its tolerance; a factorisation has no
/// iterations. Begins a sentence that goes on with "or".
std::string solve_advice(const inference::SystemChoice& system, bool gaussian, StopReason stop);

/// Runs `body`; what mends a factorisation that fails in it is said for likelihoods without
/// --noise. `a_fit_with`: where the verb takes the values of a model, which only a fit can change.
template <class Body>
auto explain_factorisations(bool gaussian, Body&& body, const char* a_fit_with = "") {
  try {
    return body();
  } catch (const NotPositiveDefinite& error) {
    if (gaussian) throw;
    throw Failure(exit_tolerance,
                  std::string(error.what()) +
                      " (the latent function varies too much for double precision: " + a_fit_with +
                      "a smaller --signal-variance, a shorter --lengthscale or a rougher --kernel "
                      "mend that)");
  }
}

}  // namespace mercer::cli
