// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "stepwell/core/context.h"

#include "ops/selective_scan/scan_block.h"

namespace stepwell::ops {

// The parameters of a scan, transposed block by block into the context's scratch memory.
template <class T>
class PreparedBlocks {
 public:
  PreparedBlocks(Context& ctx, const SelectiveScanInputs<T>& in)
      : in_(in),
        blocks_(in.A.extent[0], in.constant_bc ? 1 : in.B.extent[1]),
        N_(in.A.extent[1]),
        state_(N_ * kBlock),
        size_((3 + (in.constant_bc ? 2 : 0)) * state_ + 3 * kBlock),
        data_(ctx.scratch().allocate<T>(size_ * blocks_.count())) {
    ctx.parallel_for(blocks_.count(), [this](std::int64_t block, Arena&) { prepare(block); });
  }

  const ScanBlocks& blocks() const { return blocks_; }
  std::int64_t state_size() const { return state_; }

  // Block `block` of the tokens from row `first` on.
  ScanBlock<T> at(std::int64_t block, std::int64_t first) const {
    const T* p = data_ + block * size_;
    const std::int64_t channel = blocks_.channel(block), group = blocks_.group(block);
    ScanBlock<T> b;
    b.N = N_;
    b.width = blocks_.width(block);
    b.u = in_.u.row(first) + channel;
    b.u_stride = in_.u.stride[0];
    b.dt = in_.dt.row(first) + channel;
    b.dt_stride = in_.dt.stride[0];
    if (in_.z) b.z = in_.z.row(first) + channel;
    b.z_stride = in_.z.stride[0];
    b.rate = p;
    b.A = p + state_;
    b.A_slope = p + 2 * state_;
    p += 3 * state_;
    b.dt_bias = p;
    if (in_.D) b.skip = p + kBlock;
    b.largest_step = p[2 * kBlock];
    if (in_.constant_bc) {
      b.B_lanes = p + 3 * kBlock;
      b.C_lanes = b.B_lanes + state_;
    } else {
      b.B = in_.B.row(first) + group * in_.B.stride[1];
      b.B_stride = in_.B.stride[0];
      b.C = in_.C.row(first) + group * in_.C.stride[1];
      b.C_stride = in_.C.stride[0];
    }
    b.softplus = in_.softplus;
    b.zero_order = in_.discretisation == Discretisation::ZeroOrder;
    return b;
  }

 private:
  void prepare(std::int64_t block) {
    constexpr T kLog2E = T(1.4426950408889634074);
    constexpr T kFarExponent = sizeof(T) == 4 ? 125 : 1021;
    const std::int64_t channel = blocks_.channel(block), width = blocks_.width(block);
    T* p = data_ + block * size_;
    std::fill_n(p, size_, T(0));
    T largest = 0;
    bool finite = true;
    for (std::int64_t d = 0; d < width; ++d) {
      for (std::int64_t n = 0; n < N_; ++n) {
        const T A = in_.A(channel + d, n), rate = A * kLog2E;
        p[n * kBlock + d] = rate;
        p[state_ + n * kBlock + d] = A;
        p[2 * state_ + n * kBlock + d] = A == -std::numeric_limits<T>::infinity() ? T(0) : A;
        largest = std::max(largest, std::abs(rate));
        finite = finite && std::isfinite(rate);
      }
    }
    p += 3 * state_;
    for (std::int64_t d = 0; d < width && in_.dt_bias; ++d) p[d] = in_.dt_bias[channel + d];
    for (std::int64_t d = 0; d < width && in_.D; ++d) p[kBlock + d] = in_.D[channel + d];
    p[2 * kBlock] = !finite ? T(-1) : std::min(kFarExponent / largest, std::numeric_limits<T>::max());
    if (!in_.constant_bc) return;
    p += 3 * kBlock;
    for (std::int64_t d = 0; d < width; ++d) {
      for (std::int64_t n = 0; n < N_; ++n) {
        p[n * kBlock + d] = in_.B(channel + d, 0, n);
        p[state_ + n * kBlock + d] = in_.C(channel + d, 0, n);
      }
    }
  }

  const SelectiveScanInputs<T>& in_;
  ScanBlocks blocks_;
  std::int64_t N_, state_, size_;
  T* data_;
};

}  // namespace stepwell::ops
