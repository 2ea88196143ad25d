#include "mercer/inference/exact/evidence_gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "mercer/approximations/random_features.hpp"
#include "mercer/approximations/vecchia_likelihood.hpp"
#include "mercer/core/error.hpp"
#include "mercer/preconditioners/hybrid.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::inference {
namespace {

struct Kind {
  Probes kind;
  std::string_view name;
};
constexpr Kind kKinds[] = {{Probes::control, "control"},
                           {Probes::preconditioned, "preconditioned"},
                           {Probes::pathwise, "pathwise"},
                           {Probes::rademacher, "rademacher"},
                           {Probes::gaussian, "gaussian"}};

// A preconditioner serves until the log parameters have moved by this, or a solve takes so many
// times the iterations it took when it was new.
constexpr double kFarFromBuild = 0.1;
constexpr int kTooSlow = 2;
// With "auto": more iterations than this, and the sparse factor gets a low-rank part beside it.
constexpr int kManyIterations = 15;
constexpr Index kHybridNeighbours = 30;
constexpr int kHighestLevel = 3;
constexpr Index kPathwiseFeatures = 2000;
// A pass in float32 must be so close to that in double, in standard errors of the gradient. That is
// measured in every hundredth estimate, after a failure in every tenth, against so many contrasts
// of probes.
constexpr double kSmallPassError = 0.01;
constexpr int kEstimatesPerCheck = 100, kEstimatesPerFailedCheck = 10;
constexpr int kCheckContrasts = 3;

// Columns of a draw from N(0, K), nearly.
Matrix prior_draws(const kernels::Kernel& kernel, ConstMatrixView x, Index count,
                   std::uint64_t seed, Rng& rng) {
  using approximations::RandomFeatures;
  const RandomFeatures features(
      kernel, std::max(kPathwiseFeatures, RandomFeatures::smallest_count(kernel)), seed);
  Matrix coefficients(features.count(), count);
  rng.fill_normal(coefficients);
  return features.combine(x, coefficients);
}

// Signs of the r-th contrast between probes: a row of a Hadamard matrix, r >= 1.
double contrast_sign(Index probe, int r) {
  return std::popcount(static_cast<unsigned>(probe) & static_cast<unsigned>(r)) % 2 == 0 ? 1 : -1;
}

// Columns with mean zero and, suitably scaled, the variance of the mean over probes: the pass over
// u and v, whose columns belong to probes, with signs. At most as many as probes but one.
template <class Pass>
Matrix contrasts_of(ConstMatrixView u, ConstMatrixView v, int wanted, const Pass& pass) {
  const Index t = u.cols();
  const auto count = std::min<Index>(wanted, t - 1);
  Matrix out;
  Vector mean;  // needed only when the signs do not balance
  for (int r = 1; r <= count; ++r) {
    Matrix contrast = u;
    double balance = 0;
    for (Index s = 0; s < t; ++s) {
      contrast.col(s) *= contrast_sign(s, r);
      balance += contrast_sign(s, r) / static_cast<double>(t);
    }
    Vector d = pass(contrast, v);
    if (balance != 0) {
      if (mean.size() == 0) mean = pass(u, v);
      d -= balance * mean;
    }
    if (out.size() == 0) out.resize(d.size(), count);
    out.col(r - 1) = d / std::sqrt(std::max(1 - balance * balance, 1e-3));
  }
  return out;
}

Vector standard_errors(const Matrix& contrasts) {
  return contrasts.cwiseAbs2().rowwise().mean().cwiseSqrt();
}

// The columns [y, A, ..] of right-hand sides or solutions as [A, y, ..], A of q columns, and back.
Matrix with_basis_first(Matrix m, Index q) {
  for (Index j = 0; j < q; ++j) m.col(j).swap(m.col(j + 1));
  return m;
}
Matrix with_target_first(Matrix m, Index q) {
  for (Index j = q; j > 0; --j) m.col(j).swap(m.col(j - 1));
  return m;
}

// Of a block [y, ..], the q-th column of the run being y.
RandomStops summary_of(const UnbiasedSolutions& solved, ConstVectorView y, Index q) {
  RandomStops out;
  for (const auto& stop : solved.report.random_stops) {
    if (!stop.early_iterations) continue;
    ++out.solves;
    if (stop.extra_iterations > 1) ++out.continued;
    out.extra_iterations += stop.extra_iterations;
  }
  const double energy = solved.last_iterate.col(q).dot(y);  // |x|_H^2
  const double variance = solved.report.random_stops[static_cast<std::size_t>(q)].energy_variance;
  if (energy > 0) out.relative_variance = variance / energy;
  return out;
}

}  // namespace

