// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stepwell::io {

// The bytes of a whole regular file, mapped read-only. Copies share the mapping, which lives as long as any of them or
// any owner() does. The file must not be changed in place meanwhile (of a shortened one the system kills readers with
// SIGBUS); replacing it by renaming, as AtomicFile does, is safe.
class MappedFile {
 public:
  // Throws Error (File) naming the path: missing, unreadable, a folder, a device.
  static MappedFile open(const std::string& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  MappedFile(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

// Writes a file so that `path` holds, at every moment and after a crash, either the old content or all of the new one:
// a temporary file in the same folder, fsync, rename, fsync of the folder. Without commit() nothing changes and the
// temporary file is removed.
class AtomicFile {
 public:
  // Creates the temporary file; throws Error (File) if the folder is missing or not writable.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
};

// AtomicFile in one call.
void write_file(const std::string& path, std::string_view content);

// The content of a file of at most `limit` bytes; throws Error (File) for larger ones before reading them. Pipes and
// devices are read too, as far as the limit.
std::string read_file(const std::string& path, std::int64_t limit);

// Whether something other than a folder exists at `path`.
bool file_exists(const std::string& path);

// Makes `folder`, its parents included, unless it exists; throws Error (File) unless files can be made in it.
void make_folder(const std::string& folder);

// The path with `name` inside `folder`.
std::string join_path(std::string_view folder, std::string_view name);

}  // namespace stepwell::io
