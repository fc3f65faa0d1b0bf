// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Nearly every input ends in an exception, after each of which ASan scans its fake stack: without the check that needs
// one, the targets run four times as fast. The tests under ASan keep the check.
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }
