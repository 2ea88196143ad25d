#include "mercer/models/function_query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/inference/laplace/coupled_query.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {
namespace {

// Rows at a time where no solve sets the width.
constexpr Index kRows = 1024;
// Of coupled functions: rows at a time by factors and by solves at most, iterations of a solve for
// estimates, and the seconds that exact covariances may take.
constexpr Index kDirectRows = 64, kSolvedRows = 16;
constexpr double kIterations = 20, kLongestExact = 60;

MethodOptions prediction_method(const KernelMachine& model, const PredictOptions& options) {
  MethodOptions method = model.method;
  method.memory = options.memory;
  method.solver = options.solver;
  // A small limit of the fit says nothing about the variances, and what was chosen for an
  // iterative fit does not bind a direct prediction.
  method.max_iterations = std::max(method.max_iterations, MethodOptions{}.max_iterations);
  if (options.solver == "cholesky") {
    method.op = method.precision = method.preconditioner = "auto";
    method.preconditioning = {};
  }
  return method;
}

// The draws of different functions must not be drawn alike.
std::uint64_t draw_seed(std::uint64_t seed, Index function) {
  return function == 0 ? seed
                       : Rng(seed, "function", static_cast<std::uint64_t>(function)).bits64();
}

}  // namespace

FunctionQuery::FunctionQuery(const KernelMachine& model, Index function,
                             const PredictOptions& options)
    : model_(model),
      function_(model.function(function)),
      number_(function),
      options_(options),
      noise_(model.noise(function)),
      bound_(model.problem.kernel, function_.weights,
             {model.certificate.residual(function), model.certificate.trend_defect}, model.x),
      rounding_(model.problem.kernel, noise_, model.x) {
  if (options_.variance.method == "none" && options_.variance.joint_samples == 0) return;
  plan_ =
      planning::make_plan(model.problem.kernel, noise_.harmonic_mean(), model.x,
                          prediction_method(model, options_), PlanFor::predict, options_.variance);
  if (plan_.solves) system_.emplace(model.problem.kernel, noise_, model.x, plan_.system);
  if (plan_.variance == "vecchia")
    local_.emplace(model.problem.kernel, model.x, noise_.vector(model.x.rows()),
                   options_.variance.neighbours_or_default());
}

Index FunctionQuery::block_rows() const {
  return plan_.variance == "exact" ? plan_.variance_block : kRows;
}

// k*'H^-1 k* = |L^-1 k*|^2.
FunctionQuery::Explained FunctionQuery::explained_directly(ConstMatrixView cross,
                                                           ConstVectorView prior) const {
  Matrix v = cross;
  system_->factor()->solve_lower_in_place(v);
  Explained out;
  out.value.resize(v.cols());
  linalg::column_dots(v, v, {out.value.data(), static_cast<std::size_t>(v.cols())});
  out.truncated = Vector::Zero(v.cols());
  out.rounded = rounding_.direct(prior, out.value);
  return out;
}

Matrix FunctionQuery::solve(ConstMatrixView b, MatrixView u, std::int64_t& matvecs,
                            const Observer& observer) const {
  // Default: the variance of f is known to a thousandth of the (mean) noise variance or better,
  // from r'D^-1 r <= |r|^2 / min D.
  const double largest = b.colwise().norm().maxCoeff();
  const double allowed =
      std::sqrt(1e-3 * system_->noise().least() * system_->noise().harmonic_mean());
  const double tolerance =
      options_.tolerance.value_or(std::clamp(allowed / std::max(largest, 1e-300), 1e-10, 1e-2));
  Matrix r;
  const auto report = system_->solve(b, u, tolerance, observer, &r);
  matvecs += report.matvecs;
  if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
  if (report.stop != StopReason::converged)
    throw ToleranceNotReached(fmt::format(
        "the {} not found to tolerance {:.1e}: {} after {} iterations, relative residual {:.1e}; "
        "use `solver=cholesky`, a looser `tolerance`, or {}",
        approximate() ? "exact variances that measure the error of the others were"
                      : "variances were",
        tolerance, to_string(report.stop), report.iterations, report.relative_residual,
        approximate() ? "`check_rows=0`" : "`variance=vecchia` or none"));
  return r;
}

