// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stepwell/train/task.h"
#include "stepwell/train/text.h"

namespace stepwell::train {

// Next-byte prediction: a window is `length` bytes and the byte after each, from anywhere in the training text.
// Figures: bits_per_byte (document_bits), unigram (the same with the byte frequencies of the training text), bytes.
class TextTask : public Task {
 public:
  // Throws Error (File) if the training text is shorter than a window.
  TextTask(ByteText text, std::int64_t length, std::uint64_t seed);

  std::vector<std::string_view> model_types() const override { return {"causal_lm", "xlstm", "xlstm_large"}; }
  Variable loss(Context& ctx, const models::Model& model, std::int64_t first, std::int64_t count,
                const Rng* dropout_rng) const override;
  Figures evaluate(Context& ctx, const models::Model& model, std::int64_t most) const override;
  std::string fingerprint() const override;
  std::string describe() const override;

 private:
  ByteText text_;
  std::int64_t length_;
  Rng windows_;
};

}  // namespace stepwell::train
