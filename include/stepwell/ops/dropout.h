// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "stepwell/core/context.h"
#include "stepwell/core/rng.h"

namespace stepwell::ops {

// keep[i] = 1 where rng's uniform number offset + i is at least p, else 0: depends on the index alone, not on threads.
void dropout_mask(Context& ctx, const Rng& rng, std::uint64_t offset, double p, std::span<std::uint8_t> keep);

// out[i] = keep[i] ? factor·x[i] : 0 (also where x[i] is not finite). Both directions of dropout. out may be x.
template <class T>
void apply_dropout(Context& ctx, std::span<const T> x, std::span<const std::uint8_t> keep, T factor, std::span<T> out);

}  // namespace stepwell::ops
