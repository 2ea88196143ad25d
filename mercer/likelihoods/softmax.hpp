// C classes, P(class c | f) = exp(f_c) / sum_d exp(f_d): every class has a latent function, and the
// functions of a row compete in its likelihood. y is a row of zeros with a one at its class.
//   Source: Williams & Barber (1998); Rasmussen & Williams (2006), section 3.5. Log-concave,
//           W = diag(p) - p p'.
//   Predictions: two classes by quadrature of the difference of their functions, exact to 1e-12. Up
//           to twenty by 4,096 draws, the same normal numbers for every row: 16 random shifts of a
//           lattice with antithetic points, whose spread is the standard error (2e-3 where
//           variances are large, half to two thirds of that of independent draws). More classes by
//           the mean-field formula of Lu, Ie & Sha (2020), whose error is not known.
//   When not: classes that do not exclude each other; ordered classes. One against the rest costs
//           less and its functions can be predicted one by one.
#pragma once

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods {

LikelihoodInfo softmax_info();

}  // namespace mercer::likelihoods
