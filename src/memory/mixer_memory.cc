// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/mixer_memory.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "stepwell/layers/registry.h"

#include "layers/initial_values.h"

namespace stepwell::memory {

namespace {

constexpr std::int64_t kDefaultWidth = 16, kMostWidth = 1 << 20;

struct Options {
  std::int64_t width;
  double clamp;
  Config mixer;
};

Options read_options(const Config& config) {
  ConfigReader reader(config, "mixer cell");
  Options o{};
  o.width = reader.integer("width", kDefaultWidth, 1, kMostWidth);
  o.clamp = reader.number("clamp", 0, 0, 1e9);
  o.mixer = reader.child("mixer");
  reader.finish();
  return o;
}

std::unique_ptr<layers::Layer> make_layer(std::string_view mixer, const Config& options, const Rng& rng) {
  const layers::MixerRow& row = layers::find_mixer(mixer);
  if (!row.constant_memory) {
    fail(ErrorCode::Config, "cell", std::string(mixer) + " has a state that grows, which is no memory of fixed size");
  }
  const Options o = read_options(options);
  return row.make(o.width, o.mixer.is_null() ? Config(Config::Object{}) : o.mixer, rng.stream("mixer"));
}

// [B, T, width] → tokens first … first + count − 1.
Variable part_of_time(Context& ctx, const Variable& x, std::int64_t first, std::int64_t count) {
  const std::int64_t B = x.size(0), T = x.size(1), width = x.size(2);
  if (count == T) return x;
  const Tensor index = Tensor::empty({B * count}, DType::I64);
  for (std::int64_t i = 0; i < B * count; ++i) index.data<std::int64_t>()[i] = i / count * T + first + i % count;
  return reshape(ctx, gather_rows(ctx, reshape(ctx, x, {B * T, width}), index), {B, count, width});
}

// [a, b, ...] → [b, a, ...] for x of rows [a·b, width].
Variable swapped(Context& ctx, const Variable& x, std::int64_t a, std::int64_t b) {
  if (a == 1 || b == 1) return x;
  const Tensor index = Tensor::empty({a * b}, DType::I64);
  for (std::int64_t i = 0; i < a * b; ++i) index.data<std::int64_t>()[i] = i % a * b + i / a;
  return gather_rows(ctx, x, index);
}

}  // namespace

MixerMemory::Parts MixerMemory::describe(std::unique_ptr<layers::Layer> layer) {
  Context ctx = Context::serial();
  NoGrad no_grad;
  Parts parts;
  constexpr std::int64_t kBatch = 1021;  // a prime that no layer has for an extent
  const std::vector<Variable> fields = layer->export_state(ctx, layer->zero_state(kBatch));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto extents = fields[i].shape().extents();
    const auto batch = std::find(extents.begin(), extents.end(), kBatch);
    const auto product = [](auto first, auto last) {
      return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
    };
    // Layers name the rings of their convolutions alike; exported or not, a ring is as long as the convolution is wide.
    const layers::StateField& field = layer->state_fields()[i];
    parts.fields.push_back(
        {product(extents.begin(), batch), product(batch + 1, extents.end()), field.name.starts_with("conv_state")});
    if (parts.fields.back().ring) {
      parts.context = std::max(parts.context, field.shape[0]);
    } else {
      parts.memory_width += parts.fields.back().size();
    }
  }
  parts.layer = std::move(layer);
  return parts;
}

MixerMemory::MixerMemory(std::string_view mixer, std::int64_t token_width, std::int64_t output_width,
                         const Config& options, const Rng& rng)
    : MixerMemory(mixer, token_width, output_width, read_options(options).clamp,
                  describe(make_layer(mixer, options, rng)), rng) {}

MixerMemory::MixerMemory(std::string_view mixer, std::int64_t token_width, std::int64_t output_width, double clamp,
                         Parts parts, const Rng& rng)
    : MemoryUpdater(parts.memory_width, token_width, output_width, parts.context, clamp),
      type_(mixer),
      parts_(std::move(parts)) {
  in_ = &add_matrix("w_in",
                    layers::uniform_fan_in(rng.stream("w_in"), {parts_.layer->width(), token_width}, token_width));
  add_readout(rng);
  add_part("mixer", *parts_.layer);
}

Config MixerMemory::config() const {
  Config c;
  c.set("width", parts_.layer->width());
  c.set("clamp", clamp());
  c.set("mixer", parts_.layer->config());
  return c;
}

Variable MixerMemory::memory_of(Context& ctx, const layers::State& state) const {
  std::vector<Variable> flat;
  const std::vector<Variable> fields = parts_.layer->export_state(ctx, state);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& f = parts_.fields[i];
    if (f.ring) continue;
    const std::int64_t batch = f.size() == 0 ? 0 : fields[i].value().numel() / f.size();
    const Variable rows = reshape(ctx, fields[i], {f.before * batch, f.after});
    flat.push_back(reshape(ctx, swapped(ctx, rows, f.before, batch), {batch, f.size()}));
  }
  return flat.size() == 1 ? flat.front() : concat(ctx, flat);
}

layers::State MixerMemory::state_of(Context& ctx, const Variable& memory, const layers::State& rings) const {
  std::vector<Variable> fields = parts_.layer->export_state(ctx, rings);
  std::vector<std::int64_t> widths;
  for (const Field& f : parts_.fields) {
    if (!f.ring) widths.push_back(f.size());
  }
  const std::int64_t batch = memory.size(0);
  const std::vector<Variable> flat = widths.size() == 1 ? std::vector<Variable>{memory} : split(ctx, memory, widths);
  for (std::size_t i = 0, next = 0; i < fields.size(); ++i) {
    const Field& f = parts_.fields[i];
    if (f.ring) continue;
    const Variable rows = reshape(ctx, flat[next++], {batch * f.before, f.after});
    fields[i] = reshape(ctx, swapped(ctx, rows, batch, f.before), fields[i].shape());
  }
  return parts_.layer->import_state(ctx, std::move(fields));
}

Variable MixerMemory::transition(Context& ctx, const Variable& memory, const Variable& tokens) const {
  check_arguments(memory, tokens);
  const Variable x = apply(ctx, tokens, *in_, nullptr);
  const std::int64_t before = context() - 1;
  layers::State rings = before > 0 ? parts_.layer->forward(ctx, part_of_time(ctx, x, 0, before)).state
                                   : parts_.layer->zero_state(memory.size(0));
  layers::State state = state_of(ctx, memory, rings);
  return memory_of(ctx, parts_.layer->forward(ctx, part_of_time(ctx, x, before, 1), std::move(state)).state);
}

Tensor MixerMemory::initial_memory(Context& ctx, std::int64_t batch) const {
  NoGrad no_grad;
  return memory_of(ctx, parts_.layer->initial_state(ctx, batch)).value();
}

}  // namespace stepwell::memory
