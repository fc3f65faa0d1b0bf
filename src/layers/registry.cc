// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/registry.h"

#include <string>
#include <vector>

#include "stepwell/layers/linear_attention.h"
#include "stepwell/layers/mamba.h"

namespace stepwell::layers {

namespace {

// A row's `make` for a layer class and the configuration it is built from.
template <class L, class C>
std::unique_ptr<Layer> make(std::int64_t width, const Config& options, const Rng& rng) {
  return std::make_unique<L>(C::read(width, options), rng);
}

constexpr std::string_view kMamba[] = {
    R"({"init": "active"})",
    R"({"init": "active", "d_state": 7, "d_conv": 3, "d_inner": 13, "dt_rank": 3, "bias": true})",
    R"({"init": "active", "d_state": 1, "d_conv": 1, "conv_bias": false, "discretisation": "zero_order"})",
    R"({"init": "stable", "d_state": 5, "d_conv": 8, "falcon_rms": true, "dt_rank": 2})",
    R"({"init": "reference", "dt_init": "constant", "d_state": 4, "expand": 1})",
};
constexpr std::string_view kLinearAttention[] = {
    R"({"num_heads": 1, "head_dim": 5})",
    R"({"num_heads": 3, "head_dim": 16})",
};

const MixerRow kRows[] = {
    {.name = "mamba",
     .summary = "selective state space: input-dependent decay per channel and state",
     .source = "arXiv:2312.00752",
     .make = make<Mamba, MambaConfig>,
     .conformance_options = kMamba,
     .output_weight = "out_proj.weight"},
    {.name = "linear_attention",
     .summary = "linear attention with a fixed decay per head",
     .source = "arXiv:2307.08621, without rotation, gate and norm",
     .make = make<LinearAttention, LinearAttentionConfig>,
     .conformance_options = kLinearAttention,
     .output_weight = "o_proj.weight"},
};

}  // namespace

std::span<const MixerRow> mixers() { return kRows; }

const MixerRow& find_mixer(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (const MixerRow& row : kRows) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
    all += (all.empty() ? "" : ", ") + std::string(row.name);
  }
  const std::string_view near = nearest_name(name, names);
  fail(ErrorCode::Config, "mixer",
       "unknown mixer " + std::string(name) + (near.empty() ? "" : ", did you mean " + std::string(near) + "?") +
           "; known: " + all);
}

}  // namespace stepwell::layers
