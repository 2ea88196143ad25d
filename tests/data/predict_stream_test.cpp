#include "mercer/data/predict_stream.hpp"

#include "mercer/data/dataset.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace predict_stream_test {

using testing::csv;
using testing::expect_contains;
using testing::message_of;

const std::string training = "a,c,k,y\n1,red,5,10\n2,blue,5,20\n3,red,5,30\n";

Schema schema_of(const std::string& text, const DataOptions& options = {.categorical = {"c"}}) {
  auto reader = csv(text);
  return read_dataset(reader, options).schema;
}

struct Rows {
  Matrix inputs;
  std::vector<double> target;
  std::vector<Index> lines;
  Index missing_target = 0;
  Index dropped = 0;
};

Rows read_all(const std::string& text, const Schema& schema, PredictOptions options = {},
              Index max_rows = 2) {
  PredictStream stream(csv(text), schema, options);
  Rows all;
  all.inputs.resize(0, schema.dimension());
  RowBlock block;
  while (stream.next(block, max_rows)) {
    EXPECT_GT(block.rows(), 0);
    EXPECT_EQ(block.target.size(), stream.has_target() ? block.rows() : 0);
    Matrix grown(all.inputs.rows() + block.rows(), all.inputs.cols());
    grown << all.inputs, block.inputs;
    all.inputs = grown;
    all.target.insert(all.target.end(), block.target.begin(), block.target.end());
    all.lines.insert(all.lines.end(), block.lines.begin(), block.lines.end());
  }
  EXPECT_EQ(block.rows(), 0);
  all.missing_target = stream.rows_missing_target();
  all.dropped = stream.rows_dropped_missing();
  return all;
}

TEST(PredictStream, FindsColumnsByNameInAnyOrder) {
  const auto schema = schema_of(training);
  const auto rows = read_all("note,c,a\nx,blue,7\ny,red,8\nz,red,9\n", schema);
  EXPECT_EQ(rows.inputs, (Matrix{{7, 1, 0}, {8, 0, 1}, {9, 0, 1}}));
  EXPECT_EQ(rows.lines, (std::vector<Index>{2, 3, 4}));
  EXPECT_TRUE(rows.target.empty());
}

TEST(PredictStream, ReadsNoiseWhereItIsThere) {
  const std::string text = "a,e,n,y\n1,0.5,2,10\n2,0.1,3,20\n";
  const auto schema = schema_of(text, {.noise_column = "e", .count_column = "n"});
  PredictStream with(csv(text), schema);
  RowBlock block;
  ASSERT_TRUE(with.next(block, 5));
  EXPECT_TRUE(with.has_noise());
  EXPECT_EQ(block.noise.variance, (Vector{{0.5, 0.1}}));
  EXPECT_EQ(block.noise.count, (Vector{{2, 3}}));
  PredictStream without(csv("a,n\n1,4\n"), schema);
  ASSERT_TRUE(without.next(block, 5));
  EXPECT_FALSE(without.has_noise());
  EXPECT_EQ(block.noise.variance.size(), 0);
  EXPECT_EQ(block.noise.count, Vector::Constant(1, 4));
  PredictStream bad(csv("a,e\n1,-4\n"), schema);
  expect_contains(message_of<DataError>([&] { bad.next(block, 5); }), {"line 2, column 'e'"});
}

TEST(PredictStream, CarriesColumnsAsTheyStandInTheFile) {
  const auto schema = schema_of(training);
  const std::string text =
      "k,a,c,id\n\"a, \"\"b\"\"\", 1.50 ,red,007\nNA,,blue,\n\nN/A,2e0,red,\" x \"\n";
  PredictStream stream(csv(text), schema,
                       {.drop_missing = true, .carry = {"id", "a"}, .carry_all = true});
  EXPECT_EQ(stream.carried_names(), (std::vector<std::string>{"id", "a", "k", "c"}));
  RowBlock block;
  std::vector<std::vector<std::string>> rows;
  std::vector<Index> numbers;
  while (stream.next(block, 1))
    for (Index i = 0; i < block.rows(); ++i) {
      const auto row = static_cast<std::size_t>(i);
      numbers.push_back(block.numbers[row]);
      rows.emplace_back();
      for (const auto& column : block.carried) rows.back().push_back(column[row]);
    }
  // A row that is left out still counts, a blank line does not.
  EXPECT_EQ(numbers, (std::vector<Index>{1, 3}));
  EXPECT_EQ(rows, (std::vector<std::vector<std::string>>{{"007", "1.50", "a, \"b\"", "red"},
                                                         {" x ", "2e0", "N/A", "red"}}));
  expect_contains(message_of([&] { PredictStream(csv(text), schema, {.carry = {"Id"}}); }),
                  {"no column 'Id'", "did you mean 'id'?"});
  EXPECT_THROW(PredictStream(csv(text), schema, {.carry = {"id", "id"}}), InvalidArgument);
}

TEST(PredictStream, LongTextsMakeShortBlocks) {
  const auto schema = schema_of(training);
  std::string text = "a,c,id\n";
  for (int i = 0; i < 40; ++i) text += "1,red," + std::string(1 << 20, 'x') + "\n";
  PredictStream stream(csv(text), schema, {.carry = {"id"}});
  Index rows = 0, blocks = 0;
  for (RowBlock block; stream.next(block, 4096); ++blocks) {
    EXPECT_LE(block.rows(), 17);  // 16 MiB, and the row that exceeds them
    rows += block.rows();
  }
  EXPECT_EQ(rows, 40);
  EXPECT_EQ(blocks, 3);
}

