// The ways to solve H x = b by the name that users type: the dense factorisation, the solvers of
// krylov's registry, and those that an inference method brings along (InferenceInfo::solver). What
// plans, checks and comparisons must know of a solver is a property here, so that none of them asks
// for a name.
#pragma once

#include <string_view>
#include <vector>

#include "mercer/inference/system.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct SystemSolver {
  std::string_view name;     // as the user types it
  std::string_view summary;  // for --help and docs
  /// Factors the stored matrix in double precision, without a preconditioner.
  bool direct = false;
  bool takes_preconditioner = true;
  bool flexible = false;        // P may change from step to step
  bool double_only = false;     // its products are in double precision
  bool takes_row_noise = true;  // false: D must be s2 I
  /// Its solutions are random and right on average (krylov::SolverInfo::unbiased).
  bool unbiased = false;
  /// Workspace in bytes; null: counted with the factor.
  double (*bytes)(Index n, Index columns, bool preconditioned) = nullptr;
  /// Solves H x = b as solve_iteratively does; null: by a factor, or by krylov's registry.
  SystemReport (*solve)(const IterativeSystem& system, ConstMatrixView b, MatrixView x,
                        double tolerance, const Observer& observer, Matrix* residual) = nullptr;
};

/// The direct one first, then krylov's in their order, then those of inference methods.
std::vector<SystemSolver> solvers();
/// Throws InvalidArgument that lists the names there are.
SystemSolver solver(std::string_view name);

}  // namespace mercer::inference
MERCER_API_END