std::string_view to_string(Probes kind) {
  for (const auto& k : kKinds)
    if (k.kind == kind) return k.name;
  return "unknown";
}

std::vector<std::string_view> probe_kinds() {
  std::vector<std::string_view> names;
  for (const auto& k : kKinds) names.push_back(k.name);
  return names;
}

Probes probe_kind(std::string_view name) {
  for (const auto& k : kKinds)
    if (k.name == name) return k.kind;
  throw InvalidArgument(
      fmt::format("there are no probes '{}'; there are: {}", name, fmt::join(probe_kinds(), ", ")));
}

struct EvidenceGradient::Impl {
  const Observations& data;
  EstimatorOptions options;
  State state;
  std::unique_ptr<preconditioners::Vecchia> sparse;  // P of `control`, and of "auto"
  Operators built_on;                                // those that `other` may refer to
  std::unique_ptr<linalg::Preconditioner> other;     // when the sparse factor does not precondition

  bool automatic() const { return options.system.preconditioner == "auto"; }
  bool needs_sparse() const {
    return options.kind == Probes::control || (automatic() && state.level == 0);
  }
  const linalg::Preconditioner* preconditioner() const {
    if (other) return other.get();
    return automatic() ? sparse.get() : nullptr;
  }
  void build(const Problem& problem);
  bool must_build(const Problem& problem) const {
    return state.stale ||
           (problem.log_parameters() - state.built_at).lpNorm<Eigen::Infinity>() > kFarFromBuild;
  }
  // What the trace is estimated from: tr(H^-1 dH) = exact + mean of (u_s - subtract_s)' dH v_s.
  struct ProbeSet {
    Matrix z;  // right-hand sides
    Matrix v;  // empty: the solves themselves
    bool subtract_v = false;
  };
  ProbeSet draw(const Problem& problem, const linalg::RowSpace& rows) const;

  // H^-1 [y, A, z]. Where solves stop at random there is an independent copy, else it is empty.
  struct Solutions {
    Matrix x, copy;
    Matrix last_iterate;  // of a random stop: better than x to start from
    /// Iterations that say how good the preconditioner is. Of random stops those to the early
    /// tolerance, which no draw has made longer, and only with new probes: warm starts take few.
    std::optional<int> telling;
    const Matrix& second() const { return copy.size() > 0 ? copy : x; }
  };
  // What the solves are asked for: a random stop, or none, and the columns of A.
  struct Solving {
    double tolerance;
    const std::optional<krylov::RandomStopOptions>& random_stop;
    Index basis_columns;
  };
  Solutions solve(const IterativeSystem& system, const Matrix& b, const Solving& how,
                  const Observer& observer, Evidence& out) const;
  void learn_from(std::optional<int> iterations);
};

void EvidenceGradient::Impl::build(const Problem& problem) {
  sparse.reset();
  other.reset();
  built_on = make_operators(problem.kernel, data.x, options.system.op, options.system.precision);
  const linalg::Diagonal noise = data.noise.at(problem.noise());
  const preconditioners::Target target{*built_on.exact, noise, built_on.fast.get()};
  const Index n = data.size();
  if (needs_sparse())
    sparse = std::make_unique<preconditioners::Vecchia>(
        *built_on.exact, noise,
        approximations::VecchiaOptions{.neighbours = preconditioners::default_neighbours(n),
                                       .seed = options.seed});
  auto wanted = options.system.preconditioning;
  if (!automatic()) {
    other = preconditioners::make(options.system.preconditioner, target, wanted).preconditioner;
  } else if (state.level > 0) {
    wanted = {};
    wanted.rank = std::min(preconditioners::default_rank(n) << (state.level - 1),
                           options.system.preconditioning.rank.value_or(n));
    wanted.neighbours = std::min(n, kHybridNeighbours);
    wanted.seed = options.seed;
    other = preconditioners::make(preconditioners::hybrid_info(), target, wanted).preconditioner;
  }
  state.built_at = problem.log_parameters();
  state.stale = false;
  state.iterations_when_new = 0;
}

