// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Models in the folders that others publish: names, configurations and layouts that are met in the wild.
#include <algorithm>
#include <functional>

#include "stepwell/io/file.h"
#include "stepwell/io/safetensors.h"

#include "tests/io/temporary_folder.h"
#include "tests/models/model_case.h"

namespace stepwell {
namespace {

using layers::NamedTensors;
using models::Model;

constexpr const char* kHuggingFace =
    R"({"model_type": "mamba", "architectures": ["MambaForCausalLM"], "hidden_size": 12, "num_hidden_layers": 2,
        "vocab_size": 256, "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": "auto", "hidden_act":
        "silu", "use_bias": true, "d_model": 9999, "ssm_cfg": {}, "pad_vocab_size_multiple": 1000})";
constexpr const char* kStateSpaces =
    R"({"d_model": 12, "n_layer": 2, "vocab_size": 250, "ssm_cfg": {}, "rms_norm": true, "residual_in_fp32": true,
        "fused_add_norm": true, "attn_layer_idx": [], "attn_cfg": {}, "pad_vocab_size_multiple": 8})";

// A config.json with one member changed; null takes its effect away.
std::string with(const char* config, const char* path, Config value) {
  Config changed = io::parse_json(config, "config");
  changed.set_path(path, std::move(value));
  return io::to_json(changed);
}

NamedTensors with_names(const NamedTensors& tensors, const std::function<std::string(std::string)>& name) {
  NamedTensors renamed;
  for (const auto& [old, tensor] : tensors) renamed.emplace_back(name(old), tensor);
  return renamed;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class Published : public ::testing::Test {
 protected:
  void write(const std::string& config, const NamedTensors& tensors) const {
    io::write_file(folder.file("config.json"), config);
    io::write_safetensors(folder.file("model.safetensors"), tensors);
  }
  std::unique_ptr<Model> load(const std::string& config, const NamedTensors& tensors) const {
    write(config, tensors);
    return models::load_model(folder.path());
  }
  std::string fault(const std::string& config, const NamedTensors& tensors) const {
    try {
      load(config, tensors);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::File) << error.what();
      return error.what();
    }
    return "no error";
  }
  // The parameters, and with them the logits, are those of `expected` to the bit.
  static void expect_same(const Model& model, const Model& expected) {
    const NamedTensors a = model.named_parameters(), b = expected.named_parameters();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].first, b[i].first);
      EXPECT_TRUE(a[i].second.same_bits(b[i].second)) << a[i].first;
    }
  }

  TemporaryFolder folder;
  std::unique_ptr<Model> tied = small_lm("mamba", true), untied = small_lm("mamba", false);
  NamedTensors tensors = std::as_const(*tied).named_parameters();
  Tensor embeddings = tensors.front().second;
};

TEST_F(Published, P46_EveryPrefixAndSpellingIsTheSameModel) {
  for (const char* prefix : {"backbone.", "", "model.", "model.backbone."}) {
    for (const char* spelling : {"embeddings", "embedding"}) {
      const NamedTensors renamed = with_names(tensors, [&](std::string name) {
        return replaced(replaced(name, "backbone.", prefix), "embeddings", spelling);
      });
      for (const char* config : {kHuggingFace, kStateSpaces}) expect_same(*load(config, renamed), *tied);
    }
  }
}

TEST_F(Published, P46_HeadsPresentAndAbsentTiedAndUntied) {
  expect_same(*load(kHuggingFace, tensors), *tied);
  NamedTensors with_head = tensors;
  with_head.emplace_back("lm_head.weight", embeddings);
  expect_same(*load(kHuggingFace, with_head), *tied);
  expect_same(*load(kStateSpaces, with_head), *tied);
  Tensor other = embeddings.clone();
  other.data<float>()[7] += 1;
  with_head.back().second = other;
  EXPECT_NE(fault(kHuggingFace, with_head).find("lm_head.weight is another tensor than the embedding"),
            std::string::npos);
  std::erase_if(with_head, [](const auto& named) { return named.first == "backbone.embeddings.weight"; });
  const std::string alone = fault(kHuggingFace, with_head);
  EXPECT_NE(alone.find("backbone.embeddings.weight [256, 12] is missing"), std::string::npos) << alone;

  const NamedTensors apart = std::as_const(*untied).named_parameters();
  expect_same(*load(with(kHuggingFace, "tie_word_embeddings", false), apart), *untied);
  expect_same(*load(with(kStateSpaces, "tie_embeddings", false), apart), *untied);
  const std::string missing = fault(with(kHuggingFace, "tie_word_embeddings", false), tensors);
  EXPECT_NE(missing.find("lm_head.weight [256, 12] is missing"), std::string::npos) << missing;
}

