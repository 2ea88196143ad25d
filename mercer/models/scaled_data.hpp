// A data set on the scale that the model works on, and where learning begins there.
#pragma once

#include "mercer/data/dataset.hpp"
#include "mercer/data/scaling.hpp"
#include "mercer/inference/observations.hpp"
#include "mercer/inference/problem.hpp"
#include "mercer/models/names.hpp"

MERCER_API_BEGIN
namespace mercer::models {

/// Inputs and target of a data set on the scale the model works on.
struct ScaledData {
  data::Scaling scaling;
  inference::Observations data;
};
/// Throws DataError when the target has one value only, when the square of its spread overflows or
/// underflows, or when a noise variance or count is out of range. `isotropic` as for scaling_of.
ScaledData scale(const data::Dataset& data, bool standardize,
                 const std::vector<std::string>& isotropic = {});
/// The same with a scaling that is known.
ScaledData scale(const data::Dataset& data, const data::Scaling& scaling);
/// The scaling of inputs and target, or the identity; the inputs that `isotropic` names have one
/// common scale.
data::Scaling scaling_of(const data::Dataset& data, bool standardize,
                         const std::vector<std::string>& isotropic);
/// Throws DataError naming the row of a variance or count that is out of range, DimensionMismatch
/// unless there is one for each row.
void check_noise_columns(const data::NoiseColumns& columns, Index rows);
/// The noise of rows on the scale the model works on.
inference::RowNoise row_noise(const data::NoiseColumns& columns, const data::Scaling& scaling);

/// The kernel with the values that options give, and start values from the (scaled) inputs and this
/// variance of the target for the rest.
/// The schema has the names of the inputs.
kernels::Kernel start_kernel(const MethodOptions& options, const data::Schema& schema,
                             ConstMatrixView x, double target_variance);
/// The same with Gaussian noise; used by solve and plan as well.
inference::Problem start_problem(const MethodOptions& options, const data::Schema& schema,
                                 ConstMatrixView x, ConstVectorView y);

}  // namespace mercer::models
MERCER_API_END
