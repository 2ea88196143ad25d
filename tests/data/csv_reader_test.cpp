#include "mercer/data/csv_reader.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/rng.hpp"
#include "tests/data/files.hpp"

namespace mercer::data {
namespace csv_reader_test {

using testing::csv;
using testing::expect_contains;
using testing::message_of;

struct Table {
  std::vector<double> values;
  std::vector<Index> lines;
  CsvInfo info;
};

Table read_all(CsvReader reader, Index max_rows = 100) {
  Table table;
  CsvBlock block;
  while (reader.next(block, max_rows)) {
    EXPECT_LE(block.rows, max_rows);
    table.values.insert(table.values.end(), block.values.begin(), block.values.end());
    table.lines.insert(table.lines.end(), block.lines.begin(), block.lines.end());
  }
  EXPECT_FALSE(reader.next(block, max_rows)) << "the end stays the end";
  EXPECT_EQ(block.rows, 0);
  table.info = reader.info();
  return table;
}

TEST(CsvReader, PlainFile) {
  auto reader = csv("a,b,c\n1,2,3\n4,5,6\n");
  EXPECT_EQ(reader.header(), (std::vector<std::string>{"a", "b", "c"}));
  const auto table = read_all(std::move(reader));
  EXPECT_EQ(table.values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(table.lines, (std::vector<Index>{2, 3}));
  EXPECT_EQ(table.info.rows, 2);
  EXPECT_EQ(table.info.bytes, 18U);
  EXPECT_FALSE(table.info.generated_header);
}

TEST(CsvReader, LineEndsMarksBlanksAndCommentsDoNotMatter) {
  const std::vector<double> expected = {1, 2, 3, 4};
  for (const std::string text :
       {"a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r1,2\r3,4\r",
        "\xEF\xBB\xBF"
        "a,b\n1,2\n3,4\n",
        "# hello\n\n# 9,9\n a , b \n 1 ,\t2\n\n3,4 \n   \n\n", "\"a\",\"b\"\n\"1\",2\n3,\" 4\"\n",
        "\xEF\xBB\xBF# first\r\n\"a\" , b\r\n1, \"2\" \r\n3,4\r\n\r\n", "a,b\n+1,2.\n.3e1,4e0\n"}) {
    auto reader = csv(text);
    EXPECT_EQ(reader.header(), (std::vector<std::string>{"a", "b"})) << text;
    EXPECT_EQ(read_all(std::move(reader)).values, expected) << text;
  }
  const auto info = read_all(csv("# 1\n\n#2\n#3\na,b\n1,2\n  \n")).info;
  EXPECT_EQ(info.comment_lines, 3);
  EXPECT_EQ(info.blank_lines, 2);
}

TEST(CsvReader, LineNumbersCountEverything) {
  const auto table = read_all(csv("# c\na,\"b\nb\"\n\n1,2\n \n\"3\",4\n"));
  EXPECT_EQ(table.lines, (std::vector<Index>{5, 7}));
}

TEST(CsvReader, QuotesCommasAndNewlinesInsideText) {
  auto reader = csv(
      "\"na,me\",\"say \"\"x\"\"\",y\n\"a,\"\"b\"\"\nc\",  plain 5\" ,1\n'q',\"\",2\nNA,\"#\",3\n");
  EXPECT_EQ(reader.header(), (std::vector<std::string>{"na,me", "say \"x\"", "y"}));
  reader.select({.numeric = {2}, .text = {1, 0}, .hint = {}});
  CsvBlock block;
  ASSERT_TRUE(reader.next(block, 10));
  EXPECT_EQ(block.values, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(block.text[0], (std::vector<std::string>{"plain 5\"", "", "#"}));
  EXPECT_EQ(block.text[1], (std::vector<std::string>{"a,\"b\"\nc", "'q'", ""}));
  EXPECT_EQ(block.lines, (std::vector<Index>{2, 4, 5}));
}

TEST(CsvReader, MissingCellsAreNaN) {
  const auto table = read_all(csv("a,b,c,d,e,f,g\n,NaN,na,N/A,null,?,None\n1,2,3,4,5,6,#n/a\n"));
  for (int j = 0; j < 7; ++j)
    EXPECT_TRUE(std::isnan(table.values[static_cast<std::size_t>(j)])) << j;
  EXPECT_TRUE(std::isnan(table.values[13]));
}

TEST(CsvReader, SeparatorIsFoundWhenThereIsNoComma) {
  for (const char separator : {';', '\t'}) {
    const std::string s(1, separator);
    const auto table = read_all(csv("a" + s + "b" + s + "c\n1" + s + s + "3\n" + s + s + "6\n"));
    EXPECT_EQ(table.info.separator, separator);
    EXPECT_EQ(table.values.size(), 6U);
    EXPECT_TRUE(std::isnan(table.values[1]));
    EXPECT_EQ(table.values[5], 6);
  }
  EXPECT_EQ(csv("a;b,c\n1,2\n").header(), (std::vector<std::string>{"a;b", "c"}));
  EXPECT_EQ(csv("a,b\n1|2\n", {.separator = '|'}).header(), (std::vector<std::string>{"a,b"}));
  EXPECT_EQ(csv("alone\n1\n").header(), (std::vector<std::string>{"alone"}));
  message_of<InvalidArgument>([] { csv("a\n", {.separator = '"'}); });
}

TEST(CsvReader, SeparatorIsTheOneThatCutsTheFirstRowsEqually) {
  const auto separator = [](const std::string& text) { return csv(text).info().separator; };
  EXPECT_EQ(separator("a;b;c\n1,5;2,5;3\n4;5;6\n"), ';');  // decimal commas
  EXPECT_EQ(separator("price, net;b\n1;2\n3;4\n"), ';');   // a comma in the header
  EXPECT_EQ(separator("name, first\tage\ty\nDoe, J\t1\t2\nRay, K\t3\t4\n"), '\t');
  EXPECT_EQ(separator("a|b\n1|2\n"), '|');
  EXPECT_EQ(separator("a,b\n\"x;y\",1\n\"z;w\",2\n"), ',');
  EXPECT_EQ(separator("a;b\n\"1;2\n;3\";4\n"), ';');  // quotes are respected
  EXPECT_EQ(separator("a,b;c\n1,2;3\n"), ',');        // a tie
  EXPECT_EQ(separator("alone\n1\n"), ',');
  EXPECT_EQ(separator("a;b\n1;2\n3;4;5\n6;7\n"), ';');  // a ragged row does not change it
  std::string wide = "c0";                              // a header that is longer than the sample
  std::string row = "0";
  for (int j = 1; j < 20000; ++j) {
    wide += fmt::format(";c{}", j);
    row += fmt::format(";{}", j);
  }
  EXPECT_EQ(separator(wide + "\n" + row + "\n"), ';');
}

TEST(CsvReader, SeparatorsByName) {
  EXPECT_EQ(separator_of("tab"), '\t');
  EXPECT_EQ(separator_of("\\t"), '\t');
  EXPECT_EQ(separator_of("semicolon"), ';');
  EXPECT_EQ(separator_of("space"), ' ');
  EXPECT_EQ(separator_of(":"), ':');
  for (const char* bad :
       {"", ";;", "e", "7", "\"", "#", "-", ".", "\n", "\x1b", "tabs", "\xC3\xA9"})
    expect_contains(message_of<InvalidArgument>([&] { separator_of(bad); }),
                    {"`delimiter`", "cannot separate fields", "semicolon"});
}

TEST(CsvReader, CommentsStandAboveTheHeaderOnly) {
  auto reader = csv("# one\n# two\ncolour,y\n#ff0000,1\n#00ff00,2\n");
  EXPECT_EQ(reader.info().comment_lines, 2);
  reader.select({.numeric = {1}, .text = {0}, .hint = {}});
  CsvBlock block;
  ASSERT_TRUE(reader.next(block, 10));
  EXPECT_EQ(block.text[0], (std::vector<std::string>{"#ff0000", "#00ff00"}));
  EXPECT_TRUE(std::isnan(read_all(csv("a,b\n#N/A,1\n")).values[0]));
  EXPECT_EQ(read_all(csv("1,2\n#N/A,4\n")).info.rows, 2);  // without a header, too
  const auto message = [](const std::string& text) {
    return message_of([&] { read_all(csv(text)); });
  };
  expect_contains(message("a,b\n1,2\n# late\n"),
                  {"line 3 has 1 field, the header has 2", "only above the header"});
  expect_contains(message("a,b\n1,2\n# x,3\n"), {"'# x' is not a number", "above the header"});
}

TEST(CsvReader, RowsAsTheyStandInTheFile) {
  auto reader = csv("# c\r\n\r\na,b\r\n \"1\n,\" , 5\" x\r\n\r\n#3,4", {.buffer_bytes = 8});
  EXPECT_EQ(reader.header_text(), "a,b\r\n");
  std::string_view row;
  ASSERT_TRUE(reader.next_text(row));
  EXPECT_EQ(row, " \"1\n,\" , 5\" x\r\n");
  ASSERT_TRUE(reader.next_text(row));
  EXPECT_EQ(row, "#3,4");
  EXPECT_FALSE(reader.next_text(row));
  EXPECT_EQ(reader.info().rows, 2);
  auto plain = csv("1,2\n3\n");
  EXPECT_EQ(plain.header_text(), "");
  ASSERT_TRUE(plain.next_text(row));
  expect_contains(message_of([&] { plain.next_text(row); }), {"line 2 has 1 field"});
}

TEST(CsvReader, ARowTakesAPartOfTheMemoryOnly) {
  const std::string text = "a,b\n1,\"" + std::string(std::size_t{3} << 20, 'z') + "\"\n";
  const auto limit = [&](std::uint64_t memory) {
    auto reader = csv(text, {.memory = memory});
    reader.select({.numeric = {0}, .text = {1}, .hint = {}});
    CsvBlock block;
    reader.next(block, 1);
    return block.text[0][0].size();
  };
  EXPECT_EQ(limit(std::uint64_t{80} << 20), std::size_t{3} << 20);
  expect_contains(message_of<DoesNotFit>([&] { limit(std::uint64_t{50} << 20); }),
                  {"line 2", "longer than 1.25 MiB", "memory of 50.00 MiB", "`memory`"});
}

TEST(CsvReader, ABlockHoldsSomeTextOnly) {
  std::string text = "t,y\n";
  for (int i = 0; i < 8; ++i) text += std::string(std::size_t{5} << 20, 'q') + ",1\n";
  auto reader = csv(text);
  reader.select({.numeric = {1}, .text = {0}, .hint = {}});
  CsvBlock block;
  Index rows = 0;
  while (reader.next(block, 1000)) {
    EXPECT_LE(block.rows, 4);
    rows += block.rows;
  }
  EXPECT_EQ(rows, 8);
}

TEST(CsvReader, NumbersInTheFirstRowMeanNoHeader) {
  auto reader = csv("1,2,NA\n4,5,6\n");
  EXPECT_EQ(reader.header(), (std::vector<std::string>{"x1", "x2", "y"}));
  EXPECT_TRUE(reader.info().generated_header);
  const auto table = read_all(std::move(reader));
  EXPECT_EQ(table.info.rows, 2);
  EXPECT_EQ(table.values[0], 1);
  EXPECT_EQ(table.lines[0], 1);
  EXPECT_FALSE(csv("1,b\n4,5\n").info().generated_header);
}

std::string failure(const std::string& text, CsvOptions options = {}) {
  return message_of([&] { read_all(csv(text, options)); });
}

TEST(CsvReader, ErrorsNameFileLineAndColumn) {
  expect_contains(failure("a,b,c,d,e\n1,2,3,4,5\n\n1,2,3,4\n"),
                  {"test.csv", "line 4 has 4 fields, the header has 5"});
  expect_contains(failure("a,b\n1,2,3\n"), {"line 2 has 3 fields, the header has 2"});
  expect_contains(failure("1,2\n1\n"), {"line 2 has 1 field, the first row has 2"});
  expect_contains(failure("a,b\n1,x,3\n"), {"line 2 has 3 fields"});  // not: 'x' is not a number
  expect_contains(failure("age,b\n1,2\n\n\nabc,2\n"),
                  {"line 5, column 'age': 'abc' is not a number"});
  expect_contains(failure("age;b\n1;2,5\n"), {"line 2, column 'b'", "'2,5'", "decimal point"});
  expect_contains(failure("a,b\n1,-inf\n"), {"line 2, column 'b': infinite value '-inf'"});
  expect_contains(failure("a,b\n1,1e999\n"), {"line 2, column 'b': infinite value '1e999'"});
  expect_contains(failure("a,b\n1,\"2\"x\n"), {"line 2, column 'b'", "after the closing quote"});
  expect_contains(failure("a,b\n1,2\n1,\"2\n3,4\n"), {"line 3", "never closed"});
  expect_contains(failure("a,b\n1," + std::string(5000, 'z') + "\n"), {"'zzz", "...'"});
}

TEST(CsvReader, BadHeadersAreNamed) {
  expect_contains(failure("a,b,a\n1,2,3\n"), {"line 1", "columns 1 and 3", "same name 'a'"});
  expect_contains(failure("# x\na,,c\n1,2,3\n"), {"line 2", "column 2 of 3 has no name"});
  expect_contains(failure(",a\n0,1\n"), {"column 1 of 2 has no name", "index=False"});
  expect_contains(failure("\xE9t\xE9,b\n1,2\n"), {"column 1", "not UTF-8"});
  expect_contains(failure("a,\"b\"c\n1,2\n"), {"column 2", "after the closing quote"});
}

TEST(CsvReader, EmptyFiles) {
  for (const char* text : {"", "\n\n", "# only this\n", "\xEF\xBB\xBF"})
    expect_contains(failure(text), {"test.csv", "empty"});
  for (const char* text : {"a,b", "a,b\n", "# c\na,b\n\n"})
    expect_contains(failure(text), {"test.csv", "no row of data"});
}

TEST(CsvReader, ThingsThatAreNotCsv) {
  expect_contains(failure(std::string("a,b\n1,2\n3,\0004\n", 13)), {"line 3", "zero byte"});
  expect_contains(failure("PK\x03\x04 and so on"), {"zip"});
  expect_contains(failure(std::string("\xFF\xFE"
                                      "a\0,\0",
                                      6)),
                  {"UTF-16"});
  expect_contains(failure("BZh91AY&SY"), {"bzip2"});
  EXPECT_EQ(csv("PAR1,BZh9\n1,2\n").header()[0], "PAR1");  // a name like a magic number is a name
  expect_contains(failure("\x01\x02\x7F\xFE\n\xF1\n"), {"UTF-8"});
  expect_contains(
      failure("a,b\n1,\"" + std::string(5000, 'z'), {.buffer_bytes = 64, .max_row_bytes = 1024}),
      {"line 2", "longer than 1024 bytes"});
}

TEST(CsvReader, MissingFileAndFolderAreIoErrors) {
  const testing::TemporaryFolder folder;
  expect_contains(message_of<IoError>([&] { CsvReader(folder.file("no.csv")); }),
                  {"no.csv", "No such file"});
  expect_contains(message_of<IoError>([&] { CsvReader(folder.file("")); }), {"folder"});
}

TEST(CsvReader, GzipIsToldByContentAndEqualsPlain) {
  std::string text = "a,b\n";
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) text += fmt::format("{},{}\n", rng.normal(), rng.normal());
  const testing::TemporaryFolder folder;
  const auto plain = read_all(CsvReader(folder.write("plain.csv.gz", text)));
  const auto packed = read_all(CsvReader(folder.write("packed.csv", testing::gzipped(text))));
  EXPECT_FALSE(plain.info.gzip);
  EXPECT_TRUE(packed.info.gzip);
  EXPECT_EQ(plain.values, packed.values);
  EXPECT_EQ(plain.info.bytes, packed.info.bytes);
  // Members one after the other, as cat makes them, with an empty one and padding.
  const auto half = text.size() / 2;
  const auto parts = testing::gzipped(text.substr(0, half)) + testing::gzipped("") +
                     testing::gzipped(text.substr(half)) + std::string(512, '\0');
  EXPECT_EQ(read_all(csv(parts)).values, plain.values);
}

TEST(CsvReader, GzipCutAnywhereOrDamagedIsRefused) {
  std::string text = "a,b\n";
  for (int i = 0; i < 50; ++i) text += fmt::format("{},{}\n", i, i * i);
  const auto packed = testing::gzipped(text);
  for (std::size_t size = 2; size < packed.size(); ++size)
    expect_contains(failure(packed.substr(0, size)), {"test.csv", "cut short"});
  auto damaged = packed;
  damaged[packed.size() - 6] ^= 0x40;  // in the checksum
  expect_contains(failure(damaged), {"damaged"});
  damaged = packed;
  damaged[packed.size() / 2] ^= 0x40;
  const auto message = failure(damaged);
  EXPECT_TRUE(message.find("damaged") != std::string::npos ||
              message.find("line") != std::string::npos)
      << message;
  expect_contains(failure(packed + "stray"), {"stray bytes"});
}

TEST(CsvReader, BlockAndBufferSizesDoNotChangeTheResult) {
  std::string text = "\xEF\xBB\xBF#c\r\na,\"b\r\n\"\"b\"\"\",c,t\r\n";
  Rng rng(5);
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("{},\"{}\",,\"x\"\"{}\r\n,y\"\r\n", rng.normal(), rng.normal(), i);
    if (i % 7 == 0) text += "   \r\n";
  }
  const auto read = [&](std::size_t buffer, Index rows) {
    auto reader = csv(text, {.separator = ',', .buffer_bytes = buffer});
    reader.select({.numeric = {1, 0}, .text = {3}, .hint = {}});
    std::pair<std::vector<double>, std::string> all;
    CsvBlock block;
    while (reader.next(block, rows)) {
      all.first.insert(all.first.end(), block.values.begin(), block.values.end());
      for (Index i = 0; i < block.rows; ++i)
        all.second += fmt::format("{}@{};", block.text[0][static_cast<std::size_t>(i)],
                                  block.lines[static_cast<std::size_t>(i)]);
    }
    all.second += fmt::format("{} {} {}", reader.info().comment_lines, reader.info().blank_lines,
                              reader.info().rows);
    return all;
  };
  const auto whole = read(1 << 20, 1000);
  EXPECT_EQ(whole.first.size(), 120U);
  for (std::size_t buffer = 8; buffer < 80; ++buffer)
    EXPECT_EQ(read(buffer, 1 + static_cast<Index>(buffer % 5)), whole) << buffer;
}

TEST(CsvReader, VeryWideRowsAndVeryLongFields) {
  const Index columns = 10000;
  std::string text;
  for (Index j = 0; j < columns; ++j) text += fmt::format("{}c{}", j == 0 ? "" : ",", j);
  for (int row = 0; row < 3; ++row) {
    text += '\n';
    for (Index j = 0; j < columns; ++j)
      text += fmt::format("{}{}", j == 0 ? "" : ",", row * columns + j);
  }
  const auto table = read_all(csv(text), 2);
  ASSERT_EQ(table.values.size(), 30000U);
  for (std::size_t i = 0; i < 30000; ++i) ASSERT_EQ(table.values[i], static_cast<double>(i));

  const std::string big(3 << 20, 'q');
  auto reader = csv("t,u,x\n" + big + ",\"" + big + "\"\"\",1\na,b,2\n", {.buffer_bytes = 4096});
  reader.select({.numeric = {2}, .text = {0, 1}, .hint = {}});
  CsvBlock block;
  ASSERT_TRUE(reader.next(block, 10));
  EXPECT_EQ(block.text[0][0], big);
  EXPECT_EQ(block.text[1][0], big + "\"");
  EXPECT_EQ(block.values, (std::vector<double>{1, 2}));
}

TEST(CsvReader, SkippedColumnsMayHoldAnything) {
  auto reader = csv("a,b,c\nx,1,inf\n\"q\nq\",2,\xFF\n");
  reader.select({.numeric = {1}, .text = {}, .hint = {}});
  EXPECT_EQ(read_all(std::move(reader)).values, (std::vector<double>{1, 2}));
  auto other = csv("a,b\n1,2\n");
  message_of<InvalidArgument>([&] { other.select({.numeric = {2}, .text = {}, .hint = {}}); });
  message_of<InvalidArgument>([&] { other.select({.numeric = {1}, .text = {1}, .hint = {}}); });
}

// Standard input replaced by a pipe, and put back at the end.
class StandardInput {
 public:
  explicit StandardInput(const std::string& text) : before_(dup(STDIN_FILENO)) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) throw Error("no pipe");
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
  }
  ~StandardInput() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int before_;
};

TEST(CsvReader, ADashIsStandardInput) {
  for (const bool packed : {false, true}) {
    const std::string text = "a,y\n1,2\n3,x\n";
    const StandardInput input(packed ? testing::gzipped(text) : text);
    CsvReader reader("-");
    EXPECT_EQ(reader.header(), (std::vector<std::string>{"a", "y"}));
    CsvBlock block;
    ASSERT_TRUE(reader.next(block, 1));
    EXPECT_EQ(block.values, (std::vector<double>{1, 2}));
    expect_contains(message_of<DataError>([&] { reader.next(block, 1); }),
                    {"standard input", "line 3", "'x'"});
  }
}

}  // namespace csv_reader_test
}  // namespace mercer::data
