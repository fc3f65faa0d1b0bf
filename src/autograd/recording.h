// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/autograd/variable.h"

namespace stepwell {

// Whether this library records gradients: true in stepwell::stepwell, false in stepwell::infer, which is built from the
// same sources. Functions write `if (kRecords && recording({…}))`, so that stepwell::infer links no backward code.
inline constexpr bool kRecords = STEPWELL_RECORDS_GRADIENTS != 0;

}  // namespace stepwell
