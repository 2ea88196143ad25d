// Predictions from base points: v* = L_bb^-1 k(b, x*) and the belief about L_bb^-1 f(b).
//   Cost: m kernel values a row; 2 m^2 flops for the variance, m for the mean alone.
//   Joint draws: a prior draw by random Fourier features, moved so that its values at the base
//   points are a draw from their posterior (Wilson et al. 2020); srm has no other part than that.
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <optional>

#include "mercer/approximations/random_features.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/sparse/queries.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

using approximations::RandomFeatures;
using linalg::Transpose;

constexpr Index kDrawFeatures = 4096;

/// Deviations of draws of one function from its mean: f0(x*) + v*'white + a*'trend.
struct BaseDraws {
  Matrix coefficients;  // of the features, F x n; empty: srm
  Matrix white;         // m x n
  Matrix trend;         // q x n
};

class ReducedQuery final : public SparseQuery {
 public:
  ReducedQuery(const Problem& problem, const SparsePosterior& posterior,
               const SparseQueryOptions& options);
  Moments moments(const QueryBlock& block, const QueryProgress& progress) override;

 private:
  BaseDraws draw(Index function) const;
  Moments slice(const QueryBlock& block) const;
  Matrix deviations(const QueryBlock& block, const Matrix& v) const;

  const Problem& problem_;
  const SparsePosterior& posterior_;
  SparseQueryOptions options_;
  bool only_base_;  // there is no prior variance besides that of the base points
  BaseFactor base_;
  std::optional<RandomFeatures> features_;
  std::vector<BaseDraws> draws_;
};

ReducedQuery::ReducedQuery(const Problem& problem, const SparsePosterior& posterior,
                           const SparseQueryOptions& options)
    : problem_(problem),
      posterior_(posterior),
      options_(options),
      only_base_(methods().find(posterior.method).abilities.degenerate),
      base_(problem.kernel, posterior.base, posterior.jitter) {
  if (options.draws == 0) return;
  if (!only_base_)
    features_.emplace(problem.kernel,
                      std::max(kDrawFeatures, RandomFeatures::smallest_count(problem.kernel)),
                      options.seed);
  for (Index c = 0; c < static_cast<Index>(posterior.functions.size()); ++c)
    draws_.push_back(draw(c));
}

// L_bb^-1 f(b) ~ N(mean_weights, B^-1) given beta, which is N(beta, covariance) and moves the
// former by -L_B^-T U_A (its deviation).
BaseDraws ReducedQuery::draw(Index function) const {
  const auto& f = posterior_.functions[static_cast<std::size_t>(function)];
  const Index n = options_.draws, m = base_.size(), q = f.trend_weights.cols();
  BaseDraws out{{}, Matrix(m, n), Matrix(q, n)};
  if (features_) out.coefficients.resize(features_->count(), n);
  const auto fill = [&](const char* what, Index s, MatrixView column) {
    Rng(options_.seed, fmt::format("sparse draws: {} of function {}", what, function),
        static_cast<std::uint64_t>(s))
        .fill_normal(column);
  };
  for (Index s = 0; s < n; ++s) {
    fill("base", s, out.white.col(s));
    fill("trend", s, out.trend.col(s));
    if (features_) fill("prior", s, out.coefficients.col(s));
  }
  if (q > 0) {
    const Eigen::LLT<Matrix> root(f.beta_covariance);
    out.trend = root.matrixL() * out.trend;
    out.white -= f.trend_weights * out.trend;
  }
  linalg::solve_lower(f.factor, Transpose::yes, out.white);
  if (features_) {
    Matrix prior = features_->combine(base_.base(), out.coefficients);
    linalg::solve_lower(base_.factor(), Transpose::no, prior);
    out.white -= prior;
  }
  return out;
}

