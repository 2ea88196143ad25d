#include "mercer/inference/adaptive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/preconditioners/hybrid.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/rpcholesky.hpp"

namespace mercer::inference {
namespace {

using preconditioners::PreconditionerInfo;
using preconditioners::PreconditionerOptions;

// The rate of so many iterations is known before it is believed.
constexpr int kFewest = 4;
constexpr int kLongestWindow = 40;
// A solve that has had n iterations is not expected to need more than this times n.
constexpr double kPatience = 4;
// A change must promise this share of the time at most.
constexpr double kClearGain = 0.9;
// Iterations are expected to halve with the first, small low-rank part.
constexpr double kShareOfFirst = 0.5;
// Iterations that a sparse factor is expected to need: so many, and a share of those without, which
// is less the more of the trace a low-rank part leaves (what it leaves is local then); and the
// share that is left with more neighbours. (docs/methods/preconditioners.md)
constexpr double kSparseIterations = 20;
constexpr double kShareOfSparse = 0.4;
constexpr double kShareOfNeighbours = 0.6;
constexpr Index kFirstRank = 32;
// Each build promises a clear gain; where so many did not help, another will not.
constexpr int kMostBuilds = 8;
// What a build costs beside its arithmetic: only felt below a thousand points.
constexpr double kOverheadSeconds = 5e-4;

// Iterations that a solve still needs, from the rate of its last ones.
class Forecast {
 public:
  double remaining(const Iteration& it) {
    logs_.push_back(std::log(std::max(it.value, std::numeric_limits<double>::min())));
    const auto seen = static_cast<int>(logs_.size());
    if (seen <= kFewest) return 0;
    const int window = std::clamp(seen / 2, kFewest, kLongestWindow);
    const double now = logs_.back();
    const double rate = (logs_[logs_.size() - 1 - static_cast<std::size_t>(window)] - now) / window;
    const double needed = now - std::log(it.target);
    if (needed <= 0) return 0;
    const double most = kPatience * seen;
    return rate > 0 ? std::min(needed / rate, most) : most;
  }

 private:
  std::vector<double> logs_;
};

// The two kinds of levels.
const PreconditionerInfo& rpcholesky_level() {
  static const auto info = preconditioners::rpcholesky_info();
  return info;
}
const PreconditionerInfo& hybrid_level() {
  static const auto info = preconditioners::hybrid_info();
  return info;
}

// A preconditioner that may be built, and the iterations expected of it.
struct Level {
  const PreconditionerInfo* entry = nullptr;  // null: none
  PreconditionerOptions options;
  double expected = 0;
  double trace_left = 1, trace_left_at_half = 1;  // shares of the trace of K
};

// The coefficients of the whole, in place of those of a part.
void append(const krylov::CgCoefficients& whole, krylov::CgCoefficients& part) {
  for (const auto list : {&krylov::CgCoefficients::alpha, &krylov::CgCoefficients::beta,
                          &krylov::CgCoefficients::energy})
    (part.*list).insert((part.*list).begin(), (whole.*list).begin(), (whole.*list).end());
}

// Adds what a part of a solve did to the whole.
void append(krylov::SolveResult& whole, krylov::SolveResult part) {
  part.iterations += whole.iterations;
  part.matvecs += whole.matvecs;
  part.low_precision_matvecs += whole.low_precision_matvecs;
  part.inner_iterations += whole.inner_iterations;
  part.inner_matvecs += whole.inner_matvecs;
  part.seconds += whole.seconds;
  part.restarts += whole.restarts;
  part.fell_back_to_double = part.fell_back_to_double || whole.fell_back_to_double;
  if (whole.column_iterations.size() == part.column_iterations.size())
    for (std::size_t j = 0; j < part.column_iterations.size(); ++j)
      part.column_iterations[j] += whole.column_iterations[j];
  if (whole.residuals.rows() > 0 && whole.residuals.columns() == part.residuals.columns()) {
    Vector row(part.residuals.columns());
    for (Index i = 0; i < part.residuals.rows(); ++i) {
      for (Index j = 0; j < row.size(); ++j) row(j) = part.residuals(i, j);
      whole.residuals.append(row);
    }
    part.residuals = std::move(whole.residuals);
  }
  for (std::size_t j = 0; j < std::min(part.coefficients.size(), whole.coefficients.size()); ++j)
    append(whole.coefficients[j], part.coefficients[j]);
  whole = std::move(part);
}

}  // namespace

std::vector<Index> adaptive_ranks(Index n, Index max_rank) {
  const Index most = std::max<Index>(1, std::min(max_rank, n));
  std::vector<Index> ranks;
  for (Index rank = kFirstRank; rank <= most; rank *= 2) ranks.push_back(rank);
  if (ranks.empty()) ranks.push_back(most);
  return ranks;
}

preconditioners::Cost adaptive_cost(Index n, Index d, Index rank, Index neighbours) {
  PreconditionerOptions options;
  options.rank = rank;
  options.neighbours = std::min(neighbours, n);
  return hybrid_level().cost(n, d, options);
}

Index affordable_rank(Index n, Index d, Index max_rank, double bytes) {
  Index found = 0;
  for (const Index rank : adaptive_ranks(n, max_rank))
    if (adaptive_cost(n, d, rank, kAdaptiveMostNeighbours).peak_bytes <= bytes) found = rank;
  return found;
}

// Half the root of the condition number times log(2/tolerance), the classical bound. The largest
// eigenvalue that rank k leaves is put at twice the mean of the next k, which a doubling would
// remove: (1 - fall) trace_left / k. Within a factor of 1.5 for ranks from 50 on, where measured.
double low_rank_iterations(double trace_left, double fall, Index rank, double noise,
                           double tolerance) {
  const double largest = 2 * (1 - fall) * trace_left / static_cast<double>(rank);
  return std::max(1.0, 0.5 * std::log(2 / tolerance) * std::sqrt(1 + largest / noise));
}

struct Adaptive::Impl {
  preconditioners::Target target;
  AdaptiveOptions options;
  std::vector<Index> ranks;
  Level level;
  int built = 0;
  std::unique_ptr<linalg::Preconditioner> preconditioner;
  preconditioners::BuildReport report;
  double build_seconds = 0;
  double tolerance = 1e-6;  // of the present solve
  Index columns = 1;

