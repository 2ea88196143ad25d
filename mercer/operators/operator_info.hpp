// What each way to compute K v says of itself, for the planner, help and tests. One operator is one
// file that offers `OperatorInfo NAME_info()`; registry.cpp lists them.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <string_view>

#include "mercer/operators/kernel_operator.hpp"

MERCER_API_BEGIN
namespace mercer::operators {

/// Speeds of a machine, with all its threads.
struct Speeds {
  double pair_seconds_double = 0;  // one entry of K evaluated and multiplied with one vector
  double pair_seconds_single = 0;
  double column_seconds_double = 0;  // each further right-hand side, per entry of K
  double column_seconds_single = 0;
  double flops = 1;      // of a Cholesky factorisation, per second
  double bandwidth = 1;  // bytes read per second

  double pair_seconds(Precision p) const {
    return p == Precision::float32 ? pair_seconds_single : pair_seconds_double;
  }
  double column_seconds(Precision p) const {
    return p == Precision::float32 ? column_seconds_single : column_seconds_double;
  }
};

/// When `auto` may take an operator that the user did not ask for.
struct AutoRule {
  bool allowed = true;
  double least_gain = 1;         // the others must be estimated to take so many times longer
  double most_bytes = HUGE_VAL;  // and the whole solve must stay below this
};

struct OperatorInfo {
  std::string_view name;     // as the user types it
  std::string_view summary;  // for --help and docs
  std::unique_ptr<KernelOperator> (*make)(const kernels::Kernel& kernel, const Matrix& x,
                                          Precision precision);
  /// Of n points in d inputs while `columns` vectors are multiplied; x itself included.
  double (*bytes)(Index n, Index d, Index columns, Precision precision);
  /// One product with `columns` vectors, and what is done once before the first.
  double (*product_seconds)(const Speeds& speeds, Index n, Index columns, Precision precision);
  double (*build_seconds)(const Speeds& speeds, Index n, Precision precision);
  /// Why it cannot be used on this kernel and data, as a sentence; empty when it can.
  std::string (*refusal)(const kernels::Kernel& kernel, Index n, Index d) = nullptr;
  AutoRule automatic = {};
  /// True: K itself stays in memory. A factorisation keeps it too, so a user who asks for such an
  /// operator allows one; and float32 halves its memory.
  bool keeps_matrix = false;
};

}  // namespace mercer::operators
MERCER_API_END
