#include "mercer/krylov/cg.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/krylov/detail/cg_column.hpp"

namespace mercer::krylov {
namespace {

using detail::Column;

constexpr Index row_chunk = 8192;
constexpr Index parallel_work = 1 << 18;
// A direction survives a replaced residual that moved by less than this part of itself. Beyond it,
// starting anew converges faster than carrying on with directions that are no longer conjugate.
constexpr double tolerated_move = 1e-4;
// Low-precision products: the residual is replaced when its drift is estimated at this part of it.
constexpr double tolerated_drift = 0.2;
constexpr double low_precision_epsilon = 2e-7;  // drift per |A| |alpha p| until it is measured
constexpr int max_poor_checks = 3;              // in a row, before the column counts as stalled
constexpr int short_stretch = 10;               // iterations between checks that are too few
constexpr Index reserved_iterations = 4096;

/// body(column, first_row, rows) over fixed chunks of rows, in parallel when there is enough.
template <class Body>
void for_chunks(Index n, Index columns, const Body& body) {
  const Index chunks = (n + row_chunk - 1) / row_chunk;
  const auto task = [&](Index t, int) {
    const Index first = (t % chunks) * row_chunk;
    body(t / chunks, first, std::min(row_chunk, n - first));
  };
  if (n * columns >= parallel_work) {
    parallel_for(chunks * columns, std::ref(task));
  } else {
    for (Index t = 0; t < chunks * columns; ++t) task(t, 0);
  }
}

class Solve {
 public:
  Solve(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x, const CgOptions& options,
        const CgContext& context);
  SolveResult run();

 private:
  void start();
  void set_scale(Column& c);
  void iterate();
  void apply_block();
  void finish_checks();
  void judge_check(Index slot, double moved);
  void take_steps();
  void add_to_path();
  bool record_and_ask();
  void choose_checks();
  void choose_directions();
  void exchange_x_and_p();
  void verify_unfinished();
  void fall_back();

  /// r(:, slot) = scale b - q(:, slot); q becomes the change of r when asked.
  void residual_from_product(Index first_slot, Index count, bool keep_change);
  void swap_slots(Index i, Index j);
  void retire(Index slot, StopReason reason);
  void dots(const Matrix& u, const Matrix& v, Index first, Index count);
  Column& at(Index slot) { return columns_[static_cast<std::size_t>(slot)]; }
  bool mixed() const { return steps_with_ != &a_; }

