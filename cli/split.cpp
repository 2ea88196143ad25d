// mercer split: a random share of the rows of a CSV set apart. Lines are copied as they are.
#include "mercer/data/split.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/record.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/byte_sink.hpp"
#include "mercer/data/csv_reader.hpp"

namespace mercer::cli {
namespace {

/// The rows of a table as they stand in the file; comments and blank lines are left out.
struct RawTable {
  std::string header;  // empty where there is none
  std::string text;
  std::vector<std::size_t> starts = {0};  // of the rows in the text, and its end
  Index comment_lines = 0;

  Index size() const { return static_cast<Index>(starts.size()) - 1; }
  std::string_view row(Index i) const {
    const auto at = static_cast<std::size_t>(i);
    return std::string_view(text).substr(starts[at], starts[at + 1] - starts[at]);
  }
};

RawTable read_table(const std::string& path, const data::DataOptions& options) {
  data::CsvReader reader(path, data::csv_options(options));
  RawTable table;
  table.header = reader.header_text();
  std::string_view row;
  while (reader.next_text(row)) {
    // A text that grows is there twice for a moment.
    const double bytes = 2.0 * static_cast<double>(table.text.size() + row.size()) +
                         16.0 * static_cast<double>(table.starts.size());
    if (options.memory &&
        bytes + static_cast<double>(program_bytes) > static_cast<double>(*options.memory))
      throw DoesNotFit(fmt::format(
          "{}: the first {} already fill the memory of {}; give more `memory`, or cut the file "
          "with other means first",
          reader.name(), plural(table.size(), "row"),
          format_bytes(static_cast<double>(*options.memory))));
    table.text += row;
    table.starts.push_back(table.text.size());
  }
  table.comment_lines = reader.info().comment_lines;
  return table;
}

void write_rows(data::ByteSink& file, const RawTable& table, const std::vector<Index>& chosen) {
  std::string buffer;
  const auto put = [&](std::string_view row) {
    buffer += row;
    if (!row.ends_with('\n') && !row.ends_with('\r')) buffer += '\n';
    if (buffer.size() < std::size_t{1} << 18) return;
    file.write(buffer);
    buffer.clear();
  };
  if (!table.header.empty()) put(table.header);
  for (const Index i : chosen) put(table.row(i));
  file.write(buffer);
}

/// Neither file appears before both are written.
void write_both(const std::string& train_path, const std::string& test_path, const RawTable& table,
                const data::Split& split) {
  data::ByteSink train(train_path);
  data::ByteSink test(test_path);
  write_rows(train, table, split.train);
  write_rows(test, table, split.test);
  train.close();
  test.close();
}

}  // namespace

int run_split(const Words& words) {
  Arguments arguments(
      "split",
      "  mercer split data.csv --test-fraction 0.2 --train-out train.csv "
      "--test-out test.csv",
      "Copies a random share of the rows to one file and the rest to another, line\n"
      "by line as they are, both with the header. Comments are not copied.");
  std::string path;
  SplitCommand command;
  data::DataOptions options;
  models::MethodOptions method;
  RunOptions run;
  const auto& [train_path, test_path, fraction] = command;
  const auto& seed = method.seed;
  arguments.positional("DATA", path, "CSV file; - for standard input");
  arguments.add(command);
  arguments.add(options, only({"delimiter"}));
  arguments.add(method, only({"seed", "memory"}));
  arguments.add(run, without({"threads"}));
  if (!arguments.parse(words)) return exit_ok;

  if (train_path.empty() || test_path.empty())
    throw InvalidArgument("name both files to write: --train-out a.csv --test-out b.csv");
  if (same_file(train_path, test_path))
    throw InvalidArgument("--train-out and --test-out name the same file; name two");
  validate(command);
  check_output_file("--train-out", train_path, {path});
  check_output_file("--test-out", test_path, {path});
  options.memory = reading_memory(method.memory);
  const Console console("split", run.quiet);
  const auto table = io_errors_as(exit_data, [&] { return read_table(path, options); });
  if (table.comment_lines > 0)
    console.note(fmt::format("{} above the header not copied",
                             table.comment_lines == 1
                                 ? "1 comment line is"
                                 : plural(table.comment_lines, "comment line") + " are"));
  if (table.size() < 2)
    throw DataError(fmt::format("{}: there are fewer than 2 rows; nothing can be set apart", path));
  const auto split = data::split_rows(table.size(), fraction, seed);
  write_both(train_path, test_path, table, split);
  if (run.json)
    print_json({{"train_rows", split.train.size()},
                {"test_rows", split.test.size()},
                {"train_out", train_path},
                {"test_out", test_path},
                {"seed", seed}});
  else if (!run.quiet)
    print_out(fmt::format("{} into {}, {} into {}\n",
                          plural(static_cast<Index>(split.train.size()), "row"), train_path,
                          plural(static_cast<Index>(split.test.size()), "row"), test_path));
  return exit_ok;
}

}  // namespace mercer::cli
