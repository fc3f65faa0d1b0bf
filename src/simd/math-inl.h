// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Every vector function: exp, exp2, expm1, log, log1p, the activations, erf, sin, cos, with the derivatives that
// backward passes need. Each is one sequence of correctly rounded operations, the same on every instruction set with
// fused multiply-add (X7); a NaN in gives a NaN out; errors are stated at each function and measured by tests/simd.
#if defined(STEPWELL_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STEPWELL_SIMD_MATH_INL_H_
#undef STEPWELL_SIMD_MATH_INL_H_
#else
#define STEPWELL_SIMD_MATH_INL_H_
#endif

#include "simd/activations-inl.h"
#include "simd/erf-inl.h"
#include "simd/exp-inl.h"
#include "simd/log-inl.h"
#include "simd/sin-inl.h"

#endif  // toggled guard