// For u with residual r = k* - H u:  k*'H^-1 k* = k*'u + u'r + r'H^-1 r, and the last term lies in
// [0, r'D^-1 r]: leaving it out overstates the variance by no more than that.
FunctionQuery::Explained FunctionQuery::explained_by_solves(ConstMatrixView cross,
                                                            ConstVectorView prior,
                                                            std::int64_t& matvecs,
                                                            const Observer& observer) const {
  Matrix u = Matrix::Zero(cross.rows(), cross.cols());
  const Matrix r = solve(cross, u, matvecs, observer);
  Explained explained{Vector(cross.cols()), system_->noise().inverse_squares(r),
                      rounding_.iterative(prior, u)};
  Vector correction(cross.cols());
  const auto count = static_cast<std::size_t>(cross.cols());
  linalg::column_dots(cross, u, {explained.value.data(), count});
  linalg::column_dots(u, r, {correction.data(), count});
  explained.value += correction;
  return explained;
}

// q'M^-1 q with q = a* - A'H^-1 k*.
Vector FunctionQuery::trend_variance(const QueryBlock& block) const {
  if (block.basis.cols() == 0) return Vector::Zero(block.x.rows());
  Matrix q(block.x.rows(), block.basis.cols());
  operators::cross_apply(model_.problem.kernel, block.x, model_.x, function_.weights.basis_solves,
                         operators::Precision::float64, q);
  q = block.basis - q;
  return (q.array() * (q * function_.weights.beta_covariance).array()).rowwise().sum();
}

Moments FunctionQuery::exact_variances(const QueryBlock& block, const Observer& observer) const {
  const Vector& prior = block.prior;
  Moments out;
  Matrix cross(model_.x.rows(), block.x.rows());
  operators::cross_matrix(model_.problem.kernel, model_.x, block.x, cross);
  Explained explained = system_->factor() != nullptr
                            ? explained_directly(cross, prior)
                            : explained_by_solves(cross, prior, out.matvecs, observer);
  const Vector trend = trend_variance(block);
  Vector variance = prior - explained.value + trend;
  double sd_error_bound = 0;
  for (Index i = 0; i < variance.size(); ++i) {
    explained.rounded(i) += inference::trend_variance_error(std::max(0.0, trend(i)), prior(i),
                                                            model_.certificate.trend_residual);
    const double high = variance(i) + explained.rounded(i);
    const double low = variance(i) - explained.rounded(i) - explained.truncated(i);
    out.clamped += inference::raise_to_floor(variance(i), prior(i));
    const double sd = std::sqrt(variance(i));
    sd_error_bound = std::max(
        {sd_error_bound, sd - std::sqrt(std::max(0.0, low)), std::sqrt(std::max(0.0, high)) - sd});
  }
  out.variance = std::move(variance);
  out.sd_error_bound = sd_error_bound;
  return out;
}

// By neighbours, or from the deviations of draws from the mean, which is known: no degree of
// freedom is spent on it.
void FunctionQuery::approximate_variances(const QueryBlock& block, ConstMatrixView deviations,
                                          Moments& out) const {
  if (local_)
    out.variance = block.prior - local_->explained(block.x) + trend_variance(block);
  else
    out.variance = deviations.rowwise().squaredNorm() / static_cast<double>(deviations.cols());
  for (Index i = 0; i < out.variance.rows(); ++i)
    out.clamped += inference::raise_to_floor(out.variance(i, 0), block.prior(i));
  out.sd_error_bound.reset();
}

const inference::PathwiseDraws& FunctionQuery::make_draws(std::int64_t& matvecs,
                                                          const Observer& observer) {
  if (draws_) return *draws_;
  const inference::PathwiseOptions wanted{.count = options_.variance.draws_needed(),
                                          .seed = draw_seed(model_.method.seed, number_)};
  const auto solve_blocks = [&](ConstMatrixView b, MatrixView u) {
    for (Index first = 0; first < b.cols(); first += plan_.variance_block) {
      const Index columns = std::min(plan_.variance_block, b.cols() - first);
      solve(b.middleCols(first, columns), u.middleCols(first, columns), matvecs, observer);
    }
  };
  const Vector noise = system_->noise().vector(model_.x.rows());
  return draws_.emplace(model_.problem, model_.x, noise, function_.weights, wanted, solve_blocks);
}

