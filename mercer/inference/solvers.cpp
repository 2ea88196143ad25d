#include "mercer/inference/solvers.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/krylov/registry.hpp"

namespace mercer::inference {

std::vector<SystemSolver> solvers() {
  std::vector<SystemSolver> all = {{.name = kCholesky,
                                    .summary = "dense factorisation: direct, 8 N^2 bytes",
                                    .direct = true,
                                    .takes_preconditioner = false,
                                    .double_only = true}};
  for (const auto& entry : krylov::solvers())
    all.push_back({.name = entry.name,
                   .summary = entry.summary,
                   .flexible = entry.flexible,
                   .unbiased = entry.unbiased,
                   .bytes = entry.bytes});
  for (const auto& method : methods())
    if (method.solver) all.push_back(*method.solver);
  return all;
}

SystemSolver solver(std::string_view name) {
  std::string known;
  for (auto& entry : solvers()) {
    if (entry.name == name) return entry;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
  }
  throw InvalidArgument(fmt::format("there is no solver '{}'; there are: {}", name, known));
}

}  // namespace mercer::inference
