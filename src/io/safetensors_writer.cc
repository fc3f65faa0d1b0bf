// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "stepwell/core/error.h"
#include "stepwell/io/safetensors.h"

#include "io/json_lexer.h"
#include "io/safetensors_format.h"

namespace stepwell::io {

namespace {

using NamedTensor = std::pair<std::string, Tensor>;

void check_tensors(const std::string& path, const std::vector<const NamedTensor*>& by_name) {
  const std::string* previous = nullptr;
  for (const NamedTensor* entry : by_name) {
    const std::string& name = entry->first;
    STEPWELL_CHECK(is_utf8(name), path, "the name of a tensor is not UTF-8");
    const std::string shown = "tensor " + quoted_for_message(name);
    STEPWELL_CHECK(name != kMetadataKey, path, shown + ": this name is reserved");
    STEPWELL_CHECK(entry->second.defined(), path, shown + " has no storage");
    STEPWELL_CHECK(!previous || *previous != name, path, shown + " twice");
    previous = &name;
  }
}

std::uint64_t byte_count(const Tensor& t) { return static_cast<std::uint64_t>(t.numel() * dtype_size(t.dtype())); }

void append_metadata(std::string& header, const std::string& path, const Metadata& metadata) {
  header += "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    STEPWELL_CHECK(is_utf8(key) && is_utf8(value), path, "the metadata are not UTF-8");
    if (header.back() != '{') header += ',';
    append_quoted(header, key);
    header += ':';
    append_quoted(header, value);
  }
  header += '}';
}

void append_description(std::string& header, const NamedTensor& entry, std::uint64_t begin) {
  const auto& [name, tensor] = entry;
  if (header.back() != '{') header += ',';
  append_quoted(header, name);
  header += ":{\"dtype\":\"" + std::string(dtype_name(tensor.dtype())) + "\",\"shape\":[";
  for (int i = 0; i < tensor.rank(); ++i) header += (i ? "," : "") + std::to_string(tensor.size(i));
  header += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + byte_count(tensor)) + "]}";
}

}  // namespace

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata) {
  std::vector<const NamedTensor*> by_name;
  by_name.reserve(tensors.size());
  for (const auto& entry : tensors) by_name.push_back(&entry);
  std::sort(by_name.begin(), by_name.end(), [](auto* a, auto* b) { return a->first < b->first; });
  check_tensors(path, by_name);

  // Widest dtype first: the data begin at a multiple of 8, so every tensor begins at a multiple of its element size.
  std::vector<const NamedTensor*> by_place = by_name;
  std::sort(by_place.begin(), by_place.end(), [](auto* a, auto* b) {
    const auto wide = dtype_size(a->second.dtype()), other = dtype_size(b->second.dtype());
    return wide != other ? wide > other : a->first < b->first;
  });
  std::map<const NamedTensor*, std::uint64_t> begin;
  std::uint64_t place = 0;
  for (const NamedTensor* entry : by_place) {
    begin[entry] = place;
    place += byte_count(entry->second);
  }

  std::string header = "{";
  if (!metadata.empty()) append_metadata(header, path, metadata);
  for (const NamedTensor* entry : by_name) append_description(header, *entry, begin[entry]);
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  STEPWELL_CHECK(header.size() <= kLargestHeader, path,
                 "names and metadata take " + std::to_string(header.size()) + " bytes, expected at most " +
                     std::to_string(kLargestHeader));

  AtomicFile file(path);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const NamedTensor* entry : by_place) {
    const Tensor& tensor = entry->second;
    const Tensor packed = tensor.is_contiguous() ? tensor : tensor.clone();
    file.write({static_cast<const std::byte*>(packed.raw()), static_cast<std::size_t>(byte_count(packed))});
  }
  file.commit();
}

void check_format(const Metadata& metadata, std::string_view expected, std::string_view where) {
  const auto found = metadata.find("format");
  if (found == metadata.end()) {
    fail(ErrorCode::File, where, "no \"format\" in the metadata, expected " + quoted_for_message(expected));
  }
  const std::string& format = found->second;
  if (format == expected) return;
  const auto kind = expected.substr(0, expected.rfind('-') + 1);
  const bool other_version = !kind.empty() && std::string_view(format).starts_with(kind);
  fail(ErrorCode::File, where,
       "format " + quoted_for_message(format) + ", expected " + quoted_for_message(expected) +
           (other_version ? ": written by another version of Stepwell" : ": not a file of this kind"));
}

}  // namespace stepwell::io
