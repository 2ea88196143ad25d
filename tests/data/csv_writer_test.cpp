#include "mercer/data/csv_writer.hpp"

#include <rapidcheck.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/interrupt.hpp"
#include "mercer/data/csv_reader.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace csv_writer_test {

using testing::expect_contains;
using testing::message_of;

// RapidCheck draws the same cases every time, unless RC_PARAMS says otherwise.
const int seeded = setenv("RC_PARAMS", "seed=1", 0);

TEST(CsvWriter, WritesCellsAndQuotesWhereNeeded) {
  const testing::TemporaryFolder folder;
  const auto path = folder.file("out.csv");
  CsvWriter out(path, {"mean", "a,b", "say \"x\""});
  out.number(0.1).text("#1").integer(-3).end_row();
  out.number(1e300).text("two\nlines").missing().end_row();
  EXPECT_FALSE(std::filesystem::exists(path)) << "not there before close()";
  out.close();
  out.close();
  EXPECT_EQ(testing::content_of(path),
            "mean,\"a,b\",\"say \"\"x\"\"\"\n0.1,\"#1\",-3\n1e+300,\"two\nlines\",\n");
  EXPECT_EQ(folder.count(), 1U);
}

TEST(CsvWriter, ACommentIsALineBeforeTheHeaderThatReadersSkip) {
  const testing::TemporaryFolder folder;
  const auto path = folder.file("out.csv");
  CsvWriter out(path, {"a", "b"}, "m = 60, \"quoted\"");
  out.number(1).number(2).end_row();
  out.close();
  EXPECT_EQ(testing::content_of(path), "# m = 60, \"quoted\"\na,b\n1,2\n");
  CsvReader reader(path);
  EXPECT_EQ(reader.header(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader.info().comment_lines, 1);
  EXPECT_THROW(CsvWriter(path, {"a"}, "two\nlines"), InvalidArgument);
}

TEST(CsvWriter, WithoutCloseNothingIsLeft) {
  const testing::TemporaryFolder folder;
  folder.write("old.csv", "old");
  { CsvWriter(folder.file("old.csv"), {"a"}).number(1).end_row(); }
  EXPECT_EQ(testing::content_of(folder.file("old.csv")), "old");
  EXPECT_EQ(folder.count(), 1U);
}

TEST(CsvWriter, RefusesWhatIsNotANumberAndRowsOfTheWrongSize) {
  const testing::TemporaryFolder folder;
  CsvWriter out(folder.file("out.csv"), {"a", "sd"});
  out.row(std::vector<double>{1, 2});
  out.number(1);
  expect_contains(message_of<Error>([&] { out.number(std::nan("")); }),
                  {"row 2", "column 'sd'", "nan"});
  CsvWriter two(folder.file("two.csv"), {"a", "b"});
  expect_contains(message_of<Error>([&] { two.number(std::numeric_limits<double>::infinity()); }),
                  {"row 1", "column 'a'", "inf"});
  CsvWriter three(folder.file("three.csv"), {"a", "b"});
  expect_contains(message_of<Error>([&] { three.number(1).end_row(); }),
                  {"row 1 has 1 cells", "2"});
  expect_contains(message_of<Error>([&] { three.number(1).number(1); }),
                  {"more cells than the 2 columns"});
  CsvWriter four(folder.file("four.csv"), {"a", "b"});
  four.number(1);
  expect_contains(message_of<Error>([&] { four.close(); }), {"row 1 is not finished"});
}

TEST(CsvWriter, FullDiskUnwritableFolderAndClosedPipe) {
  if (std::filesystem::exists("/dev/full")) {
    CsvWriter out("/dev/full", {"a"});
    expect_contains(message_of<IoError>([&] {
                      out.number(1).end_row();
                      out.close();
                    }),
                    {"/dev/full", "No space left"});
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full")) << "a device is never replaced";
  }
  const testing::TemporaryFolder folder;
  message_of<IoError>([&] { CsvWriter(folder.file("no/such/out.csv"), {"a"}); });
  message_of<IoError>([&] { CsvWriter(folder.file(""), {"a"}); });

  const auto before = signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto path = "/dev/fd/" + std::to_string(ends[1]);
  CsvWriter out(path, {"a"});
  close(ends[0]);
  expect_contains(message_of<IoError>([&] {
                    out.number(1).end_row();
                    out.close();
                  }),
                  {"has closed it"});
  close(ends[1]);
  signal(SIGPIPE, before);
}

TEST(CsvWriter, GzByName) {
  const testing::TemporaryFolder folder;
  const auto path = folder.file("out.csv.gz");
  CsvWriter out(path, {"a", "b"});
  const Matrix values = Matrix::Random(20000, 2);
  out.rows(values);
  out.close();
  CsvReader reader(path);
  EXPECT_TRUE(reader.info().gzip);
  CsvBlock block;
  ASSERT_TRUE(reader.next(block, 30000));
  ASSERT_EQ(block.rows, 20000);
  for (Index i = 0; i < 20000; ++i)
    ASSERT_TRUE(block.values[static_cast<std::size_t>(2 * i)] == values(i, 0) &&
                block.values[static_cast<std::size_t>(2 * i + 1)] == values(i, 1));
}

TEST(CsvWriter, EveryFiniteDoubleReadsBackBitForBit) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(rc::check("numbers", [&](const std::vector<std::uint64_t>& bits) {
    std::vector<double> values;
    for (const auto pattern : bits) {
      double value = 0;
      std::memcpy(&value, &pattern, sizeof value);
      // RapidCheck favours small integers: spread them over all exponents as well.
      if (std::isfinite(value)) values.push_back(value);
      values.push_back(
          std::ldexp(static_cast<double>(pattern) - 0.3, static_cast<int>(pattern % 2000) - 1070));
    }
    std::erase_if(values, [](double v) { return !std::isfinite(v); });
    RC_PRE(!values.empty());
    const auto path = folder.file(bits.size() % 2 == 0 ? "n.csv" : "n.csv.gz");
    CsvWriter out(path, {"v"});
    for (const double value : values) out.number(value).end_row();
    out.close();
    CsvReader reader(path);
    CsvBlock block;
    RC_ASSERT(reader.next(block, static_cast<Index>(values.size())));
    RC_ASSERT(block.values.size() == values.size());
    RC_ASSERT(std::memcmp(block.values.data(), values.data(), values.size() * sizeof(double)) == 0);
  }));
}

