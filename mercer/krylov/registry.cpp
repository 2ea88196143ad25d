#include "mercer/krylov/registry.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/fcg.hpp"
#include "mercer/krylov/gmres.hpp"

namespace mercer::krylov {
namespace {

constexpr std::array registry = {
    SolverInfo{"cg", cg, "conjugate gradients", true, true, false, true, cg_bytes, cg_flops},
    SolverInfo{"fcg", fcg, "flexible conjugate gradients: P may change from step to step", true,
               true, true, true, fcg_bytes, fcg_flops},
    SolverInfo{"gmres", gmres, "GMRES(30): for matrices that may be indefinite", false, true, false,
               true, gmres_bytes, gmres_flops},
    SolverInfo{"fgmres", fgmres, "flexible GMRES(30): P may change from step to step", false, true,
               true, true, fgmres_bytes, gmres_flops},
};

}  // namespace

std::span<const SolverInfo> solvers() { return registry; }

const SolverInfo& solver(std::string_view name) {
  std::string names;
  for (const auto& info : registry) {
    if (info.name == name) return info;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  throw InvalidArgument(fmt::format("there is no solver '{}'; there are: {}", name, names));
}

}  // namespace mercer::krylov
