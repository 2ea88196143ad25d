#include "mercer/krylov/gmres.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mercer/krylov/detail/block_solve.hpp"
#include "mercer/krylov/detail/hessenberg.hpp"

namespace mercer::krylov {
namespace {

using detail::Column;
using detail::for_chunks;

// A second pass follows when the first took away more than this leaves of |w|: what remains is then
// small enough for its rounding errors to matter (Daniel et al., 1976).
constexpr double reorthogonalise_below = 0.70710678118654752;
// What remains of |w| below this is rounding: the Krylov space is exhausted.
constexpr double exhausted_below = 10 * std::numeric_limits<double>::epsilon();
// Low-precision products: a cycle cannot reduce the true residual by much more than this.
constexpr double low_precision_reduction = 1e-4;

/// N x t blocks, one per step of the cycle, made when first written.
class Levels {
 public:
  Levels(Index n, Index columns) : n_(n), columns_(columns) {}
  void reach(Index level) {
    while (static_cast<Index>(blocks_.size()) <= level)
      blocks_.push_back(Matrix::Zero(n_, columns_));
  }
  const Matrix& block(Index level) const { return blocks_[static_cast<std::size_t>(level)]; }
  double* at(Index level, Index slot, Index row) {
    return blocks_[static_cast<std::size_t>(level)].col(slot).data() + row;
  }
  void swap_slots(Index i, Index j, Index levels) {
    levels = std::min(levels, static_cast<Index>(blocks_.size()));
    for (Index k = 0; k < levels; ++k) {
      Matrix& block = blocks_[static_cast<std::size_t>(k)];
      block.col(i).swap(block.col(j));
    }
  }

 private:
  Index n_, columns_;
  std::vector<Matrix> blocks_;
};

/// The cycle of one column; it moves with its slot.
struct Cycle {
  detail::Hessenberg hessenberg;
  std::vector<double> h;  // the new column of the Hessenberg matrix
  std::vector<double> y;
  double beta = 0;     // residual norm at its start
  double before = 0;   // |w| before orthogonalisation
  double norm = 0;     // |w| now
  bool again = false;  // a second pass is due
  bool ended = true;   // x is to take in y, and the true residual to be computed
};

class Gmres final : public detail::BlockSolve {
 public:
  Gmres(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
        const SolverOptions& options, const SolverContext& context, bool flexible);

 private:
  void choose_directions() override;
  void take_steps() override;
  void settle(bool all) override;
  bool due(Index slot) const override { return cycle(slot).ended; }
  void swap_slots(Index i, Index j) override;

  void begin_cycles();
  void orthogonalise();
  void gram_schmidt_pass();
  void subtract_levels(Index first_level, Index count);
  void take_norms();
  void append(Index slot);
  void add_to_x(Index count);

  Cycle& cycle(Index slot) { return cycles_[static_cast<std::size_t>(slot)]; }
  const Cycle& cycle(Index slot) const { return cycles_[static_cast<std::size_t>(slot)]; }
  Index steps(Index slot) const { return cycle(slot).hessenberg.steps(); }
  bool keeps_z() const { return flexible_ && context_.preconditioner != nullptr; }

  bool flexible_;
  Index restart_;
  Levels v_, z_;  // the basis, and P^-1 of it when P may change
  std::vector<Cycle> cycles_;
  std::vector<Index> settling_;  // slots whose y goes into x
  Vector weights_;
};

Gmres::Gmres(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
             const SolverOptions& options, const SolverContext& context, bool flexible)
    : BlockSolve(a, b, x, options, context, detail::Residual::norm_only),
      flexible_(flexible),
      restart_(std::min({Index{options.restart.value_or(default_restart)},
                         Index{options.max_iterations}, std::max(space_.global_size(), Index{1})})),
      v_(n_, t_),
      z_(n_, t_),
      cycles_(static_cast<std::size_t>(t_)),
      weights_(t_) {
  settling_.reserve(static_cast<std::size_t>(t_));
}

void Gmres::swap_slots(Index i, Index j) {
  if (i == j) return;
  BlockSolve::swap_slots(i, j);
  const Index levels = std::max(steps(i), steps(j)) + 1;  // v has one more than there are steps
  v_.swap_slots(i, j, levels);
  z_.swap_slots(i, j, levels);
  std::swap(cycle(i), cycle(j));
}

// Slots that start anew: beta = |r|;  v_0 = r / beta.
void Gmres::begin_cycles() {
  v_.reach(0);
  for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
    if (!at(slot).fresh) return;
    const double beta = at(slot).residual();
    const double* r = r_.col(slot).data() + first;
    double* v = v_.at(0, slot, first);
    for (Index i = 0; i < rows; ++i) v[i] = r[i] / beta;
  });
  for (Index slot = 0; slot < stepping_; ++slot) {
    if (!at(slot).fresh) continue;
    at(slot).fresh = false;
    cycle(slot).beta = at(slot).residual();
    cycle(slot).hessenberg.start(cycle(slot).beta);
    cycle(slot).ended = false;
  }
}

