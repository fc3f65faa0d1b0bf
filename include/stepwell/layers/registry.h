// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "stepwell/core/rng.h"
#include "stepwell/layers/layer.h"

namespace stepwell::layers {

// One mixer. Conformance tests, verify, bench, model configs and the docs read these rows.
struct MixerRow {
  std::string_view name;     // "mamba"
  std::string_view summary;  // one line for tables
  std::string_view source;   // paper
  // Builds a layer of `width` from its options (unknown keys throw), initialised from `rng` (streams named after
  // parameters). Keys are those of case files and published configs.
  std::unique_ptr<Layer> (*make)(std::int64_t width, const Config& options, const Rng& rng);
  // Small configurations that between them touch every option, for the conformance suite (options, JSON text).
  std::span<const std::string_view> conformance_options;
  // The weight that writes to the residual stream; models scale its first value by 1/sqrt(layers). Empty: a norm does.
  std::string_view output_weight;
  bool constant_memory = true;  // false: the state grows with T
};

std::span<const MixerRow> mixers();
// The row called `name`; throws Error naming the nearest and listing all.
const MixerRow& find_mixer(std::string_view name);

}  // namespace stepwell::layers