Moments FunctionQuery::moments(const QueryBlock& block, const Observer& observer) {
  const auto& weights = function_.weights;
  Vector mean(block.x.rows());
  operators::cross_apply(model_.problem.kernel, block.x, model_.x, weights.w,
                         operators::Precision::float64, mean);
  if (block.basis.cols() > 0) mean += block.basis * weights.beta;
  Matrix deviations(block.x.rows(), 0);
  std::int64_t matvecs = 0;
  if (options_.variance.draws_needed() > 0)
    deviations = make_draws(matvecs, observer).deviations(block.x);
  Moments out;
  if (plan_.variance == "exact")
    out = exact_variances(block, observer);
  else if (with_variance())
    approximate_variances(block, deviations, out);
  out.mean = std::move(mean);
  if (function_.offset != 0) out.mean.array() += function_.offset;
  out.error_bound = bound_(block.prior, block.basis);
  out.deviations = deviations.leftCols(options_.variance.joint_samples);
  out.matvecs += matvecs;
  return out;
}

IndependentQuery::IndependentQuery(const KernelMachine& model, const PredictOptions& options)
    : model_(model), options_(options) {
  functions_.resize(model.functions.size());
  auto first = std::make_unique<FunctionQuery>(model, 0, options_);
  plan_ = first->plan();
  const auto count = static_cast<double>(model.num_functions());
  keeps_all_ = count == 1 || plan_.base_bytes + count * (plan_.peak_bytes - plan_.base_bytes) <=
                                 plan_.budget_bytes;
  if (!keeps_all_) return;
  functions_[0] = std::move(first);
  for (Index c = 1; c < model.num_functions(); ++c) function(c);
}

FunctionQuery& IndependentQuery::function(Index c) {
  auto& slot = functions_[static_cast<std::size_t>(c)];
  if (slot) return *slot;
  if (!keeps_all_)
    for (auto& other : functions_) other.reset();
  slot = std::make_unique<FunctionQuery>(model_, c, options_);
  return *slot;
}

namespace {

QueryBlock part_of(const QueryBlock& block, Index first, Index rows) {
  return {block.x.middleRows(first, rows), block.basis.middleRows(first, rows),
          block.prior.segment(first, rows)};
}

}  // namespace

Moments IndependentQuery::moments(const QueryBlock& block,
                                  const inference::QueryProgress& progress) {
  const Index m = block.x.rows(), count = model_.num_functions();
  const Index draws = options_.variance.joint_samples;
  Moments out;
  out.mean.resize(m, count);
  out.error_bound.resize(m, count);
  out.deviations.resize(m, count * draws);
  if (plan_.variance != "none") out.variance.resize(m, count);
  if (plan_.variance != "none" && plan_.variance != "exact") out.sd_error_bound.reset();
  for (Index c = 0; c < count; ++c) {
    auto& f = function(c);
    for (Index first = 0; first < m; first += f.block_rows()) {
      const Index rows = std::min(f.block_rows(), m - first);
      const double done =
          (static_cast<double>(c) + static_cast<double>(first) / static_cast<double>(m)) /
          static_cast<double>(count);
      const auto observer = [&](const Iteration&) {
        return progress ? progress(done) : Action::proceed;
      };
      if (observer({}) == Action::stop) throw Interrupted("interrupted while predicting");
      const auto some = f.moments(part_of(block, first, rows), observer);
      out.mean.col(c).segment(first, rows) = some.mean;
      out.error_bound.col(c).segment(first, rows) = some.error_bound;
      out.deviations.block(first, c * draws, rows, draws) = some.deviations;
      if (out.variance.cols() > 0) out.variance.col(c).segment(first, rows) = some.variance;
      if (out.sd_error_bound && some.sd_error_bound)
        out.sd_error_bound = std::max(*out.sd_error_bound, *some.sd_error_bound);
      else
        out.sd_error_bound.reset();
      out.clamped += some.clamped;
      out.matvecs += some.matvecs;
    }
  }
  return out;
}

