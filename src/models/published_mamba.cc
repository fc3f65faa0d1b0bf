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

// A head is tied where nothing is said.
constexpr ValueRow kTied[] = {{"tie_embeddings", "true"}};
constexpr ValueRow kFalcon[] = {{"tie_embeddings", "true"}, {"mixer_options.falcon_rms", "true"}};

constexpr ValueRow kHuggingFaceRequired[] = {{"hidden_act", R"("silu")"}};
constexpr ValueRow kStateSpacesRequired[] = {
    {"rms_norm", "true"}, {"attn_layer_idx", "[]"}, {"d_intermediate", "0"}, {"ssm_cfg.layer", R"("Mamba1")"}};

// Not use_bias and use_conv_bias: their defaults differ between versions of the classes, and the file cannot err.
constexpr PresenceRow kPresence[] = {{"backbone.layers.0.mixer.in_proj.bias", "mixer_options.bias"},
                                     {"backbone.layers.0.mixer.conv1d.bias", "mixer_options.conv_bias"}};

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
