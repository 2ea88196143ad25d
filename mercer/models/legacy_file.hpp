// Model files of the format versions 1 to 4, as files of version 5: 1 and 2 were regressions, with
// one noise variance and with one for each row; 3 were all other likelihoods; 4 knew no id column,
// dates and values for missing cells, and is otherwise the same.
#pragma once

#include "mercer/data/array_file.hpp"

namespace mercer::models {

/// The version that is written.
inline constexpr std::uint32_t kModelVersion = 5;

/// Throws ModelFileError, or an exception of the JSON library, when it is not what it should be.
data::ArrayFile upgraded(data::ArrayFile old);

}  // namespace mercer::models