Moments IndependentQuery::exact_variances(const QueryBlock& block,
                                          const inference::QueryProgress& progress) {
  const Index m = block.x.rows(), count = model_.num_functions();
  const auto observer = [&](const Iteration&) { return progress ? progress(-1) : Action::proceed; };
  Moments out;
  out.variance.resize(m, count);
  for (Index c = 0; c < count; ++c) {
    auto& f = function(c);
    const Index step = f.plan().variance_block;
    for (Index first = 0; first < m; first += step) {
      const Index rows = std::min(step, m - first);
      const auto some = f.exact_variances(part_of(block, first, rows), observer);
      out.variance.col(c).segment(first, rows) = some.variance;
      out.matvecs += some.matvecs;
    }
  }
  return out;
}

namespace {

// How coupled functions are asked. `auto` variances are exact while that takes a minute, by
// estimate on a typical machine, else those of draws.
class CoupledPlanner {
 public:
  CoupledPlanner(const KernelMachine& model, const PredictOptions& options)
      : model_(model),
        options_(options),
        n_(model.x.rows()),
        count_(model.num_functions()),
        speed_(inference::nominal_speeds(model.problem.kernel, model.x.cols())) {}

  PlannedQuery run();

 private:
  /// Right-hand sides of N C entries.
  struct Work {
    double rows = 0;   // rows whose covariances are solved for, C right-hand sides each
    double draws = 0;  // one each
  };
  Work work(const std::string& variance) const;
  double seconds_by_factors(const Work& work) const;
  double seconds_by_solves(const Work& work) const;
  double seconds(const std::string& variance) const;
  bool direct(const Work& work) const;
  void plan_solves();
  void plan_factors();
  std::unique_ptr<inference::Query> query() const;

