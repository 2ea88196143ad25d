// What the input columns of a table look like where some hold text: categories, dates, identifiers
// or numbers with a slip of the pen. A single message names them all and ends with the options to
// give, so that a table of many such columns is refused once and not once for each.
//   Cost: one pass over the rest of the file, at most `survey_rows` of it; some counts and a set of
//   hashes for each column.
#include <fmt/format.h>

#include <functional>
#include <unordered_set>

#include "mercer/core/error.hpp"
#include "mercer/data/column_choice.hpp"
#include "mercer/data/text.hpp"

namespace mercer::data {
namespace {

// An endless input is refused, too.
constexpr Index survey_rows = 200'000;
// Different texts that are told apart.
constexpr std::size_t most_texts = 20'000;
// From how many rows on texts that all differ are taken for names of the rows.
constexpr Index least_ids = 10;

enum class Look {
  numbers,
  dates,
  unclear_dates,
  decimal_commas,
  slips,
  slips_of_dates,
  ids,
  free_text,
  categories
};

struct Seen {
  Index numbers = 0, texts = 0, missing = 0;
  Index dates = 0, unclear_dates = 0, decimal_commas = 0;
  std::unordered_set<std::size_t> different;
  bool all_different = true;
  std::string example;
  Index line = 0;  // of the example
  std::string no_date;
  Index no_date_line = 0;

  void add(const std::string& text, Index at_line) {
    if (text.empty()) {
      ++missing;
      return;
    }
    double value = 0;
    if (classify(text, value) != Cell::text) {
      ++numbers;
      return;
    }
    if (texts == 0) {
      example = text.substr(0, 200);
      line = at_line;
    }
    ++texts;
    if (parse_date(text)) {
      ++dates;
    } else if (no_date.empty()) {
      no_date = text.substr(0, 200);
      no_date_line = at_line;
    }
    if (is_ambiguous_date(text)) ++unclear_dates;
    if (is_decimal_comma(text)) ++decimal_commas;
    if (different.size() >= most_texts) return;
    all_different = different.insert(std::hash<std::string>()(text)).second && all_different;
  }

  Look look(Index max_levels) const {
    const auto count = static_cast<Index>(different.size());
    if (texts == 0) return Look::numbers;
    if (decimal_commas == texts) return Look::decimal_commas;
    if (numbers > texts) return Look::slips;
    if (dates == texts && numbers == 0) return Look::dates;
    if (dates > 0 && 2 * (texts - dates + numbers) < dates) return Look::slips_of_dates;
    if (unclear_dates == texts) return Look::unclear_dates;
    if (texts >= least_ids && all_different && numbers == 0) return Look::ids;
    if (count > max_levels || (texts >= 2 * least_ids && 2 * count > texts)) return Look::free_text;
    return Look::categories;
  }

  std::string described(Look look) const {
    const auto such = fmt::format(" such as {}", shown(example));
    switch (look) {
      case Look::dates:
        return "dates" + such;
      case Look::unclear_dates:
        return fmt::format(
            "dates{}, of which it is not known whether the day or the month comes "
            "first (write 2010-05-31 and give `dates`)",
            such);
      case Look::decimal_commas:
        return fmt::format("numbers with a decimal comma{} (numbers need a decimal point)", such);
      case Look::slips:
        return fmt::format("{} and {}{} in line {}", plural(numbers, "number"),
                           plural(texts, "text"), such, line);
      case Look::slips_of_dates:
        return fmt::format("{} and {}, such as {} in line {}", plural(dates, "date"),
                           plural(texts - dates + numbers, "other cell"), shown(no_date),
                           no_date_line);
      case Look::ids:
        return fmt::format("a different text in every row{}, which looks like an identifier", such);
      case Look::free_text:
        return fmt::format("texts{} that mostly differ from row to row", such);
      default:
        return fmt::format("{}{}{}", plural(static_cast<Index>(different.size()), "different text"),
                           such,
                           numbers > 0 ? fmt::format(" and {}", plural(numbers, "number")) : "");
    }
  }
};

/// The options that make the columns readable, `categorical=a,b` `dates=c`; columns that no option
/// helps are left out.
class Remedy {
 public:
  explicit Remedy(const DataOptions& options)
      : named_(!options.inputs.empty()), id_taken_(options.id.has_value()) {}