  const linalg::LinearOperator& a_;
  const linalg::LinearOperator* steps_with_;
  ConstMatrixView b_;
  MatrixView x_;
  const CgOptions& options_;
  const CgContext& context_;
  Timer timer_;
  Index n_, t_;
  int window_;
  Matrix r_, p_, q_, z_;  // z_ only with a preconditioner
  std::vector<Column> columns_;
  Index active_ = 0;    // slots [0, active_) still run
  Index stepping_ = 0;  // of these [0, stepping_) hold p, the others hold x to be checked
  std::vector<double> dots_;
  Vector row_, q_squared_;
  int rounds_ = 0;
  SolveResult result_;
};

Solve::Solve(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
             const CgOptions& options, const CgContext& context)
    : a_(a),
      steps_with_(context.low_precision != nullptr ? context.low_precision : &a),
      b_(b),
      x_(x),
      options_(options),
      context_(context),
      n_(a.size()),
      t_(b.cols()),
      window_(options.stagnation_window.value_or(
          std::max(500, static_cast<int>(10 * std::sqrt(static_cast<double>(n_)))))),
      r_(n_, t_),
      p_(n_, t_),
      q_(n_, t_),
      z_(context.preconditioner != nullptr ? n_ : 0, context.preconditioner != nullptr ? t_ : 0),
      columns_(static_cast<std::size_t>(t_)),
      active_(t_),
      dots_(static_cast<std::size_t>(t_)),
      row_(Vector::Zero(t_)),
      q_squared_(t_) {
  const auto count = static_cast<std::size_t>(t_);
  result_.column_stops.assign(count, StopReason::converged);
  result_.column_iterations.assign(count, 0);
  result_.column_residuals = Vector::Zero(t_);
  result_.residual_norms = Vector::Zero(t_);
  result_.residuals = History(t_);
  const Index rows = std::min<Index>(options.max_iterations, reserved_iterations);
  result_.residuals.reserve(rows);
  if (options.keep_coefficients) {
    result_.coefficients.resize(count);
    for (auto& c : result_.coefficients) {
      c.alpha.reserve(static_cast<std::size_t>(rows));
      c.beta.reserve(static_cast<std::size_t>(rows));
    }
  }
}

void Solve::dots(const Matrix& u, const Matrix& v, Index first, Index count) {
  if (count > 0)
    a_.column_dots(u.middleCols(first, count), v.middleCols(first, count),
                   std::span(dots_.data() + first, static_cast<std::size_t>(count)));
}

// Far from 1 the squares of b overflow or vanish; a power of two moves it near 1 without rounding.
void Solve::set_scale(Column& c) {
  const double largest = n_ > 0 ? b_.col(c.id).cwiseAbs().maxCoeff() : 0.0;
  if (largest == 0 || (largest > 1e-100 && largest < 1e100)) return;
  c.scale = std::ldexp(1.0, -std::ilogb(largest));
  x_.col(c.id) *= c.scale;
}

void Solve::start() {
  Index guesses = 0;  // columns with a first guess go first: they need a product
  for (Index j = 0; j < t_; ++j) {
    at(j).id = j;
    set_scale(at(j));
  }
  for (Index j = 0; j < t_; ++j)
    if (!x_.col(at(j).id).isZero(0)) std::swap(at(j), at(guesses++));
  for (Index slot = 0; slot < t_; ++slot) r_.col(slot) = at(slot).scale * b_.col(at(slot).id);
  dots(r_, r_, 0, t_);
  for (Index slot = 0; slot < t_; ++slot)
    at(slot).norm_b = std::sqrt(dots_[static_cast<std::size_t>(slot)]);

  if (guesses > 0) {
    for (Index slot = 0; slot < guesses; ++slot) p_.col(slot) = x_.col(at(slot).id);
    a_.apply(p_.leftCols(guesses), q_.leftCols(guesses));
    result_.matvecs += guesses;
    residual_from_product(0, guesses, false);
    dots(r_, r_, 0, guesses);
  }
  for (Index slot = t_ - 1; slot >= 0; --slot) {
    Column& c = at(slot);
    c.rr = dots_[static_cast<std::size_t>(slot)];
    c.target = options_.rms_tolerance
                   ? *options_.rms_tolerance * std::sqrt(static_cast<double>(n_)) * c.scale
                   : options_.tolerance * c.norm_b;
    c.checked = c.halved = c.residual();
    if (c.norm_b == 0) {
      x_.col(c.id).setZero();
      c.rr = 0;
    }
    row_(c.id) = c.relative();
    if (!std::isfinite(c.rr)) {
      retire(slot, StopReason::breakdown);
    } else if (c.residual() <= c.target) {
      retire(slot, StopReason::converged);
    }
  }
  stepping_ = active_;
}

void Solve::residual_from_product(Index first_slot, Index count, bool keep_change) {
  for_chunks(n_, count, [&](Index k, Index first, Index rows) {
    const Index slot = first_slot + k;
    const Column& c = at(slot);
    const double* b = b_.col(c.id).data() + first;
    double* r = r_.col(slot).data() + first;
    double* q = q_.col(slot).data() + first;
    for (Index i = 0; i < rows; ++i) {
      const double truth = c.scale * b[i] - q[i];
      if (keep_change) q[i] = truth - r[i];
      r[i] = truth;
    }
  });
}

void Solve::swap_slots(Index i, Index j) {
  if (i == j) return;
  std::swap(at(i), at(j));
  r_.col(i).swap(r_.col(j));
  p_.col(i).swap(p_.col(j));
}

void Solve::retire(Index slot, StopReason reason) {
  Column& c = at(slot);
  const auto id = static_cast<std::size_t>(c.id);
  result_.column_stops[id] = reason;
  result_.column_iterations[id] = c.iterations;
  swap_slots(slot, --active_);
}

void Solve::apply_block() {
  const Index checks = active_ - stepping_;
  if (!mixed()) {
    a_.apply(p_.leftCols(active_), q_.leftCols(active_));
  } else {
    if (stepping_ > 0) steps_with_->apply(p_.leftCols(stepping_), q_.leftCols(stepping_));
    if (checks > 0) a_.apply(p_.middleCols(stepping_, checks), q_.middleCols(stepping_, checks));
    result_.low_precision_matvecs += stepping_;
  }
  result_.matvecs += active_;
}

void Solve::exchange_x_and_p() {
  for_chunks(n_, active_ - stepping_, [&](Index k, Index first, Index rows) {
    const Index slot = stepping_ + k;
    double* p = p_.col(slot).data() + first;
    std::swap_ranges(p, p + rows, x_.col(at(slot).id).data() + first);
  });
}

// Slots [stepping_, active_): q = A x, so r = b - q is the true residual.
void Solve::finish_checks() {
  const Index checks = active_ - stepping_;
  if (checks == 0) return;
  exchange_x_and_p();
  residual_from_product(stepping_, checks, true);
  dots(r_, r_, stepping_, checks);
  for (Index slot = stepping_; slot < active_; ++slot)
    at(slot).rr = dots_[static_cast<std::size_t>(slot)];
  dots(q_, q_, stepping_, checks);
  for (Index slot = active_ - 1; slot >= stepping_; --slot)
    judge_check(slot, std::sqrt(dots_[static_cast<std::size_t>(slot)]));
}

void Solve::judge_check(Index slot, double moved) {
  Column& c = at(slot);
  const double before = c.checked;
  const int since = c.iterations - c.checked_at;
  c.checking = false;
  c.exact = true;
  c.checked_at = c.iterations;
  c.checked = c.residual();
  row_(c.id) = c.relative();
  if (!std::isfinite(c.rr)) return retire(slot, StopReason::breakdown);
  if (c.residual() <= c.target) return retire(slot, StopReason::converged);

  if (moved > tolerated_move * c.residual()) {
    c.fresh = true;
    ++result_.restarts;
  }
  if (c.path > 0) c.drift = std::max(moved / c.path, 0.5 * c.drift);
  c.path = 0;
  const bool lost_touch =
      c.claimed || moved > 0.5 * c.residual() || (mixed() && since < short_stretch);
  if (c.residual() <= 0.5 * before) {
    c.poor_checks = 0;
  } else if (lost_touch) {
    ++c.poor_checks;
  }
  if (c.residual() <= 0.5 * c.halved) {
    c.halved = c.residual();
    c.halved_at = c.iterations;
  }
  const bool stalled = c.poor_checks >= max_poor_checks || c.iterations - c.halved_at >= window_;
  c.claimed = false;
  if (c.broken || stalled) {
    const auto reason = c.broken ? StopReason::breakdown : StopReason::stagnation;
    if (mixed()) return fall_back();
    return retire(slot, reason);
  }
  if (c.iterations >= options_.max_iterations) retire(slot, StopReason::iteration_limit);
}

// From here on A itself does the products of every column, each from a new direction.
void Solve::fall_back() {
  steps_with_ = &a_;
  result_.fell_back_to_double = true;
  for (Index slot = 0; slot < active_; ++slot) {
    Column& c = at(slot);
    c.fresh = true;
    c.broken = false;
    c.poor_checks = 0;
    c.halved = c.residual();
    c.halved_at = c.iterations;
  }
}

// Slots [0, stepping_): q = A p.  alpha = <r, z> / <p, q>;  x += alpha p;  r -= alpha q.
void Solve::take_steps() {
  dots(p_, q_, 0, stepping_);
  for (Index slot = 0; slot < stepping_; ++slot) {
    Column& c = at(slot);
    const double curvature = dots_[static_cast<std::size_t>(slot)];
    c.alpha = c.g / curvature;
    c.broken = !(curvature > 0) || !(c.g > 0) || !std::isfinite(c.alpha);
    if (c.broken) c.alpha = 0;
  }
  for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
    const Column& c = at(slot);
    if (c.broken) return;
    const double alpha = c.alpha;
    const double* p = p_.col(slot).data() + first;
    const double* q = q_.col(slot).data() + first;
    double* x = x_.col(c.id).data() + first;
    double* r = r_.col(slot).data() + first;
    for (Index i = 0; i < rows; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
  });
  if (mixed()) add_to_path();
  dots(r_, r_, 0, stepping_);
  for (Index slot = 0; slot < stepping_; ++slot) {
    Column& c = at(slot);
    if (c.broken) continue;
    c.rr = dots_[static_cast<std::size_t>(slot)];
    c.exact = false;
    ++c.iterations;
    row_(c.id) = c.relative();
    if (!options_.keep_coefficients) continue;
    auto& kept = result_.coefficients[static_cast<std::size_t>(c.id)];
    kept.alpha.push_back(c.alpha);
    kept.beta.push_back(c.beta);
    if (c.beta == 0 && c.iterations > 1) kept.complete = false;
  }
}

// What the drift of low-precision products is proportional to.
void Solve::add_to_path() {
  dots(q_, q_, 0, stepping_);
  for (Index slot = 0; slot < stepping_; ++slot)
    q_squared_(slot) = dots_[static_cast<std::size_t>(slot)];
  dots(p_, p_, 0, stepping_);
  for (Index slot = 0; slot < stepping_; ++slot) {
    Column& c = at(slot);
    const double p = std::sqrt(dots_[static_cast<std::size_t>(slot)]);
    if (!(p > 0)) continue;
    c.gain = std::max(c.gain, std::sqrt(q_squared_(slot)) / p);
    c.path += std::abs(c.alpha) * p;
  }
}

/// False when the observer asks to stop.
bool Solve::record_and_ask() {
  ++rounds_;
  result_.residuals.append(row_);
  if (!context_.observer) return true;
  double worst = -1;
  Iteration told{.number = rounds_, .value = 0, .target = 0, .seconds = timer_.seconds()};
  for (const Column& c : columns_) {
    const double ratio = c.target > 0 ? c.residual() / c.target : 0.0;
    if (ratio <= worst) continue;
    worst = ratio;
    told.value = c.relative();
    told.target = c.norm_b > 0 ? c.target / c.norm_b : 0.0;
  }
  return context_.observer(told) == Action::proceed;
}

// Sorts the block into columns that go on and columns that are to be checked; retires the others.
void Solve::choose_checks() {
  for (Index slot = active_ - 1; slot >= 0; --slot) {
    Column& c = at(slot);
    if (c.exact && !c.broken) continue;  // was checked in this round
    if (c.broken && !mixed()) {
      retire(slot, StopReason::breakdown);
      continue;
    }
    c.claimed = c.residual() <= c.target;
    if (!c.claimed && !c.broken && c.iterations >= options_.max_iterations) {
      retire(slot, StopReason::iteration_limit);
      continue;
    }
    const double drift = c.drift > 0 ? c.drift : low_precision_epsilon * c.gain;
    const bool due = mixed()
                         ? drift * c.path > tolerated_drift * c.residual()
                         : c.iterations - c.checked_at >= options_.residual_replacement_interval;
    c.checking = due || c.claimed || c.broken || c.iterations - c.halved_at >= window_ ||
                 !std::isfinite(c.rr);
  }
  stepping_ = active_;
  for (Index slot = active_ - 1; slot >= 0; --slot)
    if (at(slot).checking) swap_slots(slot, --stepping_);
}

// Slots [0, stepping_): z = P^-1 r;  beta = <r, z> / <r, z>_before;  p = z + beta p.
void Solve::choose_directions() {
  if (stepping_ == 0) return;
  const bool preconditioned = context_.preconditioner != nullptr;
  if (preconditioned) {
    context_.preconditioner->solve(r_.leftCols(stepping_), z_.leftCols(stepping_));
    dots(r_, z_, 0, stepping_);
  }
  for (Index slot = 0; slot < stepping_; ++slot) {
    Column& c = at(slot);
    const double g = preconditioned ? dots_[static_cast<std::size_t>(slot)] : c.rr;
    c.beta = c.fresh ? 0.0 : g / c.g;
    c.fresh = false;
    c.g = g;
  }
  const Matrix& z_of = preconditioned ? z_ : r_;
  for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
    const double beta = at(slot).beta;
    const double* z = z_of.col(slot).data() + first;
    double* p = p_.col(slot).data() + first;
    if (beta == 0) {
      std::copy(z, z + rows, p);
    } else {
      for (Index i = 0; i < rows; ++i) p[i] = z[i] + beta * p[i];
    }
  });
}

