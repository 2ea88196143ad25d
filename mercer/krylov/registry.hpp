// The iterative solvers by the name that users type. A new one is a file, a line in registry.cpp
// and a test; the laws in tests/krylov/registry_test.cpp then hold it to the rest.
#pragma once

#include <span>
#include <string_view>

#include "mercer/krylov/solver.hpp"

namespace mercer::krylov {

using SolveFunction = SolveResult (*)(const linalg::LinearOperator& a, ConstMatrixView b,
                                      MatrixView x, const SolverOptions& options,
                                      const SolverContext& context);

struct SolverInfo {
  std::string_view name;  // as the user types it
  SolveFunction solve;
  std::string_view summary;  // for --help and docs
  bool needs_positive_definite;
  bool takes_preconditioner;
  bool flexible;             // P may change from step to step
  bool takes_low_precision;  // uses SolverContext::low_precision
  /// Workspace in bytes, and flops per iteration besides products and preconditioner.
  double (*bytes)(Index n, Index columns, bool preconditioned);
  double (*flops)(Index n, Index columns);
};

std::span<const SolverInfo> solvers();
/// Throws InvalidArgument that lists the names there are.
const SolverInfo& solver(std::string_view name);

}  // namespace mercer::krylov