Matrix ReducedQuery::deviations(const QueryBlock& block, const Matrix& v) const {
  const Index n = options_.draws;
  Matrix out(block.x.rows(), n * static_cast<Index>(draws_.size()));
  for (std::size_t c = 0; c < draws_.size(); ++c) {
    auto part = out.middleCols(static_cast<Index>(c) * n, n);
    if (features_)
      part = features_->combine(block.x, draws_[c].coefficients);
    else
      part.setZero();
    linalg::gemm(1.0, v, Transpose::no, draws_[c].white, Transpose::no, 1.0, part);
    if (draws_[c].trend.rows() > 0) part += block.basis * draws_[c].trend;
  }
  return out;
}

Moments ReducedQuery::slice(const QueryBlock& block) const {
  const auto count = static_cast<Index>(posterior_.functions.size());
  Moments out;
  out.mean.resize(block.x.rows(), count);
  if (options_.variance) out.variance.resize(block.x.rows(), count);
  const Matrix v = base_.whitened(block.x);
  Vector left;
  if (options_.variance && !only_base_)
    left = (block.prior - linalg::squared_rows(v)).cwiseMax(0.0);
  for (Index c = 0; c < count; ++c) {
    const auto& f = posterior_.functions[static_cast<std::size_t>(c)];
    const auto belief = belief_at(f, v, block.basis, options_.variance);
    out.mean.col(c) = belief.mean;
    if (options_.variance) out.variance.col(c) = belief.variance;
    if (left.size() > 0) out.variance.col(c) += left;
  }
  if (posterior_.x.rows() > 0) {  // the mean goes by all rows instead
    Matrix mean(block.x.rows(), 1);
    operators::cross_apply(problem_.kernel, block.x, posterior_.x, posterior_.weights,
                           operators::Precision::float64, mean);
    const auto& f = posterior_.functions[0];
    if (f.beta.size() > 0) mean += block.basis * f.beta;
    out.mean = mean.array() + f.offset;
  }
  if (options_.draws > 0) out.deviations = deviations(block, v);
  return out;
}

Moments ReducedQuery::moments(const QueryBlock& block, const QueryProgress& progress) {
  const Index rows = block.x.rows(), count = static_cast<Index>(posterior_.functions.size());
  auto out = empty_moments(rows, count, options_.variance);
  out.deviations.resize(rows, count * options_.draws);
  for_slices(rows, [&](Index first, Index n) {
    const auto part = slice(block.rows(first, n));
    out.mean.middleRows(first, n) = part.mean;
    if (options_.variance) out.variance.middleRows(first, n) = part.variance;
    if (options_.draws > 0) out.deviations.middleRows(first, n) = part.deviations;
    if (progress &&
        progress(static_cast<double>(first + n) / static_cast<double>(rows)) == Action::stop)
      throw Interrupted("interrupted while predicting");
  });
  raise_variances(block, out);
  return out;
}

}  // namespace

CheckedVariances SparseQuery::check_variances(const QueryBlock& /*block*/, ConstMatrixView /*sd*/,
                                              const QueryProgress& /*progress*/) {
  throw InvalidArgument(
      "an approximation has no solves to check its variances by; `check_rows` of a fit measures "
      "its distance from the exact posterior");
}

Moments SparseQuery::empty_moments(Index rows, Index functions, bool variance) {
  Moments out;
  out.mean = Matrix::Zero(rows, functions);
  out.deviations.resize(rows, 0);
  if (variance) out.variance = Matrix::Zero(rows, functions);
  out.sd_error_bound.reset();
  return out;
}

void SparseQuery::raise_variances(const QueryBlock& block, Moments& out) {
  for (Index c = 0; c < out.variance.cols(); ++c)
    for (Index i = 0; i < out.variance.rows(); ++i)
      out.clamped += raise_to_floor(out.variance(i, c), block.prior(i));
}

SparseSlice stored_block(const Problem& problem, const SparsePosterior& posterior, Index number) {
  const auto which = posterior.blocks.block(number);
  const auto n = static_cast<Index>(which.size());
  SparseSlice out{Matrix(n, posterior.x.cols()), Vector(n), Vector(n), {}, {}};
  for (Index i = 0; i < n; ++i) {
    const Index row = which[static_cast<std::size_t>(i)];
    out.x.row(i) = posterior.x.row(row);
    out.y(i) = posterior.weights(row);
    out.noise(i) = posterior.noise(row);
  }
  out.basis = problem.basis(out.x);
  return out;
}

