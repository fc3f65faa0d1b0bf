// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/simd/isa.h"

namespace stepwell::simd {

// Runs f(isa) with every instruction set of this machine in turn, then goes back to the one in use before.
template <class F>
void for_every_isa(F&& f) {
  const Isa before = current_isa();
  for (const Isa isa : supported_isas()) {
    set_isa(isa);
    f(isa);
  }
  set_isa(before);
}

}  // namespace stepwell::simd
