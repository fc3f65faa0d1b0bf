// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/autograd/variable.h"

#include <atomic>
#include <queue>
#include <utility>

#include "stepwell/ops/elementwise.h"

namespace stepwell {

// One recorded function call (or a leaf: no backward). Inputs are held by their nodes alone, so that values a backward
// does not need are freed.
class Node : public std::enable_shared_from_this<Node> {
 public:
  struct Edge {
    std::shared_ptr<Node> node;  // null: a constant
    int output = 0;
  };
  std::uint64_t order = 0;  // of creation: a node's inputs always have smaller numbers
  std::vector<Edge> inputs;
  std::vector<Shape> output_shapes;
  BackwardFunction backward;

  Node() : order(next_order().fetch_add(1, std::memory_order_relaxed)) {}

  // A long chain must not be destroyed by deep recursion: every edge is cut here, and a node that was held by its last
  // edge waits its turn. A node with several edges to one input counts as its last holder at the last of them.
  ~Node() {
    std::vector<std::shared_ptr<Node>> pending;
    auto cut = [&pending](Node& node) {
      for (Edge& edge : node.inputs) {
        std::shared_ptr<Node> input = std::move(edge.node);
        if (input && input.use_count() == 1) pending.push_back(std::move(input));
      }
    };
    cut(*this);
    while (!pending.empty()) {
      const std::shared_ptr<Node> node = std::move(pending.back());
      pending.pop_back();
      cut(*node);
    }
  }

  static Variable make(Tensor value, std::shared_ptr<Node> node, int output) {
    Variable v(std::move(value));
    v.node_ = std::move(node);
    v.output_ = output;
    return v;
  }

