// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Outputs, states and gradients of the published layers (kind `layer` in tests/golden, stepwell-case-1).
#include <filesystem>
#include <map>
#include <set>

#include "stepwell/io/safetensors.h"

#include "tests/layers/mixer_case.h"

namespace stepwell {
namespace {

constexpr const char* kFolder = STEPWELL_TEST_DATA "/golden";

// "mamba/block_small" and so on: the cases of kind `layer` whose type is a registered mixer and that have one tolerance
// for all tensors (tests/verify runs the others).
std::vector<std::string> layer_cases() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const io::Metadata metadata = io::SafetensorsFile::open(entry.path().string()).metadata();
    if (!metadata.contains("kind") || metadata.at("kind") != "layer") continue;
    if (io::parse_json(metadata.at("tol"), "tol").find("tensors")) continue;
    const std::string type = io::parse_json(metadata.at("config"), "config").find("type")->as_string("type");
    for (const layers::MixerRow& row : layers::mixers()) {
      if (row.name == type) {
        names.insert(std::filesystem::relative(entry.path(), kFolder).replace_extension().string());
      }
    }
  }
  return {names.begin(), names.end()};
}

class GoldenLayer : public ::testing::TestWithParam<std::string> {
 protected:
  void run(DType dtype, Mode mode);
};

INSTANTIATE_TEST_SUITE_P(Cases, GoldenLayer, ::testing::ValuesIn(layer_cases()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLayer);

std::unique_ptr<layers::Layer> layer_of(const io::SafetensorsFile& file, DType dtype) {
  const Config config = io::parse_json(file.metadata().at("config"), "config");
  Config options;
  std::string type;
  for (const auto& [key, value] : config.as_object("config")) {
    if (key == "type") {
      type = value.as_string("type");
    } else {
      options.set(key, value);
    }
  }
  auto layer = layers::find_mixer(type).make(file.tensor("in.x").size(2), options, Rng(1));
  layer->to(dtype);
  layers::NamedTensors parameters;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.starts_with("param.")) parameters.emplace_back(name.substr(6), tensor);
  }
  layer->set_named_parameters(parameters);
  return layer;
}

void GoldenLayer::run(DType dtype, Mode mode) {
  const auto file = io::SafetensorsFile::open(std::string(kFolder) + "/" + GetParam() + ".safetensors");
  const Config tolerance = io::parse_json(file.metadata().at("tol"), "tol");
  const double relative = tolerance.find(dtype == DType::F64 ? "f64" : "f32")->as_double("tol");
  ASSERT_EQ(tolerance.find("abs")->as_double("tol"), 0);
  const auto layer = layer_of(file, dtype);
  const auto& fields = layer->state_fields();

  Context ctx = Context::serial(mode);
  std::map<std::string, Variable> leaves;
  const auto leaf = [&](const std::string& name) {
    return leaves.emplace(name, Variable::leaf(file.tensor(name).to(dtype).clone())).first->second;
  };
  std::vector<Variable> states;
  for (const auto& field : fields) {
    if (const std::string name = "in." + std::string(field.name); file.contains(name)) states.push_back(leaf(name));
  }
  layers::State start;
  if (!states.empty()) start = layer->import_state(ctx, states);
  const layers::LayerOutput out = layer->forward(ctx, leaf("in.x"), std::move(start));
  std::vector<Variable> outputs = layer->export_state(ctx, out.state);
  outputs.push_back(out.y);
  std::vector<Tensor> cotangents;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = i < fields.size() ? std::string(fields[i].name) : "y";
    if (file.contains("out." + name)) {
      expect_close(outputs[i].value(), file.tensor("out." + name), relative, "out." + name);
    }
    cotangents.push_back(file.contains("cot." + name) ? file.tensor("cot." + name).to(dtype) : Tensor());
  }

  const Gradients gradients = backward(ctx, outputs, cotangents);
  for (const layers::Parameter* p : layer->parameters()) leaves.emplace("param." + p->name, p->value);
  std::size_t compared = 0;
  for (const auto& [name, v] : leaves) {
    if (!file.contains("grad." + name)) continue;
    expect_close(gradients.of(v), file.tensor("grad." + name), relative, "grad." + name);
    ++compared;
  }
  EXPECT_GT(compared, layer->parameters().size());
}

TEST_P(GoldenLayer, InDouble) { run(DType::F64, Mode::Exact); }
TEST_P(GoldenLayer, InFloat) { run(DType::F32, Mode::Exact); }
TEST_P(GoldenLayer, InDoubleFast) { run(DType::F64, Mode::Fast); }
TEST_P(GoldenLayer, InFloatFast) { run(DType::F32, Mode::Fast); }

TEST(GoldenLayerFiles, AreThere) {
  std::map<std::string, int> found;
  for (const std::string& name : layer_cases()) ++found[name.substr(0, name.find('/'))];
  EXPECT_GE(found["mamba"], 32);
  EXPECT_GE(found["gated-delta"], 14);
}

}  // namespace
}  // namespace stepwell