// p = P^-1 v_j, j the column's step in its cycle.
void Gmres::choose_directions() {
  if (stepping_ == 0) return;
  begin_cycles();
  const bool preconditioned = context_.preconditioner != nullptr;
  Matrix& last_v = preconditioned ? q_ : p_;
  Index deepest = 0;
  for (Index slot = 0; slot < stepping_; ++slot) deepest = std::max(deepest, steps(slot));
  for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
    const double* v = v_.at(steps(slot), slot, first);
    std::copy(v, v + rows, last_v.col(slot).data() + first);
  });
  if (preconditioned)
    context_.preconditioner->solve(q_.leftCols(stepping_), p_.leftCols(stepping_));
  if (!keeps_z()) return;
  z_.reach(deepest);
  for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
    const double* p = p_.col(slot).data() + first;
    std::copy(p, p + rows, z_.at(steps(slot), slot, first));
  });
}

// norm = |w|, w in q.
void Gmres::take_norms() {
  dots(q_, q_, 0, stepping_);
  for (Index slot = 0; slot < stepping_; ++slot) cycle(slot).norm = std::sqrt(dot(slot));
}

// For i = 0 .. j: h_i += <w, v_i>, w -= <w, v_i> v_i, where a pass is due. Among ranks all i at
// once (classical Gram-Schmidt): one reduction instead of j + 1, and with the second pass as good
// (Giraud et al., 2005).
void Gmres::gram_schmidt_pass() {
  Index levels = 0;
  for (Index slot = 0; slot < stepping_; ++slot)
    if (cycle(slot).again) levels = std::max(levels, steps(slot) + 1);
  const Index at_once = pairs_at_once(levels);
  for (Index level = 0; level < levels; level += at_once) subtract_levels(level, at_once);
}

// The same for i = first .. first + count - 1, the products all with this w.
void Gmres::subtract_levels(Index first_level, Index count) {
  dots(count, 0, stepping_, [&](Index k) -> Pair { return {q_, v_.block(first_level + k)}; });
  for (Index k = 0; k < count; ++k) {
    const Index level = first_level + k;
    for (Index slot = 0; slot < stepping_; ++slot) {
      Cycle& c = cycle(slot);
      const bool takes_part = c.again && level <= c.hessenberg.steps();
      weights_(slot) = takes_part ? dot(slot, k) : 0.0;
      if (takes_part) c.h[static_cast<std::size_t>(level)] += dot(slot, k);
    }
    for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
      const double weight = weights_(slot);
      if (weight == 0) return;
      const double* v = v_.at(level, slot, first);
      double* w = q_.col(slot).data() + first;
      for (Index i = 0; i < rows; ++i) w[i] -= weight * v[i];
    });
  }
}

void Gmres::orthogonalise() {
  take_norms();
  for (Index slot = 0; slot < stepping_; ++slot) {
    Cycle& c = cycle(slot);
    c.before = c.norm;
    c.again = true;
    c.h.assign(static_cast<std::size_t>(c.hessenberg.steps()) + 2, 0.0);
  }
  gram_schmidt_pass();
  take_norms();
  bool any = false;
  for (Index slot = 0; slot < stepping_; ++slot) {
    Cycle& c = cycle(slot);
    c.again = c.norm < reorthogonalise_below * c.before;
    any = any || c.again;
  }
  if (!any) return;
  gram_schmidt_pass();
  take_norms();
}

// Slots [0, stepping_): q = A p is the new w.
void Gmres::take_steps() {
  if (stepping_ == 0) return;
  orthogonalise();
  Index deepest = 0;
  for (Index slot = 0; slot < stepping_; ++slot) {
    append(slot);
    if (!cycle(slot).ended) deepest = std::max(deepest, steps(slot));
  }
  v_.reach(deepest);
  // v_{j+1} = w / |w|.
  for_chunks(n_, stepping_, [&](Index slot, Index first, Index rows) {
    const Cycle& c = cycle(slot);
    if (c.ended) return;
    const double* w = q_.col(slot).data() + first;
    double* v = v_.at(c.hessenberg.steps(), slot, first);
    for (Index i = 0; i < rows; ++i) v[i] = w[i] / c.norm;
  });
}

// The new column of H, and what it means for the cycle.
void Gmres::append(Index slot) {
  Column& column = at(slot);
  Cycle& c = cycle(slot);
  // A product or P gave what is not a number: keep what was gained before.
  column.broken = !std::isfinite(c.before) || !std::isfinite(c.norm);
  if (column.broken) {
    c.ended = true;
    return;
  }
  c.h.back() = c.norm;
  const bool independent = c.hessenberg.append(c.h);
  column.broken = !independent && c.hessenberg.steps() == 0;
  const double residual = c.hessenberg.residual();
  const Index steps = c.hessenberg.steps();
  // `fresh` here: the operator was exchanged in the middle of the cycle.
  c.ended = !independent || c.norm <= exhausted_below * c.before || steps >= restart_ ||
            column.fresh || (mixed() && residual <= low_precision_reduction * c.beta);
  if (column.broken) return;
  column.rr = residual * residual;
  column.exact = false;
  ++column.iterations;
  row_(column.id) = column.relative();
}

