// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// A step allocates nothing on the heap (X6).
#include <array>
#include <utility>

#include <gtest/gtest.h>

#include "stepwell/autograd/functions.h"

#include "tests/autograd/random_tensor.h"
#include "verify/counted_heap.h"

namespace stepwell {
namespace {

// One token through every function that a step may use.
class Step {
 public:
  explicit Step(DType dtype) : dtype_(dtype) {}

  void run() {
    NoGrad no_grad;
    TensorScope scope(ctx_);
    const Segments one = Segments::uniform(1, 1);
    const Variable x = embedding(ctx_, embeddings_, ids_);
    const auto [input, gate] = split2(ctx_, linear(ctx_, rms_norm(ctx_, x, norm_, 1e-5), in_), kWidth);
    auto [u, conv] = short_conv(ctx_, input, kernel_, norm_, std::move(conv_), one);
    conv_ = std::move(conv);
    auto [B, C] = split2(ctx_, linear(ctx_, u, bc_), kStates);
    const SelectiveScanArguments scan{
        .u = u, .dt = u, .A = decay_rate(ctx_, rates_), .B = B, .C = C, .z = gate, .D = norm_, .dt_bias = norm_};
    auto [o, h] = selective_scan(ctx_, scan, std::move(h_), one);
    h_ = std::move(h);
    const Variable heads = reshape(ctx_, o, {1, 2, kWidth / 2});
    GatedDeltaArguments rule;
    rule.q = rule.k = rule.v = heads;
    rule.g = log_sigmoid(ctx_, heads);
    rule.b = rule.w = sigmoid(ctx_, heads);
    auto [attended, memory] = gated_delta(ctx_, rule, std::move(memory_), one);
    memory_ = std::move(memory);
    const std::array<Variable, 2> both = {reshape(ctx_, attended, {1, kWidth}), silu(ctx_, gate)};
    const Variable mixed = mul(ctx_, linear(ctx_, concat(ctx_, both), out_), exp(ctx_, scale(ctx_, o, 0.1)));
    last_ = add(ctx_, x, mixed).value().at(0);
  }

  double last() const { return last_; }

 private:
  static constexpr std::int64_t kWidth = 8, kStates = 3;
  Tensor parameter(const Shape& shape, std::uint64_t seed) const {
    return random_tensor(shape, seed, -0.5, 0.5, dtype_);
  }

  DType dtype_;
  Context ctx_ = Context::serial();
  Tensor ids_ = Tensor::zeros({1}, DType::I64);
  Variable embeddings_ = Variable::leaf(parameter({5, kWidth}, 1)), norm_ = Variable::leaf(parameter({kWidth}, 2)),
           in_ = Variable::leaf(parameter({2 * kWidth, kWidth}, 3)),
           kernel_ = Variable::leaf(parameter({kWidth, 4}, 4)),
           bc_ = Variable::leaf(parameter({2 * kStates, kWidth}, 5)),
           rates_ = Variable::leaf(parameter({kWidth, kStates}, 6)),
           out_ = Variable::leaf(parameter({kWidth, 2 * kWidth}, 7));
  Variable conv_ = Tensor::zeros({1, 4, kWidth}, dtype_), h_ = Tensor::zeros({1, kStates, kWidth}, dtype_),
           memory_ = Tensor::zeros({1, 2, 1, kWidth / 2, 16}, dtype_);
  double last_ = 0;
};

TEST(Allocation, AStepAllocatesNothingOnTheHeap) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    Step step(dtype);
    for (int i = 0; i < 3; ++i) step.run();  // arenas reach their size
    const double before_last = step.last();
    const std::int64_t before = verify::heap_allocations();
    for (int i = 0; i < 10; ++i) step.run();
    EXPECT_EQ(verify::heap_allocations() - before, 0);
    EXPECT_NE(step.last(), before_last) << "the states do not move";
  }
}

TEST(Allocation, TheCounterCounts) {
  const std::int64_t before = verify::heap_allocations();
  const Tensor t = Tensor::zeros({3});
  EXPECT_GT(verify::heap_allocations(), before);
}

}  // namespace
}  // namespace stepwell
