// Which solvers and preconditioners a comparison runs: the pairs that go together.
#pragma once

#include <string>
#include <vector>

#include "mercer/studies/compare.hpp"

namespace mercer::studies {

struct CompareMethod {
  std::string solver;
  std::string preconditioner;
};

/// Plain CG first, then every pair that was asked for and suits this kernel and these points.
std::vector<CompareMethod> compare_methods(const CompareOptions& options,
                                           const kernels::Kernel& kernel, ConstMatrixView x);

}  // namespace mercer::studies
