// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepwell/core/tensor.h"
#include "stepwell/io/file.h"

namespace stepwell::io {

// The file's `__metadata__`: text by key.
using Metadata = std::map<std::string, std::string, std::less<>>;

// What the header says about one tensor; `begin` … `end` are its bytes, counted from the end of the header.
struct TensorInfo {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

// A safetensors file (huggingface.co/docs/safetensors): 8 bytes little-endian header length, a JSON header, the
// tensors' bytes. Opening checks all of the header: every fault throws Error (File) naming file and tensor, and costs
// at most as much memory as the file has bytes. Duplicate names, unknown dtypes, shapes that do not match their bytes,
// overlaps, gaps and bytes that belong to no tensor are faults. Const functions may run on many threads at once.
class SafetensorsFile {
 public:
  // Maps the file; tensors share the mapping (see MappedFile for what that asks of others).
  static SafetensorsFile open(const std::string& path);
  static SafetensorsFile open(const MappedFile& file, std::string path);

  // Reads `bytes`, which `owner` keeps alive; null: the caller does, longer than any tensor made here. `where` names
  // the source in messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string where, std::shared_ptr<const void> owner);

  const std::string& path() const { return where_; }
  std::size_t size() const { return entries_.size(); }

  // The tensors in order of their names (compared byte by byte).
  std::vector<std::string> names() const;
  TensorInfo info(std::size_t i) const;  // i < size()
  std::optional<TensorInfo> find(std::string_view name) const;
  bool contains(std::string_view name) const { return index_of(name) < entries_.size(); }

  // The tensor, read-only, sharing the file's memory; a copy where the bytes are not aligned to the dtype. Throws Error
  // (File) for an unknown name, listing the nearest, and for a BOOL tensor with bytes other than 0 and 1.
  Tensor tensor(std::string_view name) const;
  // All tensors in order of their names.
  std::vector<std::pair<std::string, Tensor>> tensors() const;

  Metadata metadata() const;

 private:
  // Where a tensor's name stands in the header, and its bytes. Names and shapes are read again when asked for, so that
  // the index takes less memory than the header it describes.
  struct Entry {
    std::uint64_t begin, end;
    std::uint32_t key;
  };
  class Parser;

  std::size_t index_of(std::string_view name) const;
  Tensor tensor(const TensorInfo& info) const;

  std::string where_;
  std::string_view header_;
  std::span<const std::byte> data_;
  std::shared_ptr<const void> owner_;
  std::deque<Entry> entries_;           // by name; a deque grows without holding its content twice
  std::deque<std::uint32_t> metadata_;  // where the metadata's keys stand
};

// Writes a file whose bytes depend on names, tensors and metadata only: header in order of names, padded with spaces to
// a multiple of 8; data from the widest dtype to the narrowest, then by name, so that every tensor is aligned. The old
// file stays until the new one is on disk (AtomicFile). Throws Error: Argument for names that are used twice, reserved
// (`__metadata__`) or not UTF-8 and for tensors without storage; File when the file cannot be written.
void write_safetensors(const std::string& path, std::span<const std::pair<std::string, Tensor>> tensors,
                       const Metadata& metadata = {});

// Refuses files of another kind or version: metadata key `format` must be `expected`, such as "stepwell-model-1".
void check_format(const Metadata& metadata, std::string_view expected, std::string_view where);

}  // namespace stepwell::io