 private:
  static std::atomic<std::uint64_t>& next_order() {
    static std::atomic<std::uint64_t> next{0};
    return next;
  }
};

Variable Variable::leaf(Tensor value) {
  STEPWELL_CHECK(value.dtype() == DType::F32 || value.dtype() == DType::F64, "Variable::leaf",
                 "dtype " + std::string(dtype_name(value.dtype())) + ", expected F32 or F64");
  auto node = std::make_shared<Node>();
  node->output_shapes.push_back(value.shape());
  return Node::make(std::move(value), std::move(node), 0);
}

namespace {
thread_local bool g_grad_enabled = true;
}

NoGrad::NoGrad() : outer_(g_grad_enabled) { g_grad_enabled = false; }
NoGrad::~NoGrad() { g_grad_enabled = outer_; }
bool grad_enabled() noexcept { return g_grad_enabled; }

bool recording(std::initializer_list<const Variable*> inputs) noexcept {
  if (!g_grad_enabled) return false;
  for (const Variable* v : inputs) {
    if (v && v->requires_grad()) return true;
  }
  return false;
}
bool recording(std::span<const Variable> inputs) noexcept {
  if (!g_grad_enabled) return false;
  for (const Variable& v : inputs) {
    if (v.requires_grad()) return true;
  }
  return false;
}

std::vector<Variable> record(std::span<const Tensor> values, std::span<const Variable> inputs,
                             BackwardFunction backward) {
  auto node = std::make_shared<Node>();
  for (const Variable& v : inputs) node->inputs.push_back({v.node(), v.output()});
  for (const Tensor& t : values) node->output_shapes.push_back(t.shape());
  node->backward = std::move(backward);
  std::vector<Variable> outputs;
  for (std::size_t i = 0; i < values.size(); ++i) outputs.push_back(Node::make(values[i], node, static_cast<int>(i)));
  return outputs;
}

Variable record(const Tensor& value, std::initializer_list<Variable> inputs, BackwardFunction backward) {
  return record(std::span(&value, 1), std::span(inputs.begin(), inputs.size()), std::move(backward)).front();
}

namespace {

// Adds `gradient` to what has arrived so far, in place where nobody else sees that memory.
void accumulate(Context& ctx, Tensor& slot, Tensor gradient) {
  if (!slot.defined()) {
    slot = std::move(gradient);
    return;
  }
  const bool in_place = slot.is_unique() && slot.is_contiguous();
  const Tensor total = in_place ? slot : Tensor::empty(ctx, slot.shape(), slot.dtype());
  ops::add(ctx, slot, gradient, total);
  slot = total;
}

}  // namespace

void Backward::give(int i, Tensor gradient) {
  if (wanted_[static_cast<std::size_t>(i)]) accumulate(ctx, inputs_[static_cast<std::size_t>(i)], std::move(gradient));
}

Tensor Gradients::of(const Variable& leaf) const {
  const auto found = of_.find(leaf.node());
  return found == of_.end() ? Tensor() : found->second;
}

namespace {

struct LaterFirst {
  bool operator()(const Node* a, const Node* b) const { return a->order < b->order; }
};

}  // namespace

Gradients backward(Context& ctx, std::span<const Variable> outputs, std::span<const Tensor> cotangents) {
  STEPWELL_CHECK(outputs.size() == cotangents.size(), "backward",
                 std::to_string(outputs.size()) + " outputs and " + std::to_string(cotangents.size()) +
                     " cotangents, expected one for each");
  NoGrad no_grad;
  std::unordered_map<const Node*, std::vector<Tensor>> arrived;  // per node, gradient of each output
  std::priority_queue<Node*, std::vector<Node*>, LaterFirst> pending;
  auto arrive = [&](Node* node, int output, Tensor gradient) {
    auto [slot, fresh] = arrived.try_emplace(node);
    if (fresh) {
      slot->second.resize(node->output_shapes.size());
      pending.push(node);
    }
    accumulate(ctx, slot->second[static_cast<std::size_t>(output)], std::move(gradient));
  };

  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!cotangents[i].defined() || !outputs[i].requires_grad()) continue;
    STEPWELL_CHECK(cotangents[i].shape() == outputs[i].shape() && cotangents[i].dtype() == outputs[i].dtype(),
                   "backward",
                   "cotangent " + cotangents[i].shape().to_string() + " for output " + outputs[i].shape().to_string());
    arrive(outputs[i].node().get(), outputs[i].output(), cotangents[i].contiguous(ctx));
  }

  Gradients result;
  while (!pending.empty()) {
    Node* node = pending.top();
    pending.pop();
    std::vector<Tensor> gradients = std::move(arrived.at(node));
    arrived.erase(node);
    if (!node->backward) {
      result.of_.emplace(node->shared_from_this(), std::move(gradients[0]));
      continue;
    }
    std::vector<Tensor> to_inputs(node->inputs.size());
    const auto wanted = std::make_unique<bool[]>(node->inputs.size());
    for (std::size_t i = 0; i < node->inputs.size(); ++i) wanted[i] = node->inputs[i].node != nullptr;
    Backward frame(ctx, gradients, to_inputs, std::span(wanted.get(), node->inputs.size()));
    node->backward(frame);
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const auto& [source, output] = node->inputs[i];
      if (!source || !to_inputs[i].defined()) continue;
      const Shape& expected = source->output_shapes[static_cast<std::size_t>(output)];
      STEPWELL_CHECK(to_inputs[i].shape() == expected, "backward",
                     "gradient " + to_inputs[i].shape().to_string() + " for a value " + expected.to_string());
      arrive(source.get(), output, std::move(to_inputs[i]));
    }
  }
  return result;
}

Gradients backward(Context& ctx, const Variable& loss) {
  STEPWELL_CHECK(loss.defined() && loss.value().numel() == 1, "backward",
                 "loss of shape " + loss.shape().to_string() + ", expected one element");
  const Tensor one = Tensor::full(loss.shape(), 1.0, loss.dtype());
  return backward(ctx, std::span(&loss, 1), std::span(&one, 1));
}

}  // namespace stepwell
