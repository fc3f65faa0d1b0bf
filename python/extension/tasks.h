// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace stepwell::python {

// The class SequenceTask, and the tasks by name.
void bind_tasks(nanobind::module_& m);

}  // namespace stepwell::python
