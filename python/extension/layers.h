// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace stepwell::python {

// The classes Layer and LayerState, and what the registry knows.
void bind_layers(nanobind::module_& m);

}  // namespace stepwell::python
