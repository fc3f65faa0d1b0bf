// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/layers/registry.h"

#include <string>
#include <vector>

#include "stepwell/layers/delta_net.h"
#include "stepwell/layers/gated_delta_net.h"
#include "stepwell/layers/gated_delta_net2.h"
#include "stepwell/layers/gated_linear_attention.h"
#include "stepwell/layers/kimi_delta_attention.h"
#include "stepwell/layers/linear_attention.h"
#include "stepwell/layers/mamba.h"
#include "stepwell/layers/mamba2.h"
#include "stepwell/layers/mlstm.h"
#include "stepwell/layers/mlstm_large.h"
#include "stepwell/layers/slstm.h"

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
constexpr std::string_view kMamba2[] = {
    R"({"d_state": 5, "headdim": 4})",
    R"({"d_state": 3, "headdim": 6, "ngroups": 2, "d_conv": 3, "bias": true, "D_has_hdim": true, )"
    R"("norm_before_gate": true, "A_init_range": [0.5, 2], "dt_min": 0.01, "dt_max": 0.5, "dt_init_floor": 0.02})",
    R"({"d_state": 4, "headdim": 2, "d_inner": 10, "d_ssm": 6, "rmsnorm": false, "conv_bias": false, "d_conv": 1, )"
    R"("dt_limit": [0.02, 0.3], "learnable_init_states": true})",
    R"({"state_size": 7, "head_dim": 3, "num_heads": 4, "n_groups": 4, "expand": 2, "d_inner": 12, )"
    R"("norm_group_size": 6, "A_init": "ordinal", "time_step_limit": [0, null], "norm_eps": 1e-3})",
};
// Of Gated DeltaNet-2 and of KDA.
constexpr std::string_view kChannelDecay[] = {
    R"({"num_heads": 2, "head_dim": 5})",
    R"({"num_heads": 2, "num_v_heads": 6, "head_dim": 4, "expand_v": 1.5, "conv_size": 3, "conv_bias": true, )"
    R"("allow_neg_eigval": true, "output_gate": "swish", "init": "xavier"})",
    R"({"num_heads": 2, "num_v_heads": 4, "head_dim": 3, "expand_v": 6, "use_short_conv": false, "safe_gate": true, )"
    R"("lower_bound": -4, "norm_eps": 1e-3, "init": "normal"})",
};
constexpr std::string_view kGatedDeltaNet[] = {
    R"({"num_heads": 2, "head_dim": 5})",
    R"({"num_heads": 2, "num_v_heads": 6, "head_dim": 4, "expand_v": 1.5, "conv_size": 3, "conv_bias": true, )"
    R"("allow_neg_eigval": true, "output_gate": "sigmoid", "init": "xavier"})",
    R"({"num_heads": 2, "num_v_heads": 4, "head_dim": 3, "expand_v": 6, "use_short_conv": false, "use_gate": false, )"
    R"("norm_eps": 1e-3, "init": "normal"})",
};
constexpr std::string_view kDeltaNet[] = {
    R"({"num_heads": 2})",
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one string
    R"({"num_heads": 1, "expand_k": 0.5, "expand_v": 3, "conv_size": 3, "conv_bias": true, "qk_activation": "elu", )"
    R"("qk_norm": "sum", "use_gate": true, "allow_neg_eigval": true, "init": "xavier"})",
    R"({"num_heads": 3, "use_short_conv": false, "use_beta": false, "qk_activation": "identity"})",
    R"({"num_heads": 2, "use_short_conv": false, "norm_eps": 1e-3})",
    R"({"num_heads": 1, "qk_activation": "relu"})",
};
constexpr std::string_view kGatedLinearAttention[] = {
    R"({"num_heads": 1})",
    R"({"num_heads": 6, "num_kv_heads": 2, "expand_k": 1, "expand_v": 2, "gate_low_rank_dim": 3, )"
    R"("gate_logit_normalizer": 2, "clamp_min": -0.4, "use_short_conv": true, "conv_size": 3, "conv_bias": true, )"
    R"("init": "normal"})",
    R"({"num_heads": 3, "num_kv_heads": 1, "expand_k": 1, "use_output_gate": false, "norm_eps": 1e-3, )"
    R"("init": "xavier"})",
};
constexpr std::string_view kLinearAttention[] = {
    R"({"num_heads": 1, "head_dim": 5})",
    R"({"num_heads": 3, "head_dim": 16})",
};
constexpr std::string_view kMlstm[] = {
    R"({"init": "active", "num_heads": 2, "round_proj_up_to_multiple_of": 4})",
    R"({"init": "active", "num_heads": 2, "inner_dim": 8, "qkv_proj_blocksize": 2, "conv1d_kernel_size": 1, )"
    R"("bias": true, "state_scale": "k", "eps": 1e-3, "norm_eps": 1e-3, "context_length": 4})",
    R"({"init": "active", "num_heads": 3, "proj_factor": 1.6, "round_proj_up_to_multiple_of": 3, )"
    R"("qkv_proj_blocksize": 3, "round_proj_up_dim_up": false, "conv1d_kernel_size": 3, "num_blocks": 3, )"
    R"("m0": "minus_infinity"})",
    R"({"num_heads": 1, "inner_dim": 20})",
};
constexpr std::string_view kMlstmLarge[] = {
    R"({"init": "active", "num_heads": 2, "qk_dim_factor": 1})",
    R"({"init": "active", "num_heads": 3, "v_dim_factor": 3, "use_bias": true, "weight_mode": "fused", )"
    R"("gate_soft_cap": 2, "eps": 1e-3, "norm_eps": 1e-3, "num_blocks": 2})",
    R"({"init": "active", "num_heads": 1, "use_bias": true})",
};
constexpr std::string_view kSlstm[] = {
    R"({"num_heads": 2, "recurrent_weight_init": "standard"})",
    R"({"num_heads": 1, "conv1d_kernel_size": 0, "backend": "cuda", "bias_init": "standard", )"
    R"("recurrent_weight_init": "standard", "norm_eps": 1e-3})",
    R"({"num_heads": 2, "conv1d_kernel_size": 3, "bias_init": "small_init", "recurrent_weight_init": "standard"})",
    R"({"num_heads": 1, "conv1d_kernel_size": 1, "backend": "cuda", "block_idx": 1, "num_blocks": 3, )"
    R"("context_length": 4})",
};