BeliefAtRows belief_at(const SparseFunction& f, const Matrix& v, ConstMatrixView basis,
                       bool variance) {
  BeliefAtRows out;
  const bool trend = f.beta.size() > 0;
  out.mean = (v * f.mean_weights).array() + f.offset;
  if (trend) out.mean += basis * f.beta;
  if (!variance) return out;
  Matrix t = v;
  linalg::solve_lower_right(f.factor, Transpose::yes, t);
  out.variance = linalg::squared_rows(t);
  if (trend) {
    const Matrix r = basis - t * f.trend_weights;
    out.variance += (r * f.beta_covariance).cwiseProduct(r).rowwise().sum();
  }
  return out;
}

namespace {

/// What a posterior keeps says how it predicts.
enum class Form { base, joined_blocks, committee, robust_committee };
Form form_of(const SparsePosterior& posterior) {
  if (posterior.blocks.offsets.empty()) return Form::base;
  if (posterior.base.rows() > 0) return Form::joined_blocks;
  return posterior.chunk > 0 ? Form::committee : Form::robust_committee;
}

}  // namespace

std::string sparse_draws_refusal(const Problem& problem, const SparsePosterior& posterior) {
  if (form_of(posterior) != Form::base)
    return fmt::format(
        "the approximation {} states means and variances of single rows; it has no joint draws",
        posterior.method);
  return methods().find(posterior.method).abilities.degenerate
             ? std::string()
             : RandomFeatures::refusal(problem.kernel);
}

std::unique_ptr<Query> sparse_query(const Problem& problem, const SparsePosterior& posterior,
                                    const SparseQueryOptions& options) {
  if (options.draws > 0)
    if (const auto why = sparse_draws_refusal(problem, posterior); !why.empty())
      throw InvalidArgument(why);
  if (posterior.functions.empty())
    throw InvalidArgument("sparse posterior: it has no latent function");
  switch (form_of(posterior)) {
    case Form::base:
      return std::make_unique<ReducedQuery>(problem, posterior, options);
    case Form::joined_blocks:
      return make_pic_query(problem, posterior, options);
    case Form::committee:
      return make_bcm_query(problem, posterior, options);
    case Form::robust_committee:
      return make_rbcm_query(problem, posterior, options);
  }
  throw Error("sparse posterior: unknown form");
}

SparseQueryCost sparse_query_cost(const SparsePosterior& posterior, Index rows) {
  const auto m = static_cast<double>(posterior.base.rows());
  const auto n = static_cast<double>(posterior.x.rows()), count = static_cast<double>(rows);
  const double block =
      posterior.blocks.offsets.empty() ? 0 : static_cast<double>(posterior.blocks.largest());
  const auto functions = static_cast<double>(posterior.functions.size());
  const auto slice = static_cast<double>(std::min(rows, kSparseRows));
  const Form form = form_of(posterior);
  if (form == Form::robust_committee)
    return {8 * (block * block + block * slice), n * block * block / 3 + count * n * block,
            n * block + count * n};
  if (form == Form::committee) {
    const double chunk = std::min(count, static_cast<double>(posterior.chunk)),
                 chunks = chunk > 0 ? count / chunk : 0;
    return {8 * (3 * chunk * chunk + 2 * block * block + 3 * block * chunk),
            chunks * n * (2 * chunk * chunk + 2 * block * chunk + block * block / 3),
            chunks * n * (chunk + block)};
  }
  SparseQueryCost out{8 * (m * m + 3 * slice * m), count * m * m * (1 + functions) + m * m * m / 3,
                      count * m};
  if (form == Form::base) out.kernel_values += count * n;
  if (form == Form::joined_blocks) {
    out.bytes += std::min(8 * n * (m + block), 1073741824.0) + 16 * block * (m + block);
    out.flops += n * (m * m + 2 * block * m + block * block / 3) + count * block * (block + m);
    out.kernel_values += n * (m + block) + count * block;
  }
  return out;
}

}  // namespace mercer::inference
