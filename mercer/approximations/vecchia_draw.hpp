// A draw from N(0, K + s2 I) by a Vecchia factor: points are drawn one after the other in a random
// order, each given the m earlier points that it is most correlated with. With G as in vecchia.hpp
// this is G^-1 xi, xi standard normal: a triangular solve whose rows are made when they are needed.
//   Source: Vecchia (1988); Katzfuss & Guinness (2021), section 3.3.
//   Cost:   N m^2 kernel values, N m^3 / 3 flops and the neighbours (kd-tree for few inputs, see
//           neighbours.hpp); memory for the points, the tree and one block of rows, not for G.
//   Law:    exact when m >= N - 1. Else the joint law is approximate; without noise few neighbours
//           go a long way, because near points screen off far ones. So draw f here with a tiny s2,
//           and add the noise of observations afterwards.
#pragma once

#include <cstdint>
#include <functional>

#include "mercer/approximations/neighbours.hpp"
#include "mercer/core/history.hpp"
#include "mercer/core/options.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

struct VecchiaDrawOptions {
  Index neighbours = 100;  // at most; N - 1 when larger
  NeighbourOptions search = {};
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(VecchiaDrawOptions& o, Visitor&& field) {
  field("neighbours", o.neighbours, Positive{});
  visit_fields(o.search, field);
}

struct VecchiaDraw {
  Vector values;         // in the order of the points
  Index neighbours = 0;  // conditioned on, at most
  Index raised = 0;      // points whose small matrix had its diagonal raised against rounding
};

/// Told the points drawn so far, once per block.
using DrawObserver = std::function<Action(Index drawn)>;

/// x has one point per row; s2 > 0. The same seed gives the same bits on any number of threads.
/// Throws Interrupted when the observer says stop.
VecchiaDraw vecchia_draw(const kernels::Kernel& kernel, const Matrix& x, double s2,
                         const VecchiaDrawOptions& options = {}, const DrawObserver& observer = {});

/// The most in use at once, x and the result not counted.
double vecchia_draw_bytes(Index n, Index d, Index neighbours);

}  // namespace mercer::approximations
MERCER_API_END
