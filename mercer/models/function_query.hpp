// Mean, variance and draws of one latent function anywhere, on the scale of the model: all that
// depends on a solve with H = K + D. Built once, asked block by block.
//   Cost: of an exact variance one solve with H a row; see docs/methods/variances.md for the
//   others.
#pragma once

#include <memory>
#include <optional>

#include "mercer/approximations/local_variance.hpp"
#include "mercer/inference/certificate.hpp"
#include "mercer/inference/pathwise.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/models/names.hpp"
#include "mercer/models/predictor.hpp"

namespace mercer::models {

/// A block of rows on the model's scale.
struct QueryBlock {
  Matrix x, basis;
  Vector prior;  // k**
};

/// Of one latent function at the rows of a block.
struct Moments {
  Vector mean, error_bound;
  Vector variance;    // empty when there is none
  Matrix deviations;  // the draws asked for, less the mean
  double sd_error_bound = 0;
  Index clamped = 0;
  std::int64_t matvecs = 0;
};

class FunctionQuery {
 public:
  /// `model` must outlive this. Throws DoesNotFit, InvalidArgument when the kernel has no draws.
  FunctionQuery(const KernelMachine& model, Index function, const PredictOptions& options);

  const Plan& plan() const { return plan_; }
  bool with_variance() const { return plan_.variance != "none"; }
  bool approximate() const { return with_variance() && plan_.variance != "exact"; }
  /// Rows that are worked off together.
  Index block_rows() const;
  /// Rows of raw inputs; `first` is the number of the first one, for errors.
  QueryBlock block(ConstMatrixView inputs, Index first) const;
  /// Throws Interrupted when the observer stops, ToleranceNotReached.
  Moments moments(const QueryBlock& block, Index first, const Observer& observer);
  /// Variances by one solve a row, whatever the method of the others is.
  Moments exact_variances(const QueryBlock& block, const Observer& observer) const;

 private:
  // k*'H^-1 k* and how far it may be from the exact value: `truncated` below it by leaving the
  // solve early, `rounded` to either side.
  struct Explained {
    Vector value, truncated, rounded;
  };
  Explained explained_directly(ConstMatrixView cross, ConstVectorView prior) const;
  Explained explained_by_solves(ConstMatrixView cross, ConstVectorView prior, std::int64_t& matvecs,
                                const Observer& observer) const;
  // The part of a variance that comes from estimating the trend.
  Vector trend_variance(const QueryBlock& block) const;
  // u = H^-1 b so well that |r|^2/s2 is below a thousandth of the noise; throws when that is not
  // reached. Returns r = b - H u.
  Matrix solve(ConstMatrixView b, MatrixView u, std::int64_t& matvecs,
               const Observer& observer) const;
  void approximate_variances(const QueryBlock& block, ConstMatrixView deviations,
                             Moments& out) const;
  // The draws, made when they are first needed.
  const inference::PathwiseDraws& make_draws(std::int64_t& matvecs, const Observer& observer);

  const KernelMachine& model_;
  const LatentFunction& function_;
  Index number_;
  PredictOptions options_;
  linalg::Diagonal noise_;
  inference::ErrorBound bound_;
  inference::VarianceRounding rounding_;
  Plan plan_;
  std::optional<inference::RegularizedSystem> system_;
  std::optional<approximations::LocalVariance> local_;
  std::optional<inference::PathwiseDraws> draws_;
};

/// Kernels that grow with the inputs (linear, poly) overflow far enough out: throws
/// PredictionOverflow for the first such row.
void check_range(const char* what, ConstMatrixView values, Index first);

}  // namespace mercer::models
