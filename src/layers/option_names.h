// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// What the configurations of the mixers have in common.
namespace stepwell::layers {

inline constexpr std::int64_t kMaxWidth = 1 << 20;

// The name of an enumerator, given the names in its order.
template <class E, std::size_t N>
std::string name_in(const std::string_view (&names)[N], E value) {
  return std::string(names[static_cast<std::size_t>(value)]);
}

}  // namespace stepwell::layers
