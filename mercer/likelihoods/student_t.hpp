// y = f + scale T, T from Student's t with df degrees of freedom: regression that forgives
// outliers. df is fixed ("student-t:df=4", above 2 so that y has a variance), scale is learned.
//   Source: Vanhatalo, Jylanki & Vehtari (2009); curvature by Hartmann & Vanhatalo (2019).
//   Not log-concave: -log p is concave beyond scale sqrt(df), where the observed information is
//   negative. The expected one, (df + 1) / ((df + 3) scale^2), is not, and is the W used.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods {

LikelihoodInfo student_t_info();

}  // namespace mercer::likelihoods
