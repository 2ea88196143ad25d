#include "mercer/data/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"

namespace mercer::data {
namespace {

void check_size(const char* what, Index n, Index d) {
  if (n < 1 || d < 1)
    throw InvalidArgument(
        fmt::format("{}: {} points in {} dimensions; both must be positive", what, n, d));
}

// Looked at every so many values: often enough to stop at once, seldom enough to cost nothing.
constexpr Index some = Index{1} << 16;
void look(Index i) {
  if (i % some == 0) stop_if_requested("simulating data");
}

template <class Fill>
Matrix filled(Index n, Index d, const Fill& fill) {
  Matrix out(n, d);
  for (Index j = 0; j < d; ++j)
    for (Index first = 0; first < n; first += some) {
      look(first);
      fill(out.block(first, j, std::min(some, n - first), 1));
    }
  return out;
}

void check_noise(double noise_sd) {
  if (!(std::isfinite(noise_sd) && noise_sd >= 0))
    throw InvalidArgument(fmt::format("noise_sd is {}, but must be zero or positive", noise_sd));
}

Vector with_noise(const Vector& truth, double noise_sd, std::uint64_t seed) {
  check_noise(noise_sd);
  Rng rng(seed, "simulate-noise");
  Vector out = truth;
  for (Index i = 0; i < out.size(); ++i) {
    look(i);
    out[i] += noise_sd * rng.normal();
  }
  return out;
}

Simulated franke_at(Matrix points, double noise_sd, std::uint64_t seed) {
  Simulated out;
  out.truth.resize(points.rows());
  for (Index i = 0; i < points.rows(); ++i) {
    look(i);
    out.truth[i] = franke_function(points(i, 0), points(i, 1));
  }
  out.target = with_noise(out.truth, noise_sd, seed);
  out.inputs = std::move(points);
  out.names = {"x1", "x2"};
  return out;
}

/// Marks a random rectangle of the grid as missing.
void punch_hole(const GridOptions& options, Rng& rng, std::vector<bool>& missing) {
  const auto side = [&rng](Index length) {
    const double share = 0.1 + rng.uniform() * (1.0 / 3 - 0.1);
    return std::max<Index>(1, static_cast<Index>(share * static_cast<double>(length)));
  };
  const Index height = side(options.rows);
  const Index width = side(options.columns);
  const Index top = rng.index(options.rows - height + 1);
  const Index left = rng.index(options.columns - width + 1);
  for (Index r = top; r < top + height; ++r)
    for (Index c = left; c < left + width; ++c)
      missing[static_cast<std::size_t>(r * options.columns + c)] = true;
}

Matrix cell_places(const std::vector<Index>& cells, const GridOptions& options) {
  const auto step = [](Index i, Index count) {
    return count == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(count - 1);
  };
  Matrix out(static_cast<Index>(cells.size()), 2);
  for (Index i = 0; i < out.rows(); ++i) {
    look(i);
    const Index cell = cells[static_cast<std::size_t>(i)];
    out(i, 0) = step(cell % options.columns, options.columns);
    out(i, 1) = step(cell / options.columns, options.rows);
  }
  return out;
}

}  // namespace

Matrix uniform_points(Index n, Index d, Rng& rng) {
  check_size("uniform_points", n, d);
  return filled(n, d, [&](MatrixView piece) { rng.fill_uniform(piece); });
}

Matrix normal_points(Index n, Index d, Rng& rng) {
  check_size("normal_points", n, d);
  return filled(n, d, [&](MatrixView piece) { rng.fill_normal(piece); });
}

double friedman_function(ConstVectorView x) {
  return 10 * std::sin(std::numbers::pi * x[0] * x[1]) + 20 * (x[2] - 0.5) * (x[2] - 0.5) +
         10 * x[3] + 5 * x[4];
}

SimulatedRows::SimulatedRows(Index rows, Index dimension, double (*truth)(ConstVectorView x),
                             double noise_sd, std::uint64_t seed)
    : rows_(rows), truth_(truth), noise_sd_(noise_sd), noise_(seed, "simulate-noise") {
  check_size("simulated rows", rows, dimension);
  check_noise(noise_sd);
  // All points are one stream, column after column; a uniform number takes 64 bits of it, and a
  // sign that is not kept moves it on by 32.
  Rng points(seed, "simulate-points");
  Matrix none(0, 1);
  for (Index j = 0; j < dimension; ++j) {
    points_.push_back(points);
    points.fill_rademacher_rows(none, 0, 2 * rows);
  }
}

std::vector<std::string> SimulatedRows::names() const {
  std::vector<std::string> out;
  for (Index j = 1; j <= dimension(); ++j) out.push_back(fmt::format("x{}", j));
  return out;
}

bool SimulatedRows::next(Simulated& piece, Index most) {
  const Index count = std::min(most, rows_ - done_);
  piece.inputs.resize(count, dimension());
  piece.truth.resize(count);
  piece.target.resize(count);
  piece.names = names();
  for (Index j = 0; j < dimension(); ++j)
    for (Index first = 0; first < count; first += some) {
      look(first);
      points_[static_cast<std::size_t>(j)].fill_uniform(
          piece.inputs.block(first, j, std::min(some, count - first), 1));
    }
  for (Index i = 0; i < count; ++i) {
    look(i);
    piece.truth[i] = truth_(Vector(piece.inputs.row(i).transpose()));
    piece.target[i] = piece.truth[i] + noise_sd_ * noise_.normal();
  }
  done_ += count;
  return count > 0;
}

SimulatedRows friedman_rows(Index n, const FriedmanOptions& options) {
  validate(options);
  if (options.dimension < 5)
    throw InvalidArgument(
        fmt::format("friedman: the function needs 5 inputs or more, not {}", options.dimension));
  return {n, options.dimension, friedman_function, options.noise_sd, options.seed};
}

SimulatedRows field_rows(Index n, double noise_sd, std::uint64_t seed) {
  return {n, 2, [](ConstVectorView x) { return franke_function(x[0], x[1]); }, noise_sd, seed};
}

Simulated friedman(Index n, const FriedmanOptions& options) {
  Simulated out;
  friedman_rows(n, options).next(out, n);
  return out;
}

double franke_function(double x, double y) {
  const double a = 9 * x;
  const double b = 9 * y;
  const auto square = [](double v) { return v * v; };
  return 0.75 * std::exp(-(square(a - 2) + square(b - 2)) / 4) +
         0.75 * std::exp(-square(a + 1) / 49 - (b + 1) / 10) +
         0.5 * std::exp(-(square(a - 7) + square(b - 3)) / 4) -
         0.2 * std::exp(-square(a - 4) - square(b - 7));
}

Simulated scattered_field(Index n, double noise_sd, std::uint64_t seed) {
  Simulated out;
  field_rows(n, noise_sd, seed).next(out, n);
  return out;
}

GridDesign grid_with_holes(const GridOptions& options) {
  validate(options);
  if (options.missing_fraction >= 1)
    throw InvalidArgument(fmt::format(
        "grid_with_holes: missing_fraction is {}, but must be below 1", options.missing_fraction));
  std::vector<bool> missing(static_cast<std::size_t>(options.rows * options.columns), false);
  Rng rng(options.seed, "simulate-grid");
  for (Index hole = 0; hole < options.holes; ++hole) punch_hole(options, rng, missing);
  GridDesign design;
  for (std::size_t cell = 0; cell < missing.size(); ++cell) {
    look(static_cast<Index>(cell));
    const bool lost = rng.uniform() < options.missing_fraction;  // drawn for every cell
    const bool gone = lost || missing[cell];
    (gone ? design.missing_cells : design.observed_cells).push_back(static_cast<Index>(cell));
  }
  if (design.observed_cells.empty())
    throw InvalidArgument("grid_with_holes: no cell is left; ask for fewer or smaller holes");
  design.observed = cell_places(design.observed_cells, options);
  design.missing = cell_places(design.missing_cells, options);
  return design;
}

Simulated grid_field(const GridOptions& options, double noise_sd) {
  return franke_at(grid_with_holes(options).observed, noise_sd, options.seed);
}

}  // namespace mercer::data
