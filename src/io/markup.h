// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace stepwell::io {

// Text for the content or a quoted attribute of XML and HTML: & < > " ' as entities, and what XML does not allow (bytes
// that are not UTF-8, control characters, surrogates, U+FFFE, U+FFFF) as U+FFFD.
std::string escape_markup(std::string_view text);

// The colours of charts and pages as CSS declarations: --ground, --ink, --note, --grid and --c0 … --c7.
extern const char* const kLightColours;
extern const char* const kDarkColours;
inline constexpr int kColours = 8;

}  // namespace stepwell::io
