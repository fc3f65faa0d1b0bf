// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace stepwell::simd {

// Instruction sets the kernels are compiled for. Scalar and every set with fused multiply-add give the same bits (X7).
enum class Isa { Scalar, Sse4, Avx2, Avx3, Neon };

std::string_view isa_name(Isa isa) noexcept;  // "scalar", "sse4", "avx2", "avx3", "neon"

// The sets this processor can run, best first. Scalar is always there.
std::vector<Isa> supported_isas();

// The set in use: the best one, unless STEPWELL_ISA (scalar|sse4|avx2|avx3) or set_isa says otherwise.
Isa current_isa();

// Switches the whole process; throws Error if the processor lacks it. Not while ops are running.
void set_isa(Isa isa);

// True where fused multiply-add is one rounding: everything but Sse4.
bool has_fma(Isa isa) noexcept;

}  // namespace stepwell::simd
