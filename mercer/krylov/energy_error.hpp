// How far conjugate gradients still are from the solution, from their own coefficients.
//   Source: Hestenes & Stiefel (1952), section 6: |x - x_k|_A^2 = sum over j >= k of alpha_j <r_j,
//           z_j>; Strakos & Tichy (2002) for why it holds in finite precision. The terms that were
//           not computed are put at a geometric series with the ratio of the last ones.
//   Cost:   none besides keeping the coefficients.
//   When not: as a bound. It is an estimate: too small where the convergence is about to stagnate.
#pragma once

#include "mercer/krylov/solver.hpp"

namespace mercer::krylov {

/// An estimate of |x - A^-1 b|_A^2 = r'A^-1 r at the last iterate; unset without any iteration.
std::optional<double> energy_error(const CgCoefficients& coefficients);

}  // namespace mercer::krylov
