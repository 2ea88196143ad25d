#include "mercer/inference/sparse/block_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/sparse/reduced.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

constexpr Index kUsualBlockRows = 1000, kUsualChunk = 1000;

linalg::Cholesky factor_of(const Problem& problem, const SparseSlice& s) {
  Matrix h(s.x.rows(), s.x.rows());
  operators::lower_matrix(problem.kernel, s.x, h);
  h.diagonal() += s.noise;
  return linalg::Cholesky(std::move(h));
}

SparseSlice block_of(const Problem& problem, const Observations& rows,
                     std::span<const Index> which) {
  return slice_of(problem, rows.rows(which), 0, static_cast<Index>(which.size()));
}

}  // namespace

BlockEvidence block_evidence(const Problem& problem, const Observations& rows,
                             const approximations::Clusters& blocks, bool gradient) {
  check_sparse_rows(problem, rows);
  const Index q = problem.basis(rows.x.topRows(std::min<Index>(1, rows.size()))).cols();
  Matrix inner = Matrix::Zero(1 + q, 1 + q);  // [y A]'H^-1 [y A]
  double log_det = 0;
  for (Index b = 0; b < blocks.count(); ++b) {
    stop_if_requested("factoring blocks of rows");
    const auto s = block_of(problem, rows, blocks.block(b));
    const auto factor = factor_of(problem, s);
    Matrix t(s.x.rows(), 1 + q);
    t << s.y, s.basis;
    factor.solve_lower_in_place(t);
    inner += t.transpose() * t;
    log_det += factor.log_det();
  }
  BlockEvidence out;
  double quadratic = inner(0, 0);
  if (q > 0) {
    auto trend = solve_trend(inner.bottomRightCorner(q, q), inner.col(0).tail(q));
    out.beta = std::move(trend.beta);
    out.beta_covariance = std::move(trend.covariance);
    quadratic -= inner.col(0).tail(q).dot(out.beta);
  }
  out.value = -0.5 * (quadratic + log_det +
                      static_cast<double>(rows.size()) * std::log(2 * std::numbers::pi)) +
              rows.replicates.log_likelihood(problem.noise());
  if (!gradient) return out;

  out.gradient = Vector::Zero(problem.kernel.num_parameters() + 1);
  Vector part(problem.kernel.num_parameters());
  double by_noise = 0;
  for (Index b = 0; b < blocks.count(); ++b) {
    stop_if_requested("factoring blocks of rows");
    const auto s = block_of(problem, rows, blocks.block(b));
    auto factor = factor_of(problem, s);
    Vector w = s.y;
    if (q > 0) w -= s.basis * out.beta;
    factor.solve_in_place(w);
    const Matrix inverse = std::move(factor).lower_inverse();
    operators::weighted_gradient(problem.kernel, s.x, w, inverse, part);
    out.gradient.head(part.size()) += part;
    by_noise += (w.cwiseAbs2() - inverse.diagonal()).dot(s.slope);
  }
  out.gradient(part.size()) = by_noise;
  out.gradient *= 0.5;
  out.gradient(part.size()) += rows.replicates.slope(problem.noise());
  return out;
}