// x += P^-1 V y, or Z y, where a cycle ends.
void Gmres::settle(bool all) {
  settling_.clear();
  for (Index slot = 0; slot < stepping_; ++slot) {
    Cycle& c = cycle(slot);
    const bool over = all || wants_check(slot) || at(slot).iterations >= options_.max_iterations;
    if (!over) continue;
    if (c.hessenberg.steps() > 0) {
      c.hessenberg.solve(c.y);
      settling_.push_back(slot);
    }
  }
  const auto count = static_cast<Index>(settling_.size());
  if (count > 0) add_to_x(count);
  for (const Index slot : settling_) cycle(slot).hessenberg.start(0);
}

// The k-th of the settling columns uses column k of q and p, which are free at this point.
void Gmres::add_to_x(Index count) {
  const bool through_p = context_.preconditioner != nullptr && !flexible_;
  Levels& basis = keeps_z() ? z_ : v_;
  for_chunks(n_, count, [&](Index k, Index first, Index rows) {
    const Index slot = settling_[static_cast<std::size_t>(k)];
    const std::vector<double>& y = cycle(slot).y;
    double* u = q_.col(k).data() + first;
    std::fill(u, u + rows, 0.0);
    for (std::size_t j = 0; j < y.size(); ++j) {
      const double* v = basis.at(static_cast<Index>(j), slot, first);
      for (Index i = 0; i < rows; ++i) u[i] += y[j] * v[i];
    }
  });
  if (through_p) context_.preconditioner->solve(q_.leftCols(count), p_.leftCols(count));
  const Matrix& step = through_p ? p_ : q_;
  // What is not finite stays out of x: the column goes back to where its cycle began.
  dots(step, step, 0, count);
  for (Index k = 0; k < count; ++k)
    if (!std::isfinite(dot(k))) at(settling_[static_cast<std::size_t>(k)]).broken = true;
  for_chunks(n_, count, [&](Index k, Index first, Index rows) {
    const Index slot = settling_[static_cast<std::size_t>(k)];
    if (!std::isfinite(dot(k))) return;
    const double* u = step.col(k).data() + first;
    double* x = x_.col(at(slot).id).data() + first;
    for (Index i = 0; i < rows; ++i) x[i] += u[i];
  });
}

void check(const char* solver, const linalg::LinearOperator& a, ConstMatrixView b,
           ConstMatrixView x, const SolverOptions& options, const SolverContext& context) {
  check_arguments(solver, a, b, x, options, context);
  refuse_option(solver, options.keep_coefficients, "keep_coefficients", "cg");
  refuse_option(solver, options.window.has_value(), "window", "fcg");
  refuse_option(solver, options.window_restarts, "window_restarts", "fcg");
  refuse_option(solver, options.random_stop.has_value(), "random_stop", "unbiased solvers");
}

double blocks_in_bytes(double blocks, Index n, Index columns) {
  return 8.0 * blocks * static_cast<double>(n) * static_cast<double>(columns);
}

}  // namespace

SolveResult gmres(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                  const SolverOptions& options, const SolverContext& context) {
  check("gmres", a, b, x, options, context);
  return Gmres(a, b, x, options, context, false).run();
}

SolveResult fgmres(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                   const SolverOptions& options, const SolverContext& context) {
  check("fgmres", a, b, x, options, context);
  return Gmres(a, b, x, options, context, true).run();
}

double gmres_bytes(Index n, Index columns, bool) {
  return blocks_in_bytes(3 + default_restart + 1, n, columns);
}

double fgmres_bytes(Index n, Index columns, bool preconditioned) {
  return blocks_in_bytes(3 + default_restart + 1 + (preconditioned ? default_restart : 0), n,
                         columns);
}

double gmres_flops(Index n, Index columns) {
  // Two passes over (m + 1) / 2 vectors on average; three norms, one division, the update of x.
  const double per_row = 8 * (default_restart + 1) / 2.0 + 6 + 1 + 3;
  return per_row * static_cast<double>(n) * static_cast<double>(columns);
}

SolverInfo gmres_info() {
  return {.name = "gmres",
          .summary = "GMRES(30): for matrices that may be indefinite",
          .solve = gmres,
          .needs_positive_definite = false,
          .flexible = false,
          .bytes = gmres_bytes,
          .flops = gmres_flops};
}

SolverInfo fgmres_info() {
  return {.name = "fgmres",
          .summary = "flexible GMRES(30): P may change from step to step",
          .solve = fgmres,
          .needs_positive_definite = false,
          .flexible = true,
          .bytes = fgmres_bytes,
          .flops = gmres_flops};
}

}  // namespace mercer::krylov
