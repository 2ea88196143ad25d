#include "mercer/data/row_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/data/column_choice.hpp"

namespace mercer::data {
namespace {

// Values in a block, at most.
constexpr Index kBlockValues = 2'000'000, kLeastBlockRows = 16, kMostBlockRows = 4096;

// Bytes that rows may take in any case.
constexpr double kLeastRoom = 16.0 * 1048576;

void copy_entry(const Vector& from, Index row, Vector& to, Index place) {
  if (from.size() > 0) to(place) = from(row);
}

// Row `row` of one block becomes row `place` of another with the same columns.
void copy_row(const RowBlock& from, Index row, RowBlock& to, Index place) {
  to.inputs.row(place) = from.inputs.row(row);
  copy_entry(from.target, row, to.target, place);
  copy_entry(from.noise.variance, row, to.noise.variance, place);
  copy_entry(from.noise.count, row, to.noise.count, place);
  const auto source = static_cast<std::size_t>(row), goal = static_cast<std::size_t>(place);
  to.lines[goal] = from.lines[source];
  to.numbers[goal] = from.numbers[source];
  for (std::size_t j = 0; j < from.carried.size(); ++j)
    to.carried[j][goal] = from.carried[j][source];
}

void resize_column(const Vector& like, Index rows, Vector& column) {
  column.conservativeResize(like.size() > 0 ? rows : 0);
}

// Keeps the rows there are; new ones are not set yet.
void resize(RowBlock& block, Index rows, const RowBlock& like) {
  block.inputs.conservativeResize(rows, like.inputs.cols());
  resize_column(like.target, rows, block.target);
  resize_column(like.noise.variance, rows, block.noise.variance);
  resize_column(like.noise.count, rows, block.noise.count);
  block.lines.resize(static_cast<std::size_t>(rows));
  block.numbers.resize(static_cast<std::size_t>(rows));
  block.carried.resize(like.carried.size());
  for (auto& column : block.carried) column.resize(static_cast<std::size_t>(rows));
}

void append(RowBlock& to, Index count, const RowBlock& block) {
  if (count + block.rows() > to.rows())
    resize(to, std::max(2 * to.rows(), count + block.rows()), block);
  for (Index i = 0; i < block.rows(); ++i) copy_row(block, i, to, count + i);
}

}  // namespace

RowBlock RowSource::all() {
  rewind();
  RowBlock out, block;
  if (!next(out)) return out;
  Index count = out.rows();
  // The rows double when there is no room for more, and are there twice for a moment.
  const double of_row = 24.0 * static_cast<double>(out.inputs.cols() + 4);
  for (; next(block); count += block.rows()) {
    const double bytes = of_row * static_cast<double>(count + block.rows());
    if (memory() && bytes > kLeastRoom &&
        bytes + static_cast<double>(program_bytes) > static_cast<double>(*memory()))
      throw DoesNotFit(fmt::format(
          "{}: the first {} rows already fill the memory of {}; give more `memory` or fewer rows",
          name(), count, format_bytes(static_cast<double>(*memory()))));
    append(out, count, block);
  }
  if (count < out.rows()) resize(out, count, out);
  return out;
}

RowBlock RowSource::reservoir(Index n, std::uint64_t seed) {
  if (n < 1) throw InvalidArgument(fmt::format("a sample of {} rows was asked for", n));
  rewind();
  Rng rng(seed, "reservoir");
  RowBlock kept, block;
  std::vector<Index> numbers;  // of the rows kept, in the source
  Index seen = 0;
  while (next(block)) {
    if (seen < n) resize(kept, std::min(n, seen + block.rows()), block);
    for (Index i = 0; i < block.rows(); ++i, ++seen) {
      // Row t (from 0) is kept with probability n / (t + 1), in the place of a random one.
      const Index place = seen < n ? seen : rng.index(seen + 1);
      if (place >= n) continue;
      copy_row(block, i, kept, place);
      if (seen < n)
        numbers.push_back(seen);
      else
        numbers[static_cast<std::size_t>(place)] = seen;
    }
  }
  std::vector<Index> order(numbers.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    return numbers[static_cast<std::size_t>(a)] < numbers[static_cast<std::size_t>(b)];
  });
  RowBlock out;
  resize(out, kept.rows(), kept);
  for (Index i = 0; i < kept.rows(); ++i)
    copy_row(kept, order[static_cast<std::size_t>(i)], out, i);
  return out;
}

bool MemoryRows::next(RowBlock& block) {
  block = {};
  if (done_ || data_.size() == 0) return false;
  done_ = true;
  block.inputs = data_.inputs;
  block.target = data_.target;
  block.noise = data_.noise;
  block.lines.resize(static_cast<std::size_t>(data_.size()));
  std::iota(block.lines.begin(), block.lines.end(), Index{1});
  block.numbers = block.lines;
  return true;
}

