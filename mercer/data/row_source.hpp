// Rows that need not fit into memory: blocks, one after the other, read again when rewound.
//
//   data::CsvRows rows("flights.csv", data::DataOptions{.target = "delay"});
//   const auto few = rows.reservoir(4000, 1);  // a uniform sample with seed 1, one pass
//   rows.rewind();
//   Index count = 0;  // all of them, one pass
//   for (data::RowBlock block; rows.next(block);) count += block.rows();
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "mercer/core/progress.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/data/predict_stream.hpp"
#include "mercer/data/row_block.hpp"

MERCER_API_BEGIN
namespace mercer::data {

struct StreamedData;
struct SurveyOptions;

class RowSource {
 public:
  virtual ~RowSource() = default;
  RowSource() = default;
  RowSource(RowSource&&) = default;
  RowSource& operator=(RowSource&&) = default;

  /// For messages: the path, "standard input" or "memory".
  virtual std::string name() const = 0;
  virtual const Schema& schema() = 0;
  /// The next rows; false, with none, at the end.
  virtual bool next(RowBlock& block) = 0;
  /// Back to the first row. Throws InvalidArgument when rows were read that cannot be read again.
  virtual void rewind() = 0;
  /// The rows may be others than when the source was made.
  virtual bool changed() const { return false; }

  /// All rows, from the first on.
  RowBlock all();
  /// n rows, or all when there are fewer, each set of n equally likely; in their order. The same
  /// rows for the same seed, whatever the blocks. One pass from the first row on, memory of n rows
  /// and one block.
  ///   Source: Vitter (1985), Random sampling with a reservoir, algorithm R.
  RowBlock reservoir(Index n, std::uint64_t seed);

 protected:
  /// Bytes that all() may take, program included; unset: any number.
  virtual std::optional<std::uint64_t> memory() const { return {}; }
};

/// Rows in memory: one block.
class MemoryRows final : public RowSource {
 public:
  /// `data` must outlive this.
  explicit MemoryRows(const Dataset& data) : data_(data) {}
  std::string name() const override { return "memory"; }
  const Schema& schema() override { return data_.schema; }
  bool next(RowBlock& block) override;
  void rewind() override { done_ = false; }

 private:
  const Dataset& data_;
  bool done_ = false;
};

/// Rows of a CSV file ("-": standard input), a few tens of megabytes at a time at most.
class CsvRows final : public RowSource {
 public:
  /// For a schema that is known. Throws IoError, DataError when a column is not there.
  CsvRows(std::string path, Schema schema, PredictOptions options = {});
  /// To learn from: the schema is found in the data, by dataset() or in a pass of its own before
  /// the first block. Throws IoError.
  CsvRows(std::string path, DataOptions options);

  std::string name() const override;
  const Schema& schema() override;
  bool next(RowBlock& block) override;
  void rewind() override;
  /// A file to learn from that has another size, or was written to since.
  bool changed() const override;
  /// Rows in a block, unless the number that suits the width.
  void set_block_rows(Index rows) { block_rows_ = rows; }

  /// All rows as a data set to learn from, its schema found in the same pass, with what is known
  /// of the whole (duplicates, scaling, messages). Only of a source to learn from.
  Dataset dataset();
  /// The schema found in one pass, with a sample of the rows and what is known of all, for further
  /// passes over this source. See data::survey, which checks the options and adds the messages.
  StreamedData survey(const SurveyOptions& how, const ProgressCallback& progress = {});

  /// Of the blocks since the first row.
  Index rows_missing_target() const { return stream_ ? stream_->rows_missing_target() : 0; }
  Index cells_filled() const { return stream_ ? stream_->cells_filled() : 0; }
  Index comment_lines() const { return stream_ ? stream_->info().comment_lines : 0; }
  Index rows_dropped_missing() const { return stream_ ? stream_->rows_dropped_missing() : 0; }
  /// Names of RowBlock::carried.
  std::vector<std::string> carried_names() const {
    return stream_ ? stream_->carried_names() : std::vector<std::string>();
  }
  bool has_noise() const { return !stream_ || stream_->has_noise(); }
  /// Share of the file that was read; unset where its size is not known.
  std::optional<double> share_read() const;

 private:
  std::optional<std::uint64_t> memory() const override { return options_.csv.memory; }
  CsvReader open();
  void start();
  bool is_file() const;

  /// Size of the file and when it was last written to; zeros where there is none.
  struct FileState {
    std::uintmax_t size = 0;
    std::filesystem::file_time_type written = {};
    bool operator==(const FileState&) const = default;
  };
  FileState file_state() const;

  std::string path_;
  FileState found_;
  std::optional<DataOptions> learning_;
  std::optional<Schema> schema_;
  PredictOptions options_;
  Index block_rows_ = 0;                 // 0: by the width
  std::optional<PredictStream> stream_;  // made before the first block
  std::optional<CsvReader> fresh_;       // opened, no row read yet
  bool opened_ = false;                  // standard input: once only
};

}  // namespace mercer::data
MERCER_API_END
