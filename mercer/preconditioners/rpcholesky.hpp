// P = F F' + s2 I with F from the randomly pivoted Cholesky approximation of K, inverted by
// Woodbury.
//   Source: Diaz, Epperly, Frangella, Tropp & Webber (2023), robust preconditioning by RPCholesky.
//   Cost:   see approximations/rpcholesky.hpp and woodbury.hpp.
//   When not: lengthscales much shorter than the data; see the approximation.
#pragma once

#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {

PreconditionerInfo rpcholesky_info();

}  // namespace mercer::preconditioners
