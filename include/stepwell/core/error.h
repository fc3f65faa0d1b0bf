// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace stepwell {

// What kind of fault an Error reports, for callers that branch on it.
enum class ErrorCode {
  Argument,     // a value, shape or dtype the caller passed
  Config,       // a configuration key or value
  File,         // a file that is missing, unreadable, unwritable or malformed
  Unsupported,  // valid, but not offered by this build or by this layer
  Internal,     // a broken invariant of ours
};

// The one exception type of the library. The message reads `[where] what was got, what was expected`.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string_view where, std::string_view message);
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error; out of line so that checks stay small at their call sites.
[[noreturn]] void fail(ErrorCode code, std::string_view where, const std::string& message);

}  // namespace stepwell

// Tests an argument at an API boundary; always on. `message` is evaluated only on failure.
#define STEPWELL_CHECK(condition, where, message)                                        \
  do {                                                                                   \
    if (!(condition)) ::stepwell::fail(::stepwell::ErrorCode::Argument, where, message); \
  } while (false)

// Tests one of our own invariants, in debug builds only.
#ifdef NDEBUG
#define STEPWELL_DCHECK(condition) ((void)0)
#else
#define STEPWELL_DCHECK(condition)                                                                        \
  do {                                                                                                    \
    if (!(condition)) ::stepwell::fail(::stepwell::ErrorCode::Internal, __FILE__, "broken: " #condition); \
  } while (false)
#endif
