// What a fit works on: the rows on the scale of the model and where learning begins there.
#pragma once

#include "mercer/models/fit.hpp"

namespace mercer::models {

struct Task {
  data::Scaling scaling;
  inference::Observations rows;
  inference::Problem start{kernels::Kernel::parse("constant", 1), 1.0};
  double system_noise = 1;  // of the systems K + D, or what W^-1 will be like: for the plan
  Index merged_rows = 0;    // rows that went into others with the same inputs
  std::vector<std::string> warnings;
};

/// Scales the data and checks what does not go together. Throws DataError, InvalidArgument.
Task make_task(const data::Dataset& data, const FitOptions& options);

}  // namespace mercer::models
