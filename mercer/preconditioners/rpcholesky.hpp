// P = F F' + s2 I with F from the randomly pivoted Cholesky approximation of K, inverted by
// Woodbury.
//   Source: Diaz, Epperly, Frangella, Tropp & Webber (2023), robust preconditioning by RPCholesky.
//   Cost:   see approximations/rpcholesky.hpp and woodbury.hpp.
//   When not: lengthscales much shorter than the data; see the approximation.
#pragma once

#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

/// F of this rank, grown in two halves; says in the report what each half left of the trace.
approximations::RpCholesky grown_rpcholesky(const operators::KernelOperator& k, Index rank,
                                            std::uint64_t seed, BuildReport& report);

PreconditionerInfo rpcholesky_info();

}  // namespace mercer::preconditioners