namespace {

class Committee final : public Inference {
 public:
  Committee(std::string_view name, const InferenceSetup& setup, bool takes_base)
      : name_(name),
        rows_(setup.rows),
        setup_(setup.sparse),
        seed_(setup.seed),
        takes_base_(takes_base) {
    if (!takes_base_ && (setup_.points.size() > 0 || setup_.base != "auto" || setup_.rank))
      throw InvalidArgument(
          fmt::format("`method={}` has no base points: leave out `base` and "
                      "`rank`; `blocks` says how many blocks there are",
                      name_));
    if (setup_.points.size() > 0) use_base(setup_.points);
    chooses_base_ = takes_base_ && setup_.points.size() == 0 && setup_.base != "auto";
  }

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& /*observer*/) override {
    prepare(at);
    auto found = block_evidence(at, rows_, blocks_, ask.gradient);
    Evidence out;
    out.value = found.value;
    out.gradient = std::move(found.gradient);
    return out;
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override;

  void renew(const Problem& at) override {
    blocks_ = {};
    if (chooses_base_) base_.resize(0, 0);
    prepare(at);
  }
  Matrix base_points() const override { return base_; }
  void use_base(Matrix points) override {
    if (!takes_base_) return Inference::use_base(std::move(points));
    check_base(points, points.cols());
    base_ = std::move(points);
    chooses_base_ = false;
  }
  State save() const override {
    State state;
    if (blocks_.offsets.empty()) return state;
    save_blocks(blocks_, state);
    if (base_.size() > 0) save_base(base_, !chooses_base_, state);
    return state;
  }
  void load(const State& state, const Problem& like) override {
    blocks_ = load_blocks(state, rows_.size());
    if (state.find("base") == state.end()) return;
    bool given = false;
    base_ = load_base(state, like.kernel.num_inputs(), given);
    chooses_base_ = !given;
  }

 private:
  void prepare(const Problem& at) {
    if (blocks_.offsets.empty())
      blocks_ = choose_blocks(at.kernel, rows_.x, setup_, kUsualBlockRows, seed_);
    if (chooses_base_ && base_.size() == 0) base_ = choose_base(at.kernel, rows_.x, setup_, seed_);
    if (base_.size() > 0) check_base(base_, at.kernel.num_inputs());
  }
  Posterior from_base(const Problem& at, const BlockEvidence& found) const;
  Posterior from_blocks(const Problem& at, const BlockEvidence& found) const;

  std::string name_;
  const Observations& rows_;
  SparseSetup setup_;
  std::uint64_t seed_;
  bool takes_base_, chooses_base_ = false;
  Matrix base_;
  approximations::Clusters blocks_;
};

Posterior Committee::posterior(const Problem& at, const PosteriorRequest& request,
                               const ProgressCallback& progress) {
  const ObservedCall call(progress);
  const Timer timer;
  prepare(at);
  BlockEvidence found;
  try {
    found = block_evidence(at, rows_, blocks_, request.with_gradient);
  } catch (const NotPositiveDefinite& error) {
    throw DataError(error.what());
  }
  auto out = base_.size() > 0 ? from_base(at, found) : from_blocks(at, found);
  out.evidence = sparse_evidence(name_, found.value, rows_.rows_before_merging());
  out.evidence.gradient = std::move(found.gradient);
  out.build_seconds = timer.seconds();
  return out;
}

// The weight form with these base points, of y less its mean by the blocks' beta.
Posterior Committee::from_base(const Problem& at, const BlockEvidence& found) const {
  const BaseFactor base(at.kernel, base_);
  SparseSums sums(at, base, {.lambda = Unexplained::blocks});
  for (Index b = 0; b < blocks_.count(); ++b) {
    auto s = block_of(at, rows_, blocks_.block(b));
    if (found.beta.size() > 0) s.y -= s.basis * found.beta;
    sums.add_block(s);
  }
  auto solution = sums.finish_without_mean();
  solution.beta = found.beta;
  solution.beta_covariance = found.beta_covariance;
  auto sparse = std::make_shared<SparsePosterior>();
  sparse->method = name_;
  sparse->blocks_learned = blocks_.count();
  return sparse_result(base, solution, std::move(sparse));
}

Posterior Committee::from_blocks(const Problem& at, const BlockEvidence& found) const {
  auto sparse = std::make_shared<SparsePosterior>();
  sparse->method = name_;
  sparse->blocks_learned = blocks_.count();
  sparse->base = Matrix(0, rows_.x.cols());
  sparse->x = rows_.x;
  sparse->noise = rows_.noise.at(at.noise()).vector(rows_.size());
  sparse->weights = rows_.target();
  if (found.beta.size() > 0) sparse->weights -= at.basis(rows_.x) * found.beta;
  sparse->blocks = blocks_;
  if (takes_base_) sparse->chunk = setup_.rank.value_or(kUsualChunk);
  SparseFunction f;
  f.beta = found.beta;
  f.beta_covariance = found.beta_covariance;
  sparse->functions.push_back(std::move(f));
  Posterior out;
  LatentFunction latent;
  latent.weights.beta = found.beta;
  latent.weights.beta_covariance = found.beta_covariance;
  out.functions.push_back(std::move(latent));
  out.certificate.rigorous = false;
  out.sparse = std::move(sparse);
  return out;
}

}  // namespace

std::unique_ptr<Inference> make_committee(std::string_view name, const InferenceSetup& setup,
                                          bool takes_base) {
  return std::make_unique<Committee>(name, setup, takes_base);
}

EvaluationCost committee_cost(const CostSetting& s) {
  const auto n = static_cast<double>(s.n);
  const double b = s.blocks ? n / static_cast<double>(std::max<Index>(*s.blocks, 1))
                            : static_cast<double>(std::min(kUsualBlockRows, s.n));
  return {8 * (2 * b * b + n * static_cast<double>(s.d + 2)),
          n * b * b * 4 / 3 / s.speed.flops +
              n * b * s.speed.pair_seconds_double * (2 + static_cast<double>(s.parameters) / 2)};
}

}  // namespace mercer::inference
