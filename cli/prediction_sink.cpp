#include "cli/prediction_sink.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/option_list.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

// A number that reads back as the same double, and as one that is not an integer.
std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char digits[32];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string json_text(const std::string& text) {
  return data::printable(Json(text).dump(), data::Plain::json);
}

// Names under which columns of DATA are written beside those of predictions.
std::vector<std::string> output_names(const std::vector<std::string>& carried,
                                      const std::vector<std::string>& own, const Console& console) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> out;
  for (const auto& name : carried) {
    std::string other = name;
    while (has(own, other) || has(out, other) || (other != name && has(carried, other)))
      other.insert(0, "input_");
    if (other != name)
      console.note(
          fmt::format("the column {} of DATA is written as {}: predictions have one of that name",
                      data::shown(name), data::shown(other)));
    out.push_back(std::move(other));
  }
  return out;
}

Json totals_json(const PredictCommand& command, const PredictionTotals& totals) {
  Json json = {{"n", totals.rows}, {"model", command.model_path}, {"output", command.output}};
  if (totals.largest_bound) {
    put(json, "largest_error_bound", *totals.largest_bound);
  } else {
    json["largest_error_bound"] = nullptr;
    json["largest_error_bound_reason"] = totals.no_bound;
  }
  put_variances(json, totals.variances);
  json["clamped_variances"] = totals.clamped;
  put(json, "jitter", totals.jitter);
  json["matvecs"] = totals.matvecs;
  put(json, "seconds", totals.seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  return json;
}

}  // namespace

PredictionSink::PredictionSink(const PredictCommand& command, std::vector<std::string> carried,
                               const std::vector<PredictionColumn>& names, bool labelled,
                               const Console& console)
    : numbered_(command.numbers_rows()), carried_(std::move(carried)) {
  if (numbered_) names_.emplace_back("row");
  if (labelled) names_.emplace_back("label");
  for (const auto& column : names) names_.push_back(column.name);
  if (command.run.json && command.output == "-") {
    json_ = std::make_unique<ColumnSpool>(carried_.size() + names_.size());
    return;
  }
  auto header = output_names(carried_, names_, console);
  const auto predicted = names_.begin() + (numbered_ ? 1 : 0);
  header.insert(header.begin(), names_.begin(), predicted);
  header.insert(header.end(), predicted, names_.end());
  writer_ = std::make_unique<data::CsvWriter>(command.output, std::move(header));
}

void PredictionSink::add(const data::RowBlock& rows, const std::vector<PredictionColumn>& columns,
                         const std::vector<std::string>& labels) {
  if (json_) return add_json(rows, columns, labels);
  for (Index i = 0; i < rows.rows(); ++i) {
    const auto row = static_cast<std::size_t>(i);
    if (numbered_) writer_->integer(rows.numbers[row]);
    for (const auto& column : rows.carried)
      if (column[row].empty())
        writer_->missing();
      else
        writer_->text(column[row]);
    if (!labels.empty()) writer_->text(labels[row]);
    for (const auto& column : columns) writer_->number(column.values[i]);
    writer_->end_row();
  }
}

void PredictionSink::add_json(const data::RowBlock& rows,
                              const std::vector<PredictionColumn>& columns,
                              const std::vector<std::string>& labels) {
  std::string text;
  std::size_t column = 0;
  const auto add_column = [&](const auto& value) {
    text.clear();
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows()); ++i)
      fmt::format_to(std::back_inserter(text), "{}\n{:{}}{}", any_rows_ || i > 0 ? "," : "", "",
                     column < carried_.size() ? 6 : 4, value(i));
    json_->add(column++, text);
  };
  for (std::size_t j = 0; j < carried_.size(); ++j)
    add_column([&](std::size_t i) {
      if (!data::is_utf8(rows.carried[j][i]))
        throw DataError(fmt::format(
            "line {}, column {}: {} is not UTF-8, which JSON must be; convert the file to UTF-8, "
            "or write a CSV file with `output=FILE`",
            rows.lines[i], data::shown(carried_[j]), data::shown(rows.carried[j][i])));
      return json_text(rows.carried[j][i]);
    });
  if (numbered_) add_column([&](std::size_t i) { return rows.numbers[i]; });
  if (!labels.empty()) add_column([&](std::size_t i) { return json_text(labels[i]); });
  for (const auto& predicted : columns)
    add_column([&](std::size_t i) { return json_number(predicted.values[static_cast<Index>(i)]); });
  any_rows_ = any_rows_ || rows.rows() > 0;
}

void PredictionSink::close() {
  if (writer_) writer_->close();
}

void PredictionSink::print_array(std::size_t column, const std::string& indent) {
  const auto& name = column < carried_.size() ? carried_[column] : names_[column - carried_.size()];
  print_exactly(fmt::format("{}{}: [", indent, json_text(name)));
  json_->read(column, print_exactly);
  print_exactly(any_rows_ ? indent + "]" : "]");
}

void PredictionSink::print_members() {
  if (!json_) return;
  for (std::size_t j = 0; j < names_.size(); ++j) {
    print_exactly(",");
    print_array(carried_.size() + j, "\n  ");
  }
  if (carried_.empty()) return;
  print_exactly(",\n  \"carried\": {");
  for (std::size_t j = 0; j < carried_.size(); ++j) {
    if (j > 0) print_exactly(",");
    print_array(j, "\n    ");
  }
  print_exactly("\n  }");
}

void report(const PredictCommand& command, const PredictionTotals& totals, PredictionSink& sink,
            const Console& console) {
  if (totals.clamped > 0)
    console.warn(
        fmt::format("{} of {} variances came out below zero by rounding and were raised to "
                    "1e-12 of the prior variance",
                    count(totals.clamped), count(totals.rows)));
  if (totals.jitter > 0)
    console.note(fmt::format(
        "rows that are asked for together lie so close that their prior covariance is singular: "
        "{} was added to its diagonal (on the scale of the model)",
        number(totals.jitter, 2)));
  if (command.run.json) {
    const auto object = totals_json(command, totals).dump(2);
    const auto open = std::string_view(object).substr(0, object.size() - 2);  // without its "\n}"
    print_exactly(data::printable(with_dashes(open), data::Plain::json));
    sink.print_members();
    print_exactly("\n}\n");
  } else if (command.output != "-") {
    print_out(fmt::format("Predicted    {} into {} in {}{}\n{}", plural(totals.rows, "row"),
                          command.output, duration(totals.seconds),
                          totals.largest_bound
                              ? fmt::format("; every {} is within {} of the exact one", totals.of,
                                            number(*totals.largest_bound, 3))
                              : "",
                          variances_text(totals.variances)));
  } else if (const auto text = variances_sentence(totals.variances); !text.empty()) {
    console.note("variances " + text);
  }
}

}  // namespace mercer::cli
