// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/blake3.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stepwell/core/error.h"

namespace stepwell::io {

namespace {

static_assert(std::endian::native == std::endian::little, "message words are read as they stand in memory");

constexpr std::size_t kBlock = 64, kChunkBytes = 1024, kBlocks = kChunkBytes / kBlock;

constexpr std::uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8;  // flags

constexpr std::uint32_t kInitial[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                       0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

constexpr int kRounds = 7;

// Which message word each of the 16 places of a round takes: the permutation applied round by round.
constexpr auto kSchedule = [] {
  constexpr int kPermutation[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
  std::array<std::array<int, 16>, kRounds> schedule{};
  for (int i = 0; i < 16; ++i) schedule[0][i] = i;
  for (int r = 1; r < kRounds; ++r) {
    for (int i = 0; i < 16; ++i) schedule[r][i] = schedule[r - 1][kPermutation[i]];
  }
  return schedule;
}();

// A word of four chunks that are hashed side by side.
using Lanes = std::uint32_t __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;

template <class Word, int count>
inline void rotate(Word& x) {
  x = (x >> count) | (x << (32 - count));
}

// Mixes a column or diagonal a b c d of the state with two message words.
template <class Word>
inline void mix(Word& a, Word& b, Word& c, Word& d, const Word& x, const Word& y) {
  a += b + x;
  d ^= a;
  rotate<Word, 16>(d);
  c += d;
  b ^= c;
  rotate<Word, 12>(b);
  a += b + y;
  d ^= a;
  rotate<Word, 8>(d);
  c += d;
  b ^= c;
  rotate<Word, 7>(b);
}

// Compresses one block into the chaining value. Word is one chunk's word or the words of several chunks.
template <class Word>
inline void compress(Word (&chain)[8], const Word (&message)[16], const Word& counter_low, const Word& counter_high,
                     std::uint32_t length, std::uint32_t flags) {
  const Word zero = {};
  Word v[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) v[i] = chain[i];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[8 + i] = zero + kInitial[i];
  v[12] = counter_low;
  v[13] = counter_high;
  v[14] = zero + length;
  v[15] = zero + flags;
#pragma GCC unroll 7
  for (int r = 0; r < kRounds; ++r) {
    const auto& m = kSchedule[r];
    mix(v[0], v[4], v[8], v[12], message[m[0]], message[m[1]]);
    mix(v[1], v[5], v[9], v[13], message[m[2]], message[m[3]]);
    mix(v[2], v[6], v[10], v[14], message[m[4]], message[m[5]]);
    mix(v[3], v[7], v[11], v[15], message[m[6]], message[m[7]]);
    mix(v[0], v[5], v[10], v[15], message[m[8]], message[m[9]]);
    mix(v[1], v[6], v[11], v[12], message[m[10]], message[m[11]]);
    mix(v[2], v[7], v[8], v[13], message[m[12]], message[m[13]]);
    mix(v[3], v[4], v[9], v[14], message[m[14]], message[m[15]]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) chain[i] = v[i] ^ v[8 + i];
}

using ChainingValue = std::array<std::uint32_t, 8>;

void compress_block(ChainingValue& value, const std::uint32_t (&message)[16], std::uint64_t counter,
                    std::uint32_t length, std::uint32_t flags) {
  std::uint32_t chain[8];
  std::copy_n(value.data(), 8, chain);
  compress<std::uint32_t>(chain, message, static_cast<std::uint32_t>(counter),
                          static_cast<std::uint32_t>(counter >> 32), length, flags);
  std::copy_n(chain, 8, value.data());
}

ChainingValue initial_value() {
  ChainingValue value;
  std::copy_n(kInitial, 8, value.data());
  return value;
}

// Chaining value of a chunk of 0 … 1024 bytes; `flags` go with its last block.
ChainingValue hash_chunk(std::span<const std::byte> bytes, std::uint64_t counter, std::uint32_t flags) {
  ChainingValue value = initial_value();
  std::uint32_t start = kChunkStart;
  do {
    const std::size_t length = std::min(bytes.size(), kBlock);
    std::uint32_t message[16] = {};
    if (length > 0) std::memcpy(message, bytes.data(), length);
    bytes = bytes.subspan(length);
    const std::uint32_t last = bytes.empty() ? kChunkEnd | flags : 0;
    compress_block(value, message, counter, static_cast<std::uint32_t>(length), start | last);
    start = 0;
  } while (!bytes.empty());
  return value;
}

ChainingValue hash_parent(const ChainingValue& left, const ChainingValue& right, std::uint32_t flags) {
  ChainingValue value = initial_value();
  std::uint32_t message[16];
  std::copy_n(left.data(), 8, message);
  std::copy_n(right.data(), 8, message + 8);
  compress_block(value, message, 0, kBlock, kParent | flags);
  return value;
}

// Words 4q … 4q+3 of the block at `offset` of four chunks: a 4×4 transpose.
inline void load_words(const std::byte* chunks, std::size_t offset, Lanes* words) {
  Lanes row[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) std::memcpy(&row[i], chunks + i * kChunkBytes + offset, sizeof(Lanes));
  const Lanes low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const Lanes low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const Lanes high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const Lanes high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  words[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  words[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  words[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  words[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

// Chaining values of four whole chunks that lie one after another.
void hash_chunks(const std::byte* chunks, std::uint64_t counter, ChainingValue (&values)[kLanes]) {
  Lanes chain[8], low, high;
  for (int i = 0; i < 8; ++i) chain[i] = Lanes{} + kInitial[i];
  for (std::size_t i = 0; i < kLanes; ++i) {
    low[i] = static_cast<std::uint32_t>(counter + i);
    high[i] = static_cast<std::uint32_t>((counter + i) >> 32);
  }
  for (std::size_t block = 0; block < kBlocks; ++block) {
    Lanes message[16];
    for (std::size_t q = 0; q < 4; ++q) load_words(chunks, block * kBlock + q * sizeof(Lanes), message + 4 * q);
    const std::uint32_t flags = (block == 0 ? kChunkStart : 0) | (block + 1 == kBlocks ? kChunkEnd : 0);
    compress<Lanes>(chain, message, low, high, kBlock, flags);
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    for (std::size_t w = 0; w < 8; ++w) values[i][w] = chain[w][i];
  }
}

}  // namespace

Blake3::Blake3() = default;

// Adds a finished chunk to the tree: a subtree is joined with its left neighbour as soon as both are complete, so the
// number of trailing zero bits of the chunk count says how many joins there are.
void Blake3::finish_chunk(const ChainingValue& value) {
  ChainingValue subtree = value;
  ++chunks_;
  for (std::uint64_t count = chunks_; (count & 1) == 0; count >>= 1)
    subtree = hash_parent(stack_[--depth_], subtree, 0);
  stack_[depth_++] = subtree;
}

void Blake3::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (used_ == kChunk) {  // more follows: this was not the last chunk
      finish_chunk(hash_chunk(chunk_, chunks_, 0));
      used_ = 0;
    }
    while (used_ == 0 && bytes.size() > kLanes * kChunk) {
      ChainingValue values[kLanes];
      hash_chunks(bytes.data(), chunks_, values);
      for (const auto& value : values) finish_chunk(value);
      bytes = bytes.subspan(kLanes * kChunk);
    }
    const std::size_t taken = std::min(bytes.size(), kChunk - used_);
    std::memcpy(chunk_.data() + used_, bytes.data(), taken);
    used_ += taken;
    bytes = bytes.subspan(taken);
  }
}

Digest Blake3::digest() const {
  const bool alone = depth_ == 0;
  ChainingValue value = hash_chunk(std::span(chunk_).first(used_), chunks_, alone ? kRoot : 0);
  for (std::size_t i = depth_; i > 0; --i) value = hash_parent(stack_[i - 1], value, i == 1 ? kRoot : 0);
  return std::bit_cast<Digest>(value);
}

Digest blake3(std::span<const std::byte> bytes) {
  Blake3 hasher;
  hasher.update(bytes);
  return hasher.digest();
}

std::string to_hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const unsigned byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

Digest digest_from_hex(std::string_view hex) {
  Digest digest{};
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  bool good = hex.size() == 2 * digest.size();
  for (std::size_t i = 0; good && i < digest.size(); ++i) {
    const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    good = high >= 0 && low >= 0;
    digest[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  STEPWELL_CHECK(good, "BLAKE3", "expected a hash of 64 hexadecimal digits, 0-9 and a-f");
  return digest;
}

}  // namespace stepwell::io
