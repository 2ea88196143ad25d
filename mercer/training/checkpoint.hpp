// What the checkpoints of all kinds of learning have in common: they belong to one run, and hold
// the exact evaluations made so far.
#pragma once

#include <optional>
#include <string>

#include "mercer/data/array_file.hpp"
#include "mercer/optim/replay.hpp"

namespace mercer::training {

/// None when no path is given or no file is there; refuses a file of another run (InvalidArgument).
std::optional<data::ArrayFile> open_checkpoint(const std::string& path, std::uint64_t identity);

/// A new one, with the evaluations of a search over so many parameters.
data::ArrayFile make_checkpoint(std::uint64_t identity, const optim::ReplayLog& log,
                                Index parameters);

/// The evaluations; throws ModelFileError when they are not those of so many parameters.
optim::ReplayLog evaluations_of(const data::ArrayFile& file, Index parameters,
                                const std::string& path);

/// What to tell someone who stopped the learning. `error`: why the checkpoint could not be written;
/// empty when it was.
std::string interrupted_text(const std::string& path, std::size_t evaluations,
                             const std::string& error);

}  // namespace mercer::training
