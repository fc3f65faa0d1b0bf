// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/arena.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace stepwell {

namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kFirstBlock = std::size_t{1} << 16;

std::byte* heap_block(std::size_t size) {
  return static_cast<std::byte*>(::operator new(size, std::align_val_t{kAlignment}));
}
void free_block(std::byte* data) { ::operator delete(data, std::align_val_t{kAlignment}); }
}  // namespace

Arena::~Arena() {
  for (auto& block : blocks_) free_block(block.data);
}

void* Arena::allocate(std::size_t bytes) {
  check_interrupt();
  const std::size_t need = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  while (!blocks_.empty() && blocks_[current_].size - blocks_[current_].used < need && current_ + 1 < blocks_.size()) {
    ++current_;
    blocks_[current_].used = 0;
  }
  if (blocks_.empty() || blocks_[current_].size - blocks_[current_].used < need) {
    const std::size_t size = std::max({need, kFirstBlock, 2 * capacity()});
    blocks_.push_back({heap_block(size), size, 0});
    current_ = blocks_.size() - 1;
  }
  Block& block = blocks_[current_];
  std::byte* p = block.data + block.used;
  block.used += need;
#ifndef NDEBUG
  std::memset(p, 0xFF, bytes);
#endif
  return p;
}

void Arena::release(Mark mark) {
  if (blocks_.empty()) return;
  current_ = mark.block;
  blocks_[current_].used = mark.used;
  if (current_ == 0 && mark.used == 0 && blocks_.size() > 1) {
    // Empty again: one block as large as all of them serves the same pattern of use from now on.
    const std::size_t total = capacity();
    std::byte* data = heap_block(total);
    for (auto& block : blocks_) free_block(block.data);
    blocks_.clear();
    blocks_.push_back({data, total, 0});
  }
}

std::size_t Arena::capacity() const {
  std::size_t total = 0;
  for (const auto& block : blocks_) total += block.size;
  return total;
}

}  // namespace stepwell
