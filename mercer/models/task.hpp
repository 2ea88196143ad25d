// What a fit works on: the rows on the scale of the model and where learning begins there.
#pragma once

#include "mercer/data/streamed_data.hpp"
#include "mercer/models/fit.hpp"

namespace mercer::models {

struct Task {
  data::Scaling scaling;
  inference::Observations rows;
  inference::Problem start{kernels::Kernel::parse("constant", 1), 1.0};
  double system_noise = 1;  // for the plan: the noise of K + D, or a typical entry of W^-1
  Index merged_rows = 0;    // rows that went into others with the same inputs
  ApproximationOptions approximation;  // of the options; its points on the scale of the model
  std::optional<planning::StreamSetting> stream;  // the rows are a sample of these
  std::vector<std::string> warnings;
};

/// Scales the data and checks what does not go together. Throws DataError, InvalidArgument.
/// `learned`, when not null, has the scaling and the hyperparameters to use.
Task make_task(const data::Dataset& data, const FitOptions& options,
               const KernelMachine* learned = nullptr);
/// The same of rows that are read in passes: those of the task are the sample, none of them merged
/// with another; scaling and start values are those of all. Gaussian noise only.
Task make_task(const data::StreamedData& data, const FitOptions& options);

}  // namespace mercer::models
