// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/arena.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace stepwell {
namespace {

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; }

TEST(Arena, GivesAlignedMemoryThatDoesNotOverlap) {
  Arena arena;
  std::vector<std::pair<unsigned char*, std::size_t>> parts;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::size_t bytes = i * 37 % 5000;
    auto* p = static_cast<unsigned char*>(arena.allocate(bytes));
    EXPECT_TRUE(aligned(p));
    std::memset(p, static_cast<int>(i), bytes);
    parts.emplace_back(p, bytes);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t k = 0; k < parts[i].second; ++k) ASSERT_EQ(parts[i].first[k], static_cast<unsigned char>(i));
  }
}

TEST(Arena, GrowsForRequestsLargerThanItsBlocks) {
  Arena arena;
  EXPECT_EQ(arena.capacity(), 0u);
  arena.allocate(100);
  const std::size_t small = arena.capacity();
  void* big = arena.allocate(10 * small);
  EXPECT_TRUE(aligned(big));
  std::memset(big, 1, 10 * small);
  EXPECT_GE(arena.capacity(), 11 * small);
}

TEST(Arena, ReleaseGivesMemoryBackInStackOrder) {
  Arena arena;
  arena.allocate(64);
  const auto mark = arena.mark();
  void* first = arena.allocate(1000);
  arena.release(mark);
  EXPECT_EQ(arena.allocate(10), first);
  {
    ArenaScope outer(arena);
    void* a = arena.allocate(1);
    {
      ArenaScope inner(arena);
      EXPECT_NE(arena.allocate(1), a);
    }
    void* b = arena.allocate(1);
    EXPECT_NE(a, b);
  }
}

TEST(Arena, NestedScopesSurviveGrowth) {
  Arena arena;
  auto* kept = static_cast<int*>(arena.allocate(sizeof(int)));
  *kept = 42;
  for (int round = 0; round < 3; ++round) {
    ArenaScope scope(arena);
    for (int i = 0; i < 20; ++i) std::memset(arena.allocate(std::size_t{1} << 16), round, std::size_t{1} << 16);
  }
  EXPECT_EQ(*kept, 42);
}

TEST(Arena, OnceEmptyItsBlocksBecomeOneAndTheSamePatternNeedsNoMore) {
  Arena arena;
  auto pattern = [&] {
    ArenaScope scope(arena);
    for (int i = 0; i < 50; ++i) arena.allocate(30000);
  };
  pattern();
  const std::size_t capacity = arena.capacity();
  auto* start = static_cast<std::byte*>(arena.allocate(1));
  arena.release({});
  for (int i = 0; i < 5; ++i) {
    pattern();
    EXPECT_EQ(arena.capacity(), capacity);
    auto* again = static_cast<std::byte*>(arena.allocate(1));
    EXPECT_EQ(again, start) << "the one block is kept";
    arena.release({});
  }
}

}  // namespace
}  // namespace stepwell
