// A real person's table: text, dates and identifiers among the inputs, missing cells, too many
// rows.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "mercer/data/data_json.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/data/predict_stream.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace table_test {

using testing::csv;
using testing::expect_contains;
using testing::failure;
using testing::load;
using testing::message_of;

/// The same rows as a file with the schema of `data`.
RowBlock again(const std::string& text, const Dataset& data, PredictOptions options = {}) {
  const auto schema = nlohmann::json::parse(nlohmann::json(data.schema).dump()).get<Schema>();
  EXPECT_EQ(schema, data.schema);
  PredictStream stream(csv(text), schema, options);
  RowBlock block;
  EXPECT_TRUE(stream.next(block, 1000));
  return block;
}

std::string houses(int rows) {
  std::string text = "id,area,\"zone, type\",sold,note,size,price\n";
  for (int i = 0; i < rows; ++i)
    text += fmt::format("H{:03},{},{},2010-0{}-0{},some words {},\"{},5\",{}\n", i, 50 + i % 17,
                        i % 3 == 0 ? "RL" : "RM", 1 + i % 9, 1 + i % 8, i % 30, i, 100 + i);
  return text;
}

TEST(Table, TextColumnsAreNamedAllAtOnceWithTheOptions) {
  const auto message = failure(houses(40));
  expect_contains(
      message,
      {"5 columns hold text", "'id': a different text in every row such as 'H000'",
       "'zone, type': 2 different texts such as 'RL'", "'sold': dates such as '2010-01-01'",
       "'note': texts such as 'some words 0' that mostly differ",
       "'size': numbers with a decimal comma such as '0,5'",
       "`categorical=\"zone, type\"` `dates=sold` `id=id` `exclude=note`, and write decimal "
       "points"});
  const auto data = load(
      houses(40),
      {.exclude = {"note", "size"}, .id = "id", .dates = {"sold"}, .categorical = {"zone, type"}});
  EXPECT_EQ(data.schema.encoded_names(),
            (std::vector<std::string>{"area", "zone, type=RL", "zone, type=RM", "sold"}));
  EXPECT_EQ(data.schema.id_column, "id");
  EXPECT_EQ(data.inputs(0, 3), 14610);  // 2010-01-01
  EXPECT_EQ(again(houses(40), data).inputs, data.inputs);
}

TEST(Table, OneTextColumnIsNamedWithLineAndRemedy) {
  expect_contains(failure("a,c,y\n1,u,2\n2,v,3\n3,u,4\n"),
                  {"line 2, column 'c': 'u' is not a number", "2 different texts",
                   "add `categorical=c`", "`exclude=c`"});
  std::string text = "a,b,y\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("{},{},{}\n", i, i == 20 ? "12.5x" : "1.5", i);
  const auto slip = failure(text);
  expect_contains(slip, {"line 22, column 'b': '12.5x' is not a number", "29 numbers and 1 text",
                         "mend it in the file", "`exclude=b`"});
  EXPECT_EQ(slip.find("categorical"), std::string::npos) << slip;
  expect_contains(failure("a,b,y\n1,05/06/2010,1\n2,06/06/2010,2\n"),
                  {"day or the month", "2010-05-31", "mend it"});
  // An identifier beside one that is named already.
  expect_contains(
      failure(houses(40), {.id = "id", .dates = {"sold"}, .categorical = {"zone, type"}}),
      {"2 columns", "`exclude=note`", "decimal points"});
}

TEST(Table, MissingCellsAreCountedBesideText) {
  expect_contains(failure("a,c,y\n1,u,2\n,v,3\n3,,4\n"),
                  {"for 2 missing cells in 2 columns", "`impute=median`", "`drop_missing`"});
  expect_contains(failure("a,y\n1,2\n,3\n"),
                  {"line 3, column 'a': the value is missing", "`impute=median`", "`impute=level`",
                   "`drop_missing`", "`exclude`"});
}

