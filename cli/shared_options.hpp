// The options that verbs share, each group with its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "cli/console.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/models/names.hpp"

namespace mercer::cli {

struct RunOptions {
  bool json = false;
  bool quiet = false;
  std::optional<int> threads;
};
/// --json, --quiet, --threads.
void add_run_options(Arguments& arguments, RunOptions& options);
/// Sets the number of threads; throws InvalidArgument unless it is positive.
void apply(const RunOptions& options);

struct DataFlags {
  std::string path;
  std::string target;
  std::string noise_column, count_column;
  data::DataOptions options;
  bool raw_scale = false;  // --no-standardize
};
/// --target, --inputs, --categorical, --drop-missing, --no-standardize.
void add_data_options(Arguments& arguments, DataFlags& flags);
/// --noise-column and --count-column: how noisy each row is.
void add_noise_options(Arguments& arguments, DataFlags& flags);
/// --no-merge.
void add_merge_option(Arguments& arguments, bool& no_merge);
/// Reads DATA. An unreadable file is exit code 3.
data::Dataset read(DataFlags& flags);
/// Passes on what the reader has to say.
void tell(const data::Dataset& data, const Console& console);
/// Both.
data::Dataset read(DataFlags& flags, const Console& console);

/// --kernel .. --max-iterations, --memory and --seed, with the lists of choices below the options.
void add_method_options(Arguments& arguments, models::MethodOptions& options,
                        bool with_mean = true);
/// --rank .. --landmarks: what single preconditioners take.
void add_preconditioning_options(Arguments& arguments, models::MethodOptions& options);
/// --tolerance, --max-iterations, --memory, --seed.
void add_limit_options(Arguments& arguments, models::MethodOptions& options);
/// --train, --steps, --restarts, --subset.
void add_train_options(Arguments& arguments, models::TrainOptions& options);
/// Throws InvalidArgument when an option of learning was given to a run that does not learn; `why`
/// says why it does not.
void refuse_train_options(const Arguments& arguments, const std::vector<std::string>& names,
                          const std::string& why);

/// True when an option was given that only numbers with Gaussian noise have.
bool asks_for_numbers(const Arguments& arguments);
/// Refuses those, and what else means nothing without Gaussian noise.
void refuse_gaussian_options(const Arguments& arguments, const std::string& why);

}  // namespace mercer::cli
