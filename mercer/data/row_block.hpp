// Some rows of a data set, encoded, in raw units.
#pragma once

#include <string>
#include <vector>

#include "mercer/core/types.hpp"
#include "mercer/data/noise_columns.hpp"

MERCER_API_BEGIN
namespace mercer::data {

struct RowBlock {
  Matrix inputs;               // M x d
  Vector target;               // M, or empty when there is no target
  NoiseColumns noise;          // where there are such columns
  std::vector<Index> lines;    // line of the file of each row; in memory, its number from 1
  std::vector<Index> numbers;  // of each row among all rows of the source, from 1
  std::vector<std::vector<std::string>> carried;  // carried[j][row]: PredictOptions::carry
  Index rows() const { return inputs.rows(); }
};

}  // namespace mercer::data
MERCER_API_END
