// The iterative solvers by the name that users type. A new one is a file, a line in registry.cpp
// and a test; the laws in tests/krylov/registry_test.cpp then hold it to the rest.
#pragma once

#include <string_view>

#include "mercer/core/registry.hpp"
#include "mercer/krylov/solver.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

Registry<SolverInfo>& solvers();
/// Throws InvalidArgument that lists the names there are.
inline const SolverInfo& solver(std::string_view name) { return solvers().find(name); }
/// The first of the list: what serves where nobody chose.
const SolverInfo& default_solver();
/// The first that allows P to change from step to step.
const SolverInfo& flexible_solver();

}  // namespace mercer::krylov
MERCER_API_END
