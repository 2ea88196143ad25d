#include "mercer/krylov/kernel_cg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/krylov/detail/chunks.hpp"
#include "mercer/krylov/detail/convex_search.hpp"
#include "mercer/krylov/detail/row_loss.hpp"
#include "mercer/krylov/solver.hpp"

namespace mercer::krylov {
namespace {

using detail::for_chunks;

constexpr Index reserved_iterations = 4096;
constexpr int stagnation_window = 50;  // iterations without any progress that end a column
constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Where the gradient and its inner products live.
enum class Space { functions, coefficients };

/// What is remembered of one column besides its vectors; it moves with its slot.
struct KernelColumn {
  Index id = 0;          // column of y and alpha
  double objective = 0;  // P
  double gap = 0;        // P - D
  double relative_gap = 0;
  double gg = 0;    // <gradient, gradient> in the space of the method
  double eta = 0;   // weight of the last direction in the next one
  double gain = 0;  // largest |K gamma| / |gamma| seen, a lower bound of |K|
  int iterations = 0;
  bool fresh = true;   // the direction is the gradient, downhill
  bool exact = true;   // u is K alpha itself, not its recurrence
  bool stuck = false;  // no step along the direction lowers P
  bool ended = false;  // nor would any other, in double precision
  // Of the last look at progress.
  int seen_at = 0;
  double seen_objective = std::numeric_limits<double>::infinity();
  double seen_gap = std::numeric_limits<double>::infinity();

  bool finite() const { return std::isfinite(objective) && std::isfinite(gg); }
};

/// Polak-Ribiere conjugate gradients over a block of columns in slots; [0, active_) still run.
template <class Loss, Space space>
class Descent {
 public:
  Descent(const linalg::LinearOperator& k, double lambda, ConstMatrixView y, MatrixView alpha,
          const KernelCgOptions& options, const Observer& observer);
  KernelCgResult run();

 private:
  void start();
  void iterate(int number);
  void choose_directions();
  void take_steps();
  double line_search(Index slot);
  /// u = K alpha of slots [first, first + count), by a product.
  void refresh(Index first, Index count);
  /// gamma, its product, eta and the measures of slots [first, first + count), from u and alpha.
  void update_gradients(Index first, Index count);
  void fill_gamma(Index first, Index count);
  void measure(Index slot);
  /// Columns that claim to be done, or cannot go on, get u and gamma by products; all when told.
  void verify(bool all);
  void look_at_progress();
  void retire_columns();
  void retire(Index slot, StopReason reason);
  bool record_and_ask(int number);

  void multiply(const Matrix& x, Matrix& y, Index first, Index count) {
    if (count == 0) return;
    k_.apply(x.middleCols(first, count), y.middleCols(first, count));
    result_.matvecs += count;
  }
  double dot(const Matrix& x, Index i, const Matrix& y, Index j) const {
    double out = 0;
    k_.column_dots(x.col(i), y.col(j), {&out, 1});
    return out;
  }
  double dot(const Matrix& x, const Matrix& y, Index slot) const { return dot(x, slot, y, slot); }
  /// The sum of a column of work_, over ranks too.
  double sum(Index j) const { return dot(work_, j, ones_, 0); }
  void swap_slots(Index i, Index j);
  KernelColumn& at(Index slot) { return columns_[static_cast<std::size_t>(slot)]; }
  bool done(const KernelColumn& c) const { return c.relative_gap <= options_.tolerance; }
  /// The gradient in the space of the method, and K times it.
  const Matrix& gradient() const { return space == Space::functions ? gamma_ : w_; }
  const Matrix& gradient_product() const { return space == Space::functions ? w_ : v_; }