TEST(CsvWriter, AnyTextReadsBack) {
  const testing::TemporaryFolder folder;
  const auto cell =
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\"\"#,;\t\r\n 1é")));
  EXPECT_TRUE(rc::check("text", [&] {
    const auto cells = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(cell));
    const auto path = folder.file("t.csv");
    CsvWriter out(path, {"t", "n"});
    for (const auto& text : cells) out.text(text).integer(7).end_row();
    out.close();
    CsvReader reader(CsvReader(path, {.buffer_bytes = 16}));
    reader.select({.numeric = {1}, .text = {0}, .hint = {}});
    CsvBlock block;
    RC_ASSERT(reader.next(block, static_cast<Index>(cells.size())));
    RC_ASSERT(block.rows == static_cast<Index>(cells.size()));
    // Blanks alone are a missing cell, quoted or not.
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (cells[i].find_first_not_of(" \t") != std::string::npos)
        RC_ASSERT(block.text[0][i] == cells[i]);
  }));
}

TEST(CsvWriter, ADashIsStandardOutput) {
  ::testing::internal::CaptureStdout();
  {
    CsvWriter out("-", {"a", "b"});
    out.number(1.5).text("x y").end_row();
    out.close();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "a,b\n1.5,x y\n");
  EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST(CsvWriter, CtrlCEndsALongFile) {
  const testing::TemporaryFolder folder;
  {
    CsvWriter out(folder.file("out.csv"), {"a"});
    request_interrupt();
    EXPECT_THROW(for (int i = 0; i < 1000000; ++i) out.number(i).end_row(), Interrupted);
    clear_interrupt();
  }
  EXPECT_EQ(folder.count(), 0U);
}

}  // namespace csv_writer_test
}  // namespace mercer::data