  void add(const std::string& name, Look look) {
    if (look == Look::ids && !id_taken_) {
      id_ = name;
      id_taken_ = true;
    } else if (look == Look::dates) {
      dates_.push_back(name);
    } else if (look == Look::categories) {
      categories_.push_back(name);
    } else if (look == Look::decimal_commas) {
      commas_ = true;
    } else {
      left_out_.push_back(name);
    }
  }
  bool options_help() const { return left_out_.empty() && !commas_; }
  std::string text() const {
    std::string out;
    const auto put = [&](const char* option, const std::string& value) {
      if (!value.empty()) out += fmt::format("{}`{}={}`", out.empty() ? "" : " ", option, value);
    };
    put("categorical", joined_names(categories_));
    put("dates", joined_names(dates_));
    put("id", id_);
    if (!named_) put("exclude", joined_names(left_out_));
    if (named_ && !left_out_.empty())
      out +=
          fmt::format("{}take {} out of `inputs`", out.empty() ? "" : ", ", shown_list(left_out_));
    else if (!out.empty())
      out = "add " + out;
    if (commas_)
      out += fmt::format(
          "{}write decimal points for commas in the file (in the target too, if it has them)",
          out.empty() ? "" : ", and ");
    return out;
  }

 private:
  bool named_;  // the inputs are named one by one
  bool id_taken_, commas_ = false;
  std::vector<std::string> categories_, dates_, left_out_;
  std::string id_;
};

std::vector<Seen> survey(CsvReader& reader, const std::vector<const Column*>& inputs,
                         bool& complete) {
  CsvSelection selection;
  for (const Column* column : inputs) selection.text.push_back(column->place);
  reader.select(selection);
  const Index before = reader.info().rows;
  std::vector<Seen> seen(inputs.size());
  for (std::size_t j = 0; j < inputs.size(); ++j)
    if (!inputs[j]->as_text()) seen[j].numbers = before;
  CsvBlock block;
  complete = false;
  while (reader.info().rows - before < survey_rows) {
    if (!reader.next(block, 1000)) {
      complete = true;
      break;
    }
    for (std::size_t j = 0; j < inputs.size(); ++j)
      for (std::size_t row = 0; row < block.lines.size(); ++row)
        seen[j].add(block.text[j][row], block.lines[row]);
  }
  return seen;
}

}  // namespace

void refuse_text(CsvReader& reader, const std::vector<Column>& columns, const DataOptions& options,
                 const TextInNumbers& found) {
  std::vector<const Column*> inputs;
  for (const auto& column : columns)
    if (column.role == ColumnRole::input) inputs.push_back(&column);
  bool complete = true;
  const auto seen = survey(reader, inputs, complete);
  Remedy remedy(options);
  std::string list;
  Index texts = 0, missing = 0, missing_columns = 0;
  const Seen* only = nullptr;
  for (std::size_t j = 0; j < inputs.size(); ++j) {
    missing += seen[j].missing;
    missing_columns += seen[j].missing > 0 ? 1 : 0;
    const Look look = inputs[j]->as_text() ? Look::numbers : seen[j].look(options.max_levels);
    if (look == Look::numbers) continue;
    ++texts;
    only = &seen[j];
    remedy.add(inputs[j]->name, look);
    const bool comment =
        inputs[j]->place == 0 && seen[j].numbers > 0 && seen[j].example.starts_with('#');
    list += fmt::format("{}{}: {}{}", list.empty() ? "" : "; ", shown(inputs[j]->name),
                        seen[j].described(look),
                        comment ? " (a comment may stand only above the header)" : "");
  }
  if (only == nullptr) throw TextInNumbers(found);
  std::string fill;
  if (missing > 0 && !options.impute && !options.drop_missing)
    fill = fmt::format(", and for {} in {} `impute=median`, `impute=level` or `drop_missing`",
                       plural(missing, "missing cell"), plural(missing_columns, "column"));
  const std::string part = complete ? "" : fmt::format(" (of the first {} rows)", survey_rows);
  if (texts == 1) {
    const auto& column = reader.header()[static_cast<std::size_t>(found.column)];
    const auto leave_out =
        options.inputs.empty()
            ? fmt::format("leave the column out with `exclude={}`", joined_names({column}))
            : fmt::format("take it out of `inputs`");
    const bool helps = remedy.options_help();
    throw DataError(fmt::format("{}: {} is not a number; the column holds{} {}; {}, or {}{}",
                                reader.place(only->line, column), shown(only->example), part,
                                list.substr(shown(column).size() + 2),
                                helps ? remedy.text() : "mend it in the file", leave_out, fill));
  }
  throw DataError(
      fmt::format("{}: {} columns{} hold text that no number can be read from: {}. To go on, {}{}",
                  reader.name(), texts, part, list, remedy.text(), fill));
}

}  // namespace mercer::data
