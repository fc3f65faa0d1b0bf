// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace stepwell {

// How L token rows fall into S sequences: sequence s owns rows begin(s) … end(s)−1 and one state.
// A batch [B,T] is S = B sequences of T rows each; packed sequences come with explicit offsets. Every op takes token
// rows [L, width] and Segments, so that a batch, a packed batch and a padded batch run the same code.
class Segments {
 public:
  // B sequences of T rows. Allocates nothing.
  static Segments uniform(std::int64_t batch, std::int64_t time) { return Segments(batch, time, nullptr); }

  // Sequences between consecutive offsets: offsets[0] = 0, non-decreasing, offsets.back() = tokens; empty sequences
  // are fine. Throws Error otherwise. The span must outlive the object.
  static Segments from_offsets(std::span<const std::int64_t> offsets, std::int64_t tokens);

  std::int64_t count() const { return count_; }
  std::int64_t begin(std::int64_t s) const { return offsets_ ? offsets_[s] : s * time_; }
  std::int64_t end(std::int64_t s) const { return offsets_ ? offsets_[s + 1] : (s + 1) * time_; }
  std::int64_t length(std::int64_t s) const { return end(s) - begin(s); }
  std::int64_t tokens() const { return count_ == 0 ? 0 : end(count_ - 1); }

 private:
  Segments(std::int64_t count, std::int64_t time, const std::int64_t* offsets)
      : count_(count), time_(time), offsets_(offsets) {}
  std::int64_t count_, time_;
  const std::int64_t* offsets_;
};

}  // namespace stepwell
