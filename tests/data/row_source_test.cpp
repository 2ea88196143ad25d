#include "mercer/data/row_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/data/read_ahead.hpp"
#include "mercer/data/streamed_data.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace row_source_test {

TEST(CsvRows, AllRowsStayInsideTheMemory) {
  const testing::TemporaryFolder folder;
  std::string text = "a,y\n";
  for (int i = 0; i < 200000; ++i) text += "1,2\n3,4\n";
  const auto path = folder.write("d.csv", text);
  Schema schema;
  schema.inputs = {{"a", false}};
  schema.target = "y";
  const auto rows_in = [&](std::uint64_t memory) {
    CsvRows rows(path, schema, {.csv = {.memory = memory}});
    return rows.all().rows();
  };
  EXPECT_EQ(rows_in(std::uint64_t{120} << 20), 400000);
  testing::expect_contains(
      testing::message_of<DoesNotFit>([&] { rows_in(std::uint64_t{60} << 20); }),
      {"d.csv", "already fill the memory of 60.00 MiB", "`memory`"});
}

// A table with a category, a date, a large offset, missing cells and a column of one value.
std::string survey_table(Index rows) {
  std::string text = "big,kind,day,one,y\n";
  Rng rng(3, "survey");
  for (Index i = 0; i < rows; ++i)
    text += fmt::format("{},{},20{:02}-03-0{},7,{}\n", 1e9 + rng.normal(),
                        i % 3 == 0   ? "a"
                        : i % 5 == 0 ? "c"
                                     : "b",
                        i % 50, 1 + i % 9,
                        i % 17 == 4 ? std::string() : fmt::format("{}", 1 + rng.uniform()));
  return text;
}

TEST(Survey, FindsWhatAllRowsInMemorySay) {
  const testing::TemporaryFolder folder;
  const auto path = folder.write("d.csv", survey_table(5000));
  for (const bool log : {false, true}) {
    DataOptions options;
    options.categorical = {"kind"};
    options.dates = {"day"};
    options.log_target = log;
    const auto all = read_dataset(path, options);
    const auto part = survey(path, options, {.reservoir = 100, .seed = 1});
    EXPECT_EQ(part.rows, all.size());
    EXPECT_EQ(part.sample.size(), 100);
    EXPECT_EQ(part.sample.rows_missing_target, all.rows_missing_target);
    EXPECT_EQ(part.sample.schema.encoded_names(), all.schema.encoded_names());
    EXPECT_EQ(part.sample.schema.dropped_constant, all.schema.dropped_constant);
    // Sums in another order, of squares about the mean: some units of the last digit.
    for (Index j = 0; j < all.dimension(); ++j) {
      EXPECT_NEAR(part.moments.input_mean[j], all.scaling.input_mean[j],
                  1e-14 * std::abs(all.scaling.input_mean[j]));
      EXPECT_NEAR(part.moments.input_sd[j], all.scaling.input_sd[j],
                  1e-12 * all.scaling.input_sd[j]);
      EXPECT_EQ(part.range(0, j), all.inputs.col(j).minCoeff());
      EXPECT_EQ(part.range(1, j), all.inputs.col(j).maxCoeff());
    }
    EXPECT_NEAR(part.moments.target_mean, all.scaling.target_mean, 1e-14);
    EXPECT_NEAR(part.moments.target_sd, all.scaling.target_sd, 1e-14);
    for (Index i = 0; i < part.sample.size(); ++i) {
      const Index number = part.sample.row_numbers[static_cast<std::size_t>(i)];
      const auto found = std::lower_bound(all.row_numbers.begin(), all.row_numbers.end(), number);
      ASSERT_TRUE(found != all.row_numbers.end() && *found == number);
      const Index place = found - all.row_numbers.begin();
      EXPECT_EQ(part.sample.inputs.row(i), all.inputs.row(place));
      EXPECT_EQ(part.sample.target(i), all.target(place));
    }
    const auto same = survey(path, options, {.reservoir = 200, .seed = 9});
    EXPECT_EQ(same.sample.fingerprint, part.sample.fingerprint);
    EXPECT_NE(survey(folder.write("e.csv", survey_table(4999)), options).sample.fingerprint,
              part.sample.fingerprint);
    Index rows = 0;
    ReadAhead ahead(*part.source);
    for (RowBlock block; ahead.next(block);) rows += block.rows();
    EXPECT_EQ(rows, part.rows);
  }
}

// Each of 1,000 rows is in a sample of 100 with probability 1/10: over 400 seeds the first and the
// second half of the file each have 20,000 of 40,000 places, within 5 standard deviations (100) of
// a binomial number, which is more than that of sampling without replacement: a false alarm in two
// million runs at most.
TEST(Survey, SamplesAreUniform) {
  const testing::TemporaryFolder folder;
  std::string text = "a,y\n";
  for (int i = 0; i < 1000; ++i) text += fmt::format("{},{}\n", i, i % 7);
  const auto path = folder.write("d.csv", text);
  Index first_half = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    for (const Index number : survey(path, {}, {.reservoir = 100, .seed = seed}).sample.row_numbers)
      first_half += number <= 500 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(first_half), 20000, 500);
}

