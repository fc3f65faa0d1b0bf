// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The language models of xLSTM: published checkpoints, names, streams.
#include "stepwell/models/xlstm.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "stepwell/io/file.h"
#include "stepwell/io/safetensors.h"

#include "tests/io/temporary_folder.h"
#include "tests/models/model_case.h"

namespace stepwell {
namespace {

using layers::NamedTensors;
using models::Model;

constexpr const char* kTiny = STEPWELL_TEST_DATA "/golden/xlstm-tiny/";

std::unique_ptr<Model> make(const char* config) { return models::make_model(io::parse_json(config, "config"), Rng(3)); }

constexpr const char* kLarge =
    R"({"type": "xlstm_large", "embedding_dim": 12, "num_heads": 2, "num_blocks": 11, "vocab_size": 17,
        "ffn_round_up_to_multiple_of": 8, "use_bias": true})";
constexpr const char* kOriginal =
    R"({"type": "xlstm", "embedding_dim": 12, "num_heads": 2, "num_blocks": 3, "vocab_size": 17, "slstm_at": [1],
        "round_proj_up_to_multiple_of": 4, "ffn_round_up_to_multiple_of": 8, "recurrent_weight_init": "standard"})";

Tensor logits_of(const Model& model, const Tensor& ids) {
  NoGrad constant;
  Context ctx = Context::serial();
  models::States states;
  return model.forward(ctx, ids, states).value();
}

// max|Δ| / max|expected|.
double distance(const Tensor& got, const Tensor& expected) {
  double worst = 0, largest = 0;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    const double difference = std::abs(got.at(i) - expected.at(i));
    worst = difference <= worst ? worst : difference;
    largest = std::max(largest, std::abs(expected.at(i)));
  }
  return worst / largest;
}

// Logits and greedy continuations of a checkpoint against those computed from the stored weights in double.
void expect_tiny(const std::string& folder, const std::string& prefix) {
  const auto expected = io::SafetensorsFile::open(std::string(kTiny) + "expected.safetensors");
  const Tensor tokens = expected.tensor("tokens"), logits = expected.tensor(prefix + ".logits");
  const auto model = models::load_model(folder);
  EXPECT_EQ(model->type(), "xlstm_large");
  EXPECT_LE(distance(logits_of(*model, tokens), logits), 2e-5) << prefix;

  const Tensor greedy = expected.tensor(prefix + ".greedy_after_6");
  Context ctx = Context::serial();
  model->prepare(ctx);
  for (std::int64_t row = 0; row < tokens.size(0); ++row) {
    models::Stream stream(*model, ctx);
    std::vector<float> output(static_cast<std::size_t>(model->output_width()));
    const Tensor prompt = tokens.slice(0, row, 1).slice(1, 0, 6).clone();
    stream.prefill(prompt.span<std::int64_t>(), output);
    for (std::int64_t t = 0; t < greedy.size(1); ++t) {
      const auto best = std::max_element(output.begin(), output.end()) - output.begin();
      EXPECT_EQ(best, greedy.slice(0, row, 1).slice(1, t, 1).clone().span<std::int64_t>()[0]) << prefix << " " << t;
      ASSERT_TRUE(stream.step(best, output));
    }
  }
  model->to(DType::F64);
  EXPECT_LE(distance(logits_of(*model, tokens), logits), 1e-12) << prefix << " in double";
}

TEST(XlstmCheckpoint, LoadsFromTwoShards) { expect_tiny(kTiny, "f32"); }

TEST(XlstmCheckpoint, LoadsFromOneFileInBf16) {
  const TemporaryFolder folder;
  io::write_file(folder.file("config.json"), io::read_file(std::string(kTiny) + "config.json", 1 << 20));
  io::write_file(folder.file("model.safetensors"),
                 io::read_file(std::string(kTiny) + "model_bf16.safetensors", 1 << 24));
  expect_tiny(folder.path(), "bf16");
}

// Native names, Hugging Face names, the norm of the heads as a matrix: the same model.
TEST(XlstmCheckpoint, KnowsEveryNaming) {
  const auto model = make(kLarge);
  const Tensor ids = random_ids(2, 7, "ids", 17), expected = logits_of(*model, ids);
  for (const bool hugging_face : {false, true}) {
    const TemporaryFolder folder;
    NamedTensors tensors;
    for (const auto& [name, tensor] : model->named_parameters()) {
      const bool heads = hugging_face && name.ends_with("multihead_norm.weight");
      tensors.emplace_back(hugging_face && name == "embedding.weight" ? "backbone.embeddings.weight" : name,
                           heads ? tensor.reshape({2, tensor.numel() / 2}) : tensor);
    }
    Config config = io::parse_json(kLarge, "config");
    Config theirs;
    for (const auto& [key, value] : config.as_object("config")) {
      if (key != "type") theirs.set(key, value);
    }
    theirs.set("qk_dim_factor", 0.5);
    theirs.set("chunk_size", 16);
    theirs.set("mode", "inference");
    if (hugging_face) {
      theirs.set("model_type", "xlstm");
      theirs.set("hidden_size", 4096);  // embedding_dim wins
      theirs.set("ffn_proj_factor", 2.6667);
    }
    io::write_file(folder.file("config.json"), io::to_json(theirs));
    io::write_safetensors(folder.file("model.safetensors"), tensors);
    EXPECT_TRUE(logits_of(*models::load_model(folder.path()), ids).same_bits(expected));
  }
}

