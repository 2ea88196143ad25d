// Model files of the format versions 1 to 6, as files of version 7: 1 and 2 were regressions, with
// one noise variance and with one for each row; 3 were all other likelihoods; 4 knew no id column,
// dates and values for missing cells, and is otherwise the same; 5 knows no approximations, 6 no
// draws of hyperparameters.
#pragma once

#include "mercer/data/array_file.hpp"

namespace mercer::models {

/// The newest version: that of models that mix over draws. Approximations, and all other models,
/// are still written as the versions before, which programs of that time read.
inline constexpr std::uint32_t kModelVersion = 7, kSparseModelVersion = 6, kExactModelVersion = 5;

/// Throws ModelFileError, or an exception of the JSON library, when it is not what it should be.
data::ArrayFile upgraded(data::ArrayFile old);

}  // namespace mercer::models
