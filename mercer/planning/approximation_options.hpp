// What a user may ask of an approximation of the exact posterior: its name, its base points and its
// blocks. How many there are of both are the options `rank` and `blocks` of the method.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"
#include "mercer/inference/sparse/sparse_setup.hpp"
#include "mercer/planning/options.hpp"

MERCER_API_BEGIN
namespace mercer::planning {

struct ApproximationOptions {
  /// An entry of the inference registry that is an approximation (Abilities::approximate); empty:
  /// the exact posterior, or Laplace's approximation of it.
  std::string method;
  std::string base = "auto";  // a name of inference::base_choices(); `points` go before it
  bool optimize_base = false;
  std::string blocks_by = "tree";
  /// Random rows of the data that the distance from the exact posterior is measured on; unset: it
  /// is not measured.
  std::optional<Index> check_rows;
  /// Whether rows are read in passes instead of into memory (a name of stream_choices()), and how
  /// many random ones are kept to learn from; unset: 100,000, or fewer where memory is small.
  std::string stream = "auto";
  std::optional<Index> reservoir;
  /// The user's base points, as the inputs of the data are: encoded and in their units. None:
  /// chosen from the rows.
  Matrix points = {};

  bool asked() const { return !method.empty(); }
};

/// The approximations of the inference registry.
std::vector<std::string> approximation_names();
std::vector<std::string> blocks_by_names();
/// auto, always, never.
std::vector<std::string> stream_choices();
/// Those that learn from rows in passes, as "srm, dtc, fitc, vfe".
std::string streaming_names();
/// Those that can move their base points, as "fitc, vfe".
std::string moving_base_names();
/// One line for each, for help pages.
std::string describe_approximations();

template <class Visitor>
void visit_fields(ApproximationOptions& o, Visitor&& field) {
  field("approximation", o.method, Any{});  // named by `method`
  field({"base", "HOW",
         fmt::format("base points of an approximation: {}, or a CSV file with the input columns "
                     "(transduction when it holds the rows to predict); auto is rpcholesky",
                     fmt::join(inference::base_choices(), ", "))},
        o.base, Any{});
  field({"optimize_base", "",
         fmt::format("move the base points too, uphill on the evidence, once hyperparameters are "
                     "learned: {}",
                     moving_base_names())},
        o.optimize_base, Any{});
  field(
      {"blocks_by", "HOW",
       "how rows come into the blocks of an approximation: neighbours together (tree), or random"},
      o.blocks_by, OneOf{blocks_by_names()});
  field({"check_rows", "R",
         "with an approximation: measure its distance from the exact posterior at this many random "
         "rows, by exact solves at the same hyperparameters",
         "not measured"},
        o.check_rows, Positive{});
  field({"stream", "HOW",
         fmt::format("read the rows in passes instead of into memory ({}): always, never, or "
                     "(auto) where they do not fit",
                     streaming_names())},
        o.stream, OneOf{stream_choices()});
  field({"reservoir", "R",
         "with rows that are read in passes: random rows to keep in memory, from which base points "
         "and hyperparameters are learned before all rows have their say",
         "100,000, or fewer where memory is small"},
        o.reservoir, Positive{});
}

/// Rows of a file that are read in passes, for a plan: those in memory are a sample.
struct StreamSetting {
  Index rows = 0;           // in all
  double read_seconds = 0;  // of a pass, to read them only
  int gradients = 3;        // of the evidence of all rows, at most
};
/// The bytes that blocks of rows on their way take, and the largest sample that leaves room for the
/// rest; `columns` are those of the file, `budget` includes the program.
double stream_bytes(Index d);
Index usual_reservoir(double budget, Index columns);

/// Throws InvalidArgument when an option has no meaning for the approximation, or without one.
/// `method` has its rank and blocks.
void check(const ApproximationOptions& options, const MethodOptions& method);
/// The options of the exact system beside an approximation, which takes `rank` and `blocks`.
MethodOptions without_base(MethodOptions method);
/// What the inference method is set up with; `points` are those of the options, as they are.
/// Throws InvalidArgument when there are more base points or blocks than rows.
inference::SparseSetup sparse_setup(const ApproximationOptions& options,
                                    const MethodOptions& method, Index rows);

}  // namespace mercer::planning
MERCER_API_END
