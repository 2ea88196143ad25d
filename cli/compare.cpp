// mercer compare: solvers x preconditioners over a grid of lengthscale and noise, on the user's
// data; a table, and on request JSON, a CSV and a picture.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "cli/compare_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/shared_options.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/atomic_file.hpp"
#include "mercer/core/error.hpp"

namespace mercer::cli {
namespace {

double to_number(const std::string& flag, const std::string& word) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(word, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != word.size())
    throw InvalidArgument(fmt::format("{}: '{}' is not a number", flag, word));
  return value;
}

// "0.1,1,10", and "1e-3:1e2:6" for six values evenly spaced in logarithm.
std::vector<double> grid(const std::string& flag, const std::vector<std::string>& words) {
  std::vector<double> values;
  for (const auto& word : words) {
    const auto first = word.find(':');
    if (first == std::string::npos) {
      values.push_back(to_number(flag, word));
      continue;
    }
    const auto second = word.find(':', first + 1);
    if (second == std::string::npos)
      throw InvalidArgument(
          fmt::format("{}: '{}' is not FROM:TO:COUNT, as in 1e-3:1e2:6", flag, word));
    const double from = to_number(flag, word.substr(0, first));
    const double to = to_number(flag, word.substr(first + 1, second - first - 1));
    const double count = to_number(flag, word.substr(second + 1));
    if (!(from > 0) || !(to > 0) || !std::isfinite(from) || !std::isfinite(to) || !(count >= 1) ||
        count > 100 || count != std::floor(count))
      throw InvalidArgument(
          fmt::format("{}: '{}' needs two positive ends and a count from 1 to 100", flag, word));
    for (int i = 0; i < static_cast<int>(count); ++i) {
      const double t = count > 1 ? i / (count - 1) : 0;
      values.push_back(std::pow(10, std::log10(from) + t * (std::log10(to) - std::log10(from))));
    }
  }
  return values;
}

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
  std::vector<std::string> lengthscales, noises, solvers;
  std::string csv, picture;
};

void add_options(Arguments& arguments, Flags& flags) {
  auto& options = flags.options;
  auto& method = options.method;
  arguments.positional("DATA", flags.data.path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.option("--csv", "FILE", flags.csv, "write every run, one row each");
  arguments.option("--picture", "FILE", flags.picture, "write heat maps (SVG)");
  arguments.group("Grid (on standardised data unless --no-standardize)");
  arguments.list("--lengthscales", "L", flags.lengthscales,
                 "values, or FROM:TO:COUNT evenly in logarithm\n[default: 1e-3:1e2:6]");
  arguments.list("--noises", "V", flags.noises,
                 "noise variances, in the same way [default: 1e-6:1e-2:3]");
  arguments.list("--solvers", "A,B", flags.solvers,
                 "solvers; auto is cg, or fcg where P changes from step to\n"
                 "step; cholesky is the direct method [default: auto]");
  arguments.list("--preconditioners", "A,B", options.preconditioners,
                 "preconditioners; auto is what fit does by itself\n"
                 "[default: all that suit kernel and data, and auto]");
  arguments.option("--rows", "M", options.rows, "compare on M random rows [default: all]");
  arguments.option("--cell-seconds", "S", options.cell_seconds,
                   "stop a solve after this time; skip longer builds");
  arguments.option("--rms-tolerance", "E", options.rms_tolerance,
                   "stop at |r| <= E sqrt(N) instead of --tolerance\n"
                   "(1e-5 is the rule of Cutajar et al. 2016)");
  add_data_options(arguments, flags.data);
  add_noise_options(arguments, flags.data);
  arguments.group("Model");
  arguments.option("--kernel", "SPEC", method.kernel, "kernel; the grid sets its lengthscales");
  arguments.option("--signal-variance", "V", method.signal_variance,
                   "variance of the signal [default: 1]");
  arguments.group("Method");
  arguments.option("--operator", "NAME", method.op, "auto | tiled | stored: how K v is computed");
  arguments.option("--precision", "NAME", method.precision, "auto | double | mixed | single");
  add_preconditioning_options(arguments, method);
  add_limit_options(arguments, method);
  add_run_options(arguments, flags.run);
  arguments.appendix("Solvers", planning::describe_solvers());
  arguments.appendix("Preconditioners", planning::describe_preconditioners());
}

}  // namespace

int run_compare(const Words& words) {
  Arguments arguments(
      "compare",
      "  mercer compare data.csv --target y --kernel rbf:iso --picture map.svg\n"
      "  mercer compare data.csv --lengthscales 1 --noises 0.01 \\\n"
      "      --preconditioners none,nystrom,hybrid,auto --rank 200 --json",
      "Solves H a = y with each solver and preconditioner over a grid of lengthscale and\n"
      "noise, and shows iterations, time and who wins where. Plain CG is always run: it is\n"
      "what the others are measured against.");
  Flags flags;
  flags.options.method.kernel = "rbf:iso";
  add_options(arguments, flags);
  if (!arguments.parse(words)) return exit_ok;

  apply(flags.run);
  auto& options = flags.options;
  if (!flags.lengthscales.empty())
    options.lengthscales = grid("--lengthscales", flags.lengthscales);
  if (!flags.noises.empty()) options.noises = grid("--noises", flags.noises);
  if (!flags.solvers.empty()) options.solvers = flags.solvers;
  studies::check(options);
  if (options.rms_tolerance && arguments.given("--tolerance"))
    throw InvalidArgument(
        "--tolerance and --rms-tolerance are two rules for the same thing; give one");
  if (!flags.csv.empty() && flags.csv == flags.picture)
    throw InvalidArgument("--csv and --picture name the same file");
  const bool csv_out = flags.csv == "-";
  if (flags.run.json && csv_out)
    throw InvalidArgument("--json and --csv - both want standard output; name a file with --csv");
  if (!flags.csv.empty()) check_output("--csv", flags.csv, {flags.data.path});
  if (!flags.picture.empty()) check_output_file("--picture", flags.picture, {flags.data.path});
  const Console console("compare", flags.run.quiet);
  const auto data = read(flags.data, console);
  options.standardize = !flags.data.raw_scale;
  const auto result = studies::compare(data, options, console.progress());
  clear_progress_line();
  if (!result.note.empty()) console.note(result.note);
  if (result.interrupted)
    console.warn(
        fmt::format("interrupted: {} of {} runs are done and shown", result.runs.size(),
                    result.lengthscales.size() * result.noises.size() * result.labels.size()));
  if (!flags.csv.empty()) write_text(flags.csv, compare_csv(result));
  if (!flags.picture.empty())
    write_text(
        flags.picture,
        svg(compare_picture(result, std::filesystem::path(flags.data.path).filename().string(),
                            options.method.kernel)));
  if (flags.run.json)
    print_json(compare_json(result, options, data, flags.data.path));
  else if (!csv_out)
    print_out(compare_text(result, options));
  return result.interrupted ? exit_interrupted : exit_ok;
}

}  // namespace mercer::cli
