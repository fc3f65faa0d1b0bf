// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stepwell/core/error.h"

namespace stepwell::io {

namespace {

// Throws with the system's word for `error` (an errno).
[[noreturn]] void fail_system(const std::string& path, const char* action, int error) {
  fail(ErrorCode::File, path, std::string(action) + ": " + std::generic_category().message(error));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

int open_for_reading(const std::string& path) {
  if (path.find('\0') != std::string::npos) fail(ErrorCode::File, path.c_str(), "the path holds a zero byte");
  int descriptor;
  do descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) fail_system(path, "cannot open", errno);
  return descriptor;
}

struct stat status_of(const std::string& path, int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) fail_system(path, "cannot examine", errno);
  if (S_ISDIR(status.st_mode)) fail(ErrorCode::File, path, "is a folder, expected a file");
  return status;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

MappedFile MappedFile::open(const std::string& path) {
  const Descriptor file(open_for_reading(path));
  const struct stat status = status_of(path, file.get());
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::File, path, "is not a regular file and cannot be mapped");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile({}, nullptr);  // mmap refuses empty files
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail_system(path, "cannot map", errno);
  std::shared_ptr<const void> owner(address, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return MappedFile({static_cast<const std::byte*>(address), size}, std::move(owner));
}

// ----------------------------------------------------------------------------------------------------- AtomicFile

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  const auto slash = path_.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : path_.substr(0, slash + 1);
  if (folder.size() == path_.size() || path_.find('\0') != std::string::npos) {
    fail(ErrorCode::File, path_.c_str(), "is no name for a file");
  }
  static std::atomic<unsigned> counter{0};
  // Process and counter keep writers apart; a name left behind by a killed process of the same number is passed over.
  do {
    temporary_ = folder + ".stepwell-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && (errno == EEXIST || errno == EINTR));
  if (descriptor_ < 0) fail_system(path_, "cannot create a file in this folder", errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  STEPWELL_CHECK(descriptor_ >= 0, path_, "write after commit");
  constexpr std::size_t kLargestWrite = std::size_t{1} << 30;  // Linux writes at most 2 GiB in a call
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_system(path_, "cannot write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  STEPWELL_CHECK(descriptor_ >= 0, path_, "committed twice");
  if (::fsync(descriptor_) != 0) fail_system(path_, "cannot write to disk", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system(path_, "cannot replace", errno);
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0) fail_system(path_, "cannot close", errno);
  const std::string folder = parent_of(path_);
  const Descriptor parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() < 0) return;  // a folder one may write to but not list: the rename stands, its flush is the system's
  // EINVAL: a file system without fsync of folders.
  if (::fsync(parent.get()) != 0 && errno != EINVAL) fail_system(folder, "cannot write the folder to disk", errno);
}

// ------------------------------------------------------------------------------------------------------ functions

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

std::string read_file(const std::string& path, std::int64_t limit) {
  const Descriptor file(open_for_reading(path));
  const struct stat status = status_of(path, file.get());
  auto too_large = [&](const std::string& size) {
    fail(ErrorCode::File, path, "has " + size + " bytes, expected at most " + std::to_string(limit));
  };
  if (status.st_size > limit) too_large(std::to_string(status.st_size));
  std::string content;
  content.reserve(static_cast<std::size_t>(status.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof(buffer));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail_system(path, "cannot read", errno);
    }
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(content.size()) > limit) too_large("more");
  }
}

bool file_exists(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(ErrorCode::File, folder, "cannot make this folder: " + error.message());
  if (!std::filesystem::is_directory(folder, error)) fail(ErrorCode::File, folder, "is a file, expected a folder");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail_system(folder, "cannot write into this folder", errno);
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

}  // namespace stepwell::io
