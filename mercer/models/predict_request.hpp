// What is asked of a prediction, settled before any work: variances, quantiles, and numbers that
// can be computed.
#pragma once

#include "mercer/models/predictor.hpp"

namespace mercer::models {

/// The variances that a model without them is asked for. Throws InvalidArgument.
void settle_variances(const KernelMachine& model, VarianceOptions& options);

/// The probabilities of a model of numbers with variances; none of others, which are asked in vain.
/// Throws InvalidArgument.
std::vector<double> settled_quantiles(const KernelMachine& model, const PredictOptions& options);

/// Kernels that grow with the inputs (linear, poly) overflow far enough out: throws
/// PredictionOverflow for the first such row.
void check_range(const char* what, ConstMatrixView values);

}  // namespace mercer::models
