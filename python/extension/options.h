// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nanobind/nanobind.h>

#include "stepwell/core/config.h"

namespace stepwell::python {

namespace nb = nanobind;

// A Python value (None, bool, number, string, sequence, dict) as a Config; throws Error naming `where` for others.
Config config_of(nb::handle value, const std::string& where);

nb::object value_of(const Config& config);

}  // namespace stepwell::python
