// The inputs of a data set as kernel expressions may name them.
#pragma once

#include "mercer/data/schema.hpp"
#include "mercer/kernels/input_names.hpp"

namespace mercer::models {

/// Every column by its name, and every level of a categorical column ("colour=red") besides; the
/// name of a categorical column ("colour") stands for the columns of all its levels.
kernels::InputNames input_names(const data::Schema& schema);

/// The encoded inputs that the option `isotropic` names, ascending. Throws InvalidArgument unless
/// they are two or more columns of numbers, each named once.
std::vector<Index> isotropic_columns(const std::vector<std::string>& names,
                                     const data::Schema& schema);
/// The names of just these inputs in a kernel expression: "b=value" where "b" also stands for the
/// input that says which of its cells were missing.
std::vector<std::string> isotropic_names(const std::vector<std::string>& names,
                                         const data::Schema& schema);

}  // namespace mercer::models
