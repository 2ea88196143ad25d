// Robust Bayesian committee machine: each block of rows predicts f at a point by itself, and the
// predictions are combined there, each counting by how much it knows. With prior variance k, and
// mean_i and var_i of block i,
//     beta_i    = 1/2 (log k - log var_i),
//     1/var     = sum_i beta_i / var_i + (1 - sum_i beta_i) / k,
//     mean      = var sum_i beta_i mean_i / var_i.
//   Source: Deisenroth & Ng (2015).
//   Cost:   learning N B^2; predictions N B^2/3 for a few thousand of them together, and N B each.
//   The mean a'beta is that of the blocks' evidence (block_evidence.hpp). There is no joint belief
//   of several points. With one block beta_1 is not 1, and it is not exact: the price of its
//   caution. When not: blocks that are smaller than the lengthscale: none of them knows enough.
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/block_evidence.hpp"
#include "mercer/inference/sparse/queries.hpp"
#include "mercer/inference/sparse/reduced.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

/// Sums over the blocks at the rows that are asked for.
struct RobustSums {
  Vector precision, mean, share;  // sums of beta_i/var_i, beta_i mean_i/var_i, beta_i
  Matrix trend;                   // sum of beta_i/var_i (A_i'H_i^-1 k_i*), M x q
};

class RbcmQuery final : public SparseQuery {
 public:
  RbcmQuery(const Problem& problem, const SparsePosterior& posterior,
            const SparseQueryOptions& options)
      : problem_(problem), posterior_(posterior), options_(options) {}

  Moments moments(const QueryBlock& block, const QueryProgress& progress) override {
    const Index rows = block.x.rows();
    auto out = empty_moments(rows, 1, options_.variance);
    for_slices(rows, [&](Index first, Index n) {
      predict(block.rows(first, n), first, out);
      if (progress &&
          progress(static_cast<double>(first + n) / static_cast<double>(rows)) == Action::stop)
        throw Interrupted("interrupted while predicting");
    });
    raise_variances(block, out);
    return out;
  }

 private:
  void add_block(Index number, const QueryBlock& rows, RobustSums& sums) const;
  void predict(const QueryBlock& rows, Index first, Moments& out) const;

  const Problem& problem_;
  const SparsePosterior& posterior_;
  SparseQueryOptions options_;
};

void RbcmQuery::add_block(Index number, const QueryBlock& rows, RobustSums& sums) const {
  const auto s = stored_block(problem_, posterior_, number);
  const Index n = s.x.rows(), m = rows.x.rows(), q = rows.basis.cols();
  Matrix known(n, 1 + q);
  known.col(0) = s.y;
  known.rightCols(q) = s.basis;
  Matrix h(n, n);
  operators::lower_matrix(problem_.kernel, s.x, h);
  h.diagonal() += s.noise;
  const linalg::Cholesky factor(std::move(h));
  Matrix cross(n, m);
  operators::cross_matrix(problem_.kernel, s.x, rows.x, cross);
  factor.solve_lower_in_place(cross);
  factor.solve_lower_in_place(known);
  const Matrix answers = cross.transpose() * known;  // k_i*'H_i^-1 [y A]
  const Vector explained = cross.colwise().squaredNorm();
  for (Index j = 0; j < m; ++j) {
    double variance = rows.prior(j) - explained(j);
    raise_to_floor(variance, rows.prior(j));
    const double share = 0.5 * std::log(rows.prior(j) / variance);
    const double weight = share / variance;
    sums.share(j) += share;
    sums.precision(j) += weight;
    sums.mean(j) += weight * answers(j, 0);
    sums.trend.row(j) += weight * answers.row(j).tail(q);
  }
}

void RbcmQuery::predict(const QueryBlock& rows, Index first, Moments& out) const {
  const Index m = rows.x.rows(), q = rows.basis.cols();
  RobustSums sums{Vector::Zero(m), Vector::Zero(m), Vector::Zero(m), Matrix::Zero(m, q)};
  for (Index b = 0; b < posterior_.blocks.count(); ++b) add_block(b, rows, sums);
  const auto& f = posterior_.functions[0];
  const Vector variance =
      (sums.precision.array() + (1 - sums.share.array()) / rows.prior.array()).inverse();
  Vector mean = variance.cwiseProduct(sums.mean);
  mean.array() += f.offset;
  if (f.beta.size() > 0) mean += rows.basis * f.beta;
  out.mean.col(0).segment(first, m) = mean;
  if (!options_.variance) return;
  out.variance.col(0).segment(first, m) = variance;
  if (f.beta.size() == 0) return;
  const Matrix r = rows.basis - variance.asDiagonal() * sums.trend;
  out.variance.col(0).segment(first, m) += (r * f.beta_covariance).cwiseProduct(r).rowwise().sum();
}

}  // namespace

std::unique_ptr<Query> make_rbcm_query(const Problem& problem, const SparsePosterior& posterior,
                                       const SparseQueryOptions& options) {
  return std::make_unique<RbcmQuery>(problem, posterior, options);
}

InferenceInfo rbcm_info() {
  return {.name = "rbcm",
          .summary = "approximate: robust Bayesian committee machine",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .blocks = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = committee_cost,
          .make = [](const InferenceSetup& setup) { return make_committee("rbcm", setup, false); }};
}

}  // namespace mercer::inference
