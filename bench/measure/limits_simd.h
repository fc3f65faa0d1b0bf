// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Loops that reach one limit of the machine, in the instruction set in use.
namespace stepwell::bench {

// Lanes of one f32 vector.
int lanes_f32();
// Runs `rounds` of kFmaChains vector multiply-adds whose operands stay in registers; returns a value to keep.
inline constexpr std::int64_t kFmaChains = 12;
float fma_loop(std::int64_t rounds);
// Multiplies and adds in place: reads and writes every element once.
void rewrite(float* data, std::int64_t count);
// Sum over the array, read once from front to back with software prefetch.
float read_stream(const float* data, std::int64_t count);
void copy_stream(const float* from, float* to, std::int64_t count);

}  // namespace stepwell::bench
