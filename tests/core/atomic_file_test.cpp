#include "mercer/core/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "mercer/core/error.hpp"

namespace mercer {
namespace atomic_file_test {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "mercer-atomic-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path() const { return (folder_ / "file.bin").string(); }
  std::string content() const {
    std::ifstream in(path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(AtomicFileTest, AppearsWholeAtCommit) {
  AtomicFile file(path());
  file.write("one ");
  file.write(std::string_view("t\0o", 3));
  EXPECT_FALSE(fs::exists(path()));

  file.commit();

  EXPECT_EQ(content(), std::string("one t\0o", 7));
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, WithoutCommitTheOldFileStaysAndNothingIsLeftBehind) {
  std::ofstream(path()) << "old";
  {
    AtomicFile file(path());
    file.write("new");
  }
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, CommitReplacesTheOldFile) {
  std::ofstream(path()) << "something longer than what follows";
  AtomicFile file(path());
  file.write("new");
  file.commit();
  EXPECT_EQ(content(), "new");
}

TEST_F(AtomicFileTest, HasTheModeOfAnOrdinaryFile) {
  const mode_t before = umask(027);
  {
    AtomicFile file(path());
    file.commit();
  }
  umask(before);
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
}

TEST_F(AtomicFileTest, SaysWhyItCannotBeWritten) {
  try {
    AtomicFile file((folder_ / "no" / "such" / "folder").string());
    FAIL() << "opened";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
  EXPECT_THROW(AtomicFile(folder_.string()), IoError);
}

}  // namespace atomic_file_test
}  // namespace mercer
