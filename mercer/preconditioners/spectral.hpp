// P = F F' + D with F the random Fourier features of the points, inverted by Woodbury.
//   Source: Rahimi & Recht (2007); Cutajar et al. (2016) as a preconditioner.
//   Cost:   see approximations/random_features.hpp and woodbury.hpp; no kernel values.
//   When not: nearly always: P is as far from K as 1/sqrt(rank), and the error is in the leading
//           directions too, where it costs iterations when the noise is small. It is here for the
//           comparison, and for data so many that columns of K cost too much.
#pragma once

#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

PreconditionerInfo spectral_info();

}  // namespace mercer::preconditioners
