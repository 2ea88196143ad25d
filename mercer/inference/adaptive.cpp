#include "mercer/inference/adaptive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/core/timer.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::inference {
namespace {

using preconditioners::PreconditionerOptions;

constexpr const char* kKind = "hybrid";
// The rate of so many iterations is known before it is believed.
constexpr int kFewest = 4;
constexpr int kLongestWindow = 40;
// Iterations that the first level is expected to need, and the share of iterations that is left
// when the rank doubles (measured: docs/methods/preconditioners.md).
constexpr double kFirstLevelIterations = 20;
constexpr double kShareAfterDoubling = 0.6;

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
    return rate > 0 ? needed / rate : HUGE_VAL;
  }

 private:
  std::vector<double> logs_;
};

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
  whole = std::move(part);
}

}  // namespace

std::vector<Index> adaptive_ranks(Index n, Index max_rank) {
  const Index most = std::min(max_rank, n);
  const Index first = std::max<Index>(32, preconditioners::default_rank(n) / 4);
  std::vector<Index> ranks;
  for (Index rank = first; rank <= most; rank *= 2) ranks.push_back(rank);
  if (ranks.empty()) ranks.push_back(std::max<Index>(1, most));
  return ranks;
}

struct Adaptive::Impl {
  preconditioners::Target target;
  AdaptiveOptions options;
  std::vector<Index> ranks;
  std::size_t built = 0;  // levels built
  std::unique_ptr<linalg::Preconditioner> preconditioner;
  preconditioners::BuildReport report;
  double build_seconds = 0;

  PreconditionerOptions level(std::size_t k) const {
    PreconditionerOptions o;
    o.rank = ranks[k];
    o.seed = options.seed;
    return o;
  }
  preconditioners::Cost cost(std::size_t k) const {
    const auto& x = target.k.points();
    return preconditioners::preconditioner(kKind).cost(x.rows(), x.cols(), level(k));
  }
  double product(Index columns) const {
    return product_seconds(options.speeds, target.k.size(), options.op, options.precision, columns);
  }
  /// Seconds of an iteration with so many levels built.
  double iteration_seconds(std::size_t levels, Index columns) const {
    const double one = product(columns);
    return levels == 0 ? one
                       : one + apply_seconds(options.speeds, cost(levels - 1), product(1), columns);
  }
  bool next_pays(double remaining, int done, Index columns) const;
  void build_next();
};

// The next level pays when this solve (and those expected after it) will take longer as it is than
// building and going on with it. Time already spent at this level counts as a forecast too: a solve
// that has cost as much as the next level may well cost as much again.
bool Adaptive::Impl::next_pays(double remaining, int done, Index columns) const {
  if (built == ranks.size() || done <= kFewest) return false;
  const double now = iteration_seconds(built, columns);
  const double then = iteration_seconds(built + 1, columns);
  const double build = inference::build_seconds(options.speeds, cost(built), product(1));
  const double left = std::max(remaining, remaining > 0 ? static_cast<double>(done) : 0.0);
  const double iterations_then =
      built == 0 ? std::min(left, kFirstLevelIterations) : kShareAfterDoubling * left;
  return options.expected_solves * left * now >
         build + options.expected_solves * iterations_then * then;
}

void Adaptive::Impl::build_next() {
  // The old one goes first: both at once may not fit.
  preconditioner.reset();
  auto next = preconditioners::make(kKind, target, level(built));
  preconditioner = std::move(next.preconditioner);
  report = std::move(next.report);
  build_seconds += report.build_seconds;
  ++built;
}

Adaptive::Adaptive(preconditioners::Target target, AdaptiveOptions options)
    : impl_(new Impl{target, std::move(options), {}, 0, nullptr, {}, 0}) {
  impl_->ranks = adaptive_ranks(target.k.size(), impl_->options.max_rank);
  impl_->report.name = "none";
}

Adaptive::~Adaptive() = default;

krylov::SolveResult Adaptive::solve(const krylov::SolverInfo& solver,
                                    const linalg::LinearOperator& a, ConstMatrixView b,
                                    MatrixView x, const krylov::SolverOptions& options,
                                    const krylov::SolverContext& context) {
  krylov::SolveResult whole;
  krylov::SolverOptions rest = options;
  while (true) {
    Forecast forecast;
    bool grow = false;
    krylov::SolverContext watched = context;
    watched.preconditioner = impl_->preconditioner.get();
    watched.observer = [&](const Iteration& it) {
      Iteration total = it;
      total.number += whole.iterations;
      if (context.observer && context.observer(total) == Action::stop) return Action::stop;
      grow = impl_->next_pays(forecast.remaining(it), it.number, b.cols());
      return grow ? Action::stop : Action::proceed;
    };
    append(whole, solver.solve(a, b, x, rest, watched));
    rest.max_iterations = options.max_iterations - whole.iterations;
    const bool stuck = whole.stop == StopReason::stagnation || whole.stop == StopReason::breakdown;
    if (whole.converged() || !(grow || stuck) || rest.max_iterations <= 0 ||
        impl_->built == impl_->ranks.size()) {
      if (grow && rest.max_iterations <= 0) whole.stop = StopReason::iteration_limit;
      return whole;
    }
    impl_->build_next();
  }
}

const preconditioners::BuildReport& Adaptive::report() const { return impl_->report; }
int Adaptive::levels_built() const { return static_cast<int>(impl_->built); }
double Adaptive::build_seconds() const { return impl_->build_seconds; }

}  // namespace mercer::inference
