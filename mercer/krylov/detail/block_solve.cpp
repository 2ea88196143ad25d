#include "mercer/krylov/detail/block_solve.hpp"

#include <algorithm>
#include <cmath>

namespace mercer::krylov::detail {
namespace {

// A direction survives a replaced residual that moved by less than this part of itself. Beyond it,
// starting anew converges faster than carrying on with directions that are no longer conjugate.
constexpr double tolerated_move = 1e-4;
// Residuals on the way that turn out wrong by more than this part are of no use to a trail.
constexpr double lost_trail = 0.5;
constexpr int max_poor_checks = 3;  // in a row, before the column counts as stalled
constexpr int short_stretch = 10;   // iterations between checks that are too few
constexpr Index reserved_iterations = 4096;

}  // namespace

BlockSolve::BlockSolve(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                       const SolverOptions& options, const SolverContext& context, Residual kind)
    : a_(a),
      space_(a.row_space()),
      options_(options),
      context_(context),
      x_(x),
      n_(a.size()),
      t_(b.cols()),
      r_(n_, t_),
      p_(n_, t_),
      q_(n_, t_),
      active_(t_),
      row_(Vector::Zero(t_)),
      steps_with_(context.low_precision != nullptr ? context.low_precision : &a),
      b_(b),
      kind_(kind),
      window_(options.stagnation_window.value_or(std::max(
          500, static_cast<int>(10 * std::sqrt(static_cast<double>(space_.global_size())))))),
      columns_(static_cast<std::size_t>(t_)),
      dots_(3 * static_cast<std::size_t>(t_)) {
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
      c.energy.reserve(static_cast<std::size_t>(rows));
    }
  }
}

// Far from 1 the squares of b overflow or vanish; a power of two moves it near 1 without rounding.
void BlockSolve::set_scales() {
  const std::span largest(dots_.data(), static_cast<std::size_t>(t_));
  linalg::largest_entries(space_, b_, largest);
  for (Column& c : columns_) {
    const double entry = largest[static_cast<std::size_t>(c.id)];
    if (entry == 0 || (entry > 1e-100 && entry < 1e100)) continue;
    c.scale = std::ldexp(1.0, -std::ilogb(entry));
    x_.col(c.id) *= c.scale;
  }
}

void BlockSolve::start() {
  Index guesses = 0;  // columns with a first guess go first: they need a product
  for (Index j = 0; j < t_; ++j) at(j).id = j;
  set_scales();
  const std::span largest(dots_.data(), static_cast<std::size_t>(t_));
  linalg::largest_entries(space_, x_, largest);
  for (Index j = 0; j < t_; ++j)
    if (largest[static_cast<std::size_t>(j)] != 0) std::swap(at(j), at(guesses++));
  for (Index slot = 0; slot < t_; ++slot) r_.col(slot) = at(slot).scale * b_.col(at(slot).id);
  dots(r_, r_, 0, t_);
  for (Index slot = 0; slot < t_; ++slot) at(slot).norm_b = std::sqrt(dot(slot));

  if (guesses > 0) {
    multiply_guesses(guesses);
    residual_from_product(0, guesses, false);
    dots(r_, r_, 0, t_);
  }
  for (Index slot = t_ - 1; slot >= 0; --slot) {
    Column& c = at(slot);
    c.rr = dot(slot);
    c.target = options_.rms_tolerance
                   ? *options_.rms_tolerance *
                         std::sqrt(static_cast<double>(space_.global_size())) * c.scale
                   : options_.tolerance * c.norm_b;
    c.checked = c.halved = c.residual();
    if (c.norm_b == 0) {
      x_.col(c.id).setZero();
      r_.col(slot).setZero();
      c.rr = 0;
    }
    row_(c.id) = c.relative();
    offer_to_trail(slot);
    if (!std::isfinite(c.rr)) {
      retire(slot, StopReason::breakdown);
    } else if (c.residual() <= c.target) {
      if (c.exact)
        retire(slot, StopReason::converged);
      else
        c.claimed = c.checking = true;
    } else if (ended(slot)) {
      retire(slot, StopReason::random_stop);
    }
  }
  move_checks_last();
}

// q = A x of the first slots, in the precision that the method wants.
void BlockSolve::multiply_guesses(Index guesses) {
  const bool low = mixed() && !measures_all();
  for (Index slot = 0; slot < guesses; ++slot) p_.col(slot) = x_.col(at(slot).id);
  (low ? *steps_with_ : a_).apply(p_.leftCols(guesses), q_.leftCols(guesses));
  result_.matvecs += guesses;
  if (!low) return;
  result_.low_precision_matvecs += guesses;
  dots({{q_, q_}, {p_, p_}}, 0, guesses);
  for (Index slot = 0; slot < guesses; ++slot) {
    Column& c = at(slot);
    c.exact = false;
    c.path = std::sqrt(dot(slot, 1));
    if (c.path > 0) c.gain = std::sqrt(dot(slot)) / c.path;
  }
}

void BlockSolve::residual_from_product(Index first_slot, Index count, bool keep_change) {
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

void BlockSolve::swap_slots(Index i, Index j) {
  if (i == j) return;
  std::swap(at(i), at(j));
  r_.col(i).swap(r_.col(j));
  p_.col(i).swap(p_.col(j));
}

void BlockSolve::retire(Index slot, StopReason reason) {
  Column& c = at(slot);
  const auto id = static_cast<std::size_t>(c.id);
  result_.column_stops[id] = reason;
  result_.column_iterations[id] = c.iterations;
  swap_slots(slot, --active_);
}

void BlockSolve::apply_block() {
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

void BlockSolve::exchange_x_and_p() {
  for_chunks(n_, active_ - stepping_, [&](Index k, Index first, Index rows) {
    const Index slot = stepping_ + k;
    double* p = p_.col(slot).data() + first;
    std::swap_ranges(p, p + rows, x_.col(at(slot).id).data() + first);
  });
}

// x of the first column must be that of its residual.
void BlockSolve::offer_to_trail(Index slot) {
  const Column& c = at(slot);
  if (context_.trail == nullptr || c.id != 0 || !std::isfinite(c.rr)) return;
  context_.trail->offer(x_.col(0), c.residual(), c.scale);
}

// Slots [stepping_, active_): q = A x, so r = b - q is the true residual.
void BlockSolve::finish_checks() {
  const Index checks = active_ - stepping_;
  if (checks == 0) return;
  exchange_x_and_p();
  const bool recurrence = kind_ == Residual::recurrence;
  residual_from_product(stepping_, checks, recurrence);
  if (recurrence) {
    dots({{r_, r_}, {q_, q_}}, stepping_, checks);
  } else {
    dots(r_, r_, stepping_, checks);
  }
  for (Index slot = stepping_; slot < active_; ++slot) {
    Column& c = at(slot);
    const double believed = c.residual();
    c.rr = dot(slot);
    c.moved = recurrence ? std::sqrt(dot(slot, 1)) : std::abs(c.residual() - believed);
  }
  for (Index slot = active_ - 1; slot >= stepping_; --slot) judge_check(slot);
}

void BlockSolve::judge_check(Index slot) {
  Column& c = at(slot);
  const double before = c.checked;
  const int since = c.iterations - c.checked_at;
  c.checking = false;
  c.exact = true;
  c.checked_at = c.iterations;
  c.checked = c.residual();
  row_(c.id) = c.relative();
  if (c.moved > lost_trail * c.residual() && context_.trail != nullptr && c.id == 0)
    context_.trail->restart(x_.col(0), c.residual(), c.scale);
  else
    offer_to_trail(slot);
  if (!std::isfinite(c.rr)) return retire(slot, StopReason::breakdown);
  if (c.residual() <= c.target) return retire(slot, StopReason::converged);

  if (kind_ == Residual::norm_only || c.moved > tolerated_move * c.residual()) {
    c.fresh = true;
    ++result_.restarts;
  }
  if (c.path > 0) c.drift = std::max(c.moved / c.path, 0.5 * c.drift);
  c.path = 0;
  const bool lost_touch =
      c.claimed || c.moved > 0.5 * c.residual() || (mixed() && since < short_stretch);
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
void BlockSolve::fall_back() {
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

/// False when the observer asks to stop, on any rank: ranks may be watched by different observers,
/// and a signal may have reached only one of them.
bool BlockSolve::record_and_ask() {
  ++rounds_;
  result_.residuals.append(row_);
  if (!context_.observer) return !space_.any(false);
  double worst = -1;
  Iteration told{.number = rounds_, .value = 0, .target = 0, .seconds = timer_.seconds()};
  for (const Column& c : columns_) {
    const double ratio = c.target > 0 ? c.residual() / c.target : 0.0;
    if (ratio <= worst) continue;
    worst = ratio;
    told.value = c.relative();
    told.target = c.norm_b > 0 ? c.target / c.norm_b : 0.0;
  }
  return !space_.any(context_.observer(told) != Action::proceed);
}

bool BlockSolve::wants_check(Index slot) const {
  const Column& c = at(slot);
  return due(slot) || c.residual() <= c.target || c.broken ||
         c.iterations - c.halved_at >= window_ || !std::isfinite(c.rr);
}

// Sorts the block into columns that go on and columns that are to be checked; retires the others.
void BlockSolve::choose_checks() {
  for (Index slot = active_ - 1; slot >= 0; --slot) {
    Column& c = at(slot);
    if (c.exact && !c.broken) continue;  // was checked in this round
    if (c.broken && !mixed()) {
      retire(slot, StopReason::breakdown);
      continue;
    }
    if (!c.broken && ended(slot)) {
      retire(slot, StopReason::random_stop);
      continue;
    }
    c.claimed = c.residual() <= c.target;
    if (!c.claimed && !c.broken && c.iterations >= options_.max_iterations) {
      retire(slot, StopReason::iteration_limit);
      continue;
    }
    c.checking = wants_check(slot);
  }
  move_checks_last();
}

void BlockSolve::move_checks_last() {
  stepping_ = active_;
  for (Index slot = active_ - 1; slot >= 0; --slot)
    if (at(slot).checking) swap_slots(slot, --stepping_);
}

void BlockSolve::iterate() {
  choose_directions();
  exchange_x_and_p();
  while (active_ > 0) {
    apply_block();
    const bool stepped = stepping_ > 0;
    finish_checks();
    take_steps();
    if (kind_ == Residual::recurrence)
      for (Index slot = 0; slot < stepping_; ++slot) offer_to_trail(slot);
    const bool stop = stepped && !record_and_ask();
    settle(stop);
    if (stop) {
      while (active_ > 0) retire(active_ - 1, StopReason::interrupted);
      return;
    }
    choose_checks();
    choose_directions();
    exchange_x_and_p();
  }
}

// Columns that stopped on a recurrence: their true residual, and the verdict it gives.
void BlockSolve::verify_unfinished() {
  Index count = 0;
  for (Index slot = 0; slot < t_; ++slot) {
    const auto stop = result_.column_stops[static_cast<std::size_t>(at(slot).id)];
    if (at(slot).exact || (stop == StopReason::random_stop && !measures_all())) continue;
    r_.col(slot).swap(r_.col(count));
    std::swap(at(slot), at(count++));
  }
  if (count == 0) return;
  for (Index slot = 0; slot < count; ++slot) p_.col(slot) = x_.col(at(slot).id);
  a_.apply(p_.leftCols(count), q_.leftCols(count));
  result_.matvecs += count;
  residual_from_product(0, count, false);
  dots(r_, r_, 0, count);
  for (Index slot = 0; slot < count; ++slot) {
    Column& c = at(slot);
    c.rr = dot(slot);
    if (c.residual() <= c.target)
      result_.column_stops[static_cast<std::size_t>(c.id)] = StopReason::converged;
  }
}

// What the preconditioner has counted so far, taken off before and added after.
void BlockSolve::count_inner(int sign) {
  const auto* inner = dynamic_cast<const linalg::InnerIterations*>(context_.preconditioner);
  if (inner == nullptr) return;
  result_.inner_iterations += sign * inner->inner_iterations();
  result_.inner_matvecs += sign * inner->inner_products();
}

SolveResult BlockSolve::run() {
  count_inner(-1);
  start();
  iterate();
  count_inner(+1);
  finish();
  verify_unfinished();
  for (const Column& c : columns_) {
    if (c.scale != 1) x_.col(c.id) /= c.scale;
    result_.column_residuals(c.id) = c.relative();
    result_.residual_norms(c.id) = c.residual() / c.scale;
    result_.iterations = std::max(result_.iterations, c.iterations);
    if (std::isnan(c.relative()) || c.relative() > result_.relative_residual)
      result_.relative_residual = c.relative();
  }
  if (context_.residual != nullptr) {
    context_.residual->resize(n_, t_);
    for (Index slot = 0; slot < t_; ++slot)
      context_.residual->col(at(slot).id) = r_.col(slot) / at(slot).scale;
  }
  result_.stop = overall(result_.column_stops);
  result_.seconds = timer_.seconds();
  return std::move(result_);
}

}  // namespace mercer::krylov::detail
