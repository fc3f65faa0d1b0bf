// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace stepwell::io {

constexpr std::uint64_t kLargestHeader = 100'000'000;  // the format's own limit
constexpr std::string_view kMetadataKey = "__metadata__";

}  // namespace stepwell::io