const MixerRow kRows[] = {
    {.name = "mamba",
     .summary = "selective state space: input-dependent decay per channel and state",
     .source = "arXiv:2312.00752",
     .make = make<Mamba, MambaConfig>,
     .conformance_options = kMamba,
     .output_weight = "out_proj.weight"},
    {.name = "mamba2",
     .summary = "state space duality: one decay per head, a wide state",
     .source = "arXiv:2405.21060",
     .make = make<Mamba2, Mamba2Config>,
     .conformance_options = kMamba2,
     .output_weight = "out_proj.weight"},
    {.name = "gated_delta_net2",
     .summary = "delta rule with decay and erase gate per key channel, write gate per value channel",
     .source = "arXiv:2605.22791",
     .make = make<GatedDeltaNet2, GatedDeltaNet2Config>,
     .conformance_options = kChannelDecay,
     .output_weight = "o_proj.weight"},
    {.name = "kimi_delta_attention",
     .summary = "delta rule with decay per key channel",
     .source = "arXiv:2510.26692",
     .make = make<KimiDeltaAttention, KimiDeltaAttentionConfig>,
     .conformance_options = kChannelDecay,
     .output_weight = "o_proj.weight"},
    {.name = "gated_delta_net",
     .summary = "delta rule with decay per head",
     .source = "arXiv:2412.06464",
     .make = make<GatedDeltaNet, GatedDeltaNetConfig>,
     .conformance_options = kGatedDeltaNet,
     .output_weight = "o_proj.weight"},
    {.name = "delta_net",
     .summary = "delta rule without decay",
     .source = "arXiv:2406.06484",
     .make = make<DeltaNet, DeltaNetConfig>,
     .conformance_options = kDeltaNet,
     .output_weight = "o_proj.weight"},
    {.name = "gated_linear_attention",
     .summary = "linear attention with decay per key channel",
     .source = "arXiv:2312.06635",
     .make = make<GatedLinearAttention, GatedLinearAttentionConfig>,
     .conformance_options = kGatedLinearAttention,
     .output_weight = "o_proj.weight"},
    {.name = "mlstm",
     .summary = "matrix memory with exponential gates, normalised; xLSTM's block",
     .source = "arXiv:2405.04517",
     .make = make<Mlstm, MlstmConfig>,
     .conformance_options = kMlstm,
     .output_weight = "proj_down.weight"},
    {.name = "slstm",
     .summary = "scalar memory with exponential gates and recurrence within heads",
     .source = "arXiv:2405.04517",
     .make = make<Slstm, SlstmConfig>,
     .conformance_options = kSlstm,
     .output_weight = ""},
    {.name = "mlstm_large",
     .summary = "matrix memory with capped gates: the layer of xLSTM-7B",
     .source = "arXiv:2503.13427",
     .make = make<MlstmLarge, MlstmLargeConfig>,
     .conformance_options = kMlstmLarge,
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
