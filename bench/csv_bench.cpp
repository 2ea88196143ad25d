// How fast CSV comes in: 1 million rows of 10 columns, written by CsvWriter into a temporary
// folder. Prints MB/s of text (unpacked) for the bare reader, for read_dataset, and for both from
// gzip.
//   csv_bench [rows] [columns]
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/dataset.hpp"

namespace {

using namespace mercer;

/// `digits` significant digits, or all 17 for digits = 0.
void write_file(const std::string& path, Index rows, Index columns, int digits) {
  std::vector<std::string> header;
  for (Index j = 1; j < columns; ++j) header.push_back(fmt::format("x{}", j));
  header.push_back("y");
  data::CsvWriter out(path, header);
  Rng rng(1, "csv-bench");
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      const double value = rng.normal();
      out.number(digits == 0 ? value : std::stod(fmt::format("{:.{}g}", value, digits)));
    }
    out.end_row();
  }
  out.close();
}

std::uint64_t read_all(const std::string& path) {
  data::CsvReader reader(path);
  data::CsvBlock block;
  while (reader.next(block, 4096)) {
  }
  return reader.info().bytes;
}

std::uint64_t load_all(const std::string& path) {
  data::CsvReader reader(path);
  return data::read_dataset(reader).csv.bytes;
}

/// Best of three, by the clock on the wall and by processor time (which other programs that run
/// at the same time disturb less).
void measure(const std::string& name, const std::string& path,
             const std::function<std::uint64_t(const std::string&)>& run) {
  double wall = std::numeric_limits<double>::infinity();
  double processor = wall;
  std::uint64_t bytes = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Timer timer;
    const std::clock_t start = std::clock();
    bytes = run(path);
    processor = std::min(processor, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    wall = std::min(wall, timer.seconds());
  }
  const double megabytes = static_cast<double>(bytes) / 1e6;
  fmt::print("{:<36} {:>6.1f} MB {:>6.0f} MB/s wall {:>6.0f} MB/s processor   peak {}\n", name,
             megabytes, megabytes / wall, megabytes / processor,
             format_bytes(static_cast<double>(peak_rss_bytes())));
}

}  // namespace

int main(int argc, char** argv) {
  const Index rows = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const Index columns = argc > 2 ? std::atoll(argv[2]) : 10;
  if (rows < 2 || columns < 2) {
    fmt::print(stderr, "csv_bench: at least 2 rows and 2 columns\n");
    return 2;
  }
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("mercer-csv-bench-{}", getpid());
  std::filesystem::create_directory(folder);
  fmt::print("{} rows, {} columns, one core, best of 3\n", rows, columns);
  for (const int digits : {6, 0}) {
    const std::string text = digits == 0 ? "all digits" : fmt::format("{} digits", digits);
    for (const char* ending : {".csv", ".csv.gz"}) {
      const auto path = (folder / (std::string("data") + ending)).string();
      write_file(path, rows, columns, digits);
      measure(fmt::format("reader, {}, {}", text, ending), path, read_all);
      measure(fmt::format("read_dataset, {}, {}", text, ending), path, load_all);
    }
  }
  std::filesystem::remove_all(folder);
}
