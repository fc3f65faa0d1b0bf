// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// An embedder, with stepwell::infer: makes a small forecaster and feeds it token by token.
#include <cmath>
#include <cstdio>
#include <exception>

#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/core/rng.h"
#include "stepwell/models/model.h"
#include "stepwell/models/stream.h"
#include "stepwell/simd/isa.h"

int main() try {
  using namespace stepwell;
  Config config;
  config.set("type", "forecaster");
  config.set("width", 8);
  config.set("layers", 1);
  config.set("mixer", "mamba");
  const auto model = models::make_model(config, Rng(1));
  Context ctx = Context::serial();
  models::Stream stream(*model, ctx);
  float value = 0.5f;
  for (int t = 0; t < 100; ++t) {
    if (!stream.step({&value, 1}, {&value, 1}) || !std::isfinite(value)) {
      return std::printf("step %d failed: %g\n", t, static_cast<double>(value)), 1;
    }
  }
  std::printf("stepwell::infer: %lld steps on %s\n", static_cast<long long>(stream.position()),
              std::string(simd::isa_name(simd::current_isa())).c_str());
  return 0;
} catch (const std::exception& error) {
  return std::printf("%s\n", error.what()), 1;
}
