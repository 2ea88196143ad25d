// A fitted model, whatever its likelihood: a prior (kernel and mean), a likelihood, the training
// points, and what is known of the latent functions after the data. This is what a model file
// holds, and all that predictions need.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mercer/data/scaling.hpp"
#include "mercer/data/schema.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/linalg/diagonal.hpp"
#include "mercer/models/classes.hpp"
#include "mercer/models/names.hpp"

namespace mercer::data {
struct ArrayFile;  // array_file.hpp
}

MERCER_API_BEGIN
namespace mercer::models {

/// How far an approximation is from the exact posterior at the same hyperparameters, measured at
/// random training rows. In units of the (learned) target; `kl` in nats.
struct ApproximationCheck {
  Index rows = 0;                     // 0: not measured
  double mean_rms = 0, mean_max = 0;  // of the latent mean
  double sd_rms = 0, sd_max = 0;      // of the latent standard deviation
  /// Mean over the rows of KL(exact || approximate): of the distributions of y with Gaussian noise,
  /// of f with another likelihood.
  double kl = 0;
};

/// One more draw of the hyperparameters, and what is known of the latent functions there.
struct PosteriorDraw {
  inference::Problem problem;
  std::vector<inference::LatentFunction> functions;
  inference::Certificate certificate;
};

struct KernelMachine {
  data::Schema schema;
  data::Scaling scaling;  // of the target only when the likelihood allows it
  Classes classes;        // empty: the target is a number
  inference::Problem problem{kernels::Kernel::parse("constant", 1), 1.0};  // on scaled data
  Matrix x;                                          // scaled inputs, N x d, after merging
  std::vector<inference::LatentFunction> functions;  // one, or one per class if more than two
  inference::Certificate certificate;
  MethodOptions method;  // as given: predict uses it for its own plan
  /// How it came about, as a JSON object: options, training, likelihood, data hash.
  std::string record = "{}";
  bool mean_only = false;  // kernel ridge or kernel logistic regression: no uncertainty of f
  /// An approximation: what predictions are made from; null: the exact posterior, or Laplace's.
  /// `x` then holds what it keeps of the inputs: the training rows where it needs them, else its
  /// base points; and `functions` has coefficients of the mean but no noise.
  std::shared_ptr<const inference::SparsePosterior> sparse = {};
  Index sparse_rows = 0;  // rows that an approximation was learned from, after merging
  ApproximationCheck check = {};
  /// Draws from the posterior of the hyperparameters besides the first, which is `problem`,
  /// `functions` and `certificate`: predictions mix over all of them. Empty: there is one.
  std::vector<PosteriorDraw> draws = {};

  bool classifies() const { return classes.count() > 0; }
  /// True: the likelihood couples the latent functions (softmax), so that they are not independent.
  bool coupled() const { return problem.likelihood->coupled() != nullptr; }
  Index num_functions() const { return static_cast<Index>(functions.size()); }
  const inference::LatentFunction& function(Index c = 0) const {
    return functions[static_cast<std::size_t>(c)];
  }
  /// D of H = K + D of a latent function: the noise, or W^-1 with W raised to what still counts.
  /// Coupled functions have no D.
  linalg::Diagonal noise(Index c = 0) const;
  Index num_draws() const { return 1 + static_cast<Index>(draws.size()); }
  /// The model of one draw, with a seed of its own for joint samples of f.
  KernelMachine draw(Index i) const;
  /// What holds for the mean over all draws: that of the first with the largest bound, estimate and
  /// residuals of any.
  inference::Certificate certificate_of_all() const;
  /// Rows that it was learned from, after merging.
  Index num_rows() const { return sparse ? sparse_rows : x.rows(); }
  /// "krr", "klr", "gp", or the name of the approximation.
  std::string method_name() const;

  void save(const std::string& path) const;
  /// Reads every format version there has been. Throws IoError when it cannot be opened,
  /// ModelFileError when it cannot be trusted.
  static KernelMachine load(const std::string& path);
  /// From a container already read; `name` is for messages.
  static KernelMachine from_file(data::ArrayFile file, const std::string& name);
};

}  // namespace mercer::models
MERCER_API_END
