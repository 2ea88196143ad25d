#include "mercer/krylov/registry.hpp"

#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/fcg.hpp"
#include "mercer/krylov/gmres.hpp"

namespace mercer::krylov {

Registry<SolverInfo>& solvers() {
  // clang-format off
  static Registry<SolverInfo> all("solver", {
      cg_info(),
      fcg_info(),
      gmres_info(),
      fgmres_info(),
  });
  // clang-format on
  return all;
}

}  // namespace mercer::krylov
