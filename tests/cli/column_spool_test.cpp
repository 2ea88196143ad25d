#include "cli/column_spool.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "mercer/core/error.hpp"

namespace mercer::cli {
namespace column_spool_test {

std::string all(ColumnSpool& spool, std::size_t column) {
  std::string out;
  spool.read(column, [&](std::string_view piece) { out += piece; });
  return out;
}

TEST(ColumnSpool, GivesBackEveryColumnWhateverWentToTheFile) {
  for (const std::size_t memory : {std::size_t{0}, std::size_t{7}, std::size_t{1} << 24}) {
    ColumnSpool spool(4, memory);
    std::string expected[4];
    for (int i = 0; i < 1000; ++i)
      for (const std::size_t column : {std::size_t{0}, std::size_t{2}, std::size_t{3}}) {
        if (column == 3 && i % 10 != 0) continue;
        const auto text = fmt::format("{}:{},", column, i);
        spool.add(column, text);
        expected[column] += text;
      }
    for (std::size_t column = 0; column < 4; ++column)
      EXPECT_EQ(all(spool, column), expected[column]) << memory;
    EXPECT_EQ(spool.file_bytes() > 0, memory < 1000);
  }
}

TEST(ColumnSpool, SaysWhenTheTemporaryFolderDoesNotDo) {
  const char* before = std::getenv("TMPDIR");
  const std::string old = before == nullptr ? "" : before;
  setenv("TMPDIR", "/proc", 1);  // a folder where no file can be made
  ColumnSpool spool(1, 0);
  try {
    spool.add(0, "text");
    ADD_FAILURE() << "written";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("/proc"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("TMPDIR"), std::string::npos) << error.what();
  }
  if (before == nullptr)
    unsetenv("TMPDIR");
  else
    setenv("TMPDIR", old.c_str(), 1);
}

}  // namespace column_spool_test
}  // namespace mercer::cli