  const linalg::LinearOperator& k_;
  const double lambda_;
  ConstMatrixView y_;
  MatrixView alpha_out_;
  const KernelCgOptions& options_;
  const Observer& observer_;
  Timer timer_;
  Index n_, t_, active_;
  Matrix alpha_, u_;  // u = K alpha
  Matrix h_, q_;      // the direction, q = K h
  Matrix gamma_, w_;  // loss'(u) + lambda alpha, w = K gamma
  Matrix v_;          // K w; coefficients only
  Matrix work_;       // three numbers a row, of one column
  Matrix ones_;       // N x 1
  std::vector<KernelColumn> columns_;
  Vector row_, gap_row_;
  KernelCgResult result_;
};

template <class Loss, Space space>
Descent<Loss, space>::Descent(const linalg::LinearOperator& k, double lambda, ConstMatrixView y,
                              MatrixView alpha, const KernelCgOptions& options,
                              const Observer& observer)
    : k_(k),
      lambda_(lambda),
      y_(y),
      alpha_out_(alpha),
      options_(options),
      observer_(observer),
      n_(y.rows()),
      t_(y.cols()),
      active_(t_),
      alpha_(alpha),
      u_(Matrix::Zero(n_, t_)),
      h_(Matrix::Zero(n_, t_)),
      q_(Matrix::Zero(n_, t_)),
      gamma_(n_, t_),
      w_(Matrix::Zero(n_, t_)),
      work_(n_, 3),
      ones_(Matrix::Ones(n_, 1)),
      columns_(static_cast<std::size_t>(t_)),
      row_(Vector::Zero(t_)),
      gap_row_(Vector::Zero(t_)) {
  if (space == Space::coefficients) v_ = Matrix::Zero(n_, t_);
  for (Index j = 0; j < t_; ++j) at(j).id = j;
  result_.column_stops.assign(columns_.size(), StopReason::iteration_limit);
  result_.column_iterations.assign(columns_.size(), 0);
  result_.objectives = result_.gaps = History(t_);
  const Index rows = std::min<Index>(options.max_iterations + Index{1}, reserved_iterations);
  result_.objectives.reserve(rows);
  result_.gaps.reserve(rows);
  result_.objective = result_.gap = result_.relative_gap = Vector::Zero(t_);
}

template <class Loss, Space space>
KernelCgResult Descent<Loss, space>::run() {
  start();
  StopReason rest = StopReason::iteration_limit;
  for (int number = 1; number <= options_.max_iterations && active_ > 0; ++number) {
    iterate(number);
    if (!record_and_ask(number)) {
      rest = StopReason::interrupted;
      break;
    }
  }
  verify(true);
  while (active_ > 0) {
    const KernelColumn& c = at(active_ - 1);
    retire(active_ - 1, !c.finite() ? StopReason::breakdown
                        : done(c)   ? StopReason::converged
                                    : rest);
  }
  result_.stop = overall(result_.column_stops);
  for (const int iterations : result_.column_iterations)
    result_.iterations = std::max(result_.iterations, iterations);
  result_.seconds = timer_.seconds();
  return std::move(result_);
}

template <class Loss, Space space>
void Descent<Loss, space>::start() {
  Index guessed = 0;  // columns with a first guess come first
  for (Index slot = 0; slot < t_; ++slot)
    if (!alpha_.col(slot).isZero(0)) swap_slots(slot, guessed++);
  refresh(0, guessed);
  update_gradients(0, active_);
  for (Index slot = 0; slot < t_; ++slot) at(slot).eta = 0;
  for (Index slot = 0; slot < t_; ++slot) {
    row_(at(slot).id) = at(slot).objective;
    gap_row_(at(slot).id) = at(slot).gap;
  }
  result_.objectives.append(row_);
  result_.gaps.append(gap_row_);
  retire_columns();
}

template <class Loss, Space space>
void Descent<Loss, space>::iterate(int number) {
  choose_directions();
  take_steps();
  // u drifts from K alpha; refresh it, so that the objective stays that of alpha.
  const bool refreshing = number % options_.refresh_interval == 0;
  if (refreshing) refresh(0, active_);
  update_gradients(0, active_);
  verify(number == options_.max_iterations);
  look_at_progress();
  retire_columns();
}

template <class Loss, Space space>
void Descent<Loss, space>::choose_directions() {
  if (space == Space::coefficients) multiply(w_, v_, 0, active_);
  const Matrix& g = gradient();
  const Matrix& kg = gradient_product();
  for (Index slot = 0; slot < active_; ++slot) {
    KernelColumn& c = at(slot);
    // A direction that does not go down, <h, g> >= 0, is of no use: then from the gradient anew.
    const double along = c.eta > 0 ? c.eta * dot(h_, w_, slot) - dot(g, w_, slot) : 0.0;
    const bool fresh = !(c.eta > 0) || !(along < 0);
    if (fresh && c.iterations > 0) ++result_.restarts;
    c.fresh = fresh;
    if (fresh) c.eta = 0;
  }
  for_chunks(n_, active_, [&](Index slot, Index first, Index rows) {
    const double eta = at(slot).eta;
    auto h = h_.col(slot).segment(first, rows);
    auto q = q_.col(slot).segment(first, rows);
    h = eta * h - g.col(slot).segment(first, rows);
    q = eta * q - kg.col(slot).segment(first, rows);
  });
}

template <class Loss, Space space>
void Descent<Loss, space>::take_steps() {
  for (Index slot = 0; slot < active_; ++slot) {
    KernelColumn& c = at(slot);
    const double s = line_search(slot);
    ++c.iterations;
    c.stuck = !(s > 0) || !std::isfinite(s);
    if (c.stuck) {
      c.ended = c.fresh && c.exact;
      continue;
    }
    c.exact = false;
    for_chunks(n_, 1, [&](Index, Index first, Index rows) {
      alpha_.col(slot).segment(first, rows) += s * h_.col(slot).segment(first, rows);
      u_.col(slot).segment(first, rows) += s * q_.col(slot).segment(first, rows);
    });
  }
}

/// The minimum of phi(s) = P(alpha + s h), known from u, q and three inner products.
template <class Loss, Space space>
double Descent<Loss, space>::line_search(Index slot) {
  const double hq = std::max(dot(h_, q_, slot), 0.0);
  if constexpr (Loss::quadratic) return -dot(gamma_, q_, slot) / (dot(q_, q_, slot) + lambda_ * hq);
  const double au = dot(alpha_, u_, slot), aq = dot(alpha_, q_, slot);
  const auto y = y_.col(at(slot).id);
  const auto phi = [&](double s) -> detail::Trial {
    for_chunks(n_, 1, [&](Index, Index first, Index rows) {
      for (Index i = first; i < first + rows; ++i) {
        const auto terms = Loss::terms(u_(i, slot) + s * q_(i, slot), y(i));
        work_(i, 0) = terms.value;
        work_(i, 1) = terms.slope;
        work_(i, 2) = terms.curvature * q_(i, slot);
      }
    });
    return {sum(0) + 0.5 * lambda_ * (au + s * (2 * aq + s * hq)),
            dot(work_, 1, q_, slot) + lambda_ * (aq + s * hq),
            dot(work_, 2, q_, slot) + lambda_ * hq};
  };
  return detail::convex_search(phi);
}

template <class Loss, Space space>
void Descent<Loss, space>::refresh(Index first, Index count) {
  multiply(alpha_, u_, first, count);
  for (Index slot = first; slot < first + count; ++slot) at(slot).exact = true;
}

template <class Loss, Space space>
void Descent<Loss, space>::fill_gamma(Index first_slot, Index count) {
  for_chunks(n_, count, [&](Index j, Index first, Index rows) {
    const Index slot = first_slot + j, id = at(slot).id;
    for (Index i = first; i < first + rows; ++i)
      gamma_(i, slot) = Loss::terms(u_(i, slot), y_(i, id)).slope + lambda_ * alpha_(i, slot);
  });
}

// eta = max(0, <g_new - g, g_new> / <g, g>), Polak & Ribiere. In the function space <a, b> is
// a'K b, and the product of the last gradient serves for <g, g_new>: no other product.
template <class Loss, Space space>
void Descent<Loss, space>::update_gradients(Index first, Index count) {
  fill_gamma(first, count);
  const auto set_eta = [&](KernelColumn& c, double cross, double gg) {
    const double eta = (gg - cross) / c.gg;
    c.eta = std::isfinite(eta) ? std::max(eta, 0.0) : 0.0;
    c.gg = gg;
  };
  if constexpr (space == Space::functions) {
    for (Index slot = first; slot < first + count; ++slot)
      at(slot).eta = dot(w_, gamma_, slot);  // <g, g_new>, until the product is there
    multiply(gamma_, w_, first, count);
    for (Index slot = first; slot < first + count; ++slot)
      set_eta(at(slot), at(slot).eta, dot(gamma_, w_, slot));
  } else {
    multiply(gamma_, v_, first, count);
    for (Index slot = first; slot < first + count; ++slot) {
      set_eta(at(slot), dot(w_, v_, slot), dot(v_, v_, slot));
      w_.col(slot).swap(v_.col(slot));
    }
  }
  for (Index slot = first; slot < first + count; ++slot) measure(slot);
}

template <class Loss, Space space>
void Descent<Loss, space>::measure(Index slot) {
  KernelColumn& c = at(slot);
  const auto y = y_.col(c.id);
  for_chunks(n_, 1, [&](Index, Index first, Index rows) {
    for (Index i = first; i < first + rows; ++i) {
      work_(i, 0) = Loss::terms(u_(i, slot), y(i)).value;
      work_(i, 1) = Loss::duality_gap(u_(i, slot), y(i), lambda_ * alpha_(i, slot));
    }
  });
  c.objective = sum(0) + 0.5 * lambda_ * dot(alpha_, u_, slot);
  const double dual = sum(1);
  // gamma'K gamma is only known to the rounding of a product, about eps |K| |gamma|^2.
  const double squares = dot(gamma_, gamma_, slot), gkg = dot(gamma_, w_, slot);
  if (squares > 0) c.gain = std::max(c.gain, std::sqrt(dot(w_, w_, slot) / squares));
  const double convex = (std::max(gkg, 0.0) + 4 * epsilon * c.gain * squares) / (2 * lambda_);
  c.gap = std::fmin(dual, convex);
  const double sizes = std::abs(c.objective) + std::abs(c.objective - c.gap);
  c.relative_gap = c.gap > 0 ? 2 * c.gap / sizes : 0.0;
}

template <class Loss, Space space>
void Descent<Loss, space>::verify(bool all) {
  Index first = active_;
  for (Index slot = active_ - 1; slot >= 0; --slot) {
    const KernelColumn& c = at(slot);
    if (c.exact || !(all || done(c) || c.stuck || !c.finite())) continue;
    swap_slots(slot, --first);
  }
  refresh(first, active_ - first);
  update_gradients(first, active_ - first);
  // What goes on does so from the gradient: eta belongs to a step that was not taken.
  for (Index slot = 0; slot < active_; ++slot)
    if (slot >= first || at(slot).stuck) at(slot).eta = 0;
}

/// A column that for a while neither lowered P nor halved the gap has come to the end of double
/// precision.
template <class Loss, Space space>
void Descent<Loss, space>::look_at_progress() {
  for (Index slot = 0; slot < active_; ++slot) {
    KernelColumn& c = at(slot);
    if (!c.exact || c.iterations - c.seen_at < stagnation_window) continue;
    const bool lower = c.objective < c.seen_objective - 4 * epsilon * std::abs(c.objective);
    const bool closer = c.gap < 0.5 * c.seen_gap;
    c.ended = c.ended || (!lower && !closer);
    c.seen_at = c.iterations;
    c.seen_objective = c.objective;
    c.seen_gap = c.gap;
  }
}

template <class Loss, Space space>
void Descent<Loss, space>::retire_columns() {
  for (Index slot = active_ - 1; slot >= 0; --slot) {
    const KernelColumn& c = at(slot);
    if (!c.exact) continue;
    if (!c.finite())
      retire(slot, StopReason::breakdown);
    else if (done(c))
      retire(slot, StopReason::converged);
    else if (c.ended)
      retire(slot, StopReason::stagnation);
  }
}

template <class Loss, Space space>
void Descent<Loss, space>::retire(Index slot, StopReason reason) {
  const KernelColumn& c = at(slot);
  const auto id = static_cast<std::size_t>(c.id);
  result_.column_stops[id] = reason;
  result_.column_iterations[id] = c.iterations;
  result_.objective(c.id) = row_(c.id) = c.objective;
  result_.gap(c.id) = gap_row_(c.id) = c.gap;
  result_.relative_gap(c.id) = c.relative_gap;
  alpha_out_.col(c.id) = alpha_.col(slot);
  swap_slots(slot, --active_);
}

template <class Loss, Space space>
bool Descent<Loss, space>::record_and_ask(int number) {
  double worst = 0;
  for (const KernelColumn& c : columns_) {
    row_(c.id) = c.objective;
    gap_row_(c.id) = c.gap;
    worst = std::max(worst, c.relative_gap);
  }
  result_.objectives.append(row_);
  result_.gaps.append(gap_row_);
  if (!observer_) return true;
  return observer_({number, worst, options_.tolerance, timer_.seconds()}) == Action::proceed;
}

template <class Loss, Space space>
void Descent<Loss, space>::swap_slots(Index i, Index j) {
  if (i == j) return;
  for (Matrix* block : {&alpha_, &u_, &h_, &q_, &gamma_, &w_}) block->col(i).swap(block->col(j));
  std::swap(at(i), at(j));
}

void check(const char* name, const linalg::LinearOperator& k, const RegularizedLoss& problem,
           ConstMatrixView y, ConstMatrixView alpha, const KernelCgOptions& options) {
  const auto require = [&](const char* what, Index value, const char* other, Index expected) {
    if (value != expected)
      throw DimensionMismatch(fmt::format("{}: {}", name, what), value, other, expected);
  };
  require("rows of y", y.rows(), "size of K", k.size());
  require("rows of alpha", alpha.rows(), "size of K", k.size());
  require("columns of alpha", alpha.cols(), "columns of y", y.cols());
  validate(options);
  check_field("lambda", problem.lambda, Positive{});
  if (!y.allFinite())
    throw InvalidArgument(fmt::format("{}: y has a value that is not finite", name));
  if (!alpha.allFinite())
    throw InvalidArgument(fmt::format("{}: the first guess has a value that is not finite", name));
  if (problem.loss != KernelLoss::logistic) return;
  for (Index j = 0; j < y.cols(); ++j)
    for (Index i = 0; i < y.rows(); ++i)
      if (y(i, j) != 1 && y(i, j) != -1)
        throw InvalidArgument(fmt::format("{}: labels are -1 or 1, but row {} of column {} is {}",
                                          name, i, j, y(i, j)));
}

template <Space space>
KernelCgResult minimise(const char* name, const linalg::LinearOperator& k,
                        const RegularizedLoss& problem, ConstMatrixView y, MatrixView alpha,
                        const KernelCgOptions& options, const Observer& observer) {
  check(name, k, problem, y, alpha, options);
  if (problem.loss == KernelLoss::squared)
    return Descent<detail::SquaredLoss, space>(k, problem.lambda, y, alpha, options, observer)
        .run();
  return Descent<detail::LogisticLoss, space>(k, problem.lambda, y, alpha, options, observer).run();
}

}  // namespace

KernelCgResult kernel_cg(const linalg::LinearOperator& k, const RegularizedLoss& problem,
                         ConstMatrixView y, MatrixView alpha, const KernelCgOptions& options,
                         const Observer& observer) {
  return minimise<Space::functions>("kernel_cg", k, problem, y, alpha, options, observer);
}

KernelCgResult coefficient_cg(const linalg::LinearOperator& k, const RegularizedLoss& problem,
                              ConstMatrixView y, MatrixView alpha, const KernelCgOptions& options,
                              const Observer& observer) {
  return minimise<Space::coefficients>("coefficient_cg", k, problem, y, alpha, options, observer);
}

double kernel_cg_bytes(Index n, Index columns) {
  return 8.0 * static_cast<double>(n) * (6.0 * static_cast<double>(columns) + 4.0);
}

double kernel_cg_flops(Index n, Index columns) {
  return 40.0 * static_cast<double>(n) * static_cast<double>(columns);
}

}  // namespace mercer::krylov
