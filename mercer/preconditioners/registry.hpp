// The preconditioners of K + s2 I by the name that users type. A new one is a file, a line in
// registry.cpp and a test; the laws in tests/preconditioners/registry_test.cpp do the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "mercer/core/options.hpp"
#include "mercer/linalg/linear_operator.hpp"
#include "mercer/operators/kernel_operator.hpp"

namespace mercer::preconditioners {

struct PreconditionerOptions {
  std::optional<Index> rank;  // default_rank(N) when unset
};

template <class Visitor>
void visit_fields(PreconditionerOptions& o, Visitor&& field) {
  field("rank", o.rank, Positive{});
}

/// min(max(4 sqrt(N), 100), 1000, N).
Index default_rank(Index n);
/// The rank that will be asked for: the option, or the default; never above N.
Index effective_rank(Index n, const PreconditionerOptions& options);

/// What building did.
struct BuildReport {
  std::string name;
  Index rank = 0;
  double build_seconds = 0;
  double bytes = 0;          // kept afterwards
  Index kernel_columns = 0;  // columns of K evaluated, N values each
  std::string notes;         // what was cut or left out, as a sentence; empty when nothing was
};

struct Built {
  std::unique_ptr<linalg::Preconditioner> preconditioner;  // null for "none"
  BuildReport report;
};

struct PreconditionerInfo {
  std::string_view name;  // as the user types it
  Built (*make)(const operators::KernelOperator& k, double noise_variance,
                const PreconditionerOptions& options);
  std::string_view summary;  // for --help and docs
  bool takes_rank;
  /// Costs before building, for the planner. build_flops leaves out the kernel values, which are
  /// kernel_columns(n, options) columns of K.
  double (*bytes)(Index n, const PreconditionerOptions& options);
  Index (*kernel_columns)(Index n, const PreconditionerOptions& options);
  double (*build_flops)(Index n, Index d, const PreconditionerOptions& options);
  double (*apply_flops)(Index n, const PreconditionerOptions& options);  // per right-hand side
};

std::span<const PreconditionerInfo> preconditioners();
/// Throws InvalidArgument that lists the names there are.
const PreconditionerInfo& preconditioner(std::string_view name);

/// Builds by name, with its report filled in.
Built make(std::string_view name, const operators::KernelOperator& k, double noise_variance,
           const PreconditionerOptions& options = {});

}  // namespace mercer::preconditioners