void Solve::iterate() {
  choose_directions();
  while (active_ > 0) {
    apply_block();
    const bool stepped = stepping_ > 0;
    finish_checks();
    take_steps();
    if (stepped && !record_and_ask()) {
      while (active_ > 0) retire(active_ - 1, StopReason::interrupted);
      return;
    }
    choose_checks();
    choose_directions();
    exchange_x_and_p();
  }
}

// Columns that stopped on a recurrence: their true residual, and the verdict it gives.
void Solve::verify_unfinished() {
  Index count = 0;
  for (Index slot = 0; slot < t_; ++slot)
    if (!at(slot).exact) std::swap(at(slot), at(count++));
  if (count == 0) return;
  for (Index slot = 0; slot < count; ++slot) p_.col(slot) = x_.col(at(slot).id);
  a_.apply(p_.leftCols(count), q_.leftCols(count));
  result_.matvecs += count;
  residual_from_product(0, count, false);
  dots(r_, r_, 0, count);
  for (Index slot = 0; slot < count; ++slot) {
    Column& c = at(slot);
    c.rr = dots_[static_cast<std::size_t>(slot)];
    if (c.residual() <= c.target)
      result_.column_stops[static_cast<std::size_t>(c.id)] = StopReason::converged;
  }
}

SolveResult Solve::run() {
  start();
  iterate();
  verify_unfinished();
  for (const Column& c : columns_) {
    if (c.scale != 1) x_.col(c.id) /= c.scale;
    result_.column_residuals(c.id) = c.relative();
    result_.residual_norms(c.id) = c.residual() / c.scale;
    result_.iterations = std::max(result_.iterations, c.iterations);
    if (std::isnan(c.relative()) || c.relative() > result_.relative_residual)
      result_.relative_residual = c.relative();
  }
  result_.stop = overall(result_.column_stops);
  result_.seconds = timer_.seconds();
  return std::move(result_);
}

}  // namespace

SolveResult cg(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
               const CgOptions& options, const CgContext& context) {
  check_arguments("cg", a, b, x, options, context);
  return Solve(a, b, x, options, context).run();
}

double cg_bytes(Index n, Index columns, bool preconditioned) {
  return 8.0 * (preconditioned ? 4 : 3) * static_cast<double>(n) * static_cast<double>(columns);
}

double cg_flops(Index n, Index columns) {
  return 10.0 * static_cast<double>(n) * static_cast<double>(columns);
}

}  // namespace mercer::krylov
