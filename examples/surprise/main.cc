// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "stepwell/core/context.h"
#include "stepwell/models/stream.h"

// Prints how many bits each line of standard input surprises a language model by: surprise MODEL_FOLDER < LOG
int main(int argc, char** argv) try {
  using namespace stepwell;
  if (argc != 2) return std::fprintf(stderr, "usage: surprise MODEL_FOLDER < TEXT\n"), 2;
  const auto model = models::load_model(argv[1]);  // config.json and model.safetensors
  Context ctx = Context::serial();                 // this thread alone
  model->prepare(ctx);
  models::Stream stream(*model, ctx);  // allocates all it will ever need
  std::vector<float> logits(model->output_width());

  double bits = 0;
  bool fed = stream.step('\n', logits);
  for (int byte; fed && (byte = std::getchar()) != EOF;) {
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - logits[byte]);
    bits += std::log2(sum);
    if (byte == '\n') std::printf("%8.1f bits\n", std::exchange(bits, 0));
    fed = stream.step(byte, logits);  // noexcept; no heap, no lock, the same time for every byte
  }
  return fed ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "surprise: %s\n", error.what());
  return 1;
}
