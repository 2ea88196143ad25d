// Bayesian committee machine: given f at the points q that are asked for, blocks of rows are taken
// for independent. In weight form that is pitc with the points for base points,
//     C_i = D_i + K_ii - Q_ii,  A = S_qq + sum_i S_qi C_i^-1 S_iq,  mean = S_qq A^-1 sum S_qi
//     C_i^-1 y_i,
// here through the whitened V (sparse_sums.hpp); the combination of the blocks' posteriors at q
// (bcm_product_form) is the same. With base points that are given or chosen, those take the place
// of q, and other points are predicted from them.
//   Source: Tresp (2000); Schwaighofer & Tresp (2003); Tresp & Schwaighofer (2001).
//   Cost:   for q points at a time N q^2 + N B q + N B^2/3 flops: a pass over the data for every q
//           predictions, q being 1,000 unless `rank` says otherwise.
//   The mean a'beta is that of the blocks' evidence (block_evidence.hpp).
//   When not: few points are asked for one by one: what ties the blocks together are the points
//   that
//           are asked for together.
#include "mercer/inference/sparse/bcm.hpp"

#include <Eigen/Cholesky>
#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/block_evidence.hpp"
#include "mercer/inference/sparse/queries.hpp"
#include "mercer/inference/sparse/reduced.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

class BcmQuery final : public SparseQuery {
 public:
  BcmQuery(const Problem& problem, const SparsePosterior& posterior,
           const SparseQueryOptions& options)
      : problem_(problem), posterior_(posterior), options_(options) {
    if (posterior.chunk < 1) throw InvalidArgument("bcm: `rank` must be positive");
  }

  Moments moments(const QueryBlock& block, const QueryProgress& progress) override {
    const Index rows = block.x.rows();
    auto out = empty_moments(rows, 1, options_.variance);
    const Index blocks = posterior_.blocks.count();
    for (Index first = 0; first < rows; first += posterior_.chunk) {
      const Index n = std::min(posterior_.chunk, rows - first);
      const auto share = [&](Index b) {
        return (static_cast<double>(first) +
                static_cast<double>(n) * static_cast<double>(b) / static_cast<double>(blocks)) /
               static_cast<double>(rows);
      };
      predict(block.rows(first, n), first, out, [&](Index b) {
        if (progress && progress(share(b)) == Action::stop)
          throw Interrupted("interrupted while predicting");
      });
    }
    raise_variances(block, out);
    return out;
  }

 private:
  template <class Told>
  void predict(const QueryBlock& rows, Index first, Moments& out, const Told& told) const {
    const BaseFactor base(problem_.kernel, rows.x);
    out.jitter = std::max(out.jitter, base.jitter());
    SparseSums sums(problem_, base, {.lambda = Unexplained::blocks});
    for (Index b = 0; b < posterior_.blocks.count(); ++b) {
      sums.add_block(stored_block(problem_, posterior_, b));
      told(b + 1);
    }
    const auto solution = sums.finish_without_mean();
    const auto& known = posterior_.functions[0];
    const SparseFunction f{solution.factor, solution.mean_weights, solution.trend_weights,
                           known.beta,      known.beta_covariance, known.offset};
    const Matrix v = base.whitened(rows.x);
    const auto belief = belief_at(f, v, rows.basis, options_.variance);
    out.mean.col(0).segment(first, rows.x.rows()) = belief.mean;
    if (!options_.variance) return;
    // What base points leave at themselves is jitter and rounding.
    out.variance.col(0).segment(first, rows.x.rows()) =
        belief.variance + (rows.prior - linalg::squared_rows(v)).cwiseMax(0.0);
  }

  const Problem& problem_;
  const SparsePosterior& posterior_;
  SparseQueryOptions options_;
};

}  // namespace

std::unique_ptr<Query> make_bcm_query(const Problem& problem, const SparsePosterior& posterior,
                                      const SparseQueryOptions& options) {
  return std::make_unique<BcmQuery>(problem, posterior, options);
}

JointBelief bcm_product_form(const Problem& problem, const SparsePosterior& posterior,
                             const Matrix& points) {
  const Index q = points.rows(), count = posterior.blocks.count();
  const Matrix identity = Matrix::Identity(q, q);
  Matrix prior(q, q);
  operators::dense_matrix(problem.kernel, points, prior);
  Matrix precision = -static_cast<double>(count - 1) * prior.llt().solve(identity);
  Vector pull = Vector::Zero(q);
  for (Index b = 0; b < count; ++b) {
    const auto s = stored_block(problem, posterior, b);
    Matrix h(s.x.rows(), s.x.rows());
    operators::lower_matrix(problem.kernel, s.x, h);
    h.diagonal() += s.noise;
    const linalg::Cholesky factor(std::move(h));
    Matrix cross(s.x.rows(), q + 1);
    operators::cross_matrix(problem.kernel, s.x, points, cross.leftCols(q));
    cross.col(q) = s.y;
    factor.solve_lower_in_place(cross);
    const auto t = cross.leftCols(q);
    const Matrix covariance = prior - t.transpose() * t;
    const Eigen::LLT<Matrix> own(covariance);
    if (own.info() != Eigen::Success)
      throw NotPositiveDefinite("bcm: the posterior covariance of a block is singular", 0);
    precision += own.solve(identity);
    pull += own.solve(Vector(t.transpose() * cross.col(q)));
  }
  const Eigen::LLT<Matrix> factor(precision);
  return {factor.solve(pull), factor.solve(identity)};
}

InferenceInfo bcm_info() {
  return {.name = "bcm",
          .summary = "approximate: Bayesian committee machine, at the points asked for",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .base = true,
                        .blocks = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = committee_cost,
          .make = [](const InferenceSetup& setup) { return make_committee("bcm", setup, true); }};
}

}  // namespace mercer::inference