EvidenceGradient::Impl::ProbeSet EvidenceGradient::Impl::draw(const Problem& problem,
                                                              const linalg::RowSpace& rows) const {
  const Index n = data.size();
  const auto stream = options.fresh ? static_cast<std::uint64_t>(state.estimates) : state.probes;
  Rng rng(options.seed, "probes", stream);
  ProbeSet out;
  out.z.resize(n, options.probes);
  const auto from = [&](const linalg::Preconditioner& p) {
    p.sample(rng, out.z);
    out.v.resize(n, options.probes);
    p.solve(out.z, out.v);
  };
  switch (options.kind) {
    case Probes::control:
      from(*sparse);
      out.subtract_v = true;
      break;
    case Probes::preconditioned:
      if (preconditioner() == nullptr)
        throw InvalidArgument("preconditioned probes need a preconditioner");
      from(*preconditioner());
      break;
    case Probes::pathwise: {
      out.z = prior_draws(problem.kernel, data.x, options.probes, options.seed + stream, rng);
      Matrix e(n, options.probes);
      linalg::fill_normal(rng, rows, e);
      out.z += data.noise.at(problem.noise()).vector(n).cwiseSqrt().asDiagonal() * e;
      break;
    }
    case Probes::rademacher:
      linalg::fill_rademacher(rng, rows, out.z);
      out.v = out.z;
      break;
    case Probes::gaussian:
      linalg::fill_normal(rng, rows, out.z);
      out.v = out.z;
      break;
  }
  return out;
}

EvidenceGradient::EvidenceGradient(const Observations& data, EstimatorOptions options)
    : impl_(new Impl{data, std::move(options), {}, nullptr, {}, nullptr}) {
  validate(impl_->options);
  if (data.y.size() != data.x.rows())
    throw DimensionMismatch("evidence gradient: length of y", data.y.size(), "points",
                            data.x.rows());
  if (impl_->options.system.direct())
    throw InvalidArgument("evidence gradient: solves are iterative; cholesky has exact_evidence");
}
EvidenceGradient::~EvidenceGradient() = default;

EvidenceGradient::Impl::Solutions EvidenceGradient::Impl::solve(const IterativeSystem& system,
                                                                const Matrix& b, const Solving& how,
                                                                const Observer& observer,
                                                                Evidence& out) const {
  Solutions solved;
  solved.x = Matrix::Zero(b.rows(), b.cols());
  if (options.warm_starts && state.solutions.cols() == b.cols()) solved.x = state.solutions;
  const auto report = [&](const SystemReport& r) {
    out.stop = r.stop;
    out.iterations = r.iterations;
    out.relative_residual = r.relative_residual;
  };
  if (!how.random_stop) {
    report(solve_iteratively(system, b, solved.x, how.tolerance, observer));
    solved.telling = out.iterations;
    return solved;
  }
  const bool cold = solved.x.rightCols(options.probes).isZero(0);
  const Index q = how.basis_columns;
  UnbiasedRequest request{how.tolerance, *how.random_stop};
  request.stop.whole_columns = static_cast<int>(q);
  auto unbiased = solve_unbiased(system, with_basis_first(b, q),
                                 with_basis_first(std::move(solved.x), q), request, observer);
  report(unbiased.report);
  // One that met its limit of iterations is not right on average.
  const bool ended = out.stop == StopReason::random_stop || out.stop == StopReason::converged;
  if (ended) out.random_stops = summary_of(unbiased, b.col(0), q);
  if (cold) {
    solved.telling = ended ? 0 : out.iterations;
    for (const auto& stop : unbiased.report.random_stops)
      solved.telling = std::max(*solved.telling, stop.early_iterations.value_or(0));
  }
  solved.x = with_target_first(std::move(unbiased.first), q);
  solved.copy = with_target_first(std::move(unbiased.second), q);
  solved.last_iterate = with_target_first(std::move(unbiased.last_iterate), q);
  return solved;
}

// After an estimate: whether the preconditioner is to be made anew, or a better one.
void EvidenceGradient::Impl::learn_from(std::optional<int> iterations) {
  ++state.estimates;
  if (!iterations) return;
  if (state.iterations_when_new == 0) state.iterations_when_new = std::max(1, *iterations);
  state.stale = *iterations > kTooSlow * state.iterations_when_new;
  const bool room = options.system.preconditioning.rank.value_or(data.size()) > 0;
  if (automatic() && room && *iterations > kManyIterations && state.level < kHighestLevel) {
    ++state.level;
    state.stale = true;
  }
}

