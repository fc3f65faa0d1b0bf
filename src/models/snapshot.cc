// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "models/snapshot.h"

#include <charconv>
#include <string_view>

#include "stepwell/io/blake3.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/io/seal.h"

namespace stepwell::models {

namespace {

constexpr std::string_view kStreamFormat = "stepwell-stream-1";

std::string hash_of(const Snapshot& snapshot) {
  io::Blake3 hash;
  hash.update(snapshot.model);
  hash.update(" " + std::to_string(snapshot.position) + " ");
  hash.update(io::to_hex(io::parameters_hash(snapshot.states)));
  return io::to_hex(hash.digest());
}

io::Metadata metadata_of(const Snapshot& snapshot) {
  return {{"format", std::string(kStreamFormat)},
          {"model", snapshot.model},
          {"position", std::to_string(snapshot.position)},
          {"blake3", hash_of(snapshot)}};
}

}  // namespace

void write_snapshot(const std::string& path, const Snapshot& snapshot) {
  io::write_safetensors(path, snapshot.states, metadata_of(snapshot));
}

Snapshot read_snapshot(const std::string& path) {
  const auto file = io::SafetensorsFile::open(path);
  const io::Metadata metadata = file.metadata();
  io::check_format(metadata, kStreamFormat, path);
  const auto value = [&](std::string_view key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  Snapshot snapshot{.model = value("model"), .states = file.tensors()};
  const std::string position = value("position");
  std::from_chars(position.data(), position.data() + position.size(), snapshot.position);
  // Whatever does not read back as it was written is damaged.
  if (metadata != metadata_of(snapshot)) fail(ErrorCode::File, path, "is damaged: its content does not match its hash");
  return snapshot;
}

}  // namespace stepwell::models