TEST(Survey, RefusesWhatCannotBeReadAgainOrNeedsAllRows) {
  const testing::TemporaryFolder folder;
  const auto path = folder.write("d.csv", "a,y\n1,2\n3,\n,5\n6,7\n");
  testing::expect_contains(testing::message_of([&] { survey(path, {}); }), {"line 4", "'a'"});
  EXPECT_EQ(survey(path, {.drop_missing = true}).rows, 2);
  testing::expect_contains(
      testing::message_of<InvalidArgument>([&] { survey(path, {.impute = "median"}); }),
      {"medians"});
  const auto pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "a,y\n1,2\n3,4\n"; });
  testing::expect_contains(testing::message_of<InvalidArgument>([&] { survey(pipe, {}); }),
                           {"once only"});
  writer.join();
}

TEST(ReadAhead, PassesOnWhatTheReaderFinds) {
  const testing::TemporaryFolder folder;
  const auto path = folder.write("d.csv", "a,y\n1,2\n3,4\nx,5\n");
  Schema schema;
  schema.inputs = {{"a", false}};
  schema.target = "y";
  CsvRows rows(path, schema, {.target = TargetUse::required});
  rows.set_block_rows(1);
  ReadAhead ahead(rows);
  RowBlock block;
  EXPECT_TRUE(ahead.next(block));
  EXPECT_EQ(block.target(0), 2);
  EXPECT_TRUE(ahead.next(block));
  EXPECT_THROW(ahead.next(block), DataError);
}

TEST(CsvRows, APipeWithANameIsReadOnce) {
  const testing::TemporaryFolder folder;
  const auto path = folder.file("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "a,y\n1,2\n3,4\n"; });
  CsvRows rows(path, DataOptions{});
  EXPECT_EQ(rows.dataset().size(), 2);
  writer.join();
  testing::expect_contains(testing::message_of<InvalidArgument>([&] { rows.dataset(); }),
                           {"pipe", "second time"});
}

// 1,000 rows with a category and a missing target now and then.
std::string colour_table(Index rows) {
  std::string text = "a,colour,y\n";
  for (Index i = 0; i < rows; ++i) {
    const char* colour = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue";
    const std::string y = i % 100 == 99 ? "" : std::to_string(2 * i);
    text += std::to_string(i) + "," + colour + "," + y + "\n";
  }
  return text;
}

DataOptions with_colours() {
  DataOptions options;
  options.categorical = {"colour"};
  return options;
}

class RowSources : public ::testing::Test {
 protected:
  RowSources()
      : path_(folder_.write("rows.csv", colour_table(1000))),
        whole_(read_dataset(path_, with_colours())) {}

  void expect_whole(const RowBlock& rows) const {
    EXPECT_EQ(rows.inputs, whole_.inputs);
    EXPECT_EQ(rows.target, whole_.target);
  }

  testing::TemporaryFolder folder_;
  std::string path_;
  Dataset whole_;
};

TEST_F(RowSources, BlocksAreTheWhole) {
  for (const Index block_rows : {1, 7, 990, 5000}) {
    CsvRows source(path_, with_colours());
    source.set_block_rows(block_rows);
    EXPECT_EQ(source.schema(), whole_.schema);
    Index first = 0;
    for (RowBlock block; source.next(block); first += block.rows()) {
      ASSERT_LE(block.rows(), block_rows);
      EXPECT_EQ(block.inputs, whole_.inputs.middleRows(first, block.rows()));
      EXPECT_EQ(block.target, whole_.target.segment(first, block.rows()));
    }
    EXPECT_EQ(first, whole_.size());
    EXPECT_EQ(source.rows_missing_target(), 10);
    expect_whole(source.all());
  }
}

TEST_F(RowSources, RewoundTheyAreReadAgain) {
  CsvRows source(path_, whole_.schema, {.target = TargetUse::required});
  source.set_block_rows(13);
  RowBlock first, again, second;
  ASSERT_TRUE(source.next(first));
  ASSERT_TRUE(source.next(second));
  source.rewind();
  ASSERT_TRUE(source.next(again));
  EXPECT_EQ(again.inputs, first.inputs);
  EXPECT_EQ(again.lines, first.lines);
  EXPECT_NE(second.lines, first.lines);
  expect_whole(source.all());
  EXPECT_FALSE(source.next(again));
  EXPECT_EQ(again.rows(), 0);
}

TEST_F(RowSources, CarriedTextStaysWithItsRow) {
  PredictOptions options{.target = TargetUse::required};
  options.carry_all = true;
  CsvRows source(path_, whole_.schema, options);
  source.set_block_rows(13);
  for (const auto& rows : {source.all(), source.reservoir(50, 3)}) {
    ASSERT_EQ(rows.carried.size(), 3U);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.rows()); ++i) {
      EXPECT_EQ(rows.carried[0][i], std::to_string(rows.numbers[i] - 1));
      EXPECT_EQ(rows.carried[2][i], std::to_string(2 * (rows.numbers[i] - 1)));
      EXPECT_EQ(rows.lines[i], rows.numbers[i] + 1);
    }
  }
}

