// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "stepwell/layers/module.h"

// Lists of named tensors inside larger ones, as checkpoints hold them.
namespace stepwell::memory {

inline void add_under(std::string_view prefix, const layers::NamedTensors& from, layers::NamedTensors& to) {
  for (const auto& [name, tensor] : from) to.emplace_back(std::string(prefix) + name, tensor);
}

inline layers::NamedTensors those_under(std::string_view prefix, const layers::NamedTensors& from) {
  layers::NamedTensors found;
  for (const auto& [name, tensor] : from) {
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), tensor);
  }
  return found;
}

inline const Tensor& tensor_named(std::string_view name, const layers::NamedTensors& from) {
  for (const auto& [own, tensor] : from) {
    if (own == name) return tensor;
  }
  fail(ErrorCode::File, "checkpoint", "no tensor " + std::string(name));
}

}  // namespace stepwell::memory