TEST(PredictStream, ReadsTheTrainingFileAsItWasLearnt) {
  auto reader = csv(training);
  const auto data = read_dataset(reader, {.categorical = {"c"}});
  for (Index block = 1; block <= 4; ++block) {
    const auto rows = read_all(training, data.schema, {.target = TargetUse::required}, block);
    EXPECT_EQ(rows.inputs, data.inputs);
    EXPECT_EQ(rows.target, (std::vector<double>{10, 20, 30}));
  }
}

TEST(PredictStream, TheTargetIsReadOnlyWhenWanted) {
  const auto schema = schema_of(training);
  EXPECT_EQ(read_all("a,c,y\n1,red,oops\n", schema).inputs.rows(), 1);
  EXPECT_FALSE(
      PredictStream(csv("a,c\n1,red\n"), schema, {.target = TargetUse::if_present}).has_target());
  EXPECT_TRUE(PredictStream(csv(training), schema, {.target = TargetUse::if_present}).has_target());
  expect_contains(message_of([&] {
                    PredictStream(csv("a,c\n1,red\n"), schema, {.target = TargetUse::required});
                  }),
                  {"test.csv", "no column 'y'"});
  const auto rows =
      read_all("a,c,y\n1,red,NA\n2,red,\n3,red,5\n4,,\n", schema, {.target = TargetUse::required});
  EXPECT_EQ(rows.missing_target, 3);
  EXPECT_EQ(rows.lines, (std::vector<Index>{4}));
}

TEST(PredictStream, CodedTargets) {
  const auto schema = schema_of("a,y\n1,yes\n2,no\n", {.categorical = {"y"}});
  EXPECT_EQ(read_all("y,a\nno,1\nyes,2\n", schema, {.target = TargetUse::required}).target,
            (std::vector<double>{0, 1}));
  expect_contains(
      message_of([&] { read_all("y,a\nmaybe,1\n", schema, {.target = TargetUse::required}); }),
      {"line 2, column 'y'", "'maybe'", "'no', 'yes'"});
}

TEST(PredictStream, ErrorsNameLineColumnAndWhatIsKnown) {
  const auto schema = schema_of(training);
  const auto failure = [&](const std::string& text) {
    return message_of([&] { read_all(text, schema); });
  };
  expect_contains(failure("a,c\n1,red\n2,red\n3,pink\n"),
                  {"test.csv", "line 4, column 'c'", "'pink'", "'blue', 'red'"});
  expect_contains(failure("A,c\n1,red\n"), {"no column 'a'", "did you mean 'A'?"});
  expect_contains(failure("1,2\n3,4\n"), {"no header", "no column 'a'"});
  expect_contains(failure("a,c\n1,red\n,red\n"),
                  {"line 3, column 'a'", "missing", "`drop_missing`"});
  expect_contains(failure("a,c\n1,red\n2,NA\n"), {"line 3, column 'c'", "missing"});
  expect_contains(failure("a,c\nx,red\n"),
                  {"line 2, column 'a': 'x' is not a number", "fitted with numbers"});
  expect_contains(failure("a,c\n1e305,red\n"), {"line 2, column 'a'", "too large"});
  expect_contains(failure("a,c\n"), {"no row"});
}

TEST(PredictStream, DropsMissingRowsAndKeepsTheLines) {
  const auto rows = read_all("a,c\n,red\n,\n2,red\n3,NA\n,blue\n,blue\n4,blue\n",
                             schema_of(training), {.drop_missing = true});
  EXPECT_EQ(rows.lines, (std::vector<Index>{4, 8}));
  EXPECT_EQ(rows.dropped, 5);
}

TEST(PredictStream, FilesWithoutHeaderGoByPlace) {
  const auto schema = schema_of("1,2,3\n4,5,7\n", {});
  EXPECT_EQ(read_all("8,9\n6,7\n", schema).inputs,
            (Matrix{{8, 9}, {6, 7}}));  // the target is not there
  EXPECT_EQ(read_all("8,9,1\n", schema, {.target = TargetUse::required}).target,
            (std::vector<double>{1}));
  EXPECT_FALSE(PredictStream(csv("8,9\n"), schema, {.target = TargetUse::if_present}).has_target());
}

TEST(PredictStream, TenThousandColumns) {
  std::string header;
  std::string row;
  for (int j = 0; j < 10000; ++j) {
    header += fmt::format("c{},", j);
    row += fmt::format("{},", j);
  }
  std::string other = row;
  other[0] = '9';
  auto reader = csv(header + "y\n" + row + "1\n" + other + "2\n");
  auto data = read_dataset(reader);
  EXPECT_EQ(data.dimension(), 1);  // the others are constant
  EXPECT_EQ(data.schema.dropped_constant.size(), 9999U);
  for (int j = 1; j < 10000; ++j) data.schema.inputs.push_back({fmt::format("c{}", j), false, {}});
  const auto rows = read_all(header + "y\n" + row + "1\n", data.schema);
  for (Index j = 0; j < 10000; ++j) ASSERT_EQ(rows.inputs(0, j), static_cast<double>(j));
}

}  // namespace predict_stream_test
}  // namespace mercer::data
