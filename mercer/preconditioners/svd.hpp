// P = F F' + D with F F' the leading part of K from a randomised SVD, inverted by Woodbury.
//   Source: Halko, Martinsson & Tropp (2011); Cutajar et al. (2016) as a preconditioner.
//   Cost:   see approximations/randomized_svd.hpp and woodbury.hpp: 2 (rank + 10) products with the
//           whole K, so the default rank is sqrt(N), not that of the others.
//   When not: for one solve: it costs more products than it saves unless CG needs thousands. It
//           pays for many right-hand sides with the same K.
#pragma once

#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

PreconditionerInfo svd_info();

}  // namespace mercer::preconditioners
