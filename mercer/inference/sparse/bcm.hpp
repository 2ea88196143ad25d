// The Bayesian committee machine's product form, against which its weight form is checked.
#pragma once

#include "mercer/inference/sparse/sparse_posterior.hpp"

namespace mercer::inference {

struct JointBelief {
  Vector mean;
  Matrix covariance;
};

/// Of f less its mean a'beta at `points`, from the posteriors of the M blocks there:
///     precision = sum_i cov_i^-1 - (M - 1) S_qq^-1,   mean = cov sum_i cov_i^-1 mean_i.
/// `posterior` is that of bcm without base points of its own. By inverses of q x q matrices: for
/// few points and an S_qq that is well conditioned; the weight form of the query needs neither.
JointBelief bcm_product_form(const Problem& problem, const SparsePosterior& posterior,
                             const Matrix& points);

}  // namespace mercer::inference
