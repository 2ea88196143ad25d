#include "cli/row_source.hpp"

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"

namespace mercer::cli {

data::Schema prediction_schema(data::Schema schema, bool gaussian) {
  if (!gaussian) schema.count_column.clear();
  return schema;
}

PredictionRows::PredictionRows(const std::string& path, const data::Schema& schema,
                               data::PredictOptions options)
    : source_(io_errors_as(exit_data, [&] { return data::CsvRows(path, schema, options); })) {}

bool PredictionRows::next(data::RowBlock& block) {
  const bool more = io_errors_as(exit_data, [&] { return source_.next(block); });
  if (more) rows_ += block.rows();
  return more;
}

data::RowBlock PredictionRows::all() {
  auto block = io_errors_as(exit_data, [&] { return source_.all(); });
  rows_ += block.rows();
  return block;
}

std::string PredictionRows::place(const data::RowBlock& block, Index row) const {
  return fmt::format("{}: line {}", source_.name(), block.lines[static_cast<std::size_t>(row)]);
}

models::Predictions PredictionRows::predict(const models::Predictor& predictor,
                                            const data::RowBlock& block, models::RowSample& sample,
                                            const ProgressCallback& progress) const {
  try {
    return predictor.predict(block.inputs, sample, progress, block.noise);
  } catch (const models::PredictionOverflow& error) {
    throw DataError(fmt::format("{}: {}", place(block, error.row), error.reason));
  }
}

ProgressCallback PredictionRows::progress(const Console& console) const {
  return [this, show = console.progress()](const Progress& inner) {
    return show({inner.stage, source_.share_read().value_or(-1),
                 fmt::format("{} so far", plural(rows_, "row"))});
  };
}

void PredictionRows::report(const Console& console) const {
  if (source_.comment_lines() > 0)
    console.note(fmt::format("skipped {} above the header of DATA",
                             plural(source_.comment_lines(), "comment line")));
  if (source_.cells_filled() > 0)
    console.note(fmt::format("filled {} as the model says (fit with --impute)",
                             plural(source_.cells_filled(), "missing cell")));
  if (source_.rows_missing_target() > 0)
    console.warn(fmt::format("left out {} with a missing target",
                             plural(source_.rows_missing_target(), "row")));
  if (!source_.has_noise())
    console.note(
        "the noise or count column that the model was learned with is not there: sd_obs is "
        "that of a single observation with the learned noise");
  if (source_.rows_dropped_missing() > 0)
    console.warn(fmt::format("left out {} with a missing input",
                             plural(source_.rows_dropped_missing(), "row")));
}

}  // namespace mercer::cli
