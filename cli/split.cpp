// mercer split: a random share of the rows of a CSV set apart. Lines are copied as they are.
#include "mercer/data/split.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/record.hpp"
#include "cli/verbs.hpp"
#include "mercer/data/byte_sink.hpp"
#include "mercer/data/byte_source.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

std::string read_all(const std::string& path) {
  auto source = data::ByteSource::open(path);
  std::string text;
  std::string buffer(std::size_t{1} << 20, '\0');
  while (const std::size_t count = source.read(buffer.data(), buffer.size()))
    text.append(buffer, 0, count);
  return text;
}

/// The rows of a CSV text with their line ends; a quoted field may span lines. Comments and blank
/// lines are left out.
std::vector<std::string_view> rows_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string_view> rows;
  std::size_t first = 0;
  while (first < text.size()) {
    bool quoted = false;
    const bool comment = text[first] == '#';
    std::size_t end = first;
    while (end < text.size() && ((quoted && !comment) || text[end] != '\n')) {
      if (text[end] == '"') quoted = !quoted;
      ++end;
    }
    end = std::min(end + 1, text.size());
    const auto row = text.substr(first, end - first);
    if (!comment && row.find_first_not_of(" \t\r\n") != std::string_view::npos) rows.push_back(row);
    first = end;
  }
  return rows;
}

void write_rows(data::ByteSink& file, std::string_view header,
                const std::vector<std::string_view>& rows, const std::vector<Index>& chosen) {
  std::string buffer;
  const auto put = [&](std::string_view row) {
    buffer += row;
    if (!row.ends_with('\n')) buffer += '\n';
    if (buffer.size() < std::size_t{1} << 18) return;
    file.write(buffer);
    buffer.clear();
  };
  if (!header.empty()) put(header);
  for (const Index i : chosen) put(rows[static_cast<std::size_t>(i)]);
  file.write(buffer);
}

/// Neither file appears before both are written.
void write_both(const std::string& train_path, const std::string& test_path,
                std::string_view header, const std::vector<std::string_view>& rows,
                const data::Split& split) {
  data::ByteSink train(train_path);
  data::ByteSink test(test_path);
  write_rows(train, header, rows, split.train);
  write_rows(test, header, rows, split.test);
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
  models::MethodOptions method;
  RunOptions run;
  const auto& [train_path, test_path, fraction] = command;
  const auto& seed = method.seed;
  arguments.positional("DATA", path, "CSV file; - for standard input");
  arguments.add(command);
  arguments.add(method, only({"seed"}));
  arguments.add(run, without({"threads"}));
  if (!arguments.parse(words)) return exit_ok;

  if (train_path.empty() || test_path.empty())
    throw InvalidArgument("name both files to write: --train-out a.csv --test-out b.csv");
  if (same_file(train_path, test_path))
    throw InvalidArgument("--train-out and --test-out name the same file; name two");
  validate(command);
  check_output_file("--train-out", train_path, {path});
  check_output_file("--test-out", test_path, {path});
  const std::string text = io_errors_as(exit_data, [&] { return read_all(path); });
  auto rows = rows_of(text);
  if (rows.empty()) throw DataError(fmt::format("{}: there are no rows in it", path));
  // Whether the first row is a header is for the reader of data to say.
  const data::CsvReader reader(data::ByteSource::from_memory(std::string(rows.front()), path));
  std::string_view header;
  if (!reader.info().generated_header) {
    header = rows.front();
    rows.erase(rows.begin());
  }
  if (rows.size() < 2)
    throw DataError(fmt::format("{}: there are fewer than 2 rows; nothing can be set apart", path));
  const auto split = data::split_rows(static_cast<Index>(rows.size()), fraction, seed);
  write_both(train_path, test_path, header, rows, split);
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
