#include "mercer/krylov/registry.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"

namespace mercer::krylov {
namespace {

constexpr std::array registry = {
    SolverInfo{"cg", cg, "conjugate gradients", true, true, false, true, cg_bytes, cg_flops},
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
