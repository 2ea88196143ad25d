// What every solver of this room does besides its own mathematics, for many right-hand sides at
// once (pseudo-block: each column runs its own recurrence, products are shared).
//
// The columns of the block live in slots. [0, active_) still run; of these [0, stepping_) hold in p
// what the method wants multiplied, the others hold x, so that the same block product gives their
// true residual. A column is checked when the method says converged, when it says it is due, and
// when it seems to stall; a claim that is not true is refused and the column goes on from the
// residual found. Columns that are done leave the block. `converged` thus always means b - A x.
//
// Rows may be shared among ranks: whatever decides comes out of `dots`, or is agreed on by another
// reduction of the row space, so that every rank goes the same way at every step.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "mercer/core/timer.hpp"
#include "mercer/krylov/detail/chunks.hpp"
#include "mercer/krylov/detail/column.hpp"
#include "mercer/krylov/solver.hpp"
#include "mercer/linalg/reductions.hpp"

namespace mercer::krylov::detail {

/// How the method knows its residual between checks.
enum class Residual {
  recurrence,  // r itself is carried along
  norm_only,   // only |r|: every check starts the method anew from the r it found
};

class BlockSolve {
 public:
  virtual ~BlockSolve() = default;
  BlockSolve(const BlockSolve&) = delete;
  BlockSolve& operator=(const BlockSolve&) = delete;
  SolveResult run();

 protected:
  BlockSolve(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
             const SolverOptions& options, const SolverContext& context, Residual kind);

  /// Fills p of slots [0, stepping_) from r or from what the method keeps.
  virtual void choose_directions() = 0;
  /// Slots [0, stepping_): q = A p is there. Updates rr, iterations, exact, broken and row_.
  virtual void take_steps() = 0;
  /// Slots [0, stepping_), before checks are chosen: x takes in what the method holds back, for
  /// the columns that will be checked or retired; for all of them when told.
  virtual void settle(bool all) = 0;
  /// Whether a column that claims nothing and is not broken should be checked now.
  virtual bool due(Index slot) const = 0;
  /// Whether a column leaves the block by a draw. Asked at the start and once after each step, of
  /// columns that need not be done.
  virtual bool ended(Index) { return false; }
  /// Whether A itself gives residuals on which no claim rests: of first guesses, and of columns
  /// that left by a draw.
  virtual bool measures_all() const { return true; }
  /// All columns have left the block. x may be changed, and Column::exact unset where it was.
  virtual void finish() {}
  virtual void swap_slots(Index i, Index j);

  /// Whether the column will leave the steps in this round, to be checked: claimed, due, broken
  /// or without progress.
  bool wants_check(Index slot) const;

  struct Pair {
    const Matrix& u;
    const Matrix& v;
  };
  /// dot(slot, k) = <u, v> of pair_at(k) for slots [first, first + count), k = 0 .. pairs - 1, over
  /// all ranks by one reduction.
  template <class PairAt>
  void dots(Index pairs, Index first, Index count, const PairAt& pair_at);
  void dots(std::initializer_list<Pair> pairs, Index first, Index count) {
    dots(static_cast<Index>(pairs.size()), first, count, [&](Index k) { return pairs.begin()[k]; });
  }
  void dots(const Matrix& u, const Matrix& v, Index first, Index count) {
    dots({{u, v}}, first, count);
  }
  double dot(Index slot, Index pair = 0) const {
    return dots_[static_cast<std::size_t>(pair * dots_count_ + slot - dots_first_)];
  }
  /// Pairs that are to share a reduction, of so many that could be taken one after the other. One
  /// after the other is more accurate; among ranks every reduction is a wait.
  Index pairs_at_once(Index pairs) const { return space_.split() ? pairs : 1; }
  Column& at(Index slot) { return columns_[static_cast<std::size_t>(slot)]; }
  const Column& at(Index slot) const { return columns_[static_cast<std::size_t>(slot)]; }
  bool mixed() const { return steps_with_ != &a_; }

  const linalg::LinearOperator& a_;
  const linalg::RowSpace space_;
  const SolverOptions& options_;
  const SolverContext& context_;
  MatrixView x_;
  Index n_, t_;  // rows held here, columns
  Matrix r_, p_, q_;
  Index active_ = 0, stepping_ = 0;
  Vector row_;  // the next row of the history
  SolveResult result_;

 private:
  void start();
  void multiply_guesses(Index guesses);
  void move_checks_last();
  void set_scales();
  void iterate();
  void apply_block();
  void finish_checks();
  void judge_check(Index slot);
  void offer_to_trail(Index slot);
  bool record_and_ask();
  void choose_checks();
  void exchange_x_and_p();
  void verify_unfinished();
  void fall_back();
  void count_inner(int sign);
  /// r(:, slot) = scale b - q(:, slot); q becomes the change of r when asked.
  void residual_from_product(Index first_slot, Index count, bool keep_change);
  void retire(Index slot, StopReason reason);

  const linalg::LinearOperator* steps_with_;
  ConstMatrixView b_;
  Timer timer_;
  Residual kind_;
  int window_;  // of stagnation
  std::vector<Column> columns_;
  std::vector<double> dots_;
  Index dots_first_ = 0, dots_count_ = 0;
  int rounds_ = 0;
};

template <class PairAt>
void BlockSolve::dots(Index pairs, Index first, Index count, const PairAt& pair_at) {
  if (count == 0) return;
  const auto needed = static_cast<std::size_t>(pairs * count);
  if (dots_.size() < needed) dots_.resize(needed);
  dots_first_ = first;
  dots_count_ = count;
  for (Index k = 0; k < pairs; ++k) {
    const Pair pair = pair_at(k);
    linalg::column_dots(pair.u.middleCols(first, count), pair.v.middleCols(first, count),
                        std::span(dots_.data() + k * count, static_cast<std::size_t>(count)));
  }
  space_.reduce(std::span(dots_.data(), needed));
}

}  // namespace mercer::krylov::detail
