// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/layer.h"

#include <utility>

namespace stepwell::layers {

// ---------------------------------------------------------------------------------------------------------- State

void State::push(Variable field) {
  STEPWELL_CHECK(count_ < kMaxFields, "State", "more than " + std::to_string(kMaxFields) + " fields");
  fields_[static_cast<std::size_t>(count_++)] = std::move(field);
}

Variable State::take(int i) { return i < count_ ? std::move(fields_[static_cast<std::size_t>(i)]) : Variable(); }

State State::detach() const {
  State cut;
  for (int i = 0; i < count_; ++i) cut.push(fields_[static_cast<std::size_t>(i)].detach());
  return cut;
}

// ---------------------------------------------------------------------------------------------------------- Layer

namespace {

// [sequences, …shape]
Shape with_sequences(std::int64_t sequences, const Shape& shape) {
  std::array<std::int64_t, Shape::kMaxRank> extents{sequences};
  for (int i = 0; i < shape.rank(); ++i) extents[static_cast<std::size_t>(i) + 1] = shape[i];
  return Shape(std::span<const std::int64_t>(extents).first(static_cast<std::size_t>(shape.rank()) + 1));
}

}  // namespace

RealTokens real_tokens(const Tensor& mask, std::int64_t batch, std::int64_t time) {
  STEPWELL_CHECK((mask.dtype() == DType::Bool || mask.dtype() == DType::U8) && mask.shape() == Shape({batch, time}),
                 "mask",
                 std::string(dtype_name(mask.dtype())) + " " + mask.shape().to_string() + ", expected BOOL or U8 " +
                     Shape({batch, time}).to_string());
  const Tensor bytes = mask.is_contiguous() ? mask : mask.clone();
  const auto* real = static_cast<const std::uint8_t*>(bytes.raw());
  RealTokens tokens{{}, {0}};
  std::vector<std::int64_t> rows;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t row = b * time; row < (b + 1) * time; ++row) {
      if (real[row]) rows.push_back(row);
    }
    tokens.offsets.push_back(static_cast<std::int64_t>(rows.size()));
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  if (count < batch * time) tokens.rows = Tensor::from<std::int64_t>(rows, {count});
  return tokens;
}

State Layer::zero_state(std::int64_t sequences) const {
  State state;
  for (const StateField& field : state_fields())
    state.push(Tensor::zeros(with_sequences(sequences, field.shape), dtype()));
  return state;
}

State Layer::initial_state(Context&, std::int64_t sequences) const { return zero_state(sequences); }

void Layer::check_state(const State& state, std::int64_t sequences) const {
  const auto& fields = state_fields();
  STEPWELL_CHECK(state.count() == static_cast<int>(fields.size()), type(),
                 "a state of " + std::to_string(state.count()) + " fields, expected " + std::to_string(fields.size()));
  for (int i = 0; i < state.count(); ++i) {
    const StateField& field = fields[static_cast<std::size_t>(i)];
    const Tensor& value = state[i].value();
    STEPWELL_CHECK(
        value.defined() && value.dtype() == dtype() && value.shape() == with_sequences(sequences, field.shape), type(),
        std::string(field.name) + " is " +
            (value.defined() ? std::string(dtype_name(value.dtype())) + " " + value.shape().to_string()
                             : std::string("not defined")) +
            " in the library's layout, expected " + std::string(dtype_name(dtype())) + " " +
            with_sequences(sequences, field.shape).to_string());
  }
}

LayerOutput Layer::forward(Context& ctx, const Variable& x, State state, const Sequences& sequences) const {
  STEPWELL_CHECK(x.defined() && x.shape().rank() == 3 && x.size(2) == width(), type(),
                 "x is " + x.shape().to_string() + ", expected [batch, time, " + std::to_string(width()) + "]");
  STEPWELL_CHECK(
      x.dtype() == dtype(), type(),
      "x is " + std::string(dtype_name(x.dtype())) + ", the parameters are " + std::string(dtype_name(dtype())));
  const std::int64_t batch = x.size(0), time = x.size(1);
  const bool packed = !sequences.cu_seqlens.empty();
  RealTokens real;
  if (sequences.mask.defined()) real = real_tokens(sequences.mask, batch, time);
  STEPWELL_CHECK(
      !packed || batch == 1, type(),
      "cu_seqlens with a batch of " + std::to_string(batch) + ", expected the sequences packed in a batch of 1");
  STEPWELL_CHECK(!packed || !real.rows.defined(), type(),
                 "cu_seqlens beside a mask with padded positions, expected one of the two");

  const Variable tokens = reshape(ctx, x, {batch * time, width()});
  const auto run = [&](const Variable& rows, const Segments& segments) {
    if (!state.empty()) check_state(state, segments.count());
    return forward_rows(ctx, rows, std::move(state), segments);
  };
  LayerOutput out;
  if (real.rows.defined()) {
    // What stands at a padded position is never read: gather the real tokens, run them packed, scatter into zeros.
    out = run(gather_rows(ctx, tokens, real.rows), Segments::from_offsets(real.offsets, real.rows.numel()));
    out.y = scatter_rows(ctx, out.y, real.rows, batch * time);
  } else {
    out = run(tokens, packed ? Segments::from_offsets(sequences.cu_seqlens, time) : Segments::uniform(batch, time));
  }
  out.y = reshape(ctx, out.y, {batch, time, out.y.size(-1)});
  return out;
}

std::vector<Variable> Layer::export_state(Context&, const State& state) const {
  check_state(state, state.empty() || !state[0].defined() ? 0 : state[0].size(0));
  std::vector<Variable> fields;
  for (int i = 0; i < state.count(); ++i) fields.push_back(state[i]);
  return fields;
}

State Layer::import_state(Context&, std::vector<Variable> fields) const {
  State state;
  for (Variable& field : fields) state.push(std::move(field));
  check_state(state, state.empty() || !state[0].defined() || state[0].shape().rank() == 0 ? 0 : state[0].size(0));
  return state;
}

}  // namespace stepwell::layers
