// Predictions that integrate over the hyperparameters: those of every draw, mixed with equal
// weights. With draws k of K, means m_k and variances v_k,
//   mean = mean of m_k,   variance = mean of v_k + variance of m_k,
//   F(y) = mean of F_k(y), whose quantiles lie between the least and the largest of the draws and
//   are found there by root finding; log density = log mean exp.
// The error of a mean of means is at most the mean of their bounds, and that of a standard
// deviation at most the largest of theirs and the largest bound of a mean (docs/certificate.md).
#pragma once

#include <vector>

#include "mercer/models/predictor.hpp"

namespace mercer::models {

struct MixtureSetting {
  std::vector<const KernelMachine*> models;  // one of each draw
  std::vector<double> quantiles;             // probabilities of Predictions::quantiles
  Index joint_samples = 0;                   // of all draws together; draw s % K has sample s
};

/// The parts are kept in Predictions::parts.
Predictions mixed(std::vector<Predictions> parts, const MixtureSetting& setting);

/// log of the mean of exp over the columns.
Vector log_mean_exp(const Matrix& values);

/// Continuous ranked probability score at y of a mixture of normals with equal weights (Grimit et
/// al. 2006).
double normal_mixture_crps(double y, const Vector& mean, const Vector& sd);

}  // namespace mercer::models
