#include "mercer/data/dataset.hpp"

#include <cstdlib>

#include "mercer/core/rng.hpp"
#include "mercer/data/csv_writer.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace dataset_test {

using testing::csv;
using testing::expect_contains;
using testing::failure;
using testing::load;
using testing::message_of;

Matrix matrix(std::initializer_list<std::initializer_list<double>> rows) { return Matrix(rows); }

TEST(Dataset, LastColumnIsTheTargetByDefault) {
  const auto data = load("a,b,y\n1,2,3\n4,5,7\n");
  EXPECT_EQ(data.inputs, matrix({{1, 2}, {4, 5}}));
  EXPECT_EQ(data.target, (Vector{{3, 7}}));
  EXPECT_EQ(data.schema.target, "y");
  EXPECT_EQ(data.schema.encoded_names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(data.rows_read, 2);
  EXPECT_TRUE(data.messages.empty());
}

TEST(Dataset, TargetAndInputsByNameInTheOrderAsked) {
  const auto data = load("a,b,y,t\n1,2,3,x\n4,5,7,y\n", {.target = "b", .inputs = {"y", "a"}});
  EXPECT_EQ(data.inputs, matrix({{3, 1}, {7, 4}}));
  EXPECT_EQ(data.target, (Vector{{2, 5}}));
}

TEST(Dataset, CategoriesAreSortedOneHot) {
  const auto data = load("a,c,y\n1,red,1\n2,blue,2\n3,green,3\n4,red,4\n", {.categorical = {"c"}});
  EXPECT_EQ(data.schema.encoded_names(),
            (std::vector<std::string>{"a", "c=blue", "c=green", "c=red"}));
  EXPECT_EQ(data.inputs, matrix({{1, 0, 0, 1}, {2, 1, 0, 0}, {3, 0, 1, 0}, {4, 0, 0, 1}}));
}

TEST(Dataset, TextTargetIsCodedWhenAskedFor) {
  const auto data = load("a,y\n1,yes\n2,no\n3,yes\n", {.categorical = {"y"}});
  EXPECT_EQ(data.target, (Vector{{1, 0, 1}}));
  EXPECT_EQ(data.schema.target_levels, (std::vector<std::string>{"no", "yes"}));
  expect_contains(data.messages.at(0), {"'no', 'yes'"});
  expect_contains(failure("a,y\n1,yes\n2,no\n"), {"line 2, column 'y'", "`categorical=y`"});
}

TEST(Dataset, TextFurtherDownMakesCategoriesWhereItMayComeAnywhere) {
  const DataOptions first{.text_target = true};
  const DataOptions anywhere{.text_target = true, .text_anywhere = true};
  const std::string mixed = "a,y\n1,1\n2,no\n3,1\n4,\n";
  expect_contains(failure(mixed, first), {"line 3, column 'y'", "`categorical=y`"});
  const auto text = load(mixed, anywhere);
  EXPECT_EQ(text.target, (Vector{{0, 1, 0}}));
  EXPECT_EQ(text.schema.target_levels, (std::vector<std::string>{"1", "no"}));
  EXPECT_EQ(text.rows_missing_target, 1);
  const auto numbers = load("a,y\n1,10\n2,9\n3,1e1\n", anywhere);
  EXPECT_EQ(numbers.target, (Vector{{10, 9, 10}}));
  EXPECT_TRUE(numbers.schema.target_levels.empty());
  expect_contains(failure("a,y\n1,5\n2,5.0\n", anywhere), {"same value 5"});
  expect_contains(failure("a,y\n1,5\n2,inf\n", anywhere), {"line 3", "infinite"});
  expect_contains(failure("a,y\n1,1\n2,2\n3,3\n",
                          {.text_target = true, .text_anywhere = true, .max_levels = 2}),
                  {"line 4", "more than 2", "`task=regression`"});
}

TEST(Dataset, AdviceAboutTextInTheTargetIsThatOfTheCaller) {
  const auto said = failure("a,y\n1,yes\n2,no\n", {.target_advice = "take another"});
  expect_contains(said, {"line 2, column 'y'", "not a number; take another"});
  expect_contains(failure("a,y\nu,1\nv,2\n", {.target_advice = "take another"}),
                  {"column 'a'", "`categorical=a`"});
}

TEST(Dataset, MissingTargetsAreLeftOutAndCounted) {
  const auto data = load("# c\na,y\n1,1\n2,NA\n,\n3,3\n4,\n");
  EXPECT_EQ(data.inputs, matrix({{1}, {3}}));
  EXPECT_EQ(data.rows_read, 5);
  EXPECT_EQ(data.rows_missing_target, 3);
  EXPECT_EQ(data.csv.comment_lines, 1);
  ASSERT_EQ(data.messages.size(), 2U);
  expect_contains(data.messages[0], {"1 comment line"});
  expect_contains(data.messages[1], {"3 rows with a missing target"});
}

TEST(Dataset, MissingInputsAreRefusedOrDropped) {
  const std::string text = "a,c,y\n1,u,1\n2,?,2\nnull,v,3\n4,w,4\n";
  expect_contains(failure(text, {.categorical = {"c"}}),
                  {"test.csv", "line 3, column 'c'", "missing", "`drop_missing`"});
  const auto data = load(text, {.categorical = {"c"}, .drop_missing = true});
  EXPECT_EQ(data.rows_dropped_missing, 2);
  EXPECT_EQ(data.size(), 2);
  // 'v' was seen in a dropped row only.
  EXPECT_EQ(data.schema.encoded_names(), (std::vector<std::string>{"a", "c=u", "c=w"}));
}

TEST(Dataset, ConstantColumnsAreDroppedAndNamed) {
  const auto data = load("a,k,c,y\n1,5,z,1\n2,5,z,2\n", {.categorical = {"c"}});
  EXPECT_EQ(data.inputs, matrix({{1}, {2}}));
  EXPECT_EQ(data.schema.dropped_constant, (std::vector<std::string>{"k", "c"}));
  expect_contains(data.messages.at(0), {"2 columns", "'k', 'c'"});
}

TEST(Dataset, DuplicatesAreCounted) {
  const auto data = load("a,b,y\n1,0,1\n1,-0,2\n2,0,3\n1,0,1\n2,1,3\n");
  EXPECT_EQ(data.duplicate_inputs, 2);
  expect_contains(data.messages.at(0), {"2 of 5 rows"});
}

TEST(Dataset, DuplicatesAmongManyRows) {
  Matrix x(5000, 2);  // the i-th row is there again every 1700 rows
  for (Index i = 0; i < 5000; ++i)
    x.row(i) << static_cast<double>(i % 1700), static_cast<double>(i % 17);
  EXPECT_EQ(make_dataset(x, Vector::LinSpaced(5000, 0, 1)).duplicate_inputs, 3300);
}

TEST(Dataset, WithoutHeaderOrCommaItSaysSo) {
  const auto data = load("1;2;3\n4;5;7\n");
  EXPECT_TRUE(data.schema.generated_header);
  EXPECT_EQ(data.schema.target, "y");
  ASSERT_EQ(data.messages.size(), 2U);
  expect_contains(data.messages[0], {"no header"});
  expect_contains(data.messages[1], {"';'"});
}

TEST(Dataset, UselessDataIsRefusedWithTheReason) {
  expect_contains(failure("a,y\n1,2\n"), {"test.csv", "1 row of 1", "at least 2"});
  expect_contains(failure("a,y\n1,NA\n2,NA\n3,1\n"), {"1 row of 3", "missing target: 2"});
  expect_contains(failure("a,y\n1,5\n2,5\n"), {"target 'y' has the same value 5 in all 2 rows"});
  expect_contains(failure("a,y\n1,u\n2,u\n", {.categorical = {"y"}}),
                  {"target 'y' has the same value 'u'"});
  expect_contains(failure("a,b,y\n1,2,1\n1,2,2\n"), {"same inputs", "'a', 'b'"});
  expect_contains(failure("a\n1\n2\n"),
                  {"one column only, 'a'", "semicolons, tabs or bars", "`delimiter`"});
  expect_contains(failure("a,y\n1,2\n1e301,3\n"), {"line 3, column 'a'", "too large"});
}

TEST(Dataset, TextColumnsAreRefusedWithTheWayOut) {
  expect_contains(failure("a,city,y\n1,Rome,2\n"), {"line 2, column 'city': 'Rome' is not a number",
                                                    "`categorical=city`", "`exclude=city`"});
}

TEST(Dataset, WrongOptionsAreNamed) {
  const std::string text = "age,height,y\n1,2,3\n2,3,4\n";
  expect_contains(failure(text, {.target = "z"}), {"`target`", "'z'", "'age', 'height', 'y'"});
  expect_contains(failure(text, {.inputs = {"hieght"}}), {"`inputs`", "did you mean 'height'?"});
  expect_contains(failure(text, {.categorical = {"agee"}}), {"`categorical`", "'age'"});
  expect_contains(failure<InvalidArgument>(text, {.inputs = {"age", "y"}}),
                  {"'y'", "both the target (the last column, by default) and an input"});
  expect_contains(failure<InvalidArgument>(text, {.target = "age", .inputs = {"age"}}),
                  {"'age' is both the target and"});
  expect_contains(failure<InvalidArgument>(text, {.inputs = {"age", "age"}}), {"'age' twice"});
  expect_contains(failure<InvalidArgument>(text, {.inputs = {"age"}, .categorical = {"height"}}),
                  {"'height'", "neither"});
  failure<InvalidArgument>(text, {.max_levels = 0});
}

TEST(Dataset, ColumnsLeftOutAndIds) {
  const std::string text = "no,a,b,y,note\nu,1,2,3,x\nv,2,3,4,y\n";
  const auto data = load(text, {.target = "y", .exclude = {"note"}, .id = "no"});
  EXPECT_EQ(data.schema.encoded_names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(data.schema.id_column, "no");
  expect_contains(failure(text, {.exclude = {"notte"}}), {"`exclude`", "did you mean 'note'?"});
  expect_contains(failure(text, {.id = "nno"}), {"`id`", "'nno'", "The columns are"});
  const auto contradiction = [&](const DataOptions& options) {
    return failure<InvalidArgument>(text, options);
  };
  expect_contains(contradiction({.inputs = {"a", "b"}, .exclude = {"b"}}),
                  {"`inputs` and `exclude` both name column 'b'"});
  expect_contains(contradiction({.exclude = {"note"}}),
                  {"'note' is the target (the last column, by default)", "`exclude`", "`target`"});
  expect_contains(contradiction({.target = "y", .exclude = {"no"}, .id = "no"}),
                  {"`id` and `exclude` both name column 'no'"});
  expect_contains(contradiction({.target = "y", .id = "y"}), {"'y' is the target, and `id`"});
  expect_contains(contradiction({.target = "y", .exclude = {"a"}, .categorical = {"a"}}),
                  {"'a'", "neither"});
  expect_contains(failure(text, {.target = "y", .exclude = {"no", "a", "b", "note"}}),
                  {"no column is left"});
}

TEST(Dataset, NoiseAndCountsAreReadAndAreNoInputs) {
  auto reader = csv("a,e,n,y\n1,0.5,2,3\n2,0,1,4\n3,1,7,\n");
  const auto data = read_dataset(reader, {.noise_column = "e", .count_column = "n"});
  EXPECT_EQ(data.inputs, (Matrix{{1}, {2}}));
  EXPECT_EQ(data.noise.variance, (Vector{{0.5, 0}}));
  EXPECT_EQ(data.noise.count, (Vector{{2, 1}}));
  EXPECT_EQ(data.schema.noise_column, "e");
  const Index second = 1;
  EXPECT_EQ(take_rows(data.noise, {&second, 1}).count, Vector::Ones(1));
  auto plain = csv("a,e,n,y\n1,0.5,2,3\n2,0,1,4\n3,1,7,\n");
  EXPECT_NE(read_dataset(plain, {.inputs = {"a"}}).fingerprint, data.fingerprint);
}

TEST(Dataset, NoiseAndCountsThatMakeNoSenseAreNamed) {
  const auto with = [](const char* cells) { return fmt::format("a,e,y\n1,2,3\n2,{},4\n", cells); };
  for (const char* bad : {"-1", "", "nan"}) {
    expect_contains(failure(with(bad), {.noise_column = "e"}), {"line 3, column 'e'", "noise"});
    expect_contains(failure(with(bad), {.count_column = "e"}), {"line 3, column 'e'", "count"});
  }
  expect_contains(failure(with("0"), {.count_column = "e"}), {"line 3, column 'e'", "positive"});
  expect_contains(failure(with("x"), {.noise_column = "e"}), {"line 3", "'x'", "holds numbers"});
  expect_contains(failure(with("0"), {.noise_column = "f"}), {"`noise_column`", "'f'"});
  for (const DataOptions& options :
       {DataOptions{.noise_column = "y"}, DataOptions{.inputs = {"e"}, .noise_column = "e"},
        DataOptions{.noise_column = "e", .count_column = "e"},
        DataOptions{.noise_column = "e", .categorical = {"e"}}})
    failure<InvalidArgument>(with("0"), options);
}

TEST(Dataset, TooManyLevelsAndBadBytesAreRefused) {
  std::string text = "id,y\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("u{},{}\n", i, i);
  expect_contains(failure(text, {.categorical = {"id"}, .max_levels = 10}),
                  {"line 12, column 'id'", "more than 10"});
  expect_contains(failure("c,y\n\xE9,1\nb,2\n", {.categorical = {"c"}}),
                  {"line 2, column 'c'", "UTF-8"});
}

TEST(Dataset, FingerprintKnowsTheValues) {
  const auto base = load("a,y\n1,2\n3,4\n").fingerprint;
  EXPECT_EQ(load("# other text, same values\nq;z\n1.0;2\n3;4e0").fingerprint, base);
  EXPECT_NE(load("a,y\n1,2\n3,4.000001\n").fingerprint, base);
  EXPECT_NE(load("a,y\n3,4\n1,2\n").fingerprint, base);
}

TEST(Dataset, ManyPiecesEqualTheMatrixWritten) {
  const testing::TemporaryFolder folder;
  Matrix values(30000, 7);  // more than one piece of 65536 values
  Rng(2).fill_normal(values);
  CsvWriter out(folder.file("big.csv.gz"), {"a", "b", "c", "d", "e", "f", "y"});
  out.rows(values);
  out.close();
  const auto data = read_dataset(folder.file("big.csv.gz"));
  EXPECT_TRUE(data.csv.gzip);
  EXPECT_EQ(data.inputs, values.leftCols(6));
  EXPECT_EQ(data.target, values.col(6));
  const auto same = make_dataset(values.leftCols(6), values.col(6), {"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(same.fingerprint, data.fingerprint);
  EXPECT_EQ(same.schema, data.schema);
  EXPECT_EQ(same.scaling.input_sd, data.scaling.input_sd);
}

TEST(Dataset, StandardizeChoosesTheScaling) {
  const std::string text = "a,y\n1,2\n3,6\n";
  const auto scaled = load(text).scaling;
  EXPECT_EQ(scaled.input_mean[0], 2);
  EXPECT_EQ(scaled.target_sd, 2);
  const auto plain = load(text, {.standardize = false}).scaling;
  EXPECT_EQ(plain.input_mean[0], 0);
  EXPECT_EQ(plain.target_sd, 1);
}

TEST(Dataset, MakeDatasetChecksLikeTheReader) {
  Matrix x = matrix({{1, 5, 2}, {2, 5, 3}});
  const auto data = make_dataset(x, Vector{{1, 2}});
  EXPECT_EQ(data.inputs, matrix({{1, 2}, {2, 3}}));
  EXPECT_EQ(data.schema.dropped_constant, (std::vector<std::string>{"x2"}));
  message_of<DimensionMismatch>([&] { make_dataset(x, Vector::Ones(3)); });
  message_of<DimensionMismatch>([&] { make_dataset(x, Vector{{1, 2}}, {"a"}); });
  message_of<InvalidArgument>([&] { make_dataset(x, Vector{{1, 2}}, {"a", "a", "b"}); });
  expect_contains(message_of([&] { make_dataset(x, Vector{{1, 1}}); }), {"same value 1"});
  x(0, 2) = std::nan("");
  expect_contains(message_of([&] { make_dataset(x, Vector{{1, 2}}); }), {"'x3'", "not finite"});
}

TEST(Dataset, ConcreteIfItIsThere) {
  const char* folder = std::getenv("MERCER_DATA");
  const std::string path =
      std::string(folder != nullptr ? folder : MERCER_SHARED_DATA) + "/concrete.csv.gz";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there (set MERCER_DATA to the data folder)";
  const auto data = read_dataset(path);
  EXPECT_EQ(data.size(), 1030);
  EXPECT_EQ(data.dimension(), 8);
  EXPECT_EQ(data.schema.target, "strength_mpa");
  EXPECT_EQ(data.inputs(0, 0), 540);
  EXPECT_EQ(data.target[0], 79.99);
  EXPECT_EQ(data.rows_missing_target + data.rows_dropped_missing, 0);
  EXPECT_GE(data.duplicate_inputs, 25);  // 25 rows repeat inputs and target, its README says
}

TEST(Dataset, RowsOfItAreADataSetOfTheirOwn) {
  const auto all = load("a,b,y\n1,2,3\n4,5,\n1,2,7\n1,2,9\n5,6,7\n");
  EXPECT_EQ(all.duplicate_inputs, 2);
  const std::vector<Index> rows = {3, 0};
  const auto part = take_rows(all, rows);
  EXPECT_EQ(part.inputs, matrix({{5, 6}, {1, 2}}));
  EXPECT_EQ(part.target, (Vector{{7, 3}}));
  EXPECT_EQ(part.duplicate_inputs, 0);
  EXPECT_EQ(part.scaling.target_mean, 5);
  EXPECT_EQ(part.schema, all.schema);
  EXPECT_EQ((std::vector<Index>{part.rows_read, part.rows_missing_target}),
            (std::vector<Index>{5, 1}));
  EXPECT_EQ(part.messages, std::vector<std::string>{"left out 1 row with a missing target"});
  EXPECT_NE(part.fingerprint, all.fingerprint);
  EXPECT_EQ(take_rows(all, rows, false).scaling.target_sd, 1);
  EXPECT_THROW(take_rows(all, std::vector<Index>{4}), InvalidArgument);
}

}  // namespace dataset_test
}  // namespace mercer::data
