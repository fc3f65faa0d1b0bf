// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/io/json.h"
#include "stepwell/layers/registry.h"
#include "stepwell/models/causal_lm.h"
#include "stepwell/models/forecaster.h"
#include "stepwell/models/stream.h"

namespace stepwell {

// A small backbone of any registered mixer, in its first conformance configuration.
inline models::BackboneConfig small_backbone(std::string_view mixer, std::int64_t width = 12, std::int64_t layers = 2) {
  const layers::MixerRow& row = layers::find_mixer(mixer);
  return {.width = width,
          .layers = layers,
          .mixer = std::string(mixer),
          .mixer_options = io::parse_json(row.conformance_options.front(), "options")};
}

inline std::unique_ptr<models::Model> small_lm(std::string_view mixer = "mamba", bool tied = true) {
  return models::make_causal_lm({.backbone = small_backbone(mixer), .vocab_size = 256, .tie_embeddings = tied}, Rng(3));
}

inline std::unique_ptr<models::Model> small_forecaster(std::string_view mixer = "mamba") {
  return models::make_forecaster({.backbone = small_backbone(mixer), .channels = 2}, Rng(3));
}

inline std::vector<std::string> mixer_names() {
  std::vector<std::string> names;
  for (const auto& row : layers::mixers()) names.emplace_back(row.name);
  return names;
}

// Token ids [batch, time], the same for the same name.
inline Tensor random_ids(std::int64_t batch, std::int64_t time, std::string_view name, std::int64_t vocab = 256) {
  const Tensor ids = Tensor::empty({batch, time}, DType::I64);
  const Rng rng = Rng(5).stream(name);
  std::uint64_t i = 0;
  for (std::int64_t& id : ids.span<std::int64_t>()) {
    id = static_cast<std::int64_t>(rng.below(i++, static_cast<std::uint64_t>(vocab)));
  }
  return ids;
}

inline Tensor random_series(const Shape& shape, std::string_view name, DType dtype = DType::F32) {
  return Rng(5).stream(name).normal(shape, 0, 1, dtype);
}

constexpr std::int64_t kVocab = 256;  // of small_lm()

inline std::vector<float> step(models::Stream& stream, std::int64_t token) {
  std::vector<float> output(kVocab, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(stream.step(token, output));
  return output;
}

inline std::vector<float> feed(models::Stream& stream, const Tensor& ids) {
  std::vector<float> last;
  for (const std::int64_t id : ids.span<std::int64_t>()) last = step(stream, id);
  return last;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace stepwell
