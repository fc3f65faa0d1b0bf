// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "stepwell/core/arena.h"
#include "stepwell/ops/selective_scan.h"

// How the kernels of the selective scan see their work: blocks of channels that share a group of B and C, each with its
// parameters transposed to [N, kBlock], so that lanes run over channels.
namespace stepwell::ops {

// Channels of a block. States and rates of a block (2·N·kBlock numbers) are to stay in the first-level cache.
inline constexpr std::int64_t kBlock = 32;
// Tokens between kept states in the backward pass, counted from the start of each sequence.
inline constexpr std::int64_t kSpan = 64;

// Numbers to allocate for a kernel's array of `size`: arrays that follow each other then do not lie a multiple of 4 KiB
// apart, where a processor takes a load from one to depend on a store to the other.
constexpr std::int64_t padded(std::int64_t size) { return size + 2 * kBlock; }

// The cut of D channels in G groups into blocks: by shape alone, no block crosses a border of groups.
struct ScanBlocks {
  std::int64_t group_width, per_group, groups;

  ScanBlocks(std::int64_t D, std::int64_t G)
      : group_width(G > 0 ? D / G : 0), per_group((group_width + kBlock - 1) / kBlock), groups(G) {}
  std::int64_t count() const { return per_group * groups; }
  std::int64_t group(std::int64_t block) const { return block / per_group; }
  std::int64_t channel(std::int64_t block) const { return group(block) * group_width + block % per_group * kBlock; }
  std::int64_t width(std::int64_t block) const { return std::min(kBlock, group_width - block % per_group * kBlock); }
};

// One block of channels over consecutive tokens of one sequence. Rows are those of the block's first channel; arrays
// [N, kBlock] and [kBlock] are padded with zeros beyond `width`.
template <class T>
struct ScanBlock {
  std::int64_t N = 0, width = 0;
  const T *u = nullptr, *dt = nullptr, *z = nullptr;  // rows of the tokens; z null: no gate
  std::int64_t u_stride = 0, dt_stride = 0, z_stride = 0;
  const T *B = nullptr, *C = nullptr;  // rows [N] of the tokens
  std::int64_t B_stride = 0, C_stride = 0;
  const T *rate = nullptr, *A = nullptr;           // [N, kBlock]; the decay is 2^(dt·rate), rate = A·log2(e)
  const T *A_slope = nullptr;                      // [N, kBlock] A, but 0 for −inf, which passes no gradient
  const T *B_lanes = nullptr, *C_lanes = nullptr;  // [N, kBlock] in place of B, C that are constant in time
  const T *skip = nullptr, *dt_bias = nullptr;     // [kBlock]; skip null: none
  T largest_step = 0;  // with steps in [0, largest_step] every decay is in the range of decay_in_range
  bool softplus = false, zero_order = false;
};

// The rows that the kernel called next will touch, to be fetched meanwhile: rows of a block lie a whole row of the
// tensor apart, which hardware prefetchers do not follow.
template <class T>
struct NextRows {
  const T *row[4];
  std::int64_t stride[4];
  std::int64_t arrays = 0, tokens = 0;

  void add(const T *first, std::int64_t step) {
    if (first == nullptr) return;
    row[arrays] = first;
    stride[arrays++] = step;
  }
};

// Rows of a block's channels in an output [L, D]; data null: not wanted.
template <class T>
struct ScanRows {
  T *data = nullptr;
  std::int64_t stride = 0;
  T *row(std::int64_t t) const { return data + t * stride; }
};

}  // namespace stepwell::ops
