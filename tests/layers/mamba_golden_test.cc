// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Outputs, states and gradients of the published implementation (tests/golden/mamba, stepwell-case-1).
#include <filesystem>
#include <set>

#include "stepwell/io/safetensors.h"

#include "tests/layers/mixer_case.h"

namespace stepwell {
namespace {

constexpr std::string_view kStates[] = {"conv_state", "ssm_state"};

class GoldenMamba : public ::testing::TestWithParam<std::string> {
 protected:
  void run(DType dtype);
};

std::vector<std::string> layer_cases() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(STEPWELL_TEST_DATA "/golden/mamba")) {
    const std::string name = entry.path().stem().string();
    if (name.starts_with("block_")) names.insert(name);
  }
  return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenMamba, ::testing::ValuesIn(layer_cases()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenMamba);

void GoldenMamba::run(DType dtype) {
  const auto file = io::SafetensorsFile::open(STEPWELL_TEST_DATA "/golden/mamba/" + GetParam() + ".safetensors");
  const io::Metadata metadata = file.metadata();
  const Config tolerance = io::parse_json(metadata.at("tol"), "tol");
  const double relative = tolerance.find(dtype == DType::F64 ? "f64" : "f32")->as_double("tol");
  ASSERT_EQ(tolerance.find("abs")->as_double("tol"), 0);
  const Config config = io::parse_json(metadata.at("config"), "config");
  Config options;
  std::int64_t width = 0;
  for (const auto& [key, value] : config.as_object("config")) {
    if (key == "d_model") width = value.as_integer("d_model");
    if (key != "type") options.set(key, value);
  }
  const auto layer = layers::find_mixer("mamba").make(width, options, Rng(1));
  layer->to(dtype);
  layers::NamedTensors parameters;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.starts_with("param.")) parameters.emplace_back(name.substr(6), tensor);
  }
  layer->set_named_parameters(parameters);

  Context ctx = Context::serial();
  const auto leaf = [&](const std::string& name) { return Variable::leaf(file.tensor(name).to(dtype).clone()); };
  const Variable x = leaf("in.x");
  std::vector<Variable> states;
  for (const auto name : kStates) states.push_back(leaf("in." + std::string(name)));
  const layers::LayerOutput out = layer->forward(ctx, x, layer->import_state(ctx, states));
  std::vector<Variable> outputs = layer->export_state(ctx, out.state);
  outputs.insert(outputs.begin(), out.y);
  std::vector<Tensor> cotangents;
  const std::vector<std::string> names = {"y", "conv_state", "ssm_state"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    expect_close(outputs[i].value(), file.tensor("out." + names[i]), relative, "out." + names[i]);
    cotangents.push_back(file.contains("cot." + names[i]) ? file.tensor("cot." + names[i]).to(dtype) : Tensor());
  }

  const Gradients gradients = backward(ctx, outputs, cotangents);
  int compared = 0;
  const auto compare = [&](const std::string& name, const Variable& v) {
    if (!file.contains("grad." + name)) return;
    expect_close(gradients.of(v), file.tensor("grad." + name), relative, "grad." + name);
    ++compared;
  };
  compare("in.x", x);
  for (std::size_t i = 0; i < states.size(); ++i) compare("in." + std::string(kStates[i]), states[i]);
  for (const layers::Parameter* parameter : layer->parameters()) compare("param." + parameter->name, parameter->value);
  EXPECT_GE(compared, static_cast<int>(parameters.size()) + 1);
}

TEST_P(GoldenMamba, InDouble) { run(DType::F64); }
TEST_P(GoldenMamba, InFloat) { run(DType::F32); }

TEST(GoldenMambaFiles, AreThere) { EXPECT_EQ(layer_cases().size(), 20u); }

}  // namespace
}  // namespace stepwell
