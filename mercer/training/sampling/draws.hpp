// Draws from the posterior of the hyperparameters, and how their chains went.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::training {

/// The solves of a chain whose gradients come from solves.
struct ChainSolves {
  Index gradients = 0;   // that solves gave
  Index iterations = 0;  // of the longest solve of each
  Index unsolved = 0;    // gradients whose solves ended at a limit
  // Where solves stop at random (inference/exact/unbiased_solve.hpp):
  Index unbiased = 0;          // gradients whose solves do
  Index random_stops = 0;      // right-hand sides that stopped by a draw
  Index continued = 0;         // of these, with more than the one step that no draw refuses
  Index extra_iterations = 0;  // after the early tolerance, summed over them
  double variance = 0;       // E |xhat - x|_H^2 / |x|_H^2 of the solve for y, summed over gradients
  Index float32_passes = 0;  // gradients whose pass with derivatives was in float32
  double pass_error = 0;     // the largest rounding of these, in standard errors of a gradient
};

/// sgld: the chain and a path beside it that takes two steps of half the size for each of the
/// chain's, driven by the same noise. Sums over iterations, of log parameters less those of the
/// mode.
struct HalfStepSums {
  Index iterations = 0;
  Vector chain, chain_squares;
  Vector half, half_squares;
};

struct ChainReport {
  Vector start;           // log parameters where it began
  double acceptance = 0;  // share of proposals after the warm-up; sgld: 1, it has none
  double step = 0;        // of the kept draws
  Index first_kept = 0;   // iteration of the first kept draw, from 1; 0: none
  Index frozen_at = 0;    // sgld: iteration in which the Langevin phase began; 0: not yet
  Index iterations = 0;   // done
  Index divergent = 0;    // hmc: trajectories whose energy was lost, after the warm-up
  Index failed = 0;       // points without an evidence in double precision
  Index evaluations = 0;  // of the evidence or its gradient
  ChainSolves solves;
  HalfStepSums half_steps;
  double least_scale = 1;      // sgld: of M in the phase, over its directions; 1: M is as planned
  double walk_acceptance = 0;  // da: of the steps on the surrogate, after the warm-up
  double evidence_error = 0;   // da by solves: largest standard error of an evidence
  std::vector<double> ratios;  // sgld: the phase ratio after every batch of gradients
};

/// One row for every kept draw, chain by chain; all chains have the same number. A point estimate
/// is one row of chain 0.
struct Draws {
  Matrix phi;  // log parameters, draws x parameters
  std::vector<Index> chain, iteration;
  std::vector<ChainReport> chains;
  Index iterations = 0, warmup = 0;  // of every chain, as they were asked for
  Vector mode;                       // log parameters that the starts lie around
  Index mode_rows = 0;               // it is the mode of so many rows

  Index size() const { return phi.rows(); }
  Index per_chain() const {
    return chains.empty() ? size() : size() / static_cast<Index>(chains.size());
  }
};

}  // namespace mercer::training
MERCER_API_END