CsvRows::CsvRows(std::string path, Schema schema, PredictOptions options)
    : path_(std::move(path)), schema_(std::move(schema)), options_(std::move(options)) {
  start();  // a file that does not do is refused at once
}

CsvRows::CsvRows(std::string path, DataOptions options)
    : path_(std::move(path)),
      learning_(std::move(options)),
      options_{.target = TargetUse::required,
               .drop_missing = learning_->drop_missing,
               .csv = csv_options(*learning_)} {
  found_ = file_state();
  fresh_.emplace(open());
}

std::string CsvRows::name() const { return path_ == "-" ? "standard input" : path_; }

// Only a regular file gives the same rows a second time; a pipe with a name does not.
bool CsvRows::is_file() const {
  std::error_code error;
  return path_ != "-" && std::filesystem::is_regular_file(path_, error);
}

CsvRows::FileState CsvRows::file_state() const {
  std::error_code error;
  FileState out;
  if (!is_file()) return out;
  out.size = std::filesystem::file_size(path_, error);
  out.written = std::filesystem::last_write_time(path_, error);
  return out;
}

bool CsvRows::changed() const { return learning_.has_value() && file_state() != found_; }

CsvReader CsvRows::open() {
  if (fresh_) {
    CsvReader reader = std::move(*fresh_);
    fresh_.reset();
    return reader;
  }
  if (opened_ && !is_file())
    throw InvalidArgument(fmt::format(
        "{} cannot be read a second time; save it to a file and give its name", name()));
  opened_ = true;
  return CsvReader(path_, options_.csv);
}

const Schema& CsvRows::schema() {
  if (!schema_) {
    if (!is_file())
      throw InvalidArgument(
          fmt::format("the columns of {} are known only when all of it was read; save it to a file "
                      "and give its name",
                      name()));
    CsvReader reader(path_, options_.csv);
    schema_ = find_schema(reader, *learning_);
  }
  return *schema_;
}

void CsvRows::start() {
  const auto& columns = schema();
  // Learning leaves rows out for a missing cell of any column, also of one that is left out itself
  // because it has one value only.
  if (learning_) options_.also_complete = columns.dropped_constant;
  stream_.emplace(open(), columns, options_);
  // A text counts as eight numbers: its string and some characters of its own.
  const auto texts = static_cast<Index>(stream_->carried_names().size());
  if (block_rows_ == 0)
    block_rows_ =
        std::clamp<Index>(kBlockValues / std::max<Index>(columns.dimension() + 8 * texts, 1),
                          kLeastBlockRows, kMostBlockRows);
}

bool CsvRows::next(RowBlock& block) {
  if (!stream_) start();
  return stream_->next(block, block_rows_);
}

void CsvRows::rewind() {
  if (!stream_ || stream_->info().rows == 0) return;  // nothing was read yet
  if (!is_file()) open();  // throws, and the rows that are left can still be read
  stream_.reset();
}

Dataset CsvRows::dataset() {
  if (!learning_)
    throw InvalidArgument("the rows of a known schema are not a data set to learn from");
  stream_.reset();
  CsvReader reader = open();
  auto out = read_dataset(reader, *learning_);
  schema_ = out.schema;
  return out;
}

StreamedData CsvRows::survey(const SurveyOptions& how, const ProgressCallback& progress) {
  if (!learning_)
    throw InvalidArgument("the rows of a known schema are not a data set to learn from");
  if (!is_file())
    throw InvalidArgument(fmt::format(
        "rows that do not stay in memory are read several times, and {} can be read once only; "
        "save it to a file and give its name",
        name()));
  stream_.reset();
  CsvReader reader = open();
  std::error_code error;
  const auto size = static_cast<double>(std::filesystem::file_size(path_, error));
  const bool packed = reader.info().gzip;
  auto out = load_sample(reader, *learning_, how, [&](const CsvInfo& info) {
    stop_if_requested("reading rows");
    const double share = packed || error ? -1 : static_cast<double>(info.bytes) / size;
    if (progress &&
        progress({.stage = "read",
                  .fraction = std::min(share, 1.0),
                  .detail = fmt::format("{} rows", count_text(info.rows))}) == Action::stop)
      throw Interrupted("interrupted while reading the rows for the first time");
  });
  schema_ = out.sample.schema;
  return out;
}

std::optional<double> CsvRows::share_read() const {
  std::error_code error;
  if (!stream_ || !is_file() || stream_->info().gzip ||
      !std::filesystem::is_regular_file(path_, error))
    return {};
  const auto size = std::filesystem::file_size(path_, error);
  if (error || size == 0) return {};
  return std::min(1.0, static_cast<double>(stream_->info().bytes) / static_cast<double>(size));
}

}  // namespace mercer::data
