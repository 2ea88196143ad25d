#include "cli/row_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"

namespace mercer::cli {
namespace {

double size_of_text(const std::string& path) {
  std::error_code error;
  if (path == "-" || path.ends_with(".gz") || !std::filesystem::is_regular_file(path, error))
    return 0;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<double>(size);
}

}  // namespace

data::Schema prediction_schema(data::Schema schema, bool gaussian) {
  if (!gaussian) schema.count_column.clear();
  return schema;
}

RowSource::RowSource(const std::string& path, const data::Schema& schema,
                     data::PredictOptions options)
    : name_(path == "-" ? "standard input" : path),
      stream_(io_errors_as(exit_data, [&] { return data::PredictStream(path, schema, options); })),
      block_rows_(std::clamp<Index>(2'000'000 / std::max<Index>(schema.dimension(), 1), 16, 4096)),
      file_bytes_(size_of_text(path)) {}

bool RowSource::next(data::PredictBlock& block) {
  const bool more = io_errors_as(exit_data, [&] { return stream_.next(block, block_rows_); });
  if (more) rows_ += block.rows();
  return more;
}

std::string RowSource::place(const data::PredictBlock& block, Index row) const {
  return fmt::format("{}: line {}", name_, block.lines[static_cast<std::size_t>(row)]);
}

models::Predictions RowSource::predict(const models::Predictor& predictor,
                                       const data::PredictBlock& block, models::RowSample& sample,
                                       const ProgressCallback& progress) const {
  try {
    return predictor.predict(block.inputs, sample, progress, block.noise);
  } catch (const models::PredictionOverflow& error) {
    throw DataError(fmt::format("{}: {}", place(block, error.row), error.reason));
  }
}

ProgressCallback RowSource::progress(const Console& console) const {
  return [this, show = console.progress()](const Progress& inner) {
    const double share =
        file_bytes_ > 0 ? static_cast<double>(stream_.info().bytes) / file_bytes_ : -1;
    return show(
        {inner.stage, std::min(share, 1.0), fmt::format("{} so far", plural(rows_, "row"))});
  };
}

void RowSource::report(const Console& console) const {
  if (stream_.rows_missing_target() > 0)
    console.warn(fmt::format("left out {} with a missing target",
                             plural(stream_.rows_missing_target(), "row")));
  if (!stream_.has_noise())
    console.note(
        "the noise or count column that the model was learned with is not there: sd_obs is "
        "that of a single observation with the learned noise");
  if (stream_.rows_dropped_missing() > 0)
    console.warn(fmt::format("left out {} with a missing input",
                             plural(stream_.rows_dropped_missing(), "row")));
}

}  // namespace mercer::cli
