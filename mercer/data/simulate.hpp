// Simulated data with known truth: designs of points, Friedman's function, and a smooth field in
// the plane on scattered points or on a grid with holes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::data {

/// n x d points, uniform on the unit cube.
Matrix uniform_points(Index n, Index d, Rng& rng);
/// n x d points, standard normal.
Matrix normal_points(Index n, Index d, Rng& rng);

struct Simulated {
  Matrix inputs;
  Vector truth;                    // without noise
  Vector target;                   // truth + noise_sd * standard normal
  std::vector<std::string> names;  // of the inputs
};

struct FriedmanOptions {
  Index dimension = 10;  // at least 5; inputs from the sixth on do not matter
  double noise_sd = 1;
  std::uint64_t seed = 0;
};
template <class Visitor>
void visit_fields(FriedmanOptions& o, Visitor&& field) {
  field("dimension", o.dimension, Positive{});
  field("noise_sd", o.noise_sd, NonNegative{});
  field("seed", o.seed, Any{});
}

/// Rows of simulated data some at a time, in the memory of those: the same bits, whatever the
/// pieces. Points are uniform on the unit cube.
class SimulatedRows {
 public:
  /// Throws InvalidArgument when there are no rows or no inputs, or the noise is negative.
  SimulatedRows(Index rows, Index dimension, double (*truth)(ConstVectorView x), double noise_sd,
                std::uint64_t seed);

  /// The next rows, `most` at most; false, with none, at the end.
  bool next(Simulated& piece, Index most);
  Index rows() const { return rows_; }
  Index dimension() const { return static_cast<Index>(points_.size()); }
  std::vector<std::string> names() const;

 private:
  Index rows_, done_ = 0;
  double (*truth_)(ConstVectorView x);
  double noise_sd_;
  std::vector<Rng> points_;  // one for each input
  Rng noise_;
};

/// The rows of friedman() and scattered_field() below.
SimulatedRows friedman_rows(Index n, const FriedmanOptions& options = {});
SimulatedRows field_rows(Index n, double noise_sd, std::uint64_t seed);

/// Friedman (1991), function 1: 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5, x uniform.
Simulated friedman(Index n, const FriedmanOptions& options = {});
double friedman_function(ConstVectorView x);

/// Franke's (1979) function on the unit square: two peaks, a saddle and a dip; values 0 to 1.22.
double franke_function(double x, double y);

/// Franke's function at n uniform points of the unit square.
Simulated scattered_field(Index n, double noise_sd, std::uint64_t seed);

struct GridOptions {
  Index rows = 50;                // steps of y
  Index columns = 50;             // steps of x
  double missing_fraction = 0.1;  // of single cells, at random
  Index holes = 2;                // rectangles, each side a tenth to a third of the grid's
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(GridOptions& o, Visitor&& field) {
  field("rows", o.rows, Positive{});
  field("columns", o.columns, Positive{});
  field("missing_fraction", o.missing_fraction, NonNegative{});
  field("holes", o.holes, NonNegative{});
  field("seed", o.seed, Any{});
}

/// A regular grid over the unit square of which some cells were not observed.
struct GridDesign {
  Matrix observed;                    // x, y of the cells that are there
  Matrix missing;                     // x, y of the others
  std::vector<Index> observed_cells;  // row * columns + column, ascending
  std::vector<Index> missing_cells;
};

/// Throws InvalidArgument if the holes would leave nothing.
GridDesign grid_with_holes(const GridOptions& options);
/// Franke's function on the observed cells of such a grid.
Simulated grid_field(const GridOptions& options, double noise_sd);

}  // namespace mercer::data
MERCER_API_END
