// mercer compare: solvers x preconditioners over a grid of lengthscale and noise, on the user's
// data; a table, and on request JSON, a CSV and a picture.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.hpp"
#include "cli/compare_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/option_list.hpp"
#include "cli/signals.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/atomic_file.hpp"
#include "mercer/core/error.hpp"

namespace mercer::cli {
namespace {

void write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    print_out(text);
    return;
  }
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

struct Flags {
  RunOptions run;
  DataFlags data;
  studies::CompareOptions options;
  CompareCommand files;
};

void add_options(Arguments& arguments, Flags& flags) {
  auto& method = flags.options.method;
  arguments.positional("DATA", flags.data.path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.add(flags.files);
  arguments.group("Grid (on standardised data unless --no-standardize)");
  std::vector<std::string_view> shared;  // options of the method, which have their own titles
  const auto listed = list_options(method);
  shared.reserve(listed.size());
  for (const auto& option : listed) shared.push_back(option.name);
  arguments.add(flags.options, without(std::move(shared)));
  add_data_options(arguments, flags.data);
  // The grid sets the rest.
  add_method_options(arguments, method,
                     {"lengthscale", "noise", "mean", "solver", "preconditioner"});
  add_run_options(arguments, flags.run);
  arguments.add_config();
}

}  // namespace

int run_compare(const Words& words) {
  for (const auto& word : words)
    if (word == "--methods" || word.starts_with("--methods="))
      return run_compare_approximations(words);
  Arguments arguments(
      "compare",
      "  mercer compare data.csv --target y --kernel rbf:iso --picture map.svg\n"
      "  mercer compare data.csv --lengthscales 1 --noises 0.01 \\\n"
      "      --preconditioners none,nystrom,hybrid,auto --rank 200 --json",
      "Solves H a = y with each solver and preconditioner over a grid of lengthscale and\n"
      "noise, and shows iterations, time and who wins where. Plain CG is always run: it is\n"
      "what the others are measured against. With --methods it compares approximations with\n"
      "the exact posterior instead: mercer compare --methods exact,vfe --help.");
  Flags flags;
  flags.options.method.kernel = "rbf:iso";
  add_options(arguments, flags);
  if (!arguments.parse(words)) return exit_ok;

  apply(flags.run);
  auto& options = flags.options;
  const auto& [csv, picture] = flags.files;
  studies::check(options);
  if (options.rms_tolerance && arguments.given("tolerance"))
    throw InvalidArgument(
        "--tolerance and --rms-tolerance are two rules for the same thing; give one");
  if (!csv.empty() && csv == picture)
    throw InvalidArgument("--csv and --picture name the same file");
  const bool csv_out = csv == "-";
  if (flags.run.json && csv_out)
    throw InvalidArgument("--json and --csv - both want standard output; name a file with --csv");
  if (!csv.empty()) check_output("--csv", csv, {flags.data.path});
  if (!picture.empty()) check_output_file("--picture", picture, {flags.data.path});
  const Console console("compare", flags.run.quiet);
  tell_config(arguments, console);
  const auto data = read(flags.data, console, options.method);
  options.standardize = flags.data.options.standardize;
  const auto result = studies::compare(data, options, console.progress());
  clear_progress_line();
  if (!result.note.empty()) console.note(result.note);
  if (result.interrupted)
    console.warn(
        fmt::format("interrupted: {} of {} runs are done and shown", result.runs.size(),
                    result.lengthscales.size() * result.noises.size() * result.labels.size()));
  if (!csv.empty()) write_text(csv, with_dashes(compare_csv(result)));
  if (!picture.empty())
    write_text(picture, svg(compare_picture(
                            result, std::filesystem::path(flags.data.path).filename().string(),
                            options.method.kernel)));
  if (flags.run.json)
    print_json(compare_json(result, options, arguments.record(), data, flags.data.path));
  else if (!csv_out)
    print_out(compare_text(result, options));
  return result.interrupted ? exit_code_when_stopped() : exit_ok;
}

}  // namespace mercer::cli
