// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/file.h"

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stepwell/core/error.h"

#include "tests/io/temporary_folder.h"

namespace {
// What fsync does while set; returns an errno.
std::function<int()> fsync_hook;
}  // namespace

// Takes the place of the C library's in this binary, where hundreds of files would wait for the disk otherwise.
extern "C" int fsync(int) {
  errno = fsync_hook ? fsync_hook() : 0;
  return errno == 0 ? 0 : -1;
}

namespace stepwell {
namespace {

template <class F>
std::string file_fault(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() == ErrorCode::File ? e.what() : std::string("wrong code: ") + e.what();
  }
  return "";
}

template <class F>
void expect_fault(F&& f, const std::string& part) {
  const std::string fault = file_fault(f);
  EXPECT_NE(fault.find(part), std::string::npos) << "\"" << fault << "\" does not say \"" << part << "\"";
}

TEST(AtomicFile, ReplacesTheOldContentOnCommitOnly) {
  TemporaryFolder folder;
  const std::string path = folder.file("f");
  io::write_file(path, "old");
  {
    io::AtomicFile file(path);
    file.write("ne");
    EXPECT_EQ(io::read_file(path, 10), "old");
    file.write("w");
    file.commit();
    EXPECT_EQ(io::read_file(path, 10), "new");
    EXPECT_THROW(file.write("more"), Error);
    EXPECT_THROW(file.commit(), Error);
  }
  {
    io::AtomicFile file(path);
    file.write("never");
  }
  EXPECT_EQ(io::read_file(path, 10), "new");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, KilledWriterLeavesTheOldFile) {
  TemporaryFolder folder;
  const std::string path = folder.file("f");
  io::write_file(path, "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    io::AtomicFile file(path);
    file.write("half of the new cont");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(io::read_file(path, 10), "old");
  io::write_file(path, "new");  // the temporary file left behind is in nobody's way
  EXPECT_EQ(io::read_file(path, 10), "new");
}

TEST(AtomicFile, FullDiskLeavesTheOldFile) {
  TemporaryFolder folder;
  const std::string path = folder.file("f");
  io::write_file(path, "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // a limit on file sizes stands for the full disk
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
    const std::string fault = file_fault([&] { io::write_file(path, std::string(2000, 'x')); });
    ::_exit(fault.find("cannot write: File too large") == std::string::npos);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(io::read_file(path, 10), "old");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, IsOnDiskBeforeTheRenameAndTheFolderAfterIt) {
  TemporaryFolder folder;
  const std::string path = folder.file("f");
  io::write_file(path, "old");
  std::vector<std::string> seen;
  fsync_hook = [&] {
    seen.push_back(io::read_file(path, 10));
    return 0;
  };
  io::write_file(path, "new");
  fsync_hook = nullptr;
  EXPECT_EQ(seen, (std::vector<std::string>{"old", "new"}));
}

TEST(AtomicFile, FailedFlushLeavesTheOldFile) {
  TemporaryFolder folder;
  const std::string path = folder.file("f");
  io::write_file(path, "old");
  fsync_hook = [] { return EIO; };
  expect_fault([&] { io::write_file(path, "new"); }, "cannot write to disk: Input/output error");
  fsync_hook = nullptr;
  EXPECT_EQ(io::read_file(path, 10), "old");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, FailedRenameLeavesNothingBehind) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("f/inside"));
  expect_fault([&] { io::write_file(folder.file("f"), "x"); }, "cannot replace");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, SaysWhyAFolderCannotTakeIt) {
  TemporaryFolder folder;
  io::write_file(folder.file("f"), "");
  expect_fault([&] { io::write_file(folder.file("none/f"), "x"); }, "No such file");
  expect_fault([&] { io::write_file(folder.file("f/g"), "x"); }, "Not a directory");
  expect_fault([&] { io::write_file(folder.path() + "/", "x"); }, "is no name for a file");
  expect_fault([&] { io::write_file("", "x"); }, "is no name for a file");
  expect_fault([&] { io::write_file(folder.file(std::string("a\0b", 3)), "x"); }, "is no name for a file");
  expect_fault([&] { io::write_file("/proc/stepwell", "x"); }, "cannot create");
}

TEST(AtomicFile, TakesTheLongestNameAFileCanHave) {
  TemporaryFolder folder;
  const std::string name(255, 'n');
  io::write_file(folder.file(name), "x");
  EXPECT_TRUE(io::file_exists(folder.file(name)));
}

TEST(ReadFile, ReadsUpToItsLimit) {
  TemporaryFolder folder;
  std::string content(200'000, 'x');
  content[3] = '\0';
  io::write_file(folder.file("f"), content);
  EXPECT_EQ(io::read_file(folder.file("f"), 200'000), content);
  expect_fault([&] { io::read_file(folder.file("f"), 199'999); }, "has 200000 bytes, expected at most 199999");
  expect_fault([&] { io::read_file(folder.file("none"), 1); }, "cannot open: No such file");
  expect_fault([&] { io::read_file(folder.path(), 1); }, "is a folder");
  expect_fault([&] { io::read_file("/dev/zero", 1 << 20); }, "more bytes");
  EXPECT_EQ(io::read_file("/dev/null", 0), "");
}

TEST(MakeFolder, MakesParentsAndTellsFilesFromFolders) {
  TemporaryFolder folder;
  io::make_folder(folder.file("a/b/c/"));
  EXPECT_TRUE(std::filesystem::is_directory(folder.file("a/b/c")));
  EXPECT_NO_THROW(io::make_folder(folder.file("a/b")));
  io::write_file(folder.file("f"), "");
  expect_fault([&] { io::make_folder(folder.file("f")); }, "folder");
  expect_fault([&] { io::make_folder(folder.file("f/g")); }, "cannot make this folder: Not a directory");
  expect_fault([&] { io::make_folder("/proc/stepwell"); }, "cannot make this folder");
}

TEST(FileExists, IsTrueForFilesOnly) {
  TemporaryFolder folder;
  EXPECT_FALSE(io::file_exists(folder.path()));
  EXPECT_FALSE(io::file_exists(folder.file("f")));
  io::write_file(folder.file("f"), "");
  EXPECT_TRUE(io::file_exists(folder.file("f")));
}

TEST(JoinPath, PutsOneSlash) {
  EXPECT_EQ(io::join_path("a", "b"), "a/b");
  EXPECT_EQ(io::join_path("a/", "b"), "a/b");
  EXPECT_EQ(io::join_path("", "b"), "b");
  EXPECT_EQ(io::join_path("/", "b"), "/b");
}

}  // namespace
}  // namespace stepwell
