// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace stepwell::python {

// A copy of an aligned array of float32 or float64 in row-major order, whatever its strides. Transposed ones are copied
// in blocks: NumPy's own copy reads a whole column before it comes back to a cache line.
nanobind::object row_major(nanobind::handle array);

}  // namespace stepwell::python
