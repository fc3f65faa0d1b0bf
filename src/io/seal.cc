// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/seal.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "stepwell/core/error.h"

#include "io/json_lexer.h"

namespace stepwell::io {

namespace {

constexpr std::int64_t kLongestSeal = 1 << 16;

std::string name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// One line of b3sum: hash, two spaces, name; a name with backslashes or line ends has them escaped and the line begins
// with a backslash.
std::string seal_line(const Digest& digest, const std::string& name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return (escaped == name ? "" : "\\") + to_hex(digest) + "  " + escaped + "\n";
}

Digest parse_seal(const std::string& path) {
  const std::string content = read_file(path, kLongestSeal);
  std::string_view line = content;
  if (line.starts_with('\\')) line.remove_prefix(1);
  constexpr std::size_t kHex = 64;
  const bool one_line = line.find('\n') >= line.size() - 1;
  if (line.size() > kHex + 2 && line.substr(kHex, 2) == "  " && one_line) {
    try {
      return digest_from_hex(line.substr(0, kHex));
    } catch (const Error&) {
      // reported below, with the path
    }
  }
  fail(ErrorCode::File, path, "is no seal, expected one line of b3sum: hash, two spaces, file name");
}

std::optional<Digest> read_seal(const std::string& path) {
  const std::string seal = seal_path(path);
  if (!file_exists(seal)) return std::nullopt;
  return parse_seal(seal);
}

}  // namespace

std::string seal_path(const std::string& path) { return path + ".b3"; }

void write_seal(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  write_file(seal_path(path), seal_line(blake3(file.bytes()), name_of(path)));
}

void write_sealed(const std::string& path, FunctionRef<void()> write) {
  std::error_code error;
  std::filesystem::remove(seal_path(path), error);
  if (error) fail(ErrorCode::File, seal_path(path), "cannot remove the old seal: " + error.message());
  write();
  write_seal(path);
}

SealState verify_seal(const std::string& path) {
  if (!file_exists(path)) return SealState::MissingFile;
  const auto seal = read_seal(path);
  if (!seal) return SealState::MissingSeal;
  return blake3(MappedFile::open(path).bytes()) == *seal ? SealState::Intact : SealState::Changed;
}

MappedFile open_sealed(const std::string& path, SealRule rule) {
  const MappedFile file = MappedFile::open(path);
  const auto seal = read_seal(path);
  if (!seal && rule == SealRule::Required) {
    fail(ErrorCode::File, path, "has no seal; expected one in " + seal_path(path));
  }
  if (seal && blake3(file.bytes()) != *seal) {
    fail(ErrorCode::File, path,
         "was changed after it was sealed: its BLAKE3 hash is " + to_hex(blake3(file.bytes())) + ", the seal says " +
             to_hex(*seal));
  }
  return file;
}

MappedFile open_sealed(const std::string& path, const Digest& expected) {
  const MappedFile file = MappedFile::open(path);
  const Digest found = blake3(file.bytes());
  if (found != expected) {
    fail(ErrorCode::File, path, "its BLAKE3 hash is " + to_hex(found) + ", expected " + to_hex(expected));
  }
  return file;
}

Digest parameters_hash(std::span<const std::pair<std::string, Tensor>> parameters) {
  std::vector<const std::pair<std::string, Tensor>*> sorted;
  sorted.reserve(parameters.size());
  for (const auto& entry : parameters) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });

  Blake3 hasher;
  auto add_integer = [&](std::int64_t value) { hasher.update(std::as_bytes(std::span(&value, 1))); };
  auto add_text = [&](std::string_view text) {
    add_integer(static_cast<std::int64_t>(text.size()));
    hasher.update(text);
  };
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [name, tensor] = *sorted[i];
    const std::string where = "parameters_hash";
    STEPWELL_CHECK(i == 0 || sorted[i - 1]->first != name, where, "parameter " + quoted_for_message(name) + " twice");
    STEPWELL_CHECK(tensor.defined(), where, "parameter " + quoted_for_message(name) + " has no storage");
    add_text(name);
    add_text(dtype_name(tensor.dtype()));
    add_integer(tensor.rank());
    for (const std::int64_t extent : tensor.shape().extents()) add_integer(extent);
    const Tensor packed = tensor.is_contiguous() ? tensor : tensor.clone();
    const std::int64_t bytes = packed.numel() * dtype_size(packed.dtype());
    hasher.update({static_cast<const std::byte*>(packed.raw()), static_cast<std::size_t>(bytes)});
  }
  return hasher.digest();
}

}  // namespace stepwell::io
