// Approximations on the command line: --method NAME, --base FILE, and what is said of them.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/fit_command.hpp"
#include "cli/record.hpp"

namespace mercer::cli {

/// True: this --base is a way to choose them, else it names a file.
bool names_base_choice(const std::string& base);
/// True: this name of --method is an approximation.
bool is_approximation(const std::string& method);
/// Sets the approximation that --method names and refuses, before any data are read, what has no
/// meaning with it or without one.
void settle_approximation(FitCommand& command, const Arguments& arguments);
/// What depends on the likelihood, and the base points of --base FILE, once the data are known.
void complete_approximation(FitCommand& command, const Arguments& arguments,
                            const data::Dataset& data);
/// Base points out of a CSV file: the input columns of the data. Throws DataError, Failure.
Matrix read_base(const std::string& path, const data::Dataset& data,
                 const data::DataOptions& options, std::optional<std::uint64_t> memory);

/// "exact", "bound" or "approximate": what the log likelihood of this inference method is.
std::string evidence_kind(const std::string& inference, bool gaussian);
/// The distance from the exact posterior as far as it is known; null for an exact model.
Json approximation_json(const models::KernelMachine& model);
/// In place of the certificate of an exact model.
std::string approximation_text(const models::KernelMachine& model);

}  // namespace mercer::cli
