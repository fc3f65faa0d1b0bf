// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/autograd/functions.h"
#include "stepwell/autograd/variable.h"
#include "stepwell/core/config.h"
#include "stepwell/core/rng.h"
#include "stepwell/core/segments.h"

namespace stepwell::layers {

// A trainable tensor under its published name.
struct Parameter {
  std::string name;
  Variable value;            // a leaf
  bool decay = true;         // whether weight decay applies (not to biases, norms, A_log, D, dt_bias)
  ops::PackedMatrix packed;  // a copy for products, made by prepare(); dropped whenever the value is set
};

// Named tensors, in a stable order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// What has parameters: layers and models.
class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Every parameter with its full name ("layers.0.mixer.A_log"), in a documented, stable order.
  std::vector<Parameter*> parameters();
  std::vector<const Parameter*> parameters() const;
  NamedTensors named_parameters() const;
  // Sets all parameters from `tensors` (copied, converted to the module's dtype). Checks every name and shape first,
  // lists all faults in one Error and changes nothing unless all is well.
  void set_named_parameters(const NamedTensors& tensors);
  std::int64_t parameter_count() const;

  // Converts every parameter; F64 serves verification.
  void to(DType dtype);
  DType dtype() const;
  // Packs matrices for fast inference; same bits. Call after loading, before opening streams.
  void prepare(Context& ctx);

 protected:
  // Adds a parameter; the reference stays valid.
  Parameter& add_parameter(std::string name, Tensor value, bool decay = true);
  // Adds the parameters of a part under "prefix.".
  void add_part(std::string prefix, Module& part);

  // linear() with a parameter's packed copy when there is one. `bias` may be null.
  static Variable apply(Context& ctx, const Variable& x, const Parameter& weight, const Parameter* bias);

 private:
  std::deque<Parameter> own_;
  std::vector<std::pair<std::string, Module*>> parts_;
};

// One tensor of a layer's state, per sequence.
struct StateField {
  std::string_view name;  // of the exchange format, e.g. "ssm_state"
  Shape shape;            // of the library's own layout, without the leading sequence dimension
};

// The state of one layer for S sequences: its fields [S, …] in the order of state_fields(). Empty = zero state. Fields
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
  virtual std::vector<StateField> state_fields() const = 0;

  // x [B, T, width] → y [B, T, width] and the outgoing state. `state` holds B sequences (or one per packed sequence);
  // moved in under NoGrad its memory is updated in place. Differentiable in x, parameters and state. Padded positions
  // give 0. Throws Error for wrong shapes or dtypes.
  LayerOutput forward(Context& ctx, const Variable& x, State state = {}, const Sequences& sequences = {}) const;

  // A state of zeros for `sequences` sequences in the layer's dtype.
  State zero_state(std::int64_t sequences) const;

  // To and from the exchange format of published implementations (names of state_fields()); differentiable.
  virtual std::vector<Variable> export_state(Context& ctx, const State& state) const = 0;
  virtual State import_state(Context& ctx, std::vector<Variable> fields) const = 0;

 protected:
  // The mathematics, on token rows x [L, width]. The state is empty or complete and valid.
  virtual LayerOutput forward_rows(Context& ctx, const Variable& x, State state, const Segments& segments) const = 0;
};

}  // namespace stepwell::layers
