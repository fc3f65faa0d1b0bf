// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "stepwell/layers/module.h"

namespace stepwell::models {

// What a stream's file holds. On disk: safetensors with the states in the exchange format and metadata `format`
// (stepwell-stream-1), `model`, `position` and `blake3`, a hash over all the rest, so that one file protects itself.
struct Snapshot {
  std::string model;  // its fingerprint
  std::int64_t position = 0;
  layers::NamedTensors states;  // layers.{i}.{field}
};

void write_snapshot(const std::string& path, const Snapshot& snapshot);
// Throws Error (File) for anything write_snapshot did not write. The tensors share the mapped file.
Snapshot read_snapshot(const std::string& path);

}  // namespace stepwell::models
