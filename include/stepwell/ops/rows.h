// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stepwell/core/context.h"
#include "stepwell/core/view.h"

// Moving rows and summing over them. T is float or double; the elements of a row lie side by side, rows may be apart.
// Work is cut by shape, sums run in increasing row order: bits do not depend on threads.
namespace stepwell::ops {

// out = x, both [M, N].
template <class T>
void copy_rows(Context& ctx, View<const T, 2> x, View<T, 2> out);

// out[i] = x[index[i]]; x [R, N], index [M] in [0, R), out [M, N].
template <class T>
void gather_rows(Context& ctx, View<const T, 2> x, const std::int64_t* index, View<T, 2> out);

// out[index[i]] = x[i] and 0 in all other rows; x [M, N], index [M] in [0, R) and distinct, out [R, N].
template <class T>
void place_rows(Context& ctx, View<const T, 2> x, const std::int64_t* index, View<T, 2> out);

// out[r] = Σ x[i] over the i with index[i] = r, in increasing i; x [M, N], index [M] in [0, R), out [R, N]. The adjoint
// of gather_rows.
template <class T>
void add_rows(Context& ctx, View<const T, 2> x, const std::int64_t* index, View<T, 2> out);

// out[n] = Σ_m x[m][n]: rows are added in order inside blocks of 256, then the blocks in order; x [M, N], out [N].
template <class T>
void sum_rows(Context& ctx, View<const T, 2> x, T* out);

// out[b][n][m] = x[b][m][n]; x [B, M, N], out [B, N, M].
template <class T>
void transpose(Context& ctx, View<const T, 3> x, View<T, 3> out);

}  // namespace stepwell::ops
