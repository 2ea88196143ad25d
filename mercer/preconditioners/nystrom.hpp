// P = K_xu K_uu^-1 K_ux + D for a few landmarks u, inverted by Woodbury.
//   Source: Williams & Seeger (2001); Cutajar et al. (2016) as a preconditioner.
//   Cost:   see approximations/nystrom.hpp and woodbury.hpp.
//   When not: lengthscales much shorter than the data, or noise far below what is left of K: P then
//           knows only a few directions, and CG may need more iterations than without it.
#pragma once

#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

PreconditionerInfo nystrom_info();

}  // namespace mercer::preconditioners
