// Leave-one-out predictions with Gaussian noise in closed form, at fixed hyperparameters.
//   Each row is predicted from all others. With Q = H^-1 and, where the mean has a basis A with
//   unknown coefficients, P = Q - Q A (A'Q A)^-1 A'Q (else P = Q),
//       y_i - mean_i = [P y]_i / P_ii,   variance of y_i = 1 / P_ii,
//   which is what N refits give, the trend estimated anew in each.
//   Source: Dubrule (1983), cross validation of kriging in a unique neighborhood; Rasmussen &
//           Williams (2006), section 5.4.2.
//   Cost:   one factorisation and the inverse in its place: N^3 flops, 8 N^2 bytes.
//   When not: likelihoods other than Gaussian noise; rows that were merged (each observation is to
//           be left out, not each place); hyperparameters that are to be learned again without the
//           row.
#pragma once

#include "mercer/inference/observations.hpp"
#include "mercer/inference/problem.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// On the scale of the model, N.
struct LeaveOneOut {
  Vector mean;             // of f and of y
  Vector latent_variance;  // of f
  Vector variance;         // of y: with the noise of that row
};

/// Throws NotPositiveDefinite; InvalidArgument unless the noise is Gaussian and no rows are merged;
/// DataError when the trend cannot be estimated without one of the rows.
LeaveOneOut leave_one_out(const Problem& problem, const Observations& rows);
double leave_one_out_bytes(Index n);

}  // namespace mercer::inference
MERCER_API_END