  Level make_level(const PreconditionerInfo& entry, Index rank, double expected,
                   std::optional<Index> neighbours = {}) const {
    Level l{&entry, {}, expected};
    l.options.rank = rank;
    l.options.neighbours = neighbours;
    l.options.seed = options.seed;
    return l;
  }
  double product(Index vectors) const {
    return product_seconds(options.speeds, target.k.size(), options.op, options.precision, vectors);
  }
  preconditioners::Cost cost(const Level& l) const {
    if (l.entry == nullptr) return {};
    const auto& x = target.k.points();
    return l.entry->cost(x.rows(), x.cols(), l.options);
  }
  double build_time(const Level& l) const {
    return kOverheadSeconds + inference::build_seconds(options.speeds, cost(l), product(1));
  }
  double iteration_time(const Level& l) const {
    return product(columns) + apply_seconds(options.speeds, cost(l), product(1), columns);
  }
  /// From nothing to the end of the solves that are expected.
  double total_time(const Level& l) const {
    return build_time(l) + options.expected_solves * l.expected * iteration_time(l);
  }
  /// The hybrid on a low-rank part that alone would need so many iterations.
  Level hybrid_on(Index rank, double iterations, double trace_left) const {
    const double smooth = 1 - trace_left;
    const double expected =
        std::min(iterations, kSparseIterations + kShareOfSparse * smooth * smooth * iterations);
    return make_level(hybrid_level(), rank, expected,
                      std::min(kAdaptiveNeighbours, target.k.size()));
  }
  std::optional<Level> better(double remaining) const;
  Level grow_low_rank(approximations::RpCholesky& f) const;
  void build(const Level& next);
};

// Doubles the rank of f as long as the time of the whole is predicted to fall, and says which level
// on it is best: the low-rank part alone, or the hybrid on as much of it as pays.
Level Adaptive::Impl::grow_low_rank(approximations::RpCholesky& f) const {
  std::optional<Level> best;
  const auto consider = [&](const Level& l) {
    if (!best || total_time(l) < total_time(*best)) best = l;
  };
  double before = f.trace();
  // Traces are weighed by the noise of the points, over its harmonic mean.
  const double noise = target.noise.harmonic_mean();
  for (const Index rank : ranks) {
    f.grow(rank / 2 - f.rank());
    if (f.rank() > 0) before = f.residual_trace();
    f.grow(rank - f.rank());
    const double left = f.residual_trace();
    const double fall = before > 0 ? std::clamp(left / before, 0.0, 1.0) : 0.0;
    const auto iterations = [&](double trace, Index k) {
      return low_rank_iterations(trace, fall, k, noise, tolerance);
    };
    Level here = make_level(rpcholesky_level(), f.rank(), iterations(left, f.rank()));
    const double share_left = f.trace() > 0 ? left / f.trace() : 0;
    Level sparse = hybrid_on(f.rank(), here.expected, share_left);
    for (Level* l : {&here, &sparse}) {
      l->trace_left = share_left;
      l->trace_left_at_half = f.trace() > 0 ? before / f.trace() : 0;
      consider(*l);
    }
    if (f.rank() < rank) break;  // nothing of K is left
    // The same fall for each doubling to come: does any of them promise more?
    bool promising = false;
    double trace = left;
    for (Index k = 2 * rank; k <= ranks.back(); k *= 2) {
      trace *= fall;
      const Level there = make_level(rpcholesky_level(), k, iterations(trace, k));
      promising = promising || total_time(there) < kClearGain * total_time(*best);
    }
    if (!promising) break;
  }
  return *best;
}

// What is predicted to finish clearly sooner than going on as it is; nothing when nothing is.
std::optional<Level> Adaptive::Impl::better(double remaining) const {
  double best = kClearGain * options.expected_solves * remaining * iteration_time(level);
  std::optional<Level> found;
  const auto consider = [&](const Level& l) {
    const double seconds = total_time(l);
    if (seconds >= best) return;
    best = seconds;
    found = l;
  };
  if (built == 0) {
    consider(make_level(rpcholesky_level(), ranks.front(), kShareOfFirst * remaining));
    return found;
  }
  const double left = report.trace_left.value_or(1), half = report.trace_left_at_half.value_or(1);
  const double share = half > 0 ? std::clamp(std::sqrt(left / half), 0.3, 1.0) : 1.0;
  const bool sparse = level.entry == &hybrid_level();
  // A build that fell short of its rank found nothing more in K.
  const bool exhausted = report.rank < level.options.rank.value_or(1);
  double expected = remaining;
  for (Index rank = 2 * report.rank; !exhausted && rank <= ranks.back(); rank *= 2) {
    expected *= share;
    consider(make_level(*level.entry, rank, expected, level.options.neighbours));
  }
  if (!sparse)
    consider(hybrid_on(report.rank, remaining, left));
  else if (report.neighbours < kAdaptiveMostNeighbours && kAdaptiveMostNeighbours < target.k.size())
    consider(make_level(hybrid_level(), report.rank, kShareOfNeighbours * remaining,
                        kAdaptiveMostNeighbours));
  return found;
}

void Adaptive::Impl::build(const Level& next) {
  const Timer timer;
  preconditioner.reset();  // first: both at once may not fit
  level = next;
  preconditioners::Built done;
  if (built == 0) {
    approximations::RpCholesky f(
        target.k, preconditioners::rpcholesky_options(target, ranks.front(), options.seed));
    level = grow_low_rank(f);
    const double values = f.kernel_values();
    const Index rank = *level.options.rank;
    if (level.entry == &hybrid_level()) {
      done = preconditioners::hybrid_on(target, f.factor().leftCols(rank), level.options);
    } else {
      auto low_rank = std::move(f).take();
      if (low_rank.rank() > rank) low_rank.factor.conservativeResize(Eigen::NoChange, rank);
      low_rank.trace_error = level.trace_left * low_rank.trace;
      low_rank.kernel_values = 0;  // counted below for both
      done = preconditioners::build_low_rank(std::move(low_rank), target.noise,
                                             target.k.row_space(), "");
    }
    done.report.kernel_values += values;
    done.report.trace_left = level.trace_left;
    done.report.trace_left_at_half = level.trace_left_at_half;
  } else {
    done = preconditioners::make(*level.entry, target, level.options);
  }
  preconditioner = std::move(done.preconditioner);
  report = std::move(done.report);
  report.name = level.entry->name;
  report.build_seconds = timer.seconds();
  build_seconds += report.build_seconds;
  ++built;
}

Adaptive::Adaptive(preconditioners::Target target, AdaptiveOptions options)
    : impl_(new Impl{.target = target, .options = std::move(options)}) {
  impl_->ranks = adaptive_ranks(target.k.size(), impl_->options.max_rank);
  impl_->report.name = "none";
}

Adaptive::~Adaptive() = default;

krylov::SolveResult Adaptive::solve(const krylov::SolverInfo& solver,
                                    const linalg::LinearOperator& a, ConstMatrixView b,
                                    MatrixView x, const krylov::SolverOptions& options,
                                    const krylov::SolverContext& context) {
  if (solver.unbiased)
    throw InvalidArgument(fmt::format(
        "`preconditioner=auto` changes P on the way, and with {} that would bias the solution; "
        "name a preconditioner",
        solver.name));
  krylov::SolveResult whole;
  krylov::SolverOptions rest = options;
  impl_->tolerance = std::min(0.5, options.rms_tolerance.value_or(options.tolerance));
  impl_->columns = b.cols();
  while (true) {
    Forecast forecast;
    std::optional<Level> next;
    krylov::SolverContext watched = context;
    watched.preconditioner = impl_->preconditioner.get();
    watched.observer = [&](const Iteration& it) {
      Iteration total = it;
      total.number += whole.iterations;
      if (context.observer && context.observer(total) == Action::stop) return Action::stop;
      const double remaining = forecast.remaining(it);
      // What was built was the best as long as it keeps its promise.
      if (it.number > impl_->level.expected) next = impl_->better(remaining);
      return next ? Action::stop : Action::proceed;
    };
    append(whole, solver.solve(a, b, x, rest, watched));
    rest.max_iterations = options.max_iterations - whole.iterations;
    if (whole.converged() || whole.stop == StopReason::iteration_limit) return whole;
    // A solve that is stuck takes the next level whatever it costs.
    if (!next && (whole.stop == StopReason::stagnation || whole.stop == StopReason::breakdown))
      next = impl_->built == 0 ? impl_->make_level(rpcholesky_level(), impl_->ranks.front(), 0)
                               : impl_->better(1e9);
    if (!next || impl_->built >= kMostBuilds) return whole;
    if (rest.max_iterations <= 0) {
      whole.stop = StopReason::iteration_limit;
      return whole;
    }
    impl_->build(*next);
  }
}

const preconditioners::BuildReport& Adaptive::report() const { return impl_->report; }
int Adaptive::levels_built() const { return impl_->built; }
double Adaptive::build_seconds() const { return impl_->build_seconds; }

}  // namespace mercer::inference
