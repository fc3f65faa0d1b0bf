// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/autograd/functions.h"
#include "stepwell/autograd/variable.h"

namespace stepwell::layers {

// A trainable tensor under its published name.
struct Parameter {
  std::string name;
  Variable value;            // a leaf; replace it with set()
  bool decay = true;         // whether weight decay applies (not to biases, norms, A_log, D, dt_bias)
  bool product = false;      // apply() multiplies by it: prepare() packs it
  ops::PackedMatrix packed;  // a copy for products, made by prepare()
  Tensor derived;            // what else prepare() made of it, for the layer that owns it

  // A new leaf; drops what prepare() made. Whoever writes into the value's memory instead calls unprepare().
  void set(Tensor tensor);
  void unprepare();
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

  // Every parameter with its full name ("layers.0.mixer.A_log"): a module's own in the order added, then its parts'.
  std::vector<Parameter*> parameters();
  std::vector<const Parameter*> parameters() const;
  NamedTensors named_parameters() const;
  // Sets all parameters from `tensors` (copied, converted to the module's dtype). Shapes may differ by extents of 1,
  // which move no element (conv1d.weight as [D, K] or [D, 1, K]). Checks every name, shape and dtype first, lists all
  // faults in one Error and changes nothing unless all is well.
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
  // Adds a matrix [out, in] for apply().
  Parameter& add_matrix(std::string name, Tensor value);
  // Adds the parameters of a part, complete by now, under "prefix.".
  void add_part(const std::string& prefix, Module& part);
  // Fills Parameter::derived of the module's own parameters.
  virtual void derive(Context&) {}

  // linear() with a parameter's packed copy when there is one. `bias` may be null.
  static Variable apply(Context& ctx, const Variable& x, const Parameter& weight, const Parameter* bias);

 private:
  std::deque<Parameter> own_;
  std::vector<Module*> parts_;
};

}  // namespace stepwell::layers
