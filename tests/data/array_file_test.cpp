#include "mercer/data/array_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "mercer/core/error.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::data {
namespace array_file_test {

std::vector<unsigned char> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ArrayFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file.header = {{"kind", "model"}, {"answer", 42}};
    file.arrays["a"] = (Matrix(2, 3) << 1, 2, 3, 4, 5, 6).finished();
    file.arrays["empty"] = Matrix(0, 5);
    write_array_file(path, file);
  }
  testing::TemporaryFolder folder;
  const std::string path = folder.file("model.mcr");
  ArrayFile file;
};

TEST_F(ArrayFileTest, ReadsBackWhatWasWritten) {
  const auto again = read_array_file(path, "model");
  EXPECT_EQ(again.header["answer"], 42);
  EXPECT_EQ(again.arrays.at("a"), file.arrays.at("a"));
  EXPECT_EQ(again.arrays.at("empty").cols(), 5);
}

TEST_F(ArrayFileTest, DamageAtEveryByteIsRefused) {
  const auto good = bytes_of(path);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const unsigned char flip : {0x01, 0x80, 0xff}) {
      auto bad = good;
      bad[i] ^= flip;
      EXPECT_THROW(parse_array_file(bad, "bad", "model"), ModelFileError) << "byte " << i;
    }
  }
}

TEST_F(ArrayFileTest, TruncationAtEveryLengthIsRefused) {
  const auto good = bytes_of(path);
  for (std::size_t length = 0; length < good.size(); ++length) {
    const std::vector<unsigned char> cut(good.begin(),
                                         good.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW(parse_array_file(cut, "cut", "model"), ModelFileError) << length;
  }
  auto longer = good;
  longer.push_back(0);
  EXPECT_THROW(parse_array_file(longer, "longer", "model"), ModelFileError);
}

TEST_F(ArrayFileTest, ANewerVersionIsRefusedWithASentence) {
  auto newer = bytes_of(path);
  newer[8] = 9;
  try {
    parse_array_file(newer, "new.mcr", "model");
    FAIL();
  } catch (const ModelFileError& error) {
    EXPECT_NE(std::string(error.what()).find("of a newer mercer"), std::string::npos);
  }
}

TEST_F(ArrayFileTest, OtherKindsAndOtherFilesAreRefused) {
  EXPECT_THROW(read_array_file(path, "checkpoint"), ModelFileError);
  EXPECT_THROW(read_array_file(path + ".absent", "model"), IoError);
  EXPECT_THROW(read_array_file(folder.path().string(), "model"), IoError);
}

}  // namespace array_file_test
}  // namespace mercer::data
