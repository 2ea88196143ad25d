#include "mercer/data/row_source.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "mercer/core/error.hpp"
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