TEST_F(RowSources, MemoryIsOneBlock) {
  MemoryRows source(whole_);
  RowBlock block;
  ASSERT_TRUE(source.next(block));
  expect_whole(block);
  EXPECT_EQ(block.lines.front(), 1);
  EXPECT_FALSE(source.next(block));
  source.rewind();
  ASSERT_TRUE(source.next(block));
  expect_whole(source.all());
}

TEST_F(RowSources, ADataSetIsReadInOnePassAndMayBeReadAgain) {
  CsvRows source(path_, with_colours());
  EXPECT_EQ(source.dataset().fingerprint, whole_.fingerprint);
  EXPECT_EQ(source.schema(), whole_.schema);
  expect_whole(source.all());
  EXPECT_THROW(CsvRows(path_, whole_.schema).dataset(), InvalidArgument);
}

TEST_F(RowSources, ASampleDependsOnNeitherBlocksNorSourceButOnTheSeed) {
  MemoryRows memory(whole_);
  const auto want = memory.reservoir(50, 3);
  ASSERT_EQ(want.rows(), 50);
  for (const Index block_rows : {1, 49, 50, 51, 5000}) {
    CsvRows source(path_, whole_.schema, {.target = TargetUse::required});
    source.set_block_rows(block_rows);
    const auto got = source.reservoir(50, 3);
    EXPECT_EQ(got.inputs, want.inputs);
    EXPECT_EQ(got.target, want.target);
    EXPECT_EQ(source.reservoir(50, 3).inputs, want.inputs);  // rewinds by itself
  }
  EXPECT_NE(memory.reservoir(50, 4).inputs, want.inputs);
  // In the order of the source, no row twice.
  for (Index i = 1; i < want.rows(); ++i) EXPECT_GT(want.target(i), want.target(i - 1));
  expect_whole(memory.reservoir(5000, 3));
  EXPECT_THROW(memory.reservoir(0, 3), InvalidArgument);
}

// How often each of 20 rows is in a sample of 5: binomial with p = 1/4. The sum of the squared
// normed deviations, times (20 - 1) / 20 / (1 - 1/4), is about chi squared with 19 degrees of
// freedom; above 51 with probability 1e-4, which is the false-alarm rate over the choice of seeds.
TEST_F(RowSources, ASampleIsUniform) {
  const auto few = make_dataset(Matrix(Vector::LinSpaced(20, 0, 19)), Vector::LinSpaced(20, 0, 19));
  MemoryRows source(few);
  constexpr int kSamples = 4000;
  constexpr double kShare = 0.25;
  Vector counts = Vector::Zero(20);
  for (int seed = 0; seed < kSamples; ++seed)
    for (const double y : source.reservoir(5, static_cast<std::uint64_t>(seed)).target)
      counts(static_cast<Index>(y)) += 1;
  const double squares = (counts.array() - kSamples * kShare).square().sum() / (kSamples * kShare);
  EXPECT_LT(squares * 19.0 / 20 / (1 - kShare), 51.0) << counts.transpose();
}

// A file in the place of standard input, for as long as this lives.
class AsStandardInput {
 public:
  explicit AsStandardInput(const std::string& path) : saved_(dup(STDIN_FILENO)) {
    const int file = open(path.c_str(), O_RDONLY);
    dup2(file, STDIN_FILENO);
    close(file);
  }
  ~AsStandardInput() {
    dup2(saved_, STDIN_FILENO);
    close(saved_);
  }
  AsStandardInput(const AsStandardInput&) = delete;
  AsStandardInput& operator=(const AsStandardInput&) = delete;

 private:
  int saved_;
};

TEST_F(RowSources, StandardInputIsReadOnce) {
  {
    const AsStandardInput here(path_);
    CsvRows source("-", whole_.schema, {.target = TargetUse::required});
    source.rewind();  // nothing was read yet
    expect_whole(source.all());
    EXPECT_THROW(source.rewind(), InvalidArgument);
  }
  const AsStandardInput here(path_);
  CsvRows source("-", with_colours());
  EXPECT_THROW(source.schema(), InvalidArgument);  // not known before the end
  EXPECT_EQ(source.dataset().fingerprint, whole_.fingerprint);
  EXPECT_EQ(source.schema(), whole_.schema);
  EXPECT_THROW(source.all(), InvalidArgument);
}

}  // namespace row_source_test
}  // namespace mercer::data
