// P = F F' + diag(K - F F') + noise with F from Nystrom: the fully independent training
// conditional, which keeps the whole diagonal of K.
//   Source: Snelson & Ghahramani (2006); Cutajar et al. (2016) as a preconditioner.
//   Cost:   that of nystrom and N more.
//   When not: as nystrom. The diagonal helps where the landmarks explain little; where they explain
//           most, plain nystrom is as good. Entries of K - F F' below 0 (rounding) count as 0.
#pragma once

#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

PreconditionerInfo fitc_info();

}  // namespace mercer::preconditioners
