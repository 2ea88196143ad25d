// Landmarks: the few points whose columns of K stand for all of them.
//   uniform   at random, without replacement. Williams & Seeger (2001). No kernel values.
//   kmeans    k-means++ seeding: each next point with probability proportional to its squared
//             distance from those chosen, in the kernel's own geometry,
//             |phi(x) - phi(y)|^2 = k(x,x) + k(y,y) - 2 k(x,y), so that any kernel works.
//             Arthur & Vassilvitskii (2007); Oglic & Gartner (2017). N m kernel values, which are
//             the columns that Nystrom needs anyway; one column after the other.
//   leverage  with probability proportional to approximate ridge leverage scores, which come from
//             a pilot of p uniform landmarks J:
//             (k(x,x) - k(x,J) (K_JJ + lambda p/N I)^-1 k(J,x)) / lambda.
//             Musco & Musco (2017); Rudi et al. (2018). N p kernel values, 3 N p^2 flops. A score
//             is at most 1, but these are cut there only when fewer landmarks than the pilot are
//             asked for: as landmarks beyond the pilot, points that it misses most serve best.
//   Measured (protein, N = 6000, noise 0.05, CG iterations to 1e-6 with 100 / 500 / 1000
//   landmarks):
//             uniform 95/43/32, kmeans 70/31/16, leverage 80/28/11.
//   When not: kmeans and leverage repay where the data are clumped; points spread evenly are
//             served as well by uniform.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/operators/kernel_operator.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

enum class Landmarks { uniform, kmeans, leverage };
std::string_view to_string(Landmarks landmarks);
/// Throws InvalidArgument that lists the names there are.
Landmarks landmarks(std::string_view name);
std::vector<std::string_view> landmark_names();

struct LandmarkOptions {
  Index count = 100;  // at most; N when larger
  Landmarks choice = Landmarks::uniform;
  double noise_variance = 1e-2;  // leverage: lambda
  Index pilot = 300;             // leverage: points of the pilot
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(LandmarkOptions& o, Visitor&& field) {
  field("count", o.count, Positive{});
  field("noise_variance", o.noise_variance, Positive{});
  field("pilot", o.pilot, Positive{});
}

struct ChosenLandmarks {
  std::vector<Index> points;  // distinct, in the order of choice
  Matrix columns;             // N x points.size(), columns of K: kmeans only, empty otherwise
  double kernel_values = 0;   // evaluated to choose
  /// No other point was left: the rest repeat those chosen (the same inputs; for kmeans, at no
  /// distance from them to rounding).
  bool exhausted = false;
};

/// Points that repeat a chosen one are passed over. Same points for any number of threads, and on
/// all ranks; `columns` has the rows held here.
ChosenLandmarks choose_landmarks(const operators::KernelOperator& k,
                                 const LandmarkOptions& options = {});

/// Approximate ridge leverage scores of the rows held here, not cut at 1.
Vector leverage_scores(const operators::KernelOperator& k, double lambda, Index pilot,
                       std::uint64_t seed);

/// Kernel values that the choice evaluates (for kmeans: the columns it keeps).
double landmark_kernel_values(Index n, const LandmarkOptions& options);
double landmark_flops(Index n, const LandmarkOptions& options);
/// The most in use while choosing.
double landmark_bytes(Index n, const LandmarkOptions& options);

}  // namespace mercer::approximations
MERCER_API_END
