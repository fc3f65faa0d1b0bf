// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace stepwell::python {

// The promises for the built-in layers, and case files.
void bind_verify(nanobind::module_& m);

}  // namespace stepwell::python
