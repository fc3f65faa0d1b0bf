// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "stepwell/core/context.h"
#include "stepwell/core/tensor.h"

namespace stepwell {

class Node;
class Gradients;

// A tensor and the place it has in a graph of differentiable functions, if any. Cheap to copy. Without a node it is a
// constant; leaves (parameters, checked inputs) and the results of functions of them have one.
class Variable {
 public:
  Variable() = default;
  Variable(Tensor value) : value_(std::move(value)) {}  // a constant

  // A leaf: Gradients will hold its gradient.
  static Variable leaf(Tensor value);

  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  std::int64_t size(int dimension) const { return value_.size(dimension); }
  DType dtype() const { return value_.dtype(); }
  bool defined() const { return value_.defined(); }
  explicit operator bool() const { return defined(); }
  bool requires_grad() const { return node_ != nullptr; }
  const std::shared_ptr<Node>& node() const { return node_; }
  int output() const { return output_; }

  // The value alone, cut from the graph.
  Variable detach() const { return Variable(value_); }
  // Takes the tensor out of an otherwise unused variable, so that its memory may be reused in place.
  Tensor take() && { return std::move(value_); }

 private:
  friend class Node;
  Tensor value_;
  std::shared_ptr<Node> node_;
  int output_ = 0;
};

// While it lives, functions on this thread record nothing: results are constants, and functions may reuse the memory
// of states that were moved in.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool outer_;
};

// True outside every NoGrad. Constant false in stepwell::infer, where no backward code is linked.
bool grad_enabled() noexcept;

// True if a function of these inputs must be recorded.
bool recording(std::initializer_list<const Variable*> inputs) noexcept;
bool recording(std::span<const Variable> inputs) noexcept;

// What a function's backward sees and does.
class Backward {
 public:
  Backward(Context& ctx, std::span<Tensor> outputs, std::span<Tensor> inputs, std::span<const bool> wanted)
      : ctx(ctx), outputs_(outputs), inputs_(inputs), wanted_(wanted) {}
  Context& ctx;
  // Gradient arriving at output i; undefined if none did.
  const Tensor& grad(int i = 0) const { return outputs_[i]; }
  // Whether input i's gradient is needed.
  bool wants(int i) const { return wanted_[i]; }
  // Hands over the gradient of input i (shape and dtype of the input, contiguous); added to what is there already.
  // The tensor may share storage with others; it is not modified afterwards.
  void give(int i, Tensor gradient);

 private:
  std::span<Tensor> outputs_, inputs_;
  std::span<const bool> wanted_;
};

using BackwardFunction = std::function<void(Backward&)>;

// Makes variables of `values`, the outputs of a function of `inputs` whose adjoint is `backward`. Call it only where
// recording(inputs) is true. Outputs whose gradient never arrives are seen as undefined in Backward::grad.
std::vector<Variable> record(std::span<const Tensor> values, std::span<const Variable> inputs,
                             BackwardFunction backward);
Variable record(const Tensor& value, std::initializer_list<Variable> inputs, BackwardFunction backward);

// Gradients of leaves.
class Gradients {
 public:
  // The gradient of a leaf (shape of the leaf); undefined if the loss does not depend on it. It may share memory with
  // the gradients of other leaves: read it only.
  Tensor of(const Variable& leaf) const;

 private:
  friend Gradients backward(Context&, std::span<const Variable>, std::span<const Tensor>);
  std::unordered_map<std::shared_ptr<const Node>, Tensor> of_;
};

// Gradients of Σ_i ⟨outputs[i], cotangents[i]⟩ for every leaf it depends on. A single output of one element may leave
// its cotangent out (1). The graph is walked in reverse order of creation: the same bits on every run (X3). The graph
// stays usable while variables refer to it.
Gradients backward(Context& ctx, std::span<const Variable> outputs, std::span<const Tensor> cotangents);
Gradients backward(Context& ctx, const Variable& loss);

}  // namespace stepwell
