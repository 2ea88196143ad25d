// The Nystrom approximation: K ~ K_xu K_uu^-1 K_ux = F F' for a few landmarks u.
//   Source: Williams & Seeger (2001). With K_uu = Q w Q', F = K_xu Q w^-1/2; eigenvalues w below
//           rounding are clipped: their directions are left out, so that F F' stays below K.
//   Cost:   N m kernel values and those of the choice (landmarks.hpp); 2 N m^2 flops, one m x m
//           eigenproblem; 8 N m bytes.
//   When not: lengthscales much shorter than the data: no few columns span K. Greedy or random
//           pivots (pivoted_cholesky.hpp) need fewer columns for the same error.
#pragma once

#include "mercer/approximations/landmarks.hpp"
#include "mercer/approximations/low_rank.hpp"

namespace mercer::approximations {

/// `pivots` are the landmarks, `clipped` the eigenvalues left out, `exhausted` as in landmarks.hpp.
LowRank nystrom(const operators::KernelOperator& k, const LandmarkOptions& options = {});

/// y := y Q w^-1/2 for core = Q w Q', eigenvalues up to size(core) epsilon w_max left out; returns
/// how many. `epsilon` is the relative error of y and core.
Index nystrom_factor(Matrix& y, const Matrix& core, double epsilon);

double nystrom_bytes(Index n, const LandmarkOptions& options);
/// Including those of the choice.
double nystrom_kernel_values(Index n, const LandmarkOptions& options);
double nystrom_flops(Index n, const LandmarkOptions& options);

}  // namespace mercer::approximations