  const KernelMachine& model_;
  const PredictOptions& options_;
  Index n_, count_;
  inference::Speeds speed_;
  Plan plan_;
};

CoupledPlanner::Work CoupledPlanner::work(const std::string& variance) const {
  const auto& asked = options_.variance;
  const bool samples = variance == "samples";
  const Index checks = std::min(asked.check_rows_or_default(), asked.rows);
  return {static_cast<double>(variance == "exact" ? asked.rows
                              : samples           ? checks
                                                  : 0),
          static_cast<double>(samples ? std::max(asked.draws, asked.joint_samples)
                                      : asked.joint_samples)};
}

double CoupledPlanner::seconds_by_factors(const Work& w) const {
  using inference::CoupledQuery;
  const double each = CoupledQuery::row_flops(n_, count_);
  return (CoupledQuery::factor_flops(n_, count_) + (w.rows + w.draws) * each) / speed_.flops;
}

double CoupledPlanner::seconds_by_solves(const Work& w) const {
  return (w.rows * static_cast<double>(count_) + w.draws) * kIterations *
         inference::product_seconds(speed_, n_, plan_.system.op, plan_.system.precision, count_);
}

bool CoupledPlanner::direct(const Work& w) const {
  if (options_.solver != "auto") return options_.solver == "cholesky";
  return plan_.base_bytes + inference::CoupledQuery::factor_bytes(n_, count_) <=
             plan_.budget_bytes &&
         (n_ <= planning::kAlwaysDirect || seconds_by_factors(w) < seconds_by_solves(w));
}

double CoupledPlanner::seconds(const std::string& variance) const {
  const auto w = work(variance);
  return direct(w) ? seconds_by_factors(w) : seconds_by_solves(w);
}

void CoupledPlanner::plan_factors() {
  const double all = plan_.base_bytes + inference::CoupledQuery::factor_bytes(n_, count_);
  if (all > plan_.budget_bytes)
    throw DoesNotFit(
        fmt::format("the factors of {} coupled functions need {}, more than the {} there are; give "
                    "`solver=cg`, `variance=samples` or none",
                    count_, format_bytes(all), format_bytes(plan_.budget_bytes)));
  plan_.system.solver = "cholesky";
  plan_.peak_bytes = all;
  plan_.variance_block = kDirectRows;
}

void CoupledPlanner::plan_solves() {
  const double each = inference::CoupledQuery::row_bytes(n_, count_);
  const double left = plan_.budget_bytes - plan_.peak_bytes;
  if (left < each)
    throw DoesNotFit(
        fmt::format("a solve for {} coupled functions needs {}, more than the {} there are", count_,
                    format_bytes(plan_.peak_bytes + each), format_bytes(plan_.budget_bytes)));
  plan_.variance_block = std::clamp<Index>(static_cast<Index>(0.5 * left / each), 1, kSolvedRows);
  plan_.peak_bytes += static_cast<double>(plan_.variance_block) * each;
}

PlannedQuery CoupledPlanner::run() {
  const auto& variance = options_.variance;
  if (variance.method == "vecchia")
    throw InvalidArgument(fmt::format(
        "`variance=vecchia` takes each latent function by itself, and the likelihood {} couples "
        "them; give exact, samples or none",
        model_.problem.likelihood->text()));
  const auto refusal = inference::PathwiseDraws::refusal(model_.problem.kernel);
  if (variance.draws_needed() > 0 && !refusal.empty())
    throw InvalidArgument(fmt::format("there are no draws with this kernel: {}", refusal));
  if (variance.method == "none" && variance.joint_samples == 0) return {query(), Plan()};
  auto method = prediction_method(model_, options_);
  if (method.solver == "kcg")
    throw InvalidArgument(fmt::format(
        "`solver=kcg` finds weights, not the covariances of the likelihood {}; take cg or leave "
        "`solver` out",
        model_.problem.likelihood->text()));
  if (method.solver == "auto" || method.solver == "cholesky") method.solver = "cg";
  double curvature = 0;
  for (const auto& f : model_.functions) curvature += f.curvature.mean();
  const double noise = static_cast<double>(count_) / std::max(curvature, 1e-300);
  plan_ = planning::make_plan(model_.problem.kernel, noise, model_.x, method, PlanFor::solve);
  plan_.variance = variance.method;
  if (variance.method == "auto")
    plan_.variance = seconds("exact") <= kLongestExact || !refusal.empty() ? "exact" : "samples";
  plan_.seconds = seconds(plan_.variance);
  if (direct(work(plan_.variance)))
    plan_factors();
  else
    plan_solves();
  return {query(), std::move(plan_)};
}

std::unique_ptr<inference::Query> CoupledPlanner::query() const {
  inference::CoupledPosterior posterior{model_.problem,     model_.x,       Matrix(n_, count_),
                                        Matrix(n_, count_), Vector(count_), Vector(count_)};
  for (Index c = 0; c < count_; ++c) {
    const auto& f = model_.function(c);
    posterior.a.col(c) = f.weights.w;
    posterior.w.col(c) = f.curvature;
    posterior.offset(c) = f.offset;
    const inference::ErrorBound bound(
        model_.problem.kernel, f.weights,
        {model_.certificate.residual(c), model_.certificate.trend_defect}, model_.x);
    posterior.bound_per_prior_sd(c) = bound(Vector::Ones(1), Matrix(1, 0))(0);
  }
  inference::CoupledQueryOptions options;
  options.variance = plan_.variance == "exact"     ? inference::CoupledVariance::exact
                     : plan_.variance == "samples" ? inference::CoupledVariance::samples
                                                   : inference::CoupledVariance::none;
  options.system = plan_.system;
  options.block_rows = plan_.variance_block;
  options.draws = options_.variance.draws;
  options.joint_samples = options_.variance.joint_samples;
  options.tolerance = options_.tolerance;
  options.seed = model_.method.seed;
  return std::make_unique<inference::CoupledQuery>(std::move(posterior), std::move(options));
}

}  // namespace

PlannedQuery make_query(const KernelMachine& model, const PredictOptions& options) {
  if (model.coupled()) return CoupledPlanner(model, options).run();
  auto query = std::make_unique<IndependentQuery>(model, options);
  Plan plan = query->plan();
  return {std::move(query), std::move(plan)};
}

}  // namespace mercer::models