TEST_F(Published, P46_ConvolutionsOfAnyLayout) {
  for (const Shape& shape : {Shape{24, 1, 4}, Shape{24, 4}, Shape{24, 4, 1}}) {
    NamedTensors reshaped = tensors;
    for (auto& [name, tensor] : reshaped) {
      if (name.ends_with("conv1d.weight")) tensor = tensor.reshape(shape);
    }
    expect_same(*load(kHuggingFace, reshaped), *tied);
  }
}

TEST_F(Published, P46_NarrowTypesBecomeF32) {
  NamedTensors narrow = tensors, rounded = tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i % 3 == 2) continue;
    narrow[i].second = tensors[i].second.to(i % 3 == 0 ? DType::BF16 : DType::F16);
    rounded[i].second = narrow[i].second.to(DType::F32);
  }
  const auto expected = small_lm();
  expected->set_named_parameters(rounded);
  expect_same(*load(kHuggingFace, narrow), *expected);
}

TEST_F(Published, P46_WhatDoesNotFitIsAllListed) {
  NamedTensors wrong = tensors;
  std::erase_if(wrong, [](const auto& named) { return named.first.ends_with("1.mixer.A_log"); });
  wrong.emplace_back("backbone.layers.0.mixer.B_log", Tensor::zeros({3}));
  wrong.emplace_back("backbone.layers.01.norm.weight", Tensor::zeros({12}));
  wrong.emplace_back("optimizer.step", Tensor::zeros({1}));
  wrong.emplace_back("embedding.weight", embeddings);  // beside backbone.embeddings.weight
  for (auto& [name, tensor] : wrong) {
    if (name.ends_with("0.mixer.D")) tensor = Tensor::zeros({23});
    if (name.ends_with("norm_f.weight")) tensor = Tensor::zeros({12}, DType::I64);
  }
  const std::string message = fault(kHuggingFace, wrong);
  for (const char* part :
       {"7 faults", "layers.1.mixer.A_log [24, 16] is missing", "layers.0.mixer.B_log [3] is unexpected",
        "layers.01.norm.weight [12] is unexpected", "optimizer.step [1] is unexpected", "is given twice",
        "layers.0.mixer.D is [23], expected [24]", "norm_f.weight is I64"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << ": " << message;
  }
}

TEST_F(Published, P46_ConfigurationsThatCannotBeRightAreErrors) {
  const auto expect = [&](const std::string& config, const char* part) {
    EXPECT_NE(fault(config, tensors).find(part), std::string::npos) << fault(config, tensors);
  };
  expect(with(kHuggingFace, "model_type", "mamba9"), "model_type = \"mamba9\" with keys of no naming");
  expect("{}", "no model_type with keys of no naming that this version reads: Hugging Face mamba");
  expect("[]", "config.json] holds no JSON object");
  expect(with(kHuggingFace, "hidden_size", {}), "no naming");
  expect(with(kHuggingFace, "num_hidden_layers", {}), "without num_hidden_layers");
  expect(with(kHuggingFace, "num_hidden_layers", "2"), "num_hidden_layers is read as layers");
  expect(with(kHuggingFace, "num_hidden_layers", 3), "layers.2.norm.weight [12] is missing");
  expect(with(kHuggingFace, "hidden_size", 16), "backbone.embeddings.weight is [256, 12], expected [256, 16]");
  expect(with(kHuggingFace, "hidden_size", 1 << 20), "the tensors beside it hold");
  expect(with(kHuggingFace, "hidden_act", "gelu"), "hidden_act = \"gelu\", expected \"silu\"");
  expect(with(kStateSpaces, "attn_layer_idx", Config::Array{1}), "attn_layer_idx = [1], expected []");
  expect(with(kStateSpaces, "rms_norm", false), "rms_norm = false");
  expect(with(kStateSpaces, "d_intermediate", 64), "d_intermediate = 64");
  expect(with(kStateSpaces, "ssm_cfg.layer", "Mamba3"), "ssm_cfg.layer = \"Mamba3\"");
  expect(with(kStateSpaces, "pad_vocab_size_multiple", 0), "pad_vocab_size_multiple");
}

// Keys as published: explicit sizes win, options follow the tensors, and JSON is what Python writes.
TEST_F(Published, P46_ConfigurationsInTheWild) {
  std::string falcon = with(kHuggingFace, "model_type", "falcon_mamba");
  const auto model = load(with(falcon.c_str(), "mixer_rms_eps", 1e-5), tensors);
  const Config config = model->config();
  const Config* options = config.find("mixer_options");
  EXPECT_TRUE(options->find("falcon_rms")->as_bool("falcon_rms"));
  EXPECT_EQ(options->find("mixer_rms_eps")->as_double("eps"), 1e-5);
  Config wide = io::parse_json(kHuggingFace, "config");
  wide.set("expand", 16);
  wide.set("intermediate_size", 24);
  expect_same(*load(io::to_json(wide), tensors), *tied);
}

// Both publishers' Mamba-2, with the options that the tensors decide.
TEST_F(Published, P46_Mamba2OfBothPublishers) {
  constexpr const char* kTheirs =
      R"({"model_type": "mamba2", "hidden_size": 12, "num_hidden_layers": 2, "vocab_size": 256, "state_size": 16,
          "head_dim": 8, "num_heads": 3, "n_groups": 1, "chunk_size": 256, "hidden_act": "silu", "rms_norm": true,
          "norm_before_gate": true, "time_step_limit": [0.0, "inf"], "tie_word_embeddings": true})";
  constexpr const char* kOriginal =
      R"({"d_model": 12, "n_layer": 2, "vocab_size": 250, "ssm_cfg": {"layer": "Mamba2", "headdim": 8, "d_state": 16},
          "rms_norm": true, "pad_vocab_size_multiple": 16})";
  models::CausalLMConfig wanted;
  wanted.backbone = small_backbone("mamba2");
  wanted.backbone.width = 12;
  wanted.backbone.mixer_options = Config::Object{{"headdim", 8}, {"d_state", 16}};
  const auto expected = models::make_causal_lm(wanted, Rng(5));
  const NamedTensors own = std::as_const(*expected).named_parameters();
  expect_same(*load(kTheirs, own), *expected);
  expect_same(*load(kOriginal, own), *expected);
  EXPECT_NE(fault(with(kTheirs, "n_groups", {}), own).find("ngroups = 8"), std::string::npos);
}

