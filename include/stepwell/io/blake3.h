// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stepwell::io {

// 256 bits of BLAKE3.
using Digest = std::array<std::uint8_t, 32>;

// BLAKE3 in its hash mode, fed in pieces of any size (O'Connor, Aumasson, Neves, Wilcox-O'Hearn 2020). One thread at a
// time; allocates nothing.
class Blake3 {
 public:
  Blake3();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  // Of all bytes so far; more may follow.
  Digest digest() const;

 private:
  using ChainingValue = std::array<std::uint32_t, 8>;
  static constexpr std::size_t kChunk = 1024;
  static constexpr std::size_t kMaxDepth = 54;  // of a tree over 2^64 bytes

  void finish_chunk(const ChainingValue& value);

  std::array<std::byte, kChunk> chunk_;  // the last chunk, kept until it is known whether more follows
  std::size_t used_ = 0;
  std::uint64_t chunks_ = 0;                    // finished
  std::array<ChainingValue, kMaxDepth> stack_;  // roots of the complete subtrees so far, largest first
  std::size_t depth_ = 0;
};

Digest blake3(std::span<const std::byte> bytes);

// 64 lower-case hexadecimal digits, and back; throws Error (Argument) for anything else.
std::string to_hex(const Digest& digest);
Digest digest_from_hex(std::string_view hex);

}  // namespace stepwell::io
