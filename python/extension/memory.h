// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace stepwell::python {

// The classes Teacher and Updater, and distillations.
void bind_memory(nanobind::module_& m);

}  // namespace stepwell::python
