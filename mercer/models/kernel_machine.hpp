// A fitted model, whatever its likelihood: a prior (kernel and mean), a likelihood, the training
// points, and what is known of the latent functions after the data. This is what a model file
// holds, and all that predictions need.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mercer/data/scaling.hpp"
#include "mercer/data/schema.hpp"
#include "mercer/inference/exact_evidence.hpp"
#include "mercer/linalg/diagonal.hpp"
#include "mercer/models/array_file.hpp"
#include "mercer/models/classes.hpp"
#include "mercer/models/options.hpp"

namespace mercer::models {

/// How far predictions are from the exact ones. For every x*
///   |mean(x*) - exact mean(x*)| <= sqrt(k**) residual + trend and rounding terms.
///   Gaussian noise:  residual = |D^-1/2 r|, r = y - A beta - H w; |r|/sqrt(s2) when the noise
///                    variances D are equal.
///   Laplace:         residual = sqrt(r'K r), r = grad log p - w, against the exact mode; a bound
///                    when the likelihood is log-concave and the mean zero. Functions that the
///                    likelihood couples all have the residual of their sum of r'K r.
struct Certificate {
  Vector residual = Vector::Zero(1);  // of every latent function; true, double precision
  double mean_error_bound = 0;        // the bound at its largest over the training points; target
                                      // units where f is a number like y
  // False: the likelihood is not log-concave, or Laplace's approximation has a mean.
  bool rigorous = true;
  double relative_residual = 0;  // Gaussian noise only: |r| / |y|
  double residual_norm = 0;      // Gaussian noise only: |r|, standardised units
  double trend_defect = 0;       // |M^-1/2 A'w|, M = A'H^-1 A: how far beta is from optimal
  double trend_residual = 0;  // at least |H^-1/2 R M^-1/2|, R = A - H B, B the solves of the trend
};

/// One latent function after the data. Its mean at x* is a*'beta + k*'w + offset, and its variance
/// the one that observations with the noise D leave, H = K + D.
struct LatentFunction {
  inference::Weights weights;
  linalg::Diagonal noise;  // Gaussian: D, jitter included
  /// Laplace: W at the mode, N; may be zero. Coupled functions: the weights w of their W (softmax:
  /// p, times the weight of the row). Empty with Gaussian noise.
  Vector curvature;
  double offset = 0;
};

struct KernelMachine {
  data::Schema schema;
  data::Scaling scaling;  // of the target only when the likelihood allows it
  Classes classes;        // empty: the target is a number
  inference::Problem problem{kernels::Kernel::parse("constant", 1), 1.0};  // on scaled data
  Matrix x;                               // scaled inputs, N x d, after merging
  std::vector<LatentFunction> functions;  // one; of more than two classes one a class
  Certificate certificate;
  MethodOptions method;    // as given: predict uses it for its own plan
  nlohmann::json record;   // how it came about: options, training, likelihood, data hash
  bool mean_only = false;  // kernel ridge or kernel logistic regression: no uncertainty of f

  bool classifies() const { return classes.count() > 0; }
  /// True: the likelihood couples the latent functions (softmax), so that they are not independent.
  bool coupled() const { return problem.likelihood->coupled() != nullptr; }
  Index num_functions() const { return static_cast<Index>(functions.size()); }
  const LatentFunction& function(Index c = 0) const {
    return functions[static_cast<std::size_t>(c)];
  }
  /// D of H = K + D of a latent function: the noise, or W^-1 with W raised to what still counts.
  /// Coupled functions have no D.
  linalg::Diagonal noise(Index c = 0) const;
  /// "krr", "klr" or "gp".
  std::string method_name() const;

  void save(const std::string& path) const;
  /// Reads every format version there has been. Throws IoError when it cannot be opened,
  /// ModelFileError when it cannot be trusted.
  static KernelMachine load(const std::string& path);
  /// From a container already read; `name` is for messages.
  static KernelMachine from_file(ArrayFile file, const std::string& name);
};

}  // namespace mercer::models
