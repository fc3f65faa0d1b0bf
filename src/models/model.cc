// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/model.h"

#include <cstring>

#include "stepwell/models/causal_lm.h"
#include "stepwell/models/forecaster.h"
#include "stepwell/models/xlstm.h"

#include "models/format.h"

namespace stepwell::models {

Config new_config(std::string_view type) {
  Config c;
  c.set("format", std::string(kModelFormat));
  c.set("type", std::string(type));
  return c;
}

void check_kind(ConfigReader& reader, std::string_view type) {
  if (reader.text("format", kModelFormat) != kModelFormat) {
    reader.reject("format", "\"" + std::string(kModelFormat) + "\", the one this version reads");
  }
  if (reader.text("type", type) != type) reader.reject("type", "\"" + std::string(type) + "\"");
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "not defined";
  return std::string(dtype_name(tensor.dtype())) + " " + tensor.shape().to_string();
}

std::unique_ptr<Model> make_model(const Config& config, const Rng& rng) {
  const Config* type = config.find("type");
  const std::string name = type ? type->as_string("type") : "";
  if (name == kCausalLM) return make_causal_lm(CausalLMConfig::read(config), rng);
  if (name == kForecaster) return make_forecaster(ForecasterConfig::read(config), rng);
  if (name == kXlstm || name == kXlstmLarge) return make_xlstm(config, rng);
  fail(ErrorCode::Config, "model",
       "type = \"" + name + "\", expected " + std::string(kCausalLM) + ", " + std::string(kForecaster) + ", " +
           std::string(kXlstm) + " or " + std::string(kXlstmLarge));
}

namespace {

// Rows of `input` [B, T, …], by index among [B·T] → [1, n, …].
Tensor gather_input(Context& ctx, const Tensor& input, const Tensor& rows) {
  const Tensor source = input.contiguous(ctx);
  Shape shape = input.shape();
  const std::int64_t count = shape[0] * shape[1];
  const auto bytes = static_cast<std::size_t>(count == 0 ? 0 : input.numel() / count * dtype_size(input.dtype()));
  shape[0] = 1;
  shape[1] = rows.numel();
  Tensor gathered = Tensor::empty(ctx, shape, input.dtype());
  auto* to = static_cast<std::byte*>(gathered.raw());
  const auto* from = static_cast<const std::byte*>(source.raw());
  for (const std::int64_t row : rows.span<std::int64_t>()) {
    std::memcpy(to, from + static_cast<std::size_t>(row) * bytes, bytes);
    to += bytes;
  }
  return gathered;
}

}  // namespace

Variable Model::hidden(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences,
                       const Rng* dropout_rng) const {
  if (!sequences.mask.defined()) return body(ctx, input, states, sequences, dropout_rng);
  STEPWELL_CHECK(input.defined() && input.rank() >= 2, type(),
                 "input is " + describe(input) + ", expected [batch, time, …]");
  const std::int64_t batch = input.size(0), time = input.size(1);
  layers::RealTokens real = layers::real_tokens(sequences.mask, batch, time);
  if (!real.rows.defined()) return body(ctx, input, states, {sequences.cu_seqlens, {}}, dropout_rng);
  STEPWELL_CHECK(sequences.cu_seqlens.empty(), type(),
                 "cu_seqlens beside a mask with padded positions, expected one of the two");
  // Padding leaves here, once for all layers: nothing is computed for it.
  const Variable packed =
      body(ctx, gather_input(ctx, input, real.rows), states, {std::move(real.offsets), {}}, dropout_rng);
  const std::int64_t width = packed.size(2);
  const Variable rows = reshape(ctx, packed, {real.rows.numel(), width});
  return reshape(ctx, scatter_rows(ctx, rows, real.rows, batch * time), {batch, time, width});
}

}  // namespace stepwell::models
