// P = F F' + D with F from the randomly pivoted Cholesky approximation of K, inverted by
// Woodbury.
//   Source: Diaz, Epperly, Frangella, Tropp & Webber (2023), robust preconditioning by RPCholesky.
//   Cost:   see approximations/rpcholesky.hpp and woodbury.hpp.
//   When not: lengthscales much shorter than the data; see the approximation.
#pragma once

#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

/// How F is drawn. P is judged by D^-1/2 (K - F F') D^-1/2, so points with less noise weigh more;
/// weights are over the harmonic mean of the noise, 1 when all is equal.
approximations::RpCholeskyOptions rpcholesky_options(const Target& target, Index rank,
                                                     std::uint64_t seed);
/// F of this rank, grown in two halves; says in the report what each half left of the trace.
approximations::RpCholesky grown_rpcholesky(const Target& target, Index rank, std::uint64_t seed,
                                            BuildReport& report);

PreconditionerInfo rpcholesky_info();

}  // namespace mercer::preconditioners
MERCER_API_END
