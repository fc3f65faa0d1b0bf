// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "stepwell/models/model.h"

namespace stepwell::models {

// One sequence fed token by token in constant memory. A stream refers to its model and context, which must outlive it;
// one thread at a time. Values of a series, in and out, are in its own units (Model::scales()).
class Stream {
 public:
  // Opens at position 0 with zero state and runs a step for nothing, which allocates all that steps will ever need.
  // Steps are fastest after model.prepare(). Throws Error for a model in F64 or with a state that grows.
  Stream(const Model& model, Context& ctx);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  // Feeds one token (or vector) and writes the output for the next one, output_width() values. Allocates nothing, locks
  // nothing, throws nothing (X6, on a serial context). False, with nothing changed, for an id outside the vocabulary, a
  // span of the wrong size, or the wrong kind of model.
  [[nodiscard]] bool step(std::int64_t token, std::span<float> output) noexcept;
  [[nodiscard]] bool step(std::span<const float> input, std::span<float> output) noexcept;

  // Feeds many tokens (or vectors, one after another) at once: the same bits as stepping (mode Exact). `output` takes
  // the output after the last one; without tokens it is left as it is. Throws Error, with nothing changed, for what
  // step() refuses.
  void prefill(std::span<const std::int64_t> tokens, std::span<float> output);
  void prefill(std::span<const float> inputs, std::span<float> output);

  std::int64_t position() const;  // tokens fed
  Stream clone() const;           // an independent copy at the same position
  void reset();                   // back to position 0

  // The state, position and the model's fingerprint in a file; restore() refuses a file of another model, a damaged or
  // a truncated one, and changes nothing then. A restored stream continues with the same bits (X5).
  void save(const std::string& path) const;
  void restore(const std::string& path);

 private:
  struct Impl;
  explicit Stream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepwell::models
