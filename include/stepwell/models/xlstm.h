// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "stepwell/models/model.h"

namespace stepwell::models {

// The language models of xLSTM. A configuration has a `type` and the published keys.
//
// "xlstm" (arXiv:2405.04517, xLSTM[a:b]): mLSTM blocks, and sLSTM blocks with a feed-forward part where `slstm_at`
// says (a list of numbers, or "all"). Keys: embedding_dim, num_blocks, num_heads, vocab_size, slstm_at, tie_weights,
// add_post_blocks_norm, dropout; of the mLSTM layer conv1d_kernel_size, qkv_proj_blocksize, proj_factor,
// round_proj_up_to_multiple_of, round_proj_up_dim_up, bias, m0, eps; of the sLSTM layer conv1d_kernel_size, backend,
// bias_init, recurrent_weight_init; ffn_proj_factor, ffn_round_up_to_multiple_of, act_fn; norm_eps. Parameters:
// token_embedding.weight, xlstm_block_stack.blocks.{i}.*, xlstm_block_stack.post_blocks_norm.weight, lm_head.weight if
// not tied.
//
// "xlstm_large" (arXiv:2503.13427, the architecture of xLSTM-7B at any size): blocks of capped mLSTM and a feed-forward
// part. Keys: embedding_dim, num_blocks, num_heads, vocab_size, qk_dim_factor, v_dim_factor, ffn_proj_factor,
// ffn_round_up_to_multiple_of, gate_soft_cap, output_logit_soft_cap, norm_eps, eps, use_bias, add_out_norm,
// weight_mode ("single", "fused"), tie_word_embeddings, dropout. Parameters: embedding.weight, backbone.blocks.{i}.*,
// backbone.out_norm.*, lm_head.weight if not tied.
//
// Throws Error for unknown keys and values out of range.
std::unique_ptr<Model> make_xlstm(const Config& config, const Rng& rng);

}  // namespace stepwell::models
