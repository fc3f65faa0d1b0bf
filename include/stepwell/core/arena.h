// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace stepwell {

// A stack of scratch memory. allocate() bumps a pointer; release(mark) gives back everything since mark(). Grows by
// heap blocks when it must and keeps them, so that a repeated pattern of use allocates from the heap only the first
// time. One thread at a time.
class Arena {
 public:
  struct Mark {
    std::size_t block = 0, used = 0;
  };

  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Uninitialised memory, aligned to 64 bytes; 0 bytes give a valid, unusable pointer. In debug builds filled with NaN.
  void* allocate(std::size_t bytes);

  template <class T>
  T* allocate(std::int64_t count) {
    return static_cast<T*>(allocate(static_cast<std::size_t>(count) * sizeof(T)));
  }

  // Called whenever an op takes scratch, and where it has computed for long without: what it throws ends the op, whose
  // outputs are then unfinished (Context::set_interrupt). Null: none.
  void set_interrupt(const std::function<void()>* interrupt) { interrupt_ = interrupt; }
  void check_interrupt() const {
    if (interrupt_) (*interrupt_)();
  }

  Mark mark() const { return {current_, blocks_.empty() ? 0 : blocks_[current_].used}; }
  void release(Mark mark);

  // Bytes held from the heap.
  std::size_t capacity() const;

 private:
  struct Block {
    std::byte* data;
    std::size_t size, used;
  };
  std::vector<Block> blocks_;
  std::size_t current_ = 0;
  const std::function<void()>* interrupt_ = nullptr;
};

// Releases what was allocated during its lifetime.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace stepwell
