// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/selective_scan.h"

#include <algorithm>

#include "ops/selective_scan/run_blocks.h"

namespace stepwell::ops {

namespace {

// Blocks that a task runs side by side at most, tile by tile: the more, the longer the pieces of each row that it reads
// and writes, but their states and rates are to stay in the second-level cache.
constexpr std::int64_t kTaskBlocks = 64;
// Tasks for each of several threads, so that a slow one can be helped. Bits do not depend on the cut.
constexpr std::int64_t kTasksPerThread = 2;

}  // namespace

template <class T>
void selective_scan(Context& ctx, const SelectiveScanInputs<T>& in, const Segments& segments, View<T, 3> h,
                    View<T, 2> y, View<T, 3> h_all, T* checkpoints) {
  ArenaScope scope(ctx.scratch());
  const PreparedBlocks<T> prepared(ctx, in);
  const ScanBlocks& blocks = prepared.blocks();
  const std::int64_t state = prepared.state_size(), tile = h_all ? 1 : kTile;
  const std::int64_t tasks = ctx.threads() == 1 ? 1 : ctx.threads() * kTasksPerThread;
  const std::int64_t together = std::clamp<std::int64_t>(segments.count() * blocks.count() / tasks, 1, kTaskBlocks);
  const std::int64_t chunks = (blocks.count() + together - 1) / together;
  ctx.parallel_for(segments.count() * chunks, [&](std::int64_t task, Arena& scratch) {
    const std::int64_t s = task / chunks, begin = task % chunks * together;
    const std::int64_t end = std::min(begin + together, blocks.count());
    T* states = scratch.allocate<T>((end - begin) * state);
    std::fill_n(states, (end - begin) * state, T(0));
    for (std::int64_t block = begin; block < end; ++block) {
      load_state<T>(h, s, blocks.channel(block), blocks.width(block), states + (block - begin) * state);
    }
    const auto keep = [&](std::int64_t row, std::int64_t block, const T* now) {
      const std::int64_t at = row - segments.begin(s);
      if (!checkpoints || at % kSpan != 0 || row == segments.end(s)) return;
      std::copy_n(now, state,
                  checkpoints + (checkpoint_slot(segments, s, at / kSpan) * blocks.count() + block) * state);
    };
    for (std::int64_t block = begin; block < end; ++block) {
      keep(segments.begin(s), block, states + (block - begin) * state);
    }
    run_blocks(prepared, segments.begin(s), segments.end(s), begin, end, tile, states, y, scratch,
               [&](std::int64_t row, std::int64_t block, const T* now) {
                 if (h_all) store_state(now, row - 1, blocks.channel(block), blocks.width(block), h_all);
                 keep(row, block, now);
               });
    for (std::int64_t block = begin; block < end; ++block) {
      store_state(states + (block - begin) * state, s, blocks.channel(block), blocks.width(block), h);
    }
  });
}

template <class T>
std::int64_t selective_scan_checkpoints(const SelectiveScanInputs<T>& in, const Segments& segments) {
  const ScanBlocks blocks(in.A.extent[0], in.constant_bc ? 1 : in.B.extent[1]);
  return checkpoint_slot(segments, segments.count(), 0) * blocks.count() * in.A.extent[1] * kBlock;
}

template void selective_scan(Context&, const SelectiveScanInputs<float>&, const Segments&, View<float, 3>,
                             View<float, 2>, View<float, 3>, float*);
template void selective_scan(Context&, const SelectiveScanInputs<double>&, const Segments&, View<double, 3>,
                             View<double, 2>, View<double, 3>, double*);
template std::int64_t selective_scan_checkpoints(const SelectiveScanInputs<float>&, const Segments&);
template std::int64_t selective_scan_checkpoints(const SelectiveScanInputs<double>&, const Segments&);

}  // namespace stepwell::ops