TEST(Table, TextOfTheTargetKeepsItsOwnAdvice) {
  expect_contains(failure("a,y\n1,u\n2,v\n", {.target_advice = "take another"}),
                  {"column 'y'", "take another"});
}

TEST(Table, DatesAreReadTheSameInPrediction) {
  const std::string text = "d,y\n1970-01-02,1\n1970/01/03 12:00,2\n1970-01-05T00:00Z,3\n";
  const auto data = load(text, {.dates = {"d"}});
  EXPECT_EQ(data.inputs, (Matrix{{1}, {2.5}, {4}}));
  EXPECT_EQ(again("d\n1970-01-11\n", data).inputs, Matrix::Constant(1, 1, 10));
  expect_contains(message_of([&] { again("d\n11.01.1970\n", data); }),
                  {"line 2, column 'd'", "year first"});
  expect_contains(failure("d,y\n1970-01-02,1\n1970-02-30,2\n", {.dates = {"d"}}),
                  {"line 3, column 'd'", "'1970-02-30' is not a date"});
  expect_contains(failure("d,y\n1970-01-02,1\n5,2\n", {.dates = {"d"}}), {"'5' is not a date"});
  failure<InvalidArgument>(text, {.dates = {"y"}});
  failure<InvalidArgument>(text, {.dates = {"d"}, .categorical = {"d"}});
  expect_contains(failure(text, {.dates = {"dd"}}), {"`dates`", "'dd'"});
}

const char* const gaps =
    "a,c,d,y\n1,u,1970-01-01,1\nNA,v,1970-01-03,2\n5,,1970-01-03,3\n2,v,None,4\n9,u,1970-01-09,\n";

TEST(Table, ImputeMedianFillsNumbersDatesAndTexts) {
  const auto data = load(gaps, {.dates = {"d"}, .categorical = {"c"}, .impute = "median"});
  // Medians of 1, 5, 2 and of days 0, 2, 2; v is the most frequent text. The row without a target
  // has no part.
  EXPECT_EQ(data.inputs, (Matrix{{1, 1, 0, 0}, {2, 0, 1, 2}, {5, 0, 1, 2}, {2, 0, 1, 2}}));
  EXPECT_EQ(data.cells_filled, 3);
  EXPECT_EQ(data.rows_missing_target, 1);
  expect_contains(data.messages.at(1),
                  {"filled 3 missing cells", "'a' with 2 (1 cell)", "'c' with 'v'"});
  const auto block = again("d,c,a\n,,\n", data);
  EXPECT_EQ(block.inputs, (Matrix{{2, 0, 1, 2}}));
}

TEST(Table, ImputeLevelSaysWhereCellsWereMissing) {
  const auto data = load(gaps, {.dates = {"d"}, .categorical = {"c"}, .impute = "level"});
  EXPECT_EQ(
      data.schema.encoded_names(),
      (std::vector<std::string>{"a", "a=missing", "c=missing", "c=u", "c=v", "d", "d=missing"}));
  EXPECT_EQ(data.inputs, (Matrix{{1, 0, 0, 1, 0, 0, 0},
                                 {2, 1, 0, 0, 1, 2, 0},
                                 {5, 0, 1, 0, 0, 2, 0},
                                 {2, 0, 0, 0, 1, 2, 1}}));
  const auto block = again("d,c,a\n,,\n1970-01-02,u,7\n", data);
  EXPECT_EQ(block.inputs, (Matrix{{2, 1, 1, 0, 0, 2, 1}, {7, 0, 0, 1, 0, 1, 0}}));
  // Columns without a gap when the model was fitted know the median and the most frequent level.
  const auto whole =
      load("a,c,y\n1,u,1\n3,v,2\n4,v,3\n", {.categorical = {"c"}, .impute = "level"});
  EXPECT_EQ(whole.dimension(), 3);
  EXPECT_EQ(again("a,c\n,\n", whole).inputs, (Matrix{{3, 0, 1}}));
}

