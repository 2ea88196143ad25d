#include "mercer/krylov/registry.hpp"

#include <algorithm>

#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/fcg.hpp"
#include "mercer/krylov/gmres.hpp"
#include "mercer/krylov/ulisse.hpp"

namespace mercer::krylov {

Registry<SolverInfo>& solvers() {
  // clang-format off
  static Registry<SolverInfo> all("solver", {
      cg_info(),
      fcg_info(),
      gmres_info(),
      fgmres_info(),
      ulisse_info(),
  });
  // clang-format on
  return all;
}

const SolverInfo& default_solver() { return solvers().all().front(); }

const SolverInfo& flexible_solver() {
  const auto& all = solvers().all();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [](const SolverInfo& solver) { return solver.flexible; });
  if (found == all.end()) throw InvalidArgument("no solver allows a preconditioner that changes");
  return *found;
}

}  // namespace mercer::krylov
