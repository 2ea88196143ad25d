// What predictions of a sparse approximation need: base points b, and for each latent function a
// Gaussian belief about L_bb^-1 f(b), where S_bb = K(b, b) + jitter I = L_bb L_bb'. With
// v* = L_bb^-1 k(b, x*), B = L_B L_B' and r* = a* - U_A'L_B^-1 v*
//     mean      = a*'beta + v*'mean_weights + offset
//     variance  = k** - v*'v* + v*'B^-1 v* + r*'beta_covariance r*     (srm: without k** - v*'v*)
// Methods that go back to the training rows keep those as well:
//     rra   mean = a*'beta + k(x*, X) weights
//     pic   the block that x* lies in enters as it is, see sparse/pic.cpp
//     bcm, rbcm   the blocks are combined at the points that are asked for, see sparse/bcm.cpp
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mercer/approximations/clusters.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/inference/query.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// One latent function.
struct SparseFunction {
  Matrix factor;           // L_B, m x m, lower; empty: bcm without base points of its own, and rbcm
  Vector mean_weights;     // m
  Matrix trend_weights;    // m x q: U_A = L_B^-1 V Lambda^-1 A
  Vector beta;             // q: coefficients of the mean
  Matrix beta_covariance;  // q x q
  double offset = 0;       // a constant that is added to the function
};

/// Everything that predictions need; goes into the model file. What it keeps says how it predicts:
/// without blocks from the base points (with x: the mean from the rows, by their weights); with
/// blocks and base points by pic; with blocks alone by bcm when there is a chunk, else by rbcm.
struct SparsePosterior {
  std::string method;  // name of the inference method
  Matrix base;         // m x d, on the scale of the model; empty: bcm without, and rbcm
  double jitter = 0;   // on the diagonal of S_bb
  /// Blocks of rows that it was learned with, kept or not; 0: there are none.
  Index blocks_learned = 0;
  std::vector<SparseFunction> functions;
  // Only rra, pic, bcm and rbcm have what follows; empty otherwise.
  Matrix x;                         // N x d
  Vector weights;                   // N. rra, pic: C^-1 (y - A beta); bcm, rbcm: y - A beta
  Vector noise;                     // N: D. Not rra
  approximations::Clusters blocks;  // of the rows of x. Not rra
  Index chunk = 0;  // bcm without base: so many rows that are asked for are base points together
};

struct SparseQueryOptions {
  bool variance = true;
  Index draws = 0;  // joint draws of each function (Moments::deviations)
  std::uint64_t seed = 0;
};

/// Built once, then asked for blocks of rows. Of its moments error_bound is empty and
/// sd_error_bound unset: how far they are from the exact ones is not known. bcm without base points
/// of its own takes the rows of a block, `chunk` at a time, for base points, so that its answers
/// depend on which rows are asked for together. `problem` and `posterior` must outlive it. Its
/// check_variances throws InvalidArgument. Throws InvalidArgument when draws are asked for and the
/// method or the kernel has none (sparse_draws_refusal).
std::unique_ptr<Query> sparse_query(const Problem& problem, const SparsePosterior& posterior,
                                    const SparseQueryOptions& options = {});
/// Why there are no joint draws, as a sentence; empty when there are.
std::string sparse_draws_refusal(const Problem& problem, const SparsePosterior& posterior);

/// For the planner: bytes beside the posterior, and flops, of moments at `rows` new rows.
struct SparseQueryCost {
  double bytes = 0, flops = 0, kernel_values = 0;
};
SparseQueryCost sparse_query_cost(const SparsePosterior& posterior, Index rows);

}  // namespace mercer::inference
MERCER_API_END