TEST(Table, ImputeAndItsLimits) {
  expect_contains(failure<InvalidArgument>(gaps, {.drop_missing = true, .impute = "median"}),
                  {"`impute`", "`drop_missing`"});
  expect_contains(failure<InvalidArgument>(gaps, {.impute = "mean"}), {"`impute`", "median"});
  // Nothing to take a median of: the column says nothing and is left out.
  const auto empty = load("a,b,y\n1,,1\n2,NA,2\n", {.impute = "median"});
  EXPECT_EQ(empty.schema.dropped_constant, std::vector<std::string>{"b"});
  EXPECT_EQ(empty.cells_filled, 0);
  // One value, and where it is missing: with `level` that is an input.
  EXPECT_EQ(load("a,b,y\n1,7,1\n2,,2\n", {.impute = "median"}).dimension(), 1);
  EXPECT_EQ(load("a,b,y\n1,7,1\n2,,2\n", {.impute = "level"}).dimension(), 3);
  const auto data = load(gaps, {.dates = {"d"}, .categorical = {"c"}, .impute = "median"});
  PredictStream dropping(csv("d,c,a\n,,\n1970-01-01,u,1\n"), data.schema, {.drop_missing = true});
  RowBlock block;
  ASSERT_TRUE(dropping.next(block, 10));
  EXPECT_EQ(block.rows(), 1);
  EXPECT_EQ(dropping.rows_dropped_missing(), 1);
  EXPECT_EQ(dropping.cells_filled(), 0);
}

TEST(Table, ALevelThatReadsLikeMissingStaysALevel) {
  Schema schema;  // of a model file written before None was missing
  schema.inputs = {{"c", true, {"None", "x"}}};
  schema.target = "y";
  PredictStream stream(csv("c\nNone\nx\n"), schema);
  RowBlock block;
  ASSERT_TRUE(stream.next(block, 10));
  EXPECT_EQ(block.inputs, (Matrix{{1, 0}, {0, 1}}));
}

TEST(Table, AColumnThatCountsTheRowsIsNoted) {
  const auto numbered = [](const char* name, int rows, int step) {
    std::string text = fmt::format("{},a,y\n", name);
    for (int i = 0; i < rows; ++i) text += fmt::format("{},{},{}\n", 1 + step * i, i % 7, i % 5);
    return load(text).row_counters;
  };
  EXPECT_EQ(numbered("Id", 20, 1), std::vector<std::string>{"Id"});
  EXPECT_TRUE(numbered("t", 20, 1).empty());
  EXPECT_TRUE(numbered("id", 20, 2).empty());
  EXPECT_TRUE(numbered("id", 5, 1).empty());
}

TEST(Table, RowsThatOutgrowTheMemoryAreRefusedWhileReading) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 300000; ++i) text += fmt::format("{},{},{}\n", i, i % 7, i % 5);
  const std::uint64_t program = std::uint64_t{40} << 20;
  // 8 (2 inputs + target + 7) bytes a row.
  expect_contains(failure<DoesNotFit>(text, {.memory = program + 80 * 250000}),
                  {"rows with 2 inputs", "about 250000 such rows fit", "`memory`", "`exclude`"});
  EXPECT_EQ(load(text, {.memory = program + 80 * 300000}).size(), 300000);
  std::string levels = "c,y\n";
  for (int i = 0; i < 100; ++i) levels += fmt::format("{}{},{}\n", std::string(100000, 'q'), i, i);
  failure<DoesNotFit>(levels, {.categorical = {"c"}, .memory = program + 1000000});
}

TEST(Table, TheDelimiterIsAnOption) {
  const testing::TemporaryFolder folder;
  const auto path = folder.write("d.csv", "a:b,c:y\n1:2:3\n4:5:7\n");
  const auto data = read_dataset(path, {.delimiter = ":"});
  EXPECT_EQ(data.schema.encoded_names(), (std::vector<std::string>{"a", "b,c"}));
  EXPECT_THROW(read_dataset(path, {.delimiter = "colon"}), InvalidArgument);
}

}  // namespace table_test
}  // namespace mercer::data