// Eleven blocks: names whose number has two digits. The fused matrices hold the rows of the single ones.
TEST(XlstmLarge, FusedWeightsGiveTheSameBits) {
  const auto single = make(kLarge);
  Config config = single->config();
  config.set("weight_mode", "fused");
  const auto fused = models::make_model(config, Rng(4));
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : single->named_parameters()) tensors.emplace(name, tensor);
  const auto joined = [&](const std::string& prefix, std::vector<std::string> parts, const std::string& rest) {
    std::int64_t rows = 0;
    for (const std::string& part : parts) rows += tensors.at(prefix + part + rest).size(0);
    Shape shape = tensors.at(prefix + parts[0] + rest).shape();
    shape[0] = rows;
    const Tensor whole = Tensor::empty(shape);
    std::int64_t at = 0;
    for (const std::string& part : parts) {
      const Tensor& t = tensors.at(prefix + part + rest);
      whole.slice(0, at, t.size(0)).copy_from(t);
      at += t.size(0);
    }
    return whole;
  };
  NamedTensors parameters;
  for (const auto& [name, old] : fused->named_parameters()) {
    const auto dot = name.rfind('.');
    const std::string rest = name.substr(dot), path = name.substr(0, dot);
    const std::string part = path.substr(path.rfind('.') + 1), prefix = path.substr(0, path.rfind('.') + 1);
    if (part == "qkv_opreact") parameters.emplace_back(name, joined(prefix, {"q", "k", "v", "ogate_preact"}, rest));
    else if (part == "ifgate_preact")
      parameters.emplace_back(name, joined(prefix, {"igate_preact", "fgate_preact"}, rest));
    else if (part == "proj_up_gate_z") parameters.emplace_back(name, joined(prefix, {"proj_up_gate", "proj_up"}, rest));
    else parameters.emplace_back(name, tensors.at(name));
  }
  fused->set_named_parameters(parameters);
  const Tensor ids = random_ids(2, 7, "ids", 17);
  EXPECT_TRUE(logits_of(*fused, ids).same_bits(logits_of(*single, ids)));
}

// Not a ceiling: what the published code computes in floating point.
TEST(XlstmLarge, WidthOfTheFeedForwardPart) {
  const auto hidden = [](std::int64_t width, double factor) {
    Config config =
        io::parse_json(R"({"type": "xlstm_large", "num_blocks": 1, "vocab_size": 2, "num_heads": 1})", "config");
    config.set("embedding_dim", width);
    config.set("ffn_proj_factor", factor);
    const auto model = models::make_model(config, Rng(1));
    for (const auto& [name, tensor] : model->named_parameters()) {
      if (name == "backbone.blocks.0.ffn.proj_up.weight") return tensor.size(0);
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(hidden(32, 2.667), 128);
  EXPECT_EQ(hidden(768, 2.6667), 2048);
  EXPECT_EQ(hidden(96, 2.67), 256);
  EXPECT_EQ(hidden(96, 2.678), 320);
}

class EveryXlstm : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, EveryXlstm, ::testing::Values(kLarge, kOriginal));

TEST_P(EveryXlstm, ComesBackFromAFolder) {
  const auto model = make(GetParam());
  const TemporaryFolder folder;
  models::save_model(*model, folder.path());
  const auto loaded = models::load_model(folder.path());
  EXPECT_EQ(loaded->config(), model->config());
  const Tensor ids = random_ids(2, 9, "ids", 17);
  EXPECT_TRUE(logits_of(*loaded, ids).same_bits(logits_of(*model, ids)));
}

// A stream's steps have the bits of one pass, saved and restored half-way.
TEST_P(EveryXlstm, StreamsEqualOnePass) {
  const auto model = make(GetParam());
  const Tensor ids = random_ids(1, 12, "ids", 17), logits = logits_of(*model, ids);
  Context ctx = Context::serial();
  const TemporaryFolder folder;
  std::vector<float> output(17);
  models::Stream stream(*model, ctx);
  for (std::int64_t t = 0; t < 6; ++t) ASSERT_TRUE(stream.step(ids.data<std::int64_t>()[t], output));
  stream.save(folder.file("stream.safetensors"));
  models::Stream other(*model, ctx);
  other.restore(folder.file("stream.safetensors"));
  for (std::int64_t t = 6; t < 12; ++t) {
    ASSERT_TRUE(other.step(ids.data<std::int64_t>()[t], output));
    const Tensor expected = logits.slice(1, t, 1).clone();
    EXPECT_TRUE(same_bits(output, expected.span<float>())) << t;
  }
  other.reset();
  ASSERT_TRUE(other.step(ids.data<std::int64_t>()[0], output));
  EXPECT_TRUE(same_bits(output, logits.slice(1, 0, 1).clone().span<float>())) << "after reset()";
}

TEST_P(EveryXlstm, UnknownKeysAreErrors) {
  Config config = io::parse_json(GetParam(), "config");
  config.set("num_block", 3);
  EXPECT_THROW(models::make_model(config, Rng(1)), Error);
  config = io::parse_json(GetParam(), "config");
  config.set("num_heads", 5);
  EXPECT_THROW(models::make_model(config, Rng(1)), Error);
}

TEST(Xlstm, BlocksAreWhereTheListSays) {
  const auto model = make(kOriginal);
  std::vector<std::string_view> types;
  for (const auto& mixer : model->mixers()) types.push_back(mixer->type());
  EXPECT_EQ(types, (std::vector<std::string_view>{"mlstm", "slstm", "mlstm"}));
  Config config = io::parse_json(kOriginal, "config");
  config.set("slstm_at", "all");
  const auto all = models::make_model(config, Rng(1));
  for (const auto& mixer : all->mixers()) EXPECT_EQ(mixer->type(), "slstm");
  config.set("slstm_at", Config::Array{Config(3)});
  EXPECT_THROW(models::make_model(config, Rng(1)), Error);
}

}  // namespace
}  // namespace stepwell
