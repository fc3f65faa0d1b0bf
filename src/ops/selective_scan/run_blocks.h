// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/selective_scan/prepared_blocks.h"
#include "ops/selective_scan/selective_scan_simd.h"

namespace stepwell::ops {

// One block of the state at index s of h [S, N, D] (absent: nothing) ↔ [N, kBlock].
template <class T>
void load_state(View<const T, 3> h, std::int64_t s, std::int64_t channel, std::int64_t width, T* block) {
  for (std::int64_t n = 0; n < h.extent[1]; ++n) std::copy_n(&h(s, n, channel), width, block + n * kBlock);
}
template <class T>
void store_state(const T* block, std::int64_t s, std::int64_t channel, std::int64_t width, View<T, 3> h) {
  for (std::int64_t n = 0; n < h.extent[1]; ++n) std::copy_n(block + n * kBlock, width, &h(s, n, channel));
}

// Where the checkpoint before token kSpan·span of sequence s lies among all; of s = the number of sequences: how many.
inline std::int64_t checkpoint_slot(const Segments& segments, std::int64_t s, std::int64_t span) {
  return (s < segments.count() ? segments.begin(s) : segments.tokens()) / kSpan + s + span;
}

// Runs rows first … last−1 of one sequence through blocks begin … end−1, all blocks of a tile before the next tile, so
// that neighbouring pieces of a row are read together. `states` holds a state per block; after each tile of a block,
// after_tile(next row, block, its state). y absent: states only.
template <class T, class AfterTile>
void run_blocks(const PreparedBlocks<T>& prepared, std::int64_t first, std::int64_t last, std::int64_t begin,
                std::int64_t end, std::int64_t tile, T* states, View<T, 2> y, Arena& scratch, AfterTile after_tile) {
  const auto work_at = [&](std::int64_t row, std::int64_t block) {
    ScanForward<T> work{};
    work.in = prepared.at(block, row);
    work.tokens = std::min(tile, last - row);
    if (y) work.y = {y.row(row) + prepared.blocks().channel(block), y.stride[0]};
    return work;
  };
  for (std::int64_t row = first; row < last; row += tile) {
    for (std::int64_t block = begin; block < end; ++block) {
      ScanForward<T> work = work_at(row, block);
      work.h = states + (block - begin) * prepared.state_size();
      const bool more = block + 1 < end;
      if (more || row + tile < last) {
        const ScanForward<T> next = more ? work_at(row, block + 1) : work_at(row + tile, begin);
        work.next.tokens = next.tokens;
        work.next.add(next.in.u, next.in.u_stride);
        work.next.add(next.in.dt, next.in.dt_stride);
        if (y) {
          work.next.add(next.in.z, next.in.z_stride);
          work.next.add(next.y.data, next.y.stride);
        }
      }
      scan_forward(work, scratch);
      after_tile(row + work.tokens, block, work.h);
    }
  }
}

}  // namespace stepwell::ops
