// What the words after a verb ask for, as far as it belongs to the command line only: files, and
// what a verb of its own is about. The rest are the options of the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared_options.hpp"
#include "mercer/models/predictor.hpp"
#include "mercer/studies/compare.hpp"
#include "mercer/studies/simulate.hpp"

namespace mercer::cli {

struct SolveCommand {
  std::string output, history;
};

template <class Visitor>
void visit_fields(SolveCommand& o, Visitor&& field) {
  field({"output", "FILE", "write the solution, one row per row of data", "not written",
         Affects::nothing},
        o.output, Any{});
  field({"history", "FILE",
         "write the relative residual after each iteration: iteration, relative_residual (as the "
         "solver knows it; the last one is checked in double)",
         "not written", Affects::nothing},
        o.history, Any{});
}

struct CompareCommand {
  std::string csv, picture;
};

template <class Visitor>
void visit_fields(CompareCommand& o, Visitor&& field) {
  field({"csv", "FILE", "write every run, one row each", "not written", Affects::nothing}, o.csv,
        Any{});
  field({"picture", "FILE",
         "write a picture (SVG): heat maps, or of methods their errors against seconds",
         "not written", Affects::nothing},
        o.picture, Any{});
}

/// Rows of a file that `compare --methods` predicts, and an exact model of the rows of DATA.
struct TestFile {
  std::string path, exact;
};

template <class Visitor>
void visit_fields(TestFile& o, Visitor&& field) {
  field({"test", "FILE", "CSV file with the target: the rows to predict", "a share of DATA"},
        o.path, Any{});
  field({"exact", "MODEL",
         "with `test`: model file of the exact fit of DATA, in place of fitting it again",
         "it is fitted"},
        o.exact, Any{});
}

struct PlanCommand {
  std::string verb = "fit";
};

template <class Visitor>
void visit_fields(PlanCommand& o, Visitor&& field) {
  field({"for", "VERB", "the run to plan"}, o.verb, OneOf{{"fit", "solve", "predict"}});
}

/// The hyperparameters are those of the truth; kernel, seed and memory are options of the method.
struct GenerateCommand {
  std::string name;
  std::optional<Index> n;
  std::optional<Index> d;
  std::optional<double> noise;
  std::string output = "-";
  bool truth = false;
  std::vector<double> lengthscale;
  std::optional<double> signal_variance;
  std::string likelihood;
  std::string draw = "auto";
  std::optional<Index> neighbours;
  models::MethodOptions method;
};

/// The names of likelihoods, with "auto" in front where the data may decide.
std::vector<std::string> likelihood_names(bool with_auto);

template <class Visitor>
void visit_fields(GenerateCommand& o, Visitor&& field) {
  field({"n", "N", "rows (grid: cells, of which some are missing)"}, o.n, Positive{});
  field({"d", "D", "inputs", "gp 2, friedman 10"}, o.d, Positive{});
  field({"noise", "V", "variance of the noise", "gp 0.01, friedman 1, field and grid 0.0025"},
        o.noise, NonNegative{});
  field(
      {"output", "FILE", "CSV to write; - is standard output; .gz packs it", "", Affects::nothing},
      o.output, Any{});
  field(
      {"truth", "", "add a column f, the target without noise (or the latent function), before y"},
      o.truth, Any{});
  field({"lengthscale", "L", "one, or one per input", "0.3 sqrt(D)"}, o.lengthscale, Positive{});
  field({"signal_variance", "V", "variance of the signal", "1"}, o.signal_variance, Positive{});
  field({"likelihood", "NAME", "y given f, as for mercer fit", "f plus Gaussian noise"},
        o.likelihood, BeginsWith{likelihood_names(false)});
  field({"draw", "NAME",
         fmt::format("exact factors the covariance; vecchia draws each point given its M most "
                     "correlated earlier ones, which is an approximation and said in a comment of "
                     "the file; auto is exact up to {} rows",
                     studies::kMostExactDraw)},
        o.draw, OneOf{studies::draw_method_names()});
  field({"neighbours", "M", "M of vecchia; giving it means `draw=vecchia`",
         std::to_string(studies::kDrawNeighbours)},
        o.neighbours, Positive{});
}

struct SplitCommand {
  std::string train_out, test_out;
  double test_fraction = 0.2;
};

template <class Visitor>
void visit_fields(SplitCommand& o, Visitor&& field) {
  field({"train_out", "FILE", "file for the rest of the rows; .gz packs it", "", Affects::nothing},
        o.train_out, Any{});
  field({"test_out", "FILE", "file for the share set apart; .gz packs it", "", Affects::nothing},
        o.test_out, Any{});
  field({"test_fraction", "F", "share of the rows to set apart"}, o.test_fraction, BelowOne{});
}

struct DemoCommand {
  std::uint64_t seed = 1;
  bool quick = false;
};

template <class Visitor>
void visit_fields(DemoCommand& o, Visitor&& field) {
  field({"seed", "S", "other simulated data"}, o.seed, Any{});
  field({"quick", "", "fewer rows, and no time limits for its parts: some seconds"}, o.quick,
        Any{});
}

}  // namespace mercer::cli
