// Conjugate gradients over a block of columns: the steps, and two ways to choose directions.
// Without a window p = z + beta p, with one p = z made conjugate to the directions in it (flexible
// CG).
#pragma once

#include <optional>
#include <vector>

#include "mercer/krylov/detail/block_solve.hpp"
#include "mercer/krylov/detail/direction_window.hpp"

namespace mercer::krylov::detail {

class ConjugateGradients : public BlockSolve {
 public:
  /// window: the number of directions kept, or none for plain CG.
  ConjugateGradients(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                     const SolverOptions& options, const SolverContext& context,
                     std::optional<int> window);

 private:
  void choose_directions() override;
  void take_steps() override;
  void settle(bool) override {}  // x holds every step
  bool due(Index slot) const override;
  void swap_slots(Index i, Index j) override;

  void recur(const Matrix& z);
  void make_conjugate(const Matrix& z);
  void find_reached_levels();
  void subtract_levels(Index first_reached, Index count);
  void walk();
  void add_to_path();

  Matrix z_;  // only with a preconditioner
  std::optional<DirectionWindow> window_;
  std::vector<int> reached_;  // levels of the window in use
  Vector work_;               // one number a slot
};

}  // namespace mercer::krylov::detail
