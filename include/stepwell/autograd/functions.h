// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "stepwell/autograd/variable.h"
#include "stepwell/core/rng.h"
#include "stepwell/core/segments.h"
#include "stepwell/ops/gated_delta.h"
#include "stepwell/ops/matmul.h"
#include "stepwell/ops/mlstm.h"
#include "stepwell/ops/norm.h"
#include "stepwell/ops/pooled_attention.h"
#include "stepwell/ops/selective_scan.h"
#include "stepwell/ops/short_conv.h"

// Differentiable functions: each computes its value with ops and, where recording, keeps what its adjoint needs.
// All take F32 or F64 (all arguments alike), any shape with any extent ≥ 0, and throw Error for anything else.
namespace stepwell {

// x [..., in], weight [out, in], bias [out] or undefined → [..., out]. With `packed` (of the same weight) the product
// reads the packed copy: same bits.
Variable linear(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias = {},
                const ops::PackedMatrix* packed = nullptr);
// A linear layer of G blocks along the diagonal: x [..., G·in], weight [G, out, in], bias [G·out] or undefined → [...,
// G·out] (ops/headwise.h).
Variable headwise_linear(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias = {});
// a [m, k], b [k, n] → [m, n] (Product::AB; ABt and AtB transpose an operand).
Variable matmul(Context& ctx, const Variable& a, const Variable& b, ops::Product product = ops::Product::AB);

// Elementwise; shapes equal, or b is a trailing part of a's shape (a bias), broadcast over the leading dimensions.
Variable add(Context& ctx, const Variable& a, const Variable& b);
Variable sub(Context& ctx, const Variable& a, const Variable& b);
Variable mul(Context& ctx, const Variable& a, const Variable& b);
Variable scale(Context& ctx, const Variable& x, double factor);

Variable exp(Context& ctx, const Variable& x);
Variable log(Context& ctx, const Variable& x);
// −exp(x), but at least −(largest finite number): A of A_log, so that neither a step of 0 times A nor a gradient of 0
// times A is ever NaN.
Variable decay_rate(Context& ctx, const Variable& x);
Variable tanh(Context& ctx, const Variable& x);
Variable sigmoid(Context& ctx, const Variable& x);
Variable silu(Context& ctx, const Variable& x);
Variable softplus(Context& ctx, const Variable& x);
Variable log_sigmoid(Context& ctx, const Variable& x);
Variable relu(Context& ctx, const Variable& x);
Variable elu_plus_one(Context& ctx, const Variable& x);  // x + 1 above 0, exp(x) below
// x between low and high, else the nearer of them; the gradient is 0 outside.
Variable clamp(Context& ctx, const Variable& x, double low, double high);
enum class Gelu { Tanh, Erf };
Variable gelu(Context& ctx, const Variable& x, Gelu form = Gelu::Erf);
// cap·tanh(x/cap), cap > 0.
Variable soft_cap(Context& ctx, const Variable& x, double cap);

// Along the last dimension.
Variable softmax(Context& ctx, const Variable& x);
// Over groups of `group` entries (0: all); scaled by 1 + weight instead of weight where one_plus_weight.
Variable layer_norm(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias, double eps,
                    std::int64_t group = 0, bool one_plus_weight = false);
// x / sqrt(mean(x²) + eps) · weight over groups of `group` entries of the last dimension (0: all); weight optional.
Variable rms_norm(Context& ctx, const Variable& x, const Variable& weight, double eps, std::int64_t group = 0);
// With a gate z of x's shape, a its activation: Before: rms_norm(x · a(z)); After: rms_norm(x) · a(z).
using ops::GateActivation;
using ops::GateOrder;
Variable gated_rms_norm(Context& ctx, const Variable& x, const Variable& z, const Variable& weight, double eps,
                        GateOrder order, std::int64_t group = 0, GateActivation activation = GateActivation::Silu);
Variable sum_norm(Context& ctx, const Variable& x);  // x / Σx; zeros where the sum is 0

// weight [vocab, width], ids I64 of any shape → [..., width]. Throws for an id outside [0, vocab).
Variable embedding(Context& ctx, const Variable& weight, const Tensor& ids);

// Views and copies.
Variable reshape(Context& ctx, const Variable& x, const Shape& shape);
// Parts of the last dimension, of the given widths (their sum is its extent); no copy in the forward pass.
std::vector<Variable> split(Context& ctx, const Variable& x, std::span<const std::int64_t> widths);
std::pair<Variable, Variable> split2(Context& ctx, const Variable& x, std::int64_t first);  // allocates no vector
Variable concat(Context& ctx, std::span<const Variable> parts);                             // along the last dimension
// Each part [head] of x [L, heads, width] `count` times in a row → [L, heads·count, width].
Variable repeat_heads(Context& ctx, const Variable& x, std::int64_t count);
Variable transpose_last2(Context& ctx, const Variable& x);  // [..., m, n] → [..., n, m], a copy
// Rows of x [n, ...] by index (I64 [m], each in [0, n), repeats allowed) → [m, ...].
Variable gather_rows(Context& ctx, const Variable& x, const Tensor& index);
// Rows of x [m, ...] placed into zeros [n, ...] by index (I64 [m], each in [0, n), distinct).
Variable scatter_rows(Context& ctx, const Variable& x, const Tensor& index, std::int64_t n);

// Reductions to one element [1], in the fixed order of ops::sum; the mean of nothing is 0.
Variable sum(Context& ctx, const Variable& x);
Variable mean(Context& ctx, const Variable& x);
Variable mse_loss(Context& ctx, const Variable& x, const Tensor& target);  // mean (x − target)²
// logits [rows, vocab], targets I64 [rows]; mean over rows whose target is not `ignore` (0 if there is none).
Variable cross_entropy(Context& ctx, const Variable& logits, const Tensor& targets, std::int64_t ignore = -100);

// Zeroes entries with probability p and scales the rest by 1/(1−p); entry i is decided by rng's number offset + i.
Variable dropout(Context& ctx, const Variable& x, double p, const Rng& rng, std::uint64_t offset = 0);

// Causal depthwise convolution (ops/short_conv.h). x [L, D], weight [D, K] or [D, 1, K], bias [D] or undefined, state
// [S, K, D] (undefined: zeros) → {y [L, D], outgoing state}. A state moved in under NoGrad is updated in place.
std::pair<Variable, Variable> short_conv(Context& ctx, const Variable& x, const Variable& weight, const Variable& bias,
                                         Variable state, const Segments& segments,
                                         ops::Activation activation = ops::Activation::Silu);

// The selective scan (ops/selective_scan.h), shapes as there; z, D, dt_bias, h may be undefined. B and C [L, N] or
// [L, G, N], or [D, N] with constant_bc. → {y [L, D], last state [S, N, D]}.
struct SelectiveScanArguments {
  Variable u, dt, A, B, C, z, D, dt_bias;
  bool softplus = true;
  bool constant_bc = false;
  ops::Discretisation discretisation = ops::Discretisation::Euler;
};
std::pair<Variable, Variable> selective_scan(Context& ctx, const SelectiveScanArguments& in, Variable h,
                                             const Segments& segments);

// The gated delta rule (ops/gated_delta.h), shapes as there; g, b, w, A_log, dt_bias and the state may be undefined.
// → {o [L, HV, V], last state}. States are packed, [S, HV, ⌈V/16⌉, K, 16].
struct GatedDeltaArguments {
  Variable q, k, v, g, b, w;
  double scale = 1;
  bool l2norm = false;
  ops::DecayGate gate = ops::DecayGate::Given;
  Variable A_log, dt_bias;  // with a gate of g only
  double lower_bound = -5;
  ops::Form form = ops::Form::Auto;
  std::int64_t chunk = 0;  // of the chunked form; 0: what is fastest
};
std::pair<Variable, Variable> gated_delta(Context& ctx, const GatedDeltaArguments& in, Variable state,
                                          const Segments& segments);

// Between states [S, HV, K, V] and packed ones [S, HV, ⌈V/16⌉, K, 16].
Variable pack_state(Context& ctx, const Variable& state);
Variable unpack_state(Context& ctx, const Variable& state, std::int64_t V);

// The mLSTM cell (ops/mlstm.h), shapes as there. → {h [L, H, V], last state}. The state is packed as that of
// gated_delta, C [S, H, ⌈V/16⌉, K, 16], n [S, H, K], m [S, H]; all three undefined: zero.
struct MlstmArguments {
  Variable q, k, v, i, f;
  double scale = 1;
  ops::InputGate input_gate = ops::InputGate::Exponential;
  bool normalise = true;  // always with the exponential gate
  double eps = 1e-6;
  ops::Form form = ops::Form::Auto;  // of the forward pass
  std::int64_t chunk = 0;
};
struct MlstmVariables {
  Variable C, n, m;
};
std::pair<Variable, MlstmVariables> mlstm(Context& ctx, const MlstmArguments& in, MlstmVariables state,
                                          const Segments& segments);

// The sLSTM cell (ops/slstm.h): x [L, 4·H·D], R [H, 4·D, D], bias [4·H·D] or undefined, state [S, 4, H·D] (y, c, n, m)
// or undefined → {y [L, H·D], last state}.
std::pair<Variable, Variable> slstm(Context& ctx, const Variable& x, const Variable& R, const Variable& bias,
                                    Variable state, const Segments& segments);

// Attention inside windows of rows, pooled to one row each (ops/pooled_attention.h), shapes as there. The tables by age
// and the weight may be undefined; windows in order of their first rows. → z [windows, m].
struct PooledAttentionArguments {
  Variable e, q, k, v;
  Tensor age_e;
  Variable age_q, age_k, age_v;
  Tensor weight;
  std::int64_t heads = 1;
};
Variable pooled_attention(Context& ctx, const PooledAttentionArguments& in, std::span<const ops::RowWindow> windows);

}  // namespace stepwell
