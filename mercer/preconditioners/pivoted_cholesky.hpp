// P = F F' + D with F from the pivoted Cholesky approximation of K, inverted by Woodbury.
//   Source: Gardner et al. (2018).
//   Cost:   see approximations/pivoted_cholesky.hpp and woodbury.hpp.
//   When not: lengthscales much shorter than the data; see the approximation.
#pragma once

#include "mercer/preconditioners/preconditioner_info.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

PreconditionerInfo pivoted_cholesky_info();

}  // namespace mercer::preconditioners
MERCER_API_END
