// What an expression may call the input columns: `matern32(x, y) * matern12(t)`.
#pragma once

#include <string>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::kernels {

struct InputNames {
  /// A column, or several in a row such as the 0/1 columns of a categorical input.
  struct Entry {
    std::string name;
    Index first = 0;
    Index columns = 1;
  };

  Index num_inputs = 0;  // columns in all
  std::vector<Entry> entries;
};

}  // namespace mercer::kernels
MERCER_API_END
