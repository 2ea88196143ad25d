// What each preconditioner says of itself, and the options all of them share. One preconditioner is
// one file that offers `PreconditionerInfo NAME_info()`; registry.cpp lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mercer/approximations/landmarks.hpp"
#include "mercer/core/options.hpp"
#include "mercer/linalg/linear_operator.hpp"
#include "mercer/operators/kernel_operator.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

using approximations::Landmarks;  // how landmarks are drawn
using approximations::landmarks;
using approximations::to_string;

/// Unset: the preconditioner's own default. An option that a preconditioner does not take is
/// refused (PreconditionerInfo::takes).
struct PreconditionerOptions {
  std::optional<Index> rank;              // columns of the low-rank part, landmarks or features
  std::optional<Index> neighbours;        // points that a sparse factor conditions on
  std::optional<Index> blocks;            // diagonal blocks
  std::optional<double> delta;            // regularized: added to the noise variance
  std::optional<double> inner_tolerance;  // of a preconditioner that iterates inside
  std::optional<double> drop;             // ilu: relative size below which an entry is left out
  std::optional<Landmarks> landmarks;
  std::uint64_t seed = 0;  // of whatever is random; all accept it
};

template <class Visitor>
void visit_fields(PreconditionerOptions& o, Visitor&& field) {
  field({"rank", "M",
         "rank of the preconditioner, its landmarks or features; base points of an approximation",
         "planned"},
        o.rank, Positive{});
  field({"neighbours", "m", "points that a sparse factor conditions on", "by size"}, o.neighbours,
        Positive{});
  field({"blocks", "B",
         "diagonal blocks of a preconditioner, or blocks of rows of an approximation", "by size"},
        o.blocks, Positive{});
  field({"delta", "D", "regularized: added to the noise variance", "10 times it"}, o.delta,
        Positive{});
  field({"inner_tolerance", "E", "of a preconditioner that iterates inside", "its own"},
        o.inner_tolerance, Positive{});
  field({"drop", "T", "ilu: leave out entries below this share of the diagonal", "its own"}, o.drop,
        NonNegative{});
}

/// What is to be preconditioned: K + D, D the noise variance of each point (mostly s2 I).
struct Target {
  const operators::KernelOperator& k;
  linalg::Diagonal noise;
  /// Products in float32 for those that iterate inside; they make their own when null. Must
  /// outlive the preconditioner.
  const operators::KernelOperator* fast = nullptr;

  /// Of all ranks, where rows are shared.
  Index points() const { return k.row_space().global_size(); }
};

/// What a preconditioner does where the rows of K are shared among ranks.
enum class OverRanks {
  whole,       // the same P as on one rank: its sums over rows are reduced
  local_rows,  // P couples rows in a way that a split cannot: each rank takes its rows alone, and P
               // is block-diagonal over ranks (local_rows.hpp)
};

/// Costs before building, for the planner, which turns them into seconds.
struct Cost {
  double bytes = 0;           // kept
  double peak_bytes = 0;      // the most in use while it is built, `bytes` included
  double kernel_values = 0;   // single entries of K evaluated to build it
  double products = 0;        // single-column products with the whole K to build it
  double build_flops = 0;     // the rest of the building, as products of large matrices
  double thin_flops = 0;      // and on vectors, sparse rows or small matrices
  double apply_flops = 0;     // per application and right-hand side
  double apply_products = 0;  // products with the whole K inside an application (a guess)
};

/// Which options have a meaning.
struct Takes {
  bool rank = false;
  bool neighbours = false;
  bool blocks = false;
  bool delta = false;
  bool inner_tolerance = false;
  bool drop = false;
  bool landmarks = false;
};

/// field(name, value, taken) for every option that only some preconditioners take.
template <class Visitor>
void visit_options(PreconditionerOptions& o, const Takes& takes, Visitor&& field) {
  field("rank", o.rank, takes.rank);
  field("neighbours", o.neighbours, takes.neighbours);
  field("blocks", o.blocks, takes.blocks);
  field("delta", o.delta, takes.delta);
  field("inner_tolerance", o.inner_tolerance, takes.inner_tolerance);
  field("drop", o.drop, takes.drop);
  field("landmarks", o.landmarks, takes.landmarks);
}

/// What building did.
struct BuildReport {
  std::string name;
  Index rank = 0;
  Index neighbours = 0;
  Index blocks = 0;
  double build_seconds = 0;
  double bytes = 0;          // kept afterwards
  double kernel_values = 0;  // single entries of K evaluated
  double products = 0;       // single-column products with the whole K
  /// trace(K - F F') / trace(K) of a low-rank part F that can be grown, and what it was at half of
  /// its rank: what a further doubling may bring. Unset for all others.
  std::optional<double> trace_left, trace_left_at_half;
  std::string notes;  // what was cut or left out, as a sentence; empty when nothing was
};

struct Built {
  std::unique_ptr<linalg::Preconditioner> preconditioner;  // null for "none"
  BuildReport report;
};

struct PreconditionerInfo {
  std::string_view name;     // as the user types it
  std::string_view summary;  // for help pages and docs
  Built (*make)(const Target& target, const PreconditionerOptions& options);
  Cost (*cost)(Index n, Index d, const PreconditionerOptions& options);
  Takes takes = {};
  /// Why it cannot be used on this kernel and data, as a sentence; empty when it can.
  std::string (*refusal)(const kernels::Kernel& kernel, Index n, Index d) = nullptr;
  /// False: P changes from one application to the next, so only flexible solvers may use it.
  bool fixed = true;
  bool has_log_det = true;  // otherwise log_det() throws InvalidArgument
  bool can_sample = true;   // otherwise sample() throws InvalidArgument
  OverRanks over_ranks = OverRanks::local_rows;
  /// Iterations without it over those with it, a guess for the planner.
  double expected_gain = 3;
};

/// min(max(4 sqrt(N), 100), 1000, N).
Index default_rank(Index n);
/// The rank that will be asked for: the option, or the default; never above N.
Index effective_rank(Index n, const PreconditionerOptions& options);
/// "rank 500 cut to the number of points 60; " when the rank asked for was above N.
std::string rank_note(Index n, const PreconditionerOptions& options);

}  // namespace mercer::preconditioners
MERCER_API_END
