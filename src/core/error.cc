// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/error.h"

namespace stepwell {

Error::Error(ErrorCode code, std::string_view where, std::string_view message)
    : std::runtime_error("[" + std::string(where) + "] " + std::string(message)), code_(code) {}

void fail(ErrorCode code, std::string_view where, const std::string& message) { throw Error(code, where, message); }

}  // namespace stepwell