TEST_F(Published, P43_InfinityInConfigJson) {
  expect_same(
      *load(replaced(kHuggingFace, "{", R"({"time_step_limit": [0.0, Infinity], "name": "Infinity-7B", )"), tensors),
      *tied);
}

TEST_F(Published, ParametersInSeveralFiles) {
  const std::span<const std::pair<std::string, Tensor>> all(tensors);
  io::write_file(folder.file("config.json"), kHuggingFace);
  io::write_safetensors(folder.file("model-00001-of-00002.safetensors"), all.first(5));
  io::write_safetensors(folder.file("model-00002-of-00002.safetensors"), all.subspan(5));
  const auto index = [&](const std::string& second) {
    Config map;
    for (std::size_t i = 0; i < all.size(); ++i)
      map.set(all[i].first, i < 5 ? "model-00001-of-00002.safetensors" : second);
    io::write_file(folder.file("model.safetensors.index.json"), io::to_json(Config::Object{{"weight_map", map}}));
  };
  index("model-00002-of-00002.safetensors");
  expect_same(*models::load_model(folder.path()), *tied);
  index("../elsewhere/model-00002-of-00002.safetensors");
  EXPECT_THROW(models::load_model(folder.path()), Error);
  index("nothing.safetensors");
  EXPECT_THROW(models::load_model(folder.path()), Error);
  io::write_file(folder.file("model.safetensors.index.json"), "{}");
  EXPECT_THROW(models::load_model(folder.path()), Error);
}

TEST_F(Published, PicklesAreNotReadButExplained) {
  io::write_file(folder.file("config.json"), kStateSpaces);
  io::write_file(folder.file("pytorch_model.bin"), "PK");
  try {
    models::load_model(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("safetensors.torch.save_file"), std::string::npos) << error.what();
  }
}

// Loaded, saved as our own and loaded again: the same model, and the same bytes from then on.
TEST_F(Published, BecomesAFolderOfOurOwn) {
  const auto loaded = load(kStateSpaces, tensors);
  models::save_model(*loaded, folder.file("own"));
  const auto again = models::load_model(folder.file("own"));
  EXPECT_EQ(models::fingerprint(*again), models::fingerprint(*loaded));
  Context ctx = Context::serial();
  models::Stream a(*again, ctx), b(*tied, ctx);
  EXPECT_TRUE(same_bits(feed(a, random_ids(1, 9, "x")), feed(b, random_ids(1, 9, "x"))));
}

}  // namespace
}  // namespace stepwell
