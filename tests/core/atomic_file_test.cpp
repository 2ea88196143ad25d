#include "mercer/core/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "mercer/core/error.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer {
namespace atomic_file_test {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.file("file.bin"); }
  std::string content() const {
    std::ifstream in(path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }

  testing::TemporaryFolder folder_;
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

void put(const std::string& path, const char* text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
}

TEST_F(AtomicFileTest, AFileThatIsReplacedKeepsItsMode) {
  for (const mode_t mode : {0600, 0640, 0664, 0777}) {
    std::ofstream(path()) << "old";
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
    put(path(), "new");
    EXPECT_EQ(mode_of(path()), mode);
    EXPECT_EQ(content(), "new");
  }
}

TEST_F(AtomicFileTest, WhileItIsWrittenAPrivateFileIsPrivate) {
  std::ofstream(path()) << "old";
  ASSERT_EQ(chmod(path().c_str(), 0600), 0);
  AtomicFile file(path());
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_EQ(mode_of(entry.path().string()), 0600U) << entry.path();
  EXPECT_EQ(files(), 2);
}

TEST_F(AtomicFileTest, OwnerAndGroupAreKept) {
  std::ofstream(path()) << "old";
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to others";
  ASSERT_EQ(chown(path().c_str(), 1234, 4321), 0);
  put(path(), "new");
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1234U);
  EXPECT_EQ(info.st_gid, 4321U);
}

TEST_F(AtomicFileTest, ALinkIsWrittenThrough) {
  fs::create_directory(folder_.path() / "store");
  fs::create_symlink("store/behind.bin", folder_.path() / "inner");
  fs::create_symlink(folder_.path() / "inner", path());
  put(path(), "made");  // the file behind the links was not there
  EXPECT_TRUE(fs::is_symlink(path()));
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "inner"));
  EXPECT_FALSE(fs::is_symlink(folder_.path() / "store" / "behind.bin"));
  EXPECT_EQ(content(), "made");
  ASSERT_EQ(chmod((folder_.path() / "store" / "behind.bin").c_str(), 0600), 0);
  put(path(), "again");
  EXPECT_EQ(content(), "again");
  EXPECT_EQ(mode_of(path()), 0600U);
  EXPECT_EQ(files(), 3);
  fs::create_symlink("loop", folder_.path() / "loop");
  EXPECT_THROW(AtomicFile((folder_.path() / "loop").string()), IoError);
}

TEST_F(AtomicFileTest, AReadOnlyFileIsRefused) {
  std::ofstream(path()) << "old";
  ASSERT_EQ(chmod(path().c_str(), 0444), 0);
  try {
    AtomicFile file(path());
    FAIL() << "opened";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("read-only"), std::string::npos) << error.what();
  }
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, SaysWhyItCannotBeWritten) {
  try {
    AtomicFile file((folder_.path() / "no" / "such" / "folder").string());
    FAIL() << "opened";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
  EXPECT_THROW(AtomicFile(folder_.path().string()), IoError);
}

}  // namespace atomic_file_test
}  // namespace mercer