// One solve and one pass over the tiles, in the order of the formulas.
// NOLINTNEXTLINE(readability-function-size)
Evidence EvidenceGradient::estimate(const Problem& problem, double tolerance, int error_passes,
                                    const Observer& observer,
                                    const std::optional<krylov::RandomStopOptions>& random_stop) {
  auto& self = *impl_;
  const auto& system = self.options.system;
  const Index n = self.data.size(), t = self.options.probes;
  const linalg::Diagonal noise = self.data.noise.at(problem.noise());
  const Vector slope = self.data.noise.slope(problem.noise()).vector(n);
  const Operators k = make_operators(problem.kernel, self.data.x, system.op, system.precision);

  Evidence out;
  if (self.must_build(problem)) self.build(problem);
  const auto probes = self.draw(problem, k.exact->row_space());
  const Matrix basis = problem.basis(self.data.x);
  const Index q = basis.cols();

  Matrix b(n, 1 + q + t);
  b << self.data.y, basis, probes.z;
  auto solved = self.solve({k, noise, system, self.preconditioner()}, b,
                           {tolerance, random_stop, q}, observer, out);
  if (out.stop == StopReason::interrupted) return out;

  // Columns of A are solved for to the tolerance, so that w is linear in the solution for y.
  const Weights weights = combine_solves(solved.x.leftCols(1 + q), basis);
  const bool paired = solved.copy.size() > 0;

  // Columns of the pass: w first, then the probes.
  Matrix u(n, 1 + t), v(n, 1 + t), kv(n, 1 + t);
  u.col(0) = 0.5 * weights.w;
  v.col(0) = paired ? combine_solves(solved.copy.leftCols(1 + q), basis).w : weights.w;
  u.rightCols(t) = solved.x.rightCols(t);
  // What is linear in the solutions takes the mean of both; u' dH u takes one on each side.
  if (paired && probes.v.cols() > 0)
    u.rightCols(t) = 0.5 * (u.rightCols(t) + solved.copy.rightCols(t));
  if (probes.subtract_v) u.rightCols(t) -= probes.v;
  u.rightCols(t) *= -0.5 / static_cast<double>(t);
  v.rightCols(t) = probes.v.cols() > 0 ? probes.v : solved.second().rightCols(t);
  const Index p = problem.kernel.num_parameters();
  const auto pass_of = [&](bool quick) {
    return [&, quick](ConstMatrixView left, ConstMatrixView right) {
      Vector gradient(p + 1);
      const MatrixView product = kv.leftCols(left.cols());
      if (quick)
        k.fast->apply_with_quick_gradient(left, right, product, gradient.head(p));
      else
        k.exact->apply_with_gradient(left, right, product, gradient.head(p));
      gradient(p) = slope.dot((left.array() * right.array()).rowwise().sum().matrix());
      return gradient;
    };
  };
  auto& state = self.state;
  const bool may_round = random_stop && k.fast && t > 1;
  const bool small = state.pass_error <= kSmallPassError;
  const bool checks =
      may_round && state.estimates % (small ? kEstimatesPerCheck : kEstimatesPerFailedCheck) == 0;
  const bool quick = may_round && !checks && small;
  out.gradient = pass_of(quick)(u, v);
  if (checks) {
    const Vector rounding = (pass_of(true)(u, v) - out.gradient).head(p).cwiseAbs();
    const Vector noise_of_probes = standard_errors(
        contrasts_of(u.rightCols(t), v.rightCols(t), kCheckContrasts, pass_of(true)));
    state.pass_error =
        rounding.cwiseQuotient(noise_of_probes.head(p)).maxCoeff<Eigen::PropagateNaN>();
  }
  if (quick && out.random_stops) out.random_stops->pass_error = state.pass_error;
  if (self.options.kind == Probes::control)
    out.gradient -= 0.5 * approximations::inverse_trace(self.sparse->factor(), problem.kernel,
                                                        self.data.x, slope);

  out.gradient(p) += self.data.replicates.slope(problem.noise());

  if (error_passes > 0 && t > 1) {
    out.contrasts = contrasts_of(u.rightCols(t), v.rightCols(t), error_passes, pass_of(quick));
    out.standard_error = standard_errors(out.contrasts);
  }
  out.matvecs = k.exact->products() + (k.fast ? k.fast->products() : 0);

  state.solutions = std::move(paired ? solved.last_iterate : solved.x);
  self.learn_from(solved.telling);
  return out;
}

void EvidenceGradient::use_probes(std::uint64_t number) {
  auto& state = impl_->state;
  if (state.probes == number) return;
  state.probes = number;
  const Index t = impl_->options.probes;
  if (state.solutions.cols() > t) state.solutions.rightCols(t).setZero();
}

const EvidenceGradient::State& EvidenceGradient::state() const { return impl_->state; }

void EvidenceGradient::resume(State state, const Problem& like) {
  auto& self = *impl_;
  self.state = std::move(state);
  if (self.state.stale) return;
  // The same bits: the preconditioner is made again where it was made.
  auto problem = like;
  problem.set_log_parameters(self.state.built_at);
  const int iterations = self.state.iterations_when_new;
  self.build(problem);
  self.state.iterations_when_new = iterations;
}

}  // namespace mercer::inference
