// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/io/json.h"
#include "stepwell/layers/registry.h"

namespace stepwell {

// One registered mixer with one of its conformance configurations.
struct MixerCase {
  const layers::MixerRow* row;
  std::string_view options;
};

inline void PrintTo(const MixerCase& c, std::ostream* out) { *out << c.row->name << " " << c.options; }

inline std::vector<MixerCase> mixer_cases() {
  std::vector<MixerCase> cases;
  for (const layers::MixerRow& row : layers::mixers()) {
    for (const std::string_view options : row.conformance_options) cases.push_back({&row, options});
  }
  return cases;
}

inline std::unique_ptr<layers::Layer> make_mixer(const MixerCase& c, std::int64_t width, DType dtype) {
  auto layer = c.row->make(width, io::parse_json(c.options, "options"), Rng(7));
  layer->to(dtype);
  return layer;
}

inline Tensor random_input(const Shape& shape, std::string_view name, DType dtype) {
  return Rng(11).stream(name).normal(shape, 0, 1, dtype);
}

// A state that is nowhere zero but in padding.
inline layers::State random_state(const layers::Layer& layer, std::int64_t sequences) {
  layers::State state = layer.zero_state(sequences);
  for (int i = 0; i < state.count(); ++i) {
    const layers::StateField& field = layer.state_fields()[static_cast<std::size_t>(i)];
    const Tensor values = random_input(state[i].shape(), field.name, DType::F64);
    for (double& x : values.span<double>()) x = field.positive ? 0.5 + std::abs(x) : x;
    state[i] = values.to(layer.dtype());
  }
  Context ctx = Context::serial();
  return layer.import_state(ctx, layer.export_state(ctx, state));  // zeros where a layout has padding
}

inline Tensor time_slice(const Tensor& x, std::int64_t start, std::int64_t length) { return x.slice(1, start, length); }

// Feeds x in pieces of the given lengths, handing the state on.
inline layers::LayerOutput in_pieces(Context& ctx, const layers::Layer& layer, const Tensor& x, layers::State state,
                                     const std::vector<std::int64_t>& lengths) {
  const Tensor y = Tensor::full(x.shape(), std::numeric_limits<double>::quiet_NaN(), x.dtype());
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    layers::LayerOutput piece = layer.forward(ctx, time_slice(x, start, length), std::move(state));
    time_slice(y, start, length).copy_from(piece.y.value());
    state = std::move(piece.state);
    start += length;
  }
  return {y, std::move(state)};
}

inline void expect_same_bits(const Tensor& actual, const Tensor& expected, const std::string& what) {
  EXPECT_TRUE(actual.same_bits(expected)) << what;
}

inline void expect_same_bits(const layers::State& actual, const layers::State& expected, const std::string& what) {
  ASSERT_EQ(actual.count(), expected.count()) << what;
  for (int i = 0; i < actual.count(); ++i) {
    expect_same_bits(actual[i].value(), expected[i].value(), what + ", state field " + std::to_string(i));
  }
}

// Row b of the outer dimension of every field, as a state of one sequence.
inline layers::State one_sequence(const layers::State& state, std::int64_t b) {
  layers::State one;
  for (int i = 0; i < state.count(); ++i) one.push(state[i].value().slice(0, b, 1).clone());
  return one;
}

// max|a − b| ≤ relative · max|b|.
inline void expect_close(const Tensor& a, const Tensor& b, double relative, const std::string& what) {
  ASSERT_EQ(a.defined(), b.defined()) << what;
  if (!a.defined()) return;
  ASSERT_EQ(a.shape(), b.shape()) << what;
  double worst = 0, largest = 0;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double difference = std::abs(a.at(i) - b.at(i));
    if (!(difference <= worst)) worst = difference, at = i;
    largest = std::max(largest, std::abs(b.at(i)));
  }
  EXPECT_TRUE(worst <= relative * largest)
      << what << "[" << at << "]: " << (a.numel() ? a.at(at) : 0) << ", expected " << (b.numel() ? b.at(at) : 0)
      << ", largest " << largest << ", allowed relative " << relative;
}

}  // namespace stepwell
