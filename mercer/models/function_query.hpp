// The queries of a model. FunctionQuery: mean, variance and draws of one latent function anywhere,
// on the scale of the model: all that depends on a solve with H = K + D. Built once, asked block by
// block. Functions that the likelihood couples are inference::CoupledQuery.
//   Cost: of an exact variance one solve with H a row; see docs/methods/variances.md for the
//   others.
#pragma once

#include <memory>
#include <optional>

#include "mercer/approximations/local_variance.hpp"
#include "mercer/inference/certificate.hpp"
#include "mercer/inference/pathwise.hpp"
#include "mercer/inference/query.hpp"
#include "mercer/inference/system.hpp"
#include "mercer/models/names.hpp"
#include "mercer/models/predictor.hpp"

namespace mercer::models {

using inference::Moments;
using inference::QueryBlock;

/// One latent function: its moments have one column.
class FunctionQuery {
 public:
  /// `model` must outlive this. Throws DoesNotFit, InvalidArgument when the kernel has no draws.
  FunctionQuery(const KernelMachine& model, Index function, const PredictOptions& options);

  const Plan& plan() const { return plan_; }
  bool with_variance() const { return plan_.variance != "none"; }
  bool approximate() const { return with_variance() && plan_.variance != "exact"; }
  /// Rows that are worked off together.
  Index block_rows() const;
  /// Throws Interrupted when the observer stops, ToleranceNotReached.
  Moments moments(const QueryBlock& block, const Observer& observer);
  /// Variances by solves, as exact as measuring the error of `sd` needs.
  inference::CheckedVariances check_variances(const QueryBlock& block, ConstVectorView sd,
                                              const Observer& observer);

 private:
  // k*'H^-1 k* and how far it may be from the exact value: `truncated` below it by leaving the
  // solve early, `rounded` to either side.
  struct Explained {
    Vector value, truncated, rounded;
  };
  Moments exact_variances(const QueryBlock& block, const Observer& observer) const;
  inference::SystemChoice loose_choice(inference::SystemChoice planned) const;
  Explained explained_directly(ConstMatrixView cross, ConstVectorView prior) const;
  void refine(ConstMatrixView cross, ConstVectorView prior, Index first, Index rows,
              Explained& out) const;
  Explained explained_by_solves(ConstMatrixView cross, ConstVectorView prior, std::int64_t& matvecs,
                                const Observer& observer) const;
  // From u, close to H^-1 cross, and its residual r.
  Explained second_order(ConstMatrixView cross, ConstVectorView prior, ConstMatrixView u,
                         ConstMatrixView r) const;
  // The part of a variance that comes from estimating the trend.
  Vector trend_variance(const QueryBlock& block) const;
  // Of solves whose answers are wanted.
  double tolerance_for(ConstMatrixView b) const;
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

/// Latent functions that are independent given the data, one FunctionQuery each.
class IndependentQuery final : public inference::Query {
 public:
  /// `model` must outlive this.
  IndependentQuery(const KernelMachine& model, const PredictOptions& options);
  Moments moments(const QueryBlock& block, const inference::QueryProgress& progress) override;
  inference::CheckedVariances check_variances(const QueryBlock& block, ConstMatrixView sd,
                                              const inference::QueryProgress& progress) override;
  /// The plan of the first function.
  const Plan& plan() const { return plan_; }

 private:
  FunctionQuery& function(Index c);

  const KernelMachine& model_;
  PredictOptions options_;
  Plan plan_;
  bool keeps_all_ = true;  // false: there is memory for the system of one function at a time
  std::vector<std::unique_ptr<FunctionQuery>> functions_;
};

/// The query of a model and what was planned for it.
struct PlannedQuery {
  std::unique_ptr<inference::Query> query;
  Plan plan;
};
/// `model` must outlive it.
PlannedQuery make_query(const KernelMachine& model, const PredictOptions& options);

}  // namespace mercer::models
