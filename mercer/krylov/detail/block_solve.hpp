// What every solver of this room does besides its own mathematics, for many right-hand sides at
// once (pseudo-block: each column runs its own recurrence, products are shared).
//
// The columns of the block live in slots. [0, active_) still run; of these [0, stepping_) hold in p
// what the method wants multiplied, the others hold x, so that the same block product gives their
// true residual. A column is checked when the method says converged, when it says it is due, and
// when it seems to stall; a claim that is not true is refused and the column goes on from the
// residual found. Columns that are done leave the block. `converged` thus always means b - A x.
#pragma once

#include <cstdint>
#include <vector>

#include "mercer/core/timer.hpp"
#include "mercer/krylov/detail/chunks.hpp"
#include "mercer/krylov/detail/column.hpp"
#include "mercer/krylov/solver.hpp"

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
  virtual void swap_slots(Index i, Index j);

  /// Whether the column will leave the steps in this round, to be checked: claimed, due, broken
  /// or without progress.
  bool wants_check(Index slot) const;

  /// dots_[slot] = <u, v> of slots [first, first + count).
  void dots(const Matrix& u, const Matrix& v, Index first, Index count);
  double dot(Index slot) const { return dots_[static_cast<std::size_t>(slot)]; }
  Column& at(Index slot) { return columns_[static_cast<std::size_t>(slot)]; }
  const Column& at(Index slot) const { return columns_[static_cast<std::size_t>(slot)]; }
  bool mixed() const { return steps_with_ != &a_; }

  const linalg::LinearOperator& a_;
  const SolverOptions& options_;
  const SolverContext& context_;
  MatrixView x_;
  Index n_, t_;
  Matrix r_, p_, q_;
  Index active_ = 0, stepping_ = 0;
  Vector row_;  // the next row of the history
  SolveResult result_;

 private:
  void start();
  void set_scale(Column& c);
  void iterate();
  void apply_block();
  void finish_checks();
  void judge_check(Index slot);
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
  int rounds_ = 0;
};

}  // namespace mercer::krylov::detail
