// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "models/published.h"

namespace stepwell::models {

namespace {

// The keys of Hugging Face's classes, then those of older conversions. A published config.json often holds the keys of
// state-spaces beside them, which do not count. An intermediate_size wins over expand: falcon-mamba-7b says expand 16
// and means 2.
constexpr KeyRow kHuggingFaceKeys[] = {
    {"hidden_size", "width"},
    {"num_hidden_layers", "layers"},
    {"vocab_size", "vocab_size"},
    {"tie_word_embeddings", "tie_embeddings"},
    {"layer_norm_epsilon", "norm_eps"},
    {"norm_eps", "norm_eps"},
    {"state_size", "mixer_options.d_state"},
    {"conv_kernel", "mixer_options.d_conv"},
    {"expand", "mixer_options.expand"},
    {"intermediate_size", "mixer_options.d_inner"},
    {"d_inner", "mixer_options.d_inner"},
    {"time_step_rank", "mixer_options.dt_rank"},
    {"dt_rank", "mixer_options.dt_rank"},
    {"time_step_min", "mixer_options.dt_min"},
    {"time_step_max", "mixer_options.dt_max"},
    {"time_step_init_scheme", "mixer_options.dt_init"},
    {"time_step_scale", "mixer_options.dt_scale"},
    {"time_step_floor", "mixer_options.dt_init_floor"},
    {"mixer_rms_eps", "mixer_options.mixer_rms_eps"},
};
constexpr KeyRow kStateSpacesKeys[] = {
    {"d_model", "width"},
    {"n_layer", "layers"},
    {"vocab_size", "vocab_size"},
    {"tie_embeddings", "tie_embeddings"},
    {"ssm_cfg.d_state", "mixer_options.d_state"},
    {"ssm_cfg.d_conv", "mixer_options.d_conv"},
    {"ssm_cfg.expand", "mixer_options.expand"},
    {"ssm_cfg.dt_rank", "mixer_options.dt_rank"},
    {"ssm_cfg.dt_min", "mixer_options.dt_min"},
    {"ssm_cfg.dt_max", "mixer_options.dt_max"},
    {"ssm_cfg.dt_init", "mixer_options.dt_init"},
    {"ssm_cfg.dt_scale", "mixer_options.dt_scale"},
    {"ssm_cfg.dt_init_floor", "mixer_options.dt_init_floor"},
};

constexpr KeyRow kHuggingFaceMamba2Keys[] = {
    {"hidden_size", "width"},
    {"num_hidden_layers", "layers"},
    {"vocab_size", "vocab_size"},
    {"tie_word_embeddings", "tie_embeddings"},
    {"layer_norm_epsilon", "norm_eps"},
    {"layer_norm_epsilon", "mixer_options.norm_eps"},
    {"state_size", "mixer_options.d_state"},
    {"conv_kernel", "mixer_options.d_conv"},
    {"expand", "mixer_options.expand"},
    {"head_dim", "mixer_options.headdim"},
    {"num_heads", "mixer_options.nheads"},
    {"n_groups", "mixer_options.ngroups"},
    {"time_step_limit", "mixer_options.dt_limit"},
    {"time_step_min", "mixer_options.dt_min"},
    {"time_step_max", "mixer_options.dt_max"},
    {"time_step_floor", "mixer_options.dt_init_floor"},
};
constexpr KeyRow kStateSpacesMamba2Keys[] = {
    {"d_model", "width"},
    {"n_layer", "layers"},
    {"vocab_size", "vocab_size"},
    {"tie_embeddings", "tie_embeddings"},
    {"ssm_cfg.d_state", "mixer_options.d_state"},
    {"ssm_cfg.d_conv", "mixer_options.d_conv"},
    {"ssm_cfg.expand", "mixer_options.expand"},
    {"ssm_cfg.headdim", "mixer_options.headdim"},
    {"ssm_cfg.d_ssm", "mixer_options.d_ssm"},
    {"ssm_cfg.ngroups", "mixer_options.ngroups"},
    {"ssm_cfg.D_has_hdim", "mixer_options.D_has_hdim"},
    {"ssm_cfg.norm_before_gate", "mixer_options.norm_before_gate"},
    {"ssm_cfg.dt_limit", "mixer_options.dt_limit"},
    {"ssm_cfg.dt_min", "mixer_options.dt_min"},
    {"ssm_cfg.dt_max", "mixer_options.dt_max"},
    {"ssm_cfg.dt_init_floor", "mixer_options.dt_init_floor"},
    {"ssm_cfg.A_init_range", "mixer_options.A_init_range"},
};

// A head is tied where nothing is said.
constexpr ValueRow kTied[] = {{"tie_embeddings", "true"}};
constexpr ValueRow kFalcon[] = {{"tie_embeddings", "true"}, {"mixer_options.falcon_rms", "true"}};
// Here it is not. The class's other defaults are those of Codestral Mamba; its code gates before the norm, whatever a
// file's norm_before_gate says.
constexpr ValueRow kMamba2[] = {{"tie_embeddings", "false"}, {"mixer_options.ngroups", "8"}};

constexpr ValueRow kHuggingFaceRequired[] = {{"hidden_act", R"("silu")"}};
constexpr ValueRow kStateSpacesRequired[] = {
    {"rms_norm", "true"}, {"attn_layer_idx", "[]"}, {"d_intermediate", "0"}, {"ssm_cfg.layer", R"("Mamba1")"}};
constexpr ValueRow kStateSpacesMamba2Required[] = {
    {"rms_norm", "true"}, {"attn_layer_idx", "[]"}, {"d_intermediate", "0"}};

// Not use_bias and use_conv_bias: their defaults differ between versions of the classes, and the file cannot err.
constexpr PresenceRow kPresence[] = {{"backbone.layers.0.mixer.in_proj.bias", "mixer_options.bias"},
                                     {"backbone.layers.0.mixer.conv1d.bias", "mixer_options.conv_bias"}};
constexpr PresenceRow kMamba2Presence[] = {{"backbone.layers.0.mixer.in_proj.bias", "mixer_options.bias"},
                                           {"backbone.layers.0.mixer.conv1d.bias", "mixer_options.conv_bias"},
                                           {"backbone.layers.0.mixer.norm.weight", "mixer_options.rmsnorm"}};

// Both spellings of the embedding: converted files mix them.
constexpr NameRow kNames[] = {
    {"embeddings.weight", "backbone.embeddings.weight"},
    {"embedding.weight", "backbone.embeddings.weight"},
    {"layers.{i}.norm.weight", "backbone.layers.{i}.norm.weight"},
    {"layers.{i}.mixer.*", "backbone.layers.{i}.mixer.*"},
    {"norm_f.weight", "backbone.norm_f.weight"},
    {"lm_head.weight", "lm_head.weight"},
};

constexpr Naming kNamings[] = {
    {.name = "Hugging Face mamba",
     .model_type = "mamba",
     .marker = "hidden_size",
     .mixer = "mamba",
     .vocab_multiple = 1,
     .keys = kHuggingFaceKeys,
     .values = kTied,
     .required = kHuggingFaceRequired,
     .presence = kPresence,
     .names = kNames},
    {.name = "Hugging Face falcon_mamba",
     .model_type = "falcon_mamba",
     .marker = "hidden_size",
     .mixer = "mamba",
     .vocab_multiple = 1,
     .keys = kHuggingFaceKeys,
     .values = kFalcon,
     .required = kHuggingFaceRequired,
     .presence = kPresence,
     .names = kNames},
    {.name = "Hugging Face mamba2",
     .model_type = "mamba2",
     .marker = "hidden_size",
     .mixer = "mamba2",
     .vocab_multiple = 1,
     .keys = kHuggingFaceMamba2Keys,
     .values = kMamba2,
     .required = kHuggingFaceRequired,
     .presence = kMamba2Presence,
     .names = kNames},
    {.name = "state-spaces mamba2",
     .model_type = "",
     .marker = "ssm_cfg",
     .only = {"ssm_cfg.layer", R"("Mamba2")"},
     .mixer = "mamba2",
     .vocab_multiple = 16,
     .keys = kStateSpacesMamba2Keys,
     .values = kTied,
     .required = kStateSpacesMamba2Required,
     .presence = kMamba2Presence,
     .names = kNames},
    {.name = "state-spaces mamba",
     .model_type = "",
     .marker = "ssm_cfg",
     .mixer = "mamba",
     .vocab_multiple = 8,
     .keys = kStateSpacesKeys,
     .values = kTied,
     .required = kStateSpacesRequired,
     .presence = kPresence,
     .names = kNames},
};

}  // namespace

std::span<const Naming> mamba_namings() { return kNamings; }

}  // namespace stepwell::models
