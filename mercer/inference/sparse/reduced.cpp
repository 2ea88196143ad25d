#include "mercer/inference/sparse/reduced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/sparse/sparse_gradient.hpp"
#include "mercer/linalg/cholesky.hpp"

namespace mercer::inference {
namespace {

constexpr Index kMostBlockRows = 1000;

class Reduced final : public Inference {
 public:
  Reduced(const ReducedMethod& method, const InferenceSetup& setup)
      : method_(method), rows_(&setup.rows), setup_(setup.sparse), seed_(setup.seed) {
    pass_ = [this](const auto& each) { each(*rows_); };
    if (setup_.points.size() > 0) use_base(setup_.points);
  }
  Reduced(const ReducedMethod& method, RowPass pass, Matrix base)
      : method_(method), pass_(std::move(pass)) {
    use_base(std::move(base));
  }

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& /*observer*/) override {
    return evaluate_at(at, ask.gradient, nullptr);
  }
  Evidence evaluate_with_base(const Problem& at, const Ask& ask, Matrix& base_gradient) override {
    if (!method_.optimizes_base)
      throw InvalidArgument(
          fmt::format("the base points of {} are not optimised; fitc and vfe are", method_.name));
    return evaluate_at(at, ask.gradient, &base_gradient);
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override;

  void renew(const Problem& at) override {
    if (!given_) base_.resize(0, 0);
    blocks_ = {};
    prepare(at);
  }
  Matrix base_points() const override { return base_; }
  void use_base(Matrix points) override {
    check_base(points, points.cols());
    base_ = std::move(points);
    given_ = true;
    known_.clear();
  }
  State save() const override {
    State state;
    if (base_.size() == 0) return state;
    save_base(base_, given_, state);
    if (uses_blocks()) save_blocks(blocks_, state);
    return state;
  }
  void load(const State& state, const Problem& like) override {
    base_ = load_base(state, like.kernel.num_inputs(), given_);
    known_.clear();
    if (uses_blocks()) blocks_ = load_blocks(state, rows_->size());
  }

 private:
  bool uses_blocks() const { return method_.model.lambda == Unexplained::blocks; }
  void prepare(const Problem& at);
  // Hands all rows to the sums, or to those of a gradient.
  template <class Sums>
  void add_all(Sums& sums) const;
  // What the rows say at these values; of rows that come in passes, without a pass where it is
  // known.
  SparseSolution solution_at(const Problem& at, const BaseFactor& base);
  Evidence evaluate_at(const Problem& at, bool gradient, Matrix* base_gradient);

  ReducedMethod method_;
  const Observations* rows_ = nullptr;  // null: rows come in passes only
  RowPass pass_;
  SparseSetup setup_;
  std::uint64_t seed_ = 0;
  Matrix base_;
  bool given_ = false;  // the base points were given, not chosen
  approximations::Clusters blocks_;
  // Rows in passes: the last evaluation and the best one. A search asks for the value first and
  // for the gradient when it goes on from there, and the posterior is that of the best.
  struct Known {
    Vector theta;
    SparseSolution solution;
  };
  std::vector<Known> known_;
};

void Reduced::prepare(const Problem& at) {
  if (base_.size() == 0) base_ = choose_base(at.kernel, rows_->x, setup_, seed_);
  check_base(base_, at.kernel.num_inputs());
  if (uses_blocks() && blocks_.offsets.empty())
    blocks_ = choose_blocks(at.kernel, rows_->x, setup_, usual_block_rows(base_.rows()), seed_);
}

template <class Sums>
void Reduced::add_all(Sums& sums) const {
  if (!uses_blocks()) return pass_([&](const Observations& block) { sums.add(block); });
  for (Index b = 0; b < blocks_.count(); ++b) sums.add_block(rows_->rows(blocks_.block(b)));
}

SparseSolution Reduced::solution_at(const Problem& at, const BaseFactor& base) {
  const Vector theta = at.log_parameters();
  for (const auto& known : known_)
    if (known.theta == theta) return known.solution;
  SparseSums sums(at, base, method_.model);
  add_all(sums);
  auto found = sums.finish();
  if (rows_ != nullptr) return found;
  if (known_.size() == 2) {
    const bool first_is_worse = known_[0].solution.evidence < known_[1].solution.evidence;
    known_.erase(known_.begin() + (first_is_worse ? 0 : 1));
  }
  known_.push_back({theta, found});
  return found;
}

Evidence Reduced::evaluate_at(const Problem& at, bool gradient, Matrix* base_gradient) {
  prepare(at);
  const BaseFactor base(at.kernel, base_);
  const auto solution = solution_at(at, base);
  Evidence out;
  out.value = solution.evidence;
  if (!gradient) return out;
  SparseGradient slopes(at, base, method_.model, solution, base_gradient != nullptr);
  add_all(slopes);
  out.gradient = slopes.finish();
  if (base_gradient != nullptr) *base_gradient = slopes.base_gradient();
  return out;
}

Posterior Reduced::posterior(const Problem& at, const PosteriorRequest& request,
                             const ProgressCallback& progress) {
  const ObservedCall call(progress);
  const Timer timer;
  prepare(at);
  const BaseFactor base(at.kernel, base_);
  const auto solution = posterior_solution([&] { return solution_at(at, base); });
  auto sparse = std::make_shared<SparsePosterior>();
  sparse->method = method_.name;
  if (uses_blocks()) {
    sparse->blocks = blocks_;
    sparse->blocks_learned = blocks_.count();
  }
  if (method_.keep_rows != nullptr) method_.keep_rows(at, *rows_, base, solution, *sparse);
  if (method_.keep_rows == nullptr) sparse->blocks = {};
  auto out = sparse_result(base, solution, std::move(sparse));
  if (rows_ != nullptr) out.evidence.rows = rows_->rows_before_merging();
  if (request.with_gradient) {
    SparseGradient slopes(at, base, method_.model, solution, false);
    add_all(slopes);
    out.evidence.gradient = slopes.finish();
  }
  out.build_seconds = timer.seconds();
  return out;
}

Matrix as_column(const std::vector<Index>& values) {
  Matrix out(static_cast<Index>(values.size()), 1);
  for (Index i = 0; i < out.rows(); ++i)
    out(i, 0) = static_cast<double>(values[static_cast<std::size_t>(i)]);
  return out;
}

std::vector<Index> as_indices(const Matrix& values) {
  std::vector<Index> out(static_cast<std::size_t>(values.size()));
  for (Index i = 0; i < values.size(); ++i)
    out[static_cast<std::size_t>(i)] = static_cast<Index>(values.data()[i]);
  return out;
}

}  // namespace

std::string sparse_needs_gaussian_noise(const Problem& problem, const Observations& /*rows*/) {
  if (problem.gaussian()) return {};
  return fmt::format(
      "this approximation needs Gaussian noise, not the likelihood {}; of the approximations "
      "`method=fitc` goes with classes and counts",
      problem.likelihood->text());
}

std::unique_ptr<Inference> make_reduced(const ReducedMethod& method, const InferenceSetup& setup) {
  return std::make_unique<Reduced>(method, setup);
}

std::unique_ptr<Inference> make_reduced_stream(const ReducedMethod& method, RowPass pass,
                                               Matrix base) {
  return std::make_unique<Reduced>(method, std::move(pass), std::move(base));
}

Index usual_block_rows(Index base_points) {
  return std::clamp<Index>(base_points, 1, kMostBlockRows);
}

SparseSolution finish_posterior(SparseSums& sums) {
  return posterior_solution([&] { return sums.finish(); });
}

SparseSolution posterior_solution(const std::function<SparseSolution()>& find) {
  try {
    return find();
  } catch (const NotPositiveDefinite& error) {
    throw DataError(error.what());  // nearly dependent columns: the data's doing, not the noise's
  }
}

Posterior sparse_result(const BaseFactor& base, const SparseSolution& solution,
                        std::shared_ptr<SparsePosterior> sparse) {
  sparse->base = base.base();
  sparse->jitter = base.jitter();
  sparse->functions.push_back({solution.factor, solution.mean_weights, solution.trend_weights,
                               solution.beta, solution.beta_covariance, 0.0});
  LatentFunction f;
  if (sparse->x.rows() > 0 && sparse->blocks.offsets.empty()) {
    f.weights.w = sparse->weights;  // the mean goes by the rows
  } else {
    f.weights.w = solution.mean_weights;
    base.to_kernel_weights(f.weights.w);
  }
  f.weights.beta = solution.beta;
  f.weights.beta_covariance = solution.beta_covariance;
  Posterior out;
  out.functions.push_back(std::move(f));
  out.certificate.rigorous = false;
  out.evidence = sparse_evidence(sparse->method, solution.evidence, solution.rows);
  out.jitter = base.jitter();
  out.sparse = std::move(sparse);
  return out;
}

LikelihoodValue sparse_evidence(std::string_view method, double value, Index rows) {
  LikelihoodValue out;
  out.known = true;
  out.value = out.low = out.high = value;
  out.method = method;
  out.rows = rows;
  return out;
}

EvaluationCost reduced_cost(const ReducedMethod& method, const CostSetting& setting) {
  const auto n = static_cast<double>(setting.n), d = static_cast<double>(setting.d);
  const Index points = std::min(setting.rank.value_or(1000), setting.n);
  const auto m = static_cast<double>(points);
  const auto slice = static_cast<double>(std::min(kSparseRows, setting.n));
  const bool diagonal = method.model.lambda == Unexplained::diagonal;
  double flops = n * m * m * (diagonal ? 9 : 7) + 3 * m * m * m;
  double bytes = 8 * (m * m * (diagonal ? 6 : 5) + slice * m * 3 + n * d);
  double values = n * m * 3;
  if (method.model.lambda == Unexplained::blocks) {
    const double b = setting.blocks ? n / static_cast<double>(std::max<Index>(*setting.blocks, 1))
                                    : static_cast<double>(usual_block_rows(points));
    flops += n * (10 * b * m + 3 * b * b + 4 * m * m);
    bytes += 8 * (b * b * 3 + b * m * 4);
    values += n * b * 2;
  }
  // Choosing base points by a randomly pivoted factorisation, once, is worth about one evaluation.
  bytes = std::max(bytes, 8 * std::min(n * m, 67108864.0));
  return {bytes, flops / setting.speed.flops + values * setting.speed.pair_seconds_double};
}

void save_base(const Matrix& base, bool given, State& state) {
  state["base"] = base;
  state["base given"] = Matrix::Constant(1, 1, given ? 1 : 0);
}

void save_blocks(const approximations::Clusters& blocks, State& state) {
  state["block order"] = as_column(blocks.order);
  state["block offsets"] = as_column(blocks.offsets);
}

Matrix load_base(const State& state, Index d, bool& given) {
  given = saved_array(state, "base given", 1)(0, 0) != 0;
  Matrix base = saved_array(state, "base");
  check_base(base, d);
  return base;
}

approximations::Clusters load_blocks(const State& state, Index rows) {
  approximations::Clusters out;
  out.order = as_indices(saved_array(state, "block order", rows));
  out.offsets = as_indices(saved_array(state, "block offsets"));
  const bool whole =
      !out.offsets.empty() && out.offsets.front() == 0 && out.offsets.back() == rows &&
      std::is_sorted(out.offsets.begin(), out.offsets.end()) &&
      std::all_of(out.order.begin(), out.order.end(), [&](Index i) { return i >= 0 && i < rows; });
  if (!whole) throw ModelFileError("the checkpoint is damaged: its blocks do not hold all rows");
  return out;
}

}  // namespace mercer::inference
