// Draws from a Gaussian process with known hyperparameters: data whose truth is known.
//   exact:   by Cholesky, 8 n^2 bytes and n^3/3 flops.
//   vecchia: each point given its m most correlated earlier points, n m^3/3 flops and memory in
//            proportion to n (approximations/vecchia_draw.hpp). An approximation, and said to be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mercer/core/progress.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"

MERCER_API_BEGIN
namespace mercer::studies {

/// `automatic` is exact up to kMostExactDraw points, and vecchia above or when neighbours are
/// given.
enum class DrawMethod { automatic, exact, vecchia };
std::string_view to_string(DrawMethod method);
/// "auto", "exact" or "vecchia"; throws InvalidArgument for other names.
DrawMethod draw_method(const std::string& name);
std::vector<std::string> draw_method_names();

/// Up to here a factorisation takes about a second.
inline constexpr Index kMostExactDraw = 4000;
inline constexpr Index kDrawNeighbours = 100;

struct DrawOptions {
  std::uint64_t seed = 0;
  double memory_bytes = 0;  // to stay inside; throws DoesNotFit before the first allocation
  DrawMethod method = DrawMethod::automatic;
  std::optional<Index> neighbours;  // of vecchia; unset: kDrawNeighbours
};

struct Draw {
  Vector latent;                          // f(x)
  Vector target;                          // f(x) + noise
  DrawMethod method = DrawMethod::exact;  // what `automatic` has become
  Index neighbours = 0;                   // vecchia: points conditioned on, at most
  Index raised = 0;  // vecchia: points whose small matrix had its diagonal raised
};

/// What `automatic` becomes for n points. Throws InvalidArgument when neighbours are given to an
/// exact draw, or are not positive.
DrawMethod resolve(const DrawOptions& options, Index n);
/// Of the draw itself, besides the points: the formula behind DoesNotFit.
double draw_bytes(const DrawOptions& options, Index n, Index d);

/// f ~ N(0, K) at the rows of x, and f with Gaussian noise. The same seed gives the same bits on
/// any number of threads. Throws DoesNotFit, and Interrupted when the progress callback says stop.
Draw draw_from_gp(const inference::Problem& problem, const Matrix& x, const DrawOptions& options,
                  const ProgressCallback& progress = {});

}  // namespace mercer::studies
MERCER_API_END
