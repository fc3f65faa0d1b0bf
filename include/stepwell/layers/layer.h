// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stepwell/core/config.h"
#include "stepwell/core/segments.h"
#include "stepwell/layers/module.h"

namespace stepwell::layers {

// One tensor of a layer's state, per sequence.
struct StateField {
  std::string_view name;  // of the exchange format, e.g. "ssm_state"
  Shape shape;            // of the library's own layout, without the leading sequence dimension
  bool positive = false;  // entries are never negative, or it does no harm to think so: for made-up states
};

// The state of one layer for S sequences: fields [S, …] in the order of state_fields(). Empty = initial state. Fields
// are variables, so gradients flow through a state that is handed from one call to the next.
class State {
 public:
  static constexpr int kMaxFields = 6;
  bool empty() const { return count_ == 0; }
  int count() const { return count_; }
  void push(Variable field);  // throws beyond kMaxFields
  Variable& operator[](int i) { return fields_[i]; }
  const Variable& operator[](int i) const { return fields_[i]; }
  // The field moved out, undefined for an empty state: what forward() hands to a function that may update it in place.
  Variable take(int i);
  State detach() const;  // cut from the graph

 private:
  std::array<Variable, kMaxFields> fields_;
  int count_ = 0;
};

// How token rows fall into sequences, beside the batch dimension. At most one of the two; a mask of all ones beside
// offsets is allowed, and the offsets rule.
struct Sequences {
  std::vector<std::int64_t> cu_seqlens;  // packed: borders of the sequences in [1, T]; a state each
  Tensor mask;                           // padded: Bool or U8 [B, T], 1 = real token; pads are skipped altogether
};

// The real tokens of a padded batch as packed sequences: their rows among [B·T], I64, and the borders of the sequences
// (B + 1) among those. Undefined rows: every token is real.
struct RealTokens {
  Tensor rows;
  std::vector<std::int64_t> offsets;
};
// Throws Error unless `mask` is Bool or U8 [batch, time].
RealTokens real_tokens(const Tensor& mask, std::int64_t batch, std::int64_t time);

struct LayerOutput {
  Variable y;   // [B, T, width]
  State state;  // after the last token of every sequence
};

// A token mixer: a recurrence with a state and parameters. There is no separate step: a step is forward with T = 1.
class Layer : public Module {
 public:
  virtual std::string_view type() const = 0;  // the registry's name
  virtual Config config() const = 0;          // every option, as the config reader takes it
  virtual std::int64_t width() const = 0;     // of x and y
  virtual const std::vector<StateField>& state_fields() const = 0;

  // x [B, T, width] → y [B, T, width] and the outgoing state. `state` holds B sequences (or one per packed sequence);
  // moved in under NoGrad its memory is updated in place. Differentiable in x, parameters and state. Padded positions
  // give 0. Throws Error for wrong shapes or dtypes.
  LayerOutput forward(Context& ctx, const Variable& x, State state = {}, const Sequences& sequences = {}) const;

  // A state of zeros for `sequences` sequences in the layer's dtype.
  State zero_state(std::int64_t sequences) const;
  // What a call without a state starts from: zeros, unless the layer learns it.
  virtual State initial_state(Context& ctx, std::int64_t sequences) const;

  // To and from the exchange format of published implementations (names of state_fields()); differentiable. The base
  // class's suits layers whose own layout is the published one.
  virtual std::vector<Variable> export_state(Context& ctx, const State& state) const;
  virtual State import_state(Context& ctx, std::vector<Variable> fields) const;

 protected:
  // The mathematics, on token rows x [L, width]. The state is empty or complete and valid; under NoGrad one that was
  // moved in comes back in the same memory (Stream relies on it).
  virtual LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const = 0;

 private:
  void check_state(const State& state, std::int64_t sequences) const;
};

}  // namespace stepwell::layers
