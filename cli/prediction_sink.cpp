#include "cli/prediction_sink.hpp"

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "mercer/core/memory.hpp"

namespace mercer::cli {
namespace {

// The raw columns that the encoded inputs of a row came from.
void write_inputs(data::CsvWriter& writer, const data::Schema& schema, const Matrix& inputs,
                  Index row) {
  Index first = 0;
  for (const auto& column : schema.inputs) {
    if (!column.categorical) {
      writer.number(inputs(row, first));
    } else {
      Index level = 0;
      inputs.row(row).segment(first, column.width()).maxCoeff(&level);
      writer.text(column.levels[static_cast<std::size_t>(level)]);
    }
    first += column.width();
  }
}

Json totals_json(const PredictCommand& command, const PredictionTotals& totals,
                 const Json& columns) {
  Json json = {{"n", totals.rows}, {"model", command.model_path}, {"output", command.output}};
  if (totals.largest_bound) {
    put(json, "largest_error_bound", *totals.largest_bound);
  } else {
    json["largest_error_bound"] = nullptr;
    json["largest_error_bound_reason"] = totals.no_bound;
  }
  put_variances(json, totals.variances);
  json["clamped_variances"] = totals.clamped;
  json["matvecs"] = totals.matvecs;
  put(json, "seconds", totals.seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  json.update(columns);
  return json;
}

}  // namespace

PredictionSink::PredictionSink(const PredictCommand& command, const data::Schema& schema,
                               const std::vector<PredictionColumn>& names, bool labelled)
    : command_(command), schema_(schema), as_json_(command.run.json && command.output == "-") {
  if (as_json_) return;
  std::vector<std::string> header;
  if (command.with_inputs)
    for (const auto& column : schema.inputs) header.push_back(column.name);
  if (labelled) header.push_back("label");
  for (const auto& column : names) header.push_back(column.name);
  writer_.emplace(command.output, std::move(header));
}

void PredictionSink::add(const Matrix& inputs, const std::vector<PredictionColumn>& columns,
                         const std::vector<std::string>& labels) {
  if (as_json_) {
    for (const auto& label : labels) json_["label"].push_back(label);
    for (const auto& column : columns)
      for (const double value : column.values) json_[column.name].push_back(value);
    return;
  }
  for (Index i = 0; i < inputs.rows(); ++i) {
    if (command_.with_inputs) write_inputs(*writer_, schema_, inputs, i);
    if (!labels.empty()) writer_->text(labels[static_cast<std::size_t>(i)]);
    for (const auto& column : columns) writer_->number(column.values[i]);
    writer_->end_row();
  }
}

Json PredictionSink::close() {
  if (writer_) writer_->close();
  return std::move(json_);
}

void report(const PredictCommand& command, const PredictionTotals& totals, const Json& columns,
            const Console& console) {
  if (totals.clamped > 0)
    console.warn(
        fmt::format("{} of {} variances came out below zero by rounding and were raised to "
                    "1e-12 of the prior variance",
                    totals.clamped, totals.rows));
  if (command.run.json)
    print_json(totals_json(command, totals, columns));
  else if (command.output != "-")
    print_out(fmt::format("Predicted    {} into {} in {}{}\n{}", plural(totals.rows, "row"),
                          command.output, duration(totals.seconds),
                          totals.largest_bound
                              ? fmt::format("; every {} is within {} of the exact one", totals.of,
                                            number(*totals.largest_bound, 3))
                              : "",
                          variances_text(totals.variances)));
  else if (const auto text = variances_sentence(totals.variances); !text.empty())
    console.note("variances " + text);
}

}  // namespace mercer::cli
