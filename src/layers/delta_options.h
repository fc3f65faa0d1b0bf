// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "stepwell/layers/delta_layer.h"

#include "layers/option_names.h"

// Reading and writing the options that the delta-rule layers' configurations have in common. C is such a configuration;
// its members are named after the options.
namespace stepwell::layers {

inline constexpr std::string_view kDeltaInits[] = {"uniform", "normal", "xavier"};
inline constexpr std::string_view kOutputGates[] = {"swish", "sigmoid"};  // in the order of GateActivation

// A width times a factor, which must come out whole.
inline std::int64_t expanded(ConfigReader& reader, std::string_view key, std::int64_t width, double factor) {
  const double product = static_cast<double>(width) * factor;
  if (!(product >= 1 && product <= kMaxWidth) || product != std::floor(product)) {
    reader.reject(key, "a factor that makes " + std::to_string(width) + " another whole number");
  }
  return static_cast<std::int64_t>(product);
}

// A configuration made by hand, checked as read() checks one from a file.
template <class C>
C checked(std::string_view type, const C& config) {
  STEPWELL_CHECK(
      config.hidden_size >= 1 && config.hidden_size <= kMaxWidth, type,
      "hidden_size = " + std::to_string(config.hidden_size) + ", expected 1 to " + std::to_string(kMaxWidth));
  return C::read(config.hidden_size, config.options());
}

template <class C>
void read_convolution_options(ConfigReader& reader, std::int64_t width, C& c) {
  c.hidden_size = reader.integer("hidden_size", width, width, width);
  c.use_short_conv = reader.boolean("use_short_conv", c.use_short_conv);
  c.conv_size = reader.integer("conv_size", c.conv_size, 1, 1 << 12);
  c.conv_bias = reader.boolean("conv_bias", c.conv_bias);
  c.norm_eps = reader.number("norm_eps", c.norm_eps, 0, 1);
  c.init = static_cast<DeltaInit>(reader.choice("init", name_in(kDeltaInits, c.init), kDeltaInits));
}
template <class C>
void write_convolution_options(Config& out, const C& c) {
  out.set("use_short_conv", c.use_short_conv);
  out.set("conv_size", c.conv_size);
  out.set("conv_bias", c.conv_bias);
  out.set("norm_eps", c.norm_eps);
  out.set("init", name_in(kDeltaInits, c.init));
}

// Of the layers with grouped value heads: Gated DeltaNet-2, KDA, Gated DeltaNet.
template <class C>
void read_grouped_options(ConfigReader& reader, std::int64_t width, C& c) {
  read_convolution_options(reader, width, c);
  c.num_heads = reader.integer("num_heads", c.num_heads, 1, 1 << 12);
  c.num_v_heads = reader.integer("num_v_heads", c.num_v_heads ? c.num_v_heads : c.num_heads, 1, 1 << 12);
  if (c.num_v_heads % c.num_heads != 0) {
    reader.reject("num_v_heads", "a multiple of num_heads = " + std::to_string(c.num_heads));
  }
  c.head_dim = reader.integer("head_dim", c.head_dim, 1, 1 << 12);
  c.expand_v = reader.number("expand_v", c.expand_v, 1e-6, 1e6);
  expanded(reader, "expand_v", c.head_dim, c.expand_v);
  c.allow_neg_eigval = reader.boolean("allow_neg_eigval", c.allow_neg_eigval);
  c.output_gate =
      static_cast<GateActivation>(reader.choice("output_gate", name_in(kOutputGates, c.output_gate), kOutputGates));
}
template <class C>
void write_grouped_options(Config& out, const C& c) {
  out.set("num_heads", c.num_heads);
  out.set("num_v_heads", c.num_v_heads ? c.num_v_heads : c.num_heads);
  out.set("head_dim", c.head_dim);
  out.set("expand_v", c.expand_v);
  out.set("allow_neg_eigval", c.allow_neg_eigval);
  out.set("output_gate", name_in(kOutputGates, c.output_gate));
  write_convolution_options(out, c);
}

template <class C>
std::int64_t value_width(const C& c) {
  return static_cast<std::int64_t>(static_cast<double>(c.head_dim) * c.expand_v);
}
template <class C>
DeltaSizes grouped_sizes(const C& c) {
  return {.width = c.hidden_size,
          .heads = c.num_heads,
          .value_heads = c.num_v_heads,
          .key_width = c.head_dim,
          .value_width = value_width(c),
          .conv_size = c.use_short_conv ? c.conv_size : 0,
          .conv_bias = c.conv_bias,
          .init = c.init,
          .norm_eps = c.norm_eps};
}

// Of the layers whose widths are factors of hidden_size: DeltaNet, GLA.
template <class C>
void read_flat_options(ConfigReader& reader, std::int64_t width, C& c) {
  read_convolution_options(reader, width, c);
  c.num_heads = reader.integer("num_heads", c.num_heads, 1, 1 << 12);
  c.expand_k = reader.number("expand_k", c.expand_k, 1e-6, 1e6);
  c.expand_v = reader.number("expand_v", c.expand_v, 1e-6, 1e6);
  for (const auto& [key, factor] : {std::pair{"expand_k", c.expand_k}, {"expand_v", c.expand_v}}) {
    if (expanded(reader, key, width, factor) % c.num_heads != 0) {
      reader.reject(key, "a width of " + std::to_string(width) +
                             " times it that num_heads = " + std::to_string(c.num_heads) + " divides");
    }
  }
}
template <class C>
void write_flat_options(Config& out, const C& c) {
  out.set("num_heads", c.num_heads);
  out.set("expand_k", c.expand_k);
  out.set("expand_v", c.expand_v);
  write_convolution_options(out, c);
}
template <class C>
DeltaSizes flat_sizes(const C& c) {
  const auto per_head = [&](double factor) {
    return static_cast<std::int64_t>(static_cast<double>(c.hidden_size) * factor) / c.num_heads;
  };
  return {.width = c.hidden_size,
          .heads = c.num_heads,
          .value_heads = c.num_heads,
          .key_width = per_head(c.expand_k),
          .value_width = per_head(c.expand_v),
          .conv_size = c.use_short_conv ? c.conv_size : 0,
          .conv_bias = c.conv_bias,
          .init = c.init,
          .norm_eps = c.norm_eps};
}

// The bounded decay gate.
template <class C>
void read_safe_gate(ConfigReader& reader, C& c) {
  c.safe_gate = reader.boolean("safe_gate", c.safe_gate);
  c.lower_bound = reader.number("lower_bound", c.lower_bound, -1e4, -1e-6);
}
template <class C>
void write_safe_gate(Config& out, const C& c) {
  out.set("safe_gate", c.safe_gate);
  out.set("lower_bound", c.lower_bound);
}
template <class C>
void set_safe_gate(GatedDeltaArguments& rule, const C& c) {
  rule.gate = c.safe_gate ? ops::DecayGate::Bounded : ops::DecayGate::Softplus;
  rule.lower_bound = c.lower_bound;
}

}  // namespace stepwell::layers
