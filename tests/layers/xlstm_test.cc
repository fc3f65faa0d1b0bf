// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// The layers of xLSTM beyond what every mixer promises: initial values, layouts, states, field reports.
#include <cmath>
#include <limits>

#include "stepwell/layers/mlstm.h"
#include "stepwell/layers/mlstm_large.h"
#include "stepwell/layers/slstm.h"

#include "tests/layers/mixer_case.h"
#include "verify/counted_heap.h"

namespace stepwell {
namespace {

using layers::Layer;
using layers::LayerOutput;
using layers::State;

std::unique_ptr<Layer> make(const char* mixer, std::int64_t width, const std::string& options) {
  return layers::find_mixer(mixer).make(width, io::parse_json(options, "options"), Rng(7));
}

Tensor parameter(const Layer& layer, std::string_view name) {
  for (const auto& [found, tensor] : layer.named_parameters()) {
    if (found == name) return tensor;
  }
  return {};
}

double deviation_of(const Tensor& t) {
  double sum = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) sum += t.at(i) * t.at(i);
  return std::sqrt(sum / static_cast<double>(t.numel()));
}

TEST(Mlstm, StartsAsPublished) {
  const auto layer = make("mlstm", 128, R"({"num_blocks": 4})");
  EXPECT_EQ(parameter(*layer, "proj_up.weight").shape(), Shape({512, 128}));
  const double small = std::sqrt(2.0 / (5 * 128)), wang = 2 / (4 * std::sqrt(128.0));
  EXPECT_NEAR(deviation_of(parameter(*layer, "proj_up.weight")), small, 0.02 * small);
  EXPECT_NEAR(deviation_of(parameter(*layer, "q_proj.weight")), small, 0.1 * small);
  EXPECT_NEAR(deviation_of(parameter(*layer, "proj_down.weight")), wang, 0.02 * wang);
  EXPECT_EQ(deviation_of(parameter(*layer, "mlstm_cell.igate.weight")), 0);
  EXPECT_EQ(deviation_of(parameter(*layer, "mlstm_cell.outnorm.weight")), 0);
  EXPECT_EQ(parameter(*layer, "mlstm_cell.fgate.bias").at(0), 3);
  EXPECT_EQ(parameter(*layer, "mlstm_cell.fgate.bias").at(3), 6);
  EXPECT_EQ(parameter(*layer, "learnable_skip").at(17), 1);
}

// The inner width is rounded up to a multiple of 64, or down where asked.
TEST(Mlstm, RoundsItsInnerWidth) {
  const auto inner = [](std::int64_t width, const char* options) {
    return make("mlstm", width, options)->config().find("inner_dim")->as_integer("inner_dim");
  };
  EXPECT_EQ(inner(16, "{}"), 64);
  EXPECT_EQ(inner(100, "{}"), 256);
  EXPECT_EQ(inner(100, R"({"round_proj_up_dim_up": false})"), 192);
  EXPECT_EQ(inner(16, R"({"inner_dim": 24})"), 24);
}

// Without a past the stabiliser may start at 0 or at −∞; the denominator's eps makes a difference of its own size.
TEST(Mlstm, TheFirstStabiliserMattersAtTheSizeOfEps) {
  NoGrad constant;
  Context ctx = Context::serial();
  const Tensor x = random_input({2, 12, 16}, "x", DType::F64);
  const auto run = [&](const char* m0, double eps) {
    auto layer = make("mlstm", 16,
                      R"({"init": "active", "m0": ")" + std::string(m0) + R"(", "eps": )" + std::to_string(eps) + "}");
    layer->to(DType::F64);
    return layer->forward(ctx, x).y.value();
  };
  expect_close(run("zero", 1e-6), run("minus_infinity", 1e-6), 1e-4, "eps 1e-6");
  EXPECT_FALSE(run("zero", 1e-6).same_bits(run("minus_infinity", 1e-6)));
  expect_close(run("zero", 0), run("minus_infinity", 0), 1e-12, "eps 0");
}

// The original's step keeps C and n of k·K^−½; the library's own of k.
TEST(Mlstm, ExportsBothStateScales) {
  NoGrad constant;
  Context ctx = Context::serial();
  const Tensor x = random_input({2, 5, 16}, "x", DType::F64);
  std::vector<Variable> fields[2];
  for (const bool key : {false, true}) {
    const auto layer = make("mlstm", 16, key ? R"({"init": "active", "state_scale": "k"})" : R"({"init": "active"})");
    layer->to(DType::F64);
    fields[key] = layer->export_state(ctx, layer->forward(ctx, x).state);
    const State back = layer->import_state(ctx, fields[key]);
    expect_close(layer->forward(ctx, x, back).y.value(), layer->forward(ctx, x, layer->forward(ctx, x).state).y.value(),
                 1e-14, "continued");
  }
  for (const std::size_t i : {1, 2}) {
    expect_close(fields[1][i].value(), scale(ctx, fields[0][i], 0.25).value(), 1e-15, "K is 16");
  }
  expect_same_bits(fields[1][3].value(), fields[0][3].value(), "m");
}

TEST(Slstm, StartsAsPublished) {
  const auto layer = make("slstm", 16, R"({"num_heads": 4, "block_idx": 1, "num_blocks": 3})");
  const Tensor bias = parameter(*layer, "slstm_cell._bias_");
  for (std::int64_t i = 0; i < 64; ++i) {
    const bool forget = i / 16 == 1;
    const double d = static_cast<double>(i % 4) / 3;
    EXPECT_NEAR(bias.at(i), forget ? 5 - 12 * std::pow(d, 0.3 + 1.3 * 0.5) : 0, 1e-5) << i;
  }
  EXPECT_EQ(deviation_of(parameter(*layer, "slstm_cell._recurrent_kernel_")), 0);
  // A head of one unit has no power law: 5.
  const auto narrow = make("slstm", 4, R"({"num_heads": 4})");
  for (std::int64_t i = 4; i < 8; ++i) EXPECT_EQ(parameter(*narrow, "slstm_cell._bias_").at(i), 5);
}

// The same cell from the parameters as the CUDA code lays them out.
TEST(Slstm, KnowsBothLayouts) {
  NoGrad constant;
  Context ctx = Context::serial();
  constexpr std::int64_t kHeads = 3, kUnits = 4, kWidth = kHeads * kUnits;
  const auto vanilla =
      make("slstm", kWidth, R"({"num_heads": 3, "recurrent_weight_init": "standard", "bias_init": "standard"})");
  const auto cuda = make("slstm", kWidth, R"({"num_heads": 3, "backend": "cuda"})");
  layers::NamedTensors parameters;
  for (const auto& [name, tensor] : vanilla->named_parameters()) {
    Tensor laid = tensor.clone();
    if (name == "slstm_cell._recurrent_kernel_") {
      laid = Tensor::empty({kHeads, kUnits, 4 * kUnits});
      for (std::int64_t i = 0; i < laid.numel(); ++i) {
        const std::int64_t h = i / (4 * kUnits * kUnits), from = i / (4 * kUnits) % kUnits, row = i % (4 * kUnits);
        laid.data<float>()[i] = static_cast<float>(tensor.at((h * 4 * kUnits + row) * kUnits + from));
      }
    } else if (name == "slstm_cell._bias_") {
      for (std::int64_t i = 0; i < laid.numel(); ++i) {
        const std::int64_t h = i / (4 * kUnits), g = i / kUnits % 4, d = i % kUnits;
        laid.data<float>()[i] = static_cast<float>(tensor.at(g * kWidth + h * kUnits + d));
      }
    }
    parameters.emplace_back(name, laid);
  }
  cuda->set_named_parameters(parameters);
  const Tensor x = random_input({2, 7, kWidth}, "x", DType::F32);
  const LayerOutput a = vanilla->forward(ctx, x), b = cuda->forward(ctx, x);
  expect_same_bits(b.y.value(), a.y.value(), "y");
  expect_same_bits(b.state, a.state, "state");
  // First values too mean the same.
  const auto first = make("slstm", kWidth, R"({"num_heads": 3})"),
             first_cuda = make("slstm", kWidth, R"({"num_heads": 3, "backend": "cuda"})");
  expect_same_bits(first_cuda->forward(ctx, x).y.value(), first->forward(ctx, x).y.value(), "first values");
}

// -------------------------------------------------------------------------------------------------- Field reports

// In float as in double for any shape, or an error that names the setting.
TEST(FieldReport, P19_AnyShapeOfXlstmWorks) {
  NoGrad constant;
  Context ctx = Context::serial();
  int ran = 0;
  const auto expect_runs = [&](const char* mixer, std::int64_t width, const std::string& options) {
    SCOPED_TRACE(std::string(mixer) + " " + std::to_string(width) + " " + options);
    const auto layer = make(mixer, width, options);
    for (const std::int64_t batch : {1, 3}) {
      const Tensor x = random_input({batch, 5, width}, "x", DType::F32);
      layer->to(DType::F32);
      const Tensor y = layer->forward(ctx, x).y.value();
      layer->to(DType::F64);
      expect_close(y, layer->forward(ctx, x.to(DType::F64)).y.value(), 1e-4, "y");
      ++ran;
    }
  };
  for (const std::int64_t heads : {1, 2, 3, 5, 7, 12}) {
    for (const std::int64_t head : {1, 3, 8, 24, 80}) {
      const std::string H = R"({"num_heads": )" + std::to_string(heads);
      expect_runs("mlstm", 20,
                  H + R"(, "qkv_proj_blocksize": )" + std::to_string(head) + R"(, "inner_dim": )" +
                      std::to_string(heads * head) + R"(, "init": "active"})");
      expect_runs("slstm", heads * head, H + R"(, "recurrent_weight_init": "standard"})");
    }
    const std::string H = R"({"num_heads": )" + std::to_string(heads) + R"(, "init": "active")";
    expect_runs("mlstm_large", 12 * heads, H + R"(, "qk_dim_factor": 0.25, "v_dim_factor": 4})");
    expect_runs("mlstm_large", heads, H + R"(, "qk_dim_factor": 3, "v_dim_factor": 1})");
  }
  for (const std::int64_t kernel : {1, 2, 3, 4, 8}) {
    const std::string K = R"({"conv1d_kernel_size": )" + std::to_string(kernel) + "}";
    for (const std::int64_t width : {8, 20, 36}) {
      expect_runs("mlstm", width, K);
      expect_runs("slstm", width, K);
    }
  }
  EXPECT_EQ(ran, 2 * (6 * 12 + 30));
  const auto message = [](const char* mixer, std::int64_t width, const char* options) {
    try {
      make(mixer, width, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("mlstm", 16, R"({"num_heads": 5})"),
            "[mlstm] num_heads = 5, expected a divisor of inner_dim: the inner width 64");
  EXPECT_EQ(message("slstm", 16, R"({"num_heads": 5})"), "[slstm] num_heads = 5, expected a divisor of the width 16");
  EXPECT_EQ(message("mlstm_large", 16, R"({"num_heads": 5})"),
            "[mlstm_large] num_heads = 5, expected a divisor of the widths of queries and values, 8 and 16");
}

// Any length, whatever a config calls its context length; the chunked form's last state is that of steps.
TEST(FieldReport, P32_AnyLengthAndTheLastStateOfChunks) {
  NoGrad constant;
  for (const char* mixer : {"mlstm", "slstm", "mlstm_large"}) {
    const bool original = std::string(mixer) != "mlstm_large";
    const auto layer = make(mixer, 8, original ? R"({"num_heads": 2, "context_length": 256})" : R"({"num_heads": 2})");
    Context exact = Context::serial(), fast = Context::serial(Mode::Fast);
    for (const std::int64_t time : {1, 255, 256, 257, 956, 20000}) {
      SCOPED_TRACE(std::string(mixer) + " T " + std::to_string(time));
      const Tensor x = random_input({1, time, 8}, "x", DType::F32);
      const LayerOutput steps = layer->forward(exact, x), chunks = layer->forward(fast, x);
      expect_close(chunks.y.value(), steps.y.value(), 2e-5, "y");
      for (int i = 0; i < steps.state.count(); ++i) {
        expect_close(chunks.state[i].value(), steps.state[i].value(), 2e-5, "state " + std::to_string(i));
      }
      const Tensor next = random_input({1, 3, 8}, "next", DType::F32);
      expect_close(layer->forward(fast, next, chunks.state).y.value(),
                   layer->forward(exact, next, steps.state).y.value(), 2e-5, "what follows");
    }
  }
}

// Memory of a training step is linear in the length, and far from one state per token.
TEST(FieldReport, P36_TrainingMemoryOfXlstmIsLinear) {
  for (const char* mixer : {"mlstm", "slstm", "mlstm_large"}) {
    const auto layer = make(mixer, 64, R"({"num_heads": 2})");
    const auto peak = [&](std::int64_t time) {
      Context ctx = Context::serial(Mode::Fast);
      const Variable x = Variable::leaf(random_input({1, time, 64}, "x", DType::F32));
      const verify::HeapMeter meter;
      const Variable loss = sum(ctx, layer->forward(ctx, x).y);
      EXPECT_TRUE(backward(ctx, loss).of(x).defined());
      return meter.peak();
    };
    peak(64);  // what is allocated once
    const std::int64_t half = peak(2048), whole = peak(4096);
    EXPECT_LE(static_cast<double>(whole), 2.1 * static_cast<double>(half)) << mixer;
    // One state per token would be 4096 tokens of 2 heads of 64·64 numbers in the mLSTM: 134 MB.
    EXPECT_LE(whole, std::int64_t{64} << 20) << mixer;
  }
}

}  // namespace
}  // namespace stepwell
