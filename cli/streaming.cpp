#include "cli/streaming.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/exit_code.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/text.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/models/classes.hpp"

namespace mercer::cli {
namespace {

bool always(const FitCommand& command) { return command.fit.approximation.stream == "always"; }

// Options that need all rows in memory, with what to do instead.
constexpr std::pair<const char*, const char*> kNeedMemory[] = {
    {"test_fraction",
     "sets random rows of memory aside; cut the file with mercer split, and score with mercer "
     "evaluate"},
    {"impute",
     "fills cells with medians, which need all rows at once; use `drop_missing`, or fill them in "
     "the file"},
    {"check_rows",
     "compares with the exact posterior of all rows; measure on a part of them, in memory"},
};

bool gaussian_or_open(const FitCommand& command) {
  return command.task != "classification" &&
         (command.likelihood == "auto" || command.likelihood == "gaussian");
}

bool rereadable(const std::string& path) {
  std::error_code ignored;
  // A file that is not there is for the reader to refuse.
  return path != "-" && (std::filesystem::is_regular_file(path, ignored) ||
                         !std::filesystem::exists(path, ignored));
}

}  // namespace

void settle_stream(FitCommand& command, const Arguments& arguments) {
  if (!always(command)) return;
  for (const auto& [option, why] : kNeedMemory)
    if (arguments.given(option))
      throw InvalidArgument(fmt::format("`stream=always` keeps no rows, and `{}` {}", option, why));
  if (!gaussian_or_open(command))
    throw InvalidArgument(fmt::format(
        "`stream=always` learns numbers with Gaussian noise, not {}; learn from a part of the rows",
        command.task == "classification" ? "classes"
                                         : fmt::format("the likelihood {}", command.likelihood)));
  if (!rereadable(command.data.path))
    throw InvalidArgument(fmt::format(
        "`stream=always` reads the rows several times, and {} can be read once only; save it to a "
        "file and give its name",
        command.data.path == "-" ? std::string("standard input") : data::shown(command.data.path)));
}

bool may_stream(const FitCommand& command, const Arguments& arguments) {
  const auto& approximation = command.fit.approximation;
  if (!approximation.asked() || approximation.stream == "never") return false;
  if (!inference::methods().find(approximation.method).abilities.streams) return false;
  for (const auto& [option, why] : kNeedMemory)
    if (arguments.given(option)) return false;
  return gaussian_or_open(command) && rereadable(command.data.path);
}

FitInput survey_rows(FitCommand& command, const Console& console, const std::string& why) {
  auto& options = command.data.options;
  const auto budget = reading_memory(command.fit.method.memory);
  options.memory = budget;
  const bool open = command.task == "auto" && command.likelihood == "auto";
  options.text_target = options.text_anywhere = false;
  if (!why.empty())
    console.note(
        fmt::format("{}; the rows are read in passes instead (--stream never refuses)", why));
  return io_errors_as(exit_data, [&] {
    const auto columns =
        data::CsvReader(command.data.path, data::csv_options(options)).header().size();
    const data::SurveyOptions how{
        .reservoir = command.fit.approximation.reservoir.value_or(
            planning::usual_reservoir(static_cast<double>(budget), static_cast<Index>(columns))),
        .seed = command.fit.method.seed};
    FitInput out;
    out.stream = data::survey(command.data.path, options, how, console.progress());
    clear_progress_line();
    const auto& sample = out.stream->sample;
    if (!sample.schema.target_levels.empty())
      throw DataError(
          fmt::format("the target {} holds categories; rows in passes are numbers: "
                      "name a numeric column with --target",
                      data::shown(sample.schema.target)));
    if (open && models::looks_like_classes(sample) && always(command))
      console.note(
          fmt::format("the target {} looks like classes; rows in passes are learned as "
                      "numbers (--task regression says so)",
                      data::shown(sample.schema.target)));
    else if (open && models::looks_like_classes(sample))
      throw InvalidArgument(fmt::format(
          "the target {} looks like classes, which are not learned from rows in passes, and the "
          "rows do not fit into memory: `task=regression` learns it as a number",
          data::shown(sample.schema.target)));
    command.task = "regression";
    return out;
  });
}

FitInput read_rows(FitCommand& command, const Arguments& arguments, const Console& console) {
  if (always(command)) return survey_rows(command, console, {});
  try {
    FitInput out;
    out.all = read(command.data, command.fit.method);
    return out;
  } catch (const DoesNotFit& error) {
    if (!may_stream(command, arguments)) throw;
  }
  return survey_rows(command, console, "the rows do not fit into memory");
}

}  // namespace mercer::cli
