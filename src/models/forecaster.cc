// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/forecaster.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/backbone.h"
#include "models/format.h"

namespace stepwell::models {

namespace {

class Forecaster : public Model {
 public:
  Forecaster(const ForecasterConfig& config, const Rng& rng)
      : config_(config), backbone_(config.backbone, rng.stream("backbone")) {
    const std::int64_t width = config.backbone.width, channels = config.channels;
    const auto uniform = [&](const char* name, std::int64_t out, std::int64_t in) {
      const double bound = 1 / std::sqrt(static_cast<double>(in));
      return rng.stream(name).uniform({out, in}, -bound, bound);
    };
    in_proj_ = &add_matrix("in_proj.weight", uniform("in_proj.weight", width, channels));
    in_proj_bias_ = &add_parameter("in_proj.bias", Tensor::zeros({width}), false);
    out_proj_ = &add_matrix("out_proj.weight", uniform("out_proj.weight", config.outputs, width));
    out_proj_bias_ = &add_parameter("out_proj.bias", Tensor::zeros({config.outputs}), false);
    add_part("backbone", backbone_);
  }

  std::string_view type() const override { return kForecaster; }
  const std::vector<std::unique_ptr<layers::Layer>>& mixers() const override { return backbone_.mixers(); }
  std::int64_t vocab_size() const override { return 0; }
  std::int64_t input_width() const override { return config_.channels; }
  std::int64_t output_width() const override { return config_.outputs; }
  std::span<const ChannelScale> scales() const override { return config_.scales; }

  Config config() const override {
    Config c = new_config(type());
    c.set("channels", config_.channels);
    c.set("outputs", config_.outputs);
    Config::Array mean, deviation;
    for (const ChannelScale& scale : config_.scales) {
      mean.emplace_back(scale.mean);
      deviation.emplace_back(scale.deviation);
    }
    c.set("mean", std::move(mean));
    c.set("deviation", std::move(deviation));
    backbone_.write(c);
    return c;
  }

  Variable head(Context& ctx, const Variable& hidden) const override {
    return apply(ctx, hidden, *out_proj_, out_proj_bias_);
  }

 protected:
  Variable body(Context& ctx, const Tensor& input, States& states, const layers::Sequences& sequences,
                const Rng* dropout_rng) const override {
    STEPWELL_CHECK(input.defined() && input.dtype() == dtype() && input.rank() == 3 && input.size(2) == input_width(),
                   type(),
                   "input is " + describe(input) + ", expected " + std::string(dtype_name(dtype())) +
                       " [batch, time, " + std::to_string(input_width()) + "]");
    return backbone_.forward(ctx, apply(ctx, input, *in_proj_, in_proj_bias_), states, sequences, dropout_rng);
  }

 private:
  ForecasterConfig config_;
  Backbone backbone_;
  layers::Parameter *in_proj_ = nullptr, *in_proj_bias_ = nullptr, *out_proj_ = nullptr, *out_proj_bias_ = nullptr;
};

// config.json's arrays `mean` and `deviation`, both or neither.
std::vector<ChannelScale> read_scales(const Config& config) {
  const auto numbers = [&](const char* key) {
    std::vector<double> values;
    const Config* array = config.find(key);
    if (!array) return values;
    for (const Config& value : array->as_array(key)) values.push_back(value.as_double(key));
    return values;
  };
  const std::vector<double> mean = numbers("mean"), deviation = numbers("deviation");
  if (mean.size() != deviation.size()) {
    fail(ErrorCode::Config, kForecaster,
         "mean has " + std::to_string(mean.size()) + " values and deviation " + std::to_string(deviation.size()) +
             ", expected one each for every channel");
  }
  std::vector<ChannelScale> scales;
  for (std::size_t i = 0; i < mean.size(); ++i) scales.push_back({mean[i], deviation[i]});
  return scales;
}

}  // namespace

ForecasterConfig ForecasterConfig::read(const Config& config) {
  ConfigReader reader(config, std::string(kForecaster));
  ForecasterConfig c;
  check_kind(reader, kForecaster);
  c.channels = reader.integer("channels", c.channels, 1, 1 << 20);
  c.outputs = reader.integer("outputs", c.channels, 1, c.channels);
  reader.ignore("mean");
  reader.ignore("deviation");
  c.scales = read_scales(config);
  c.backbone = Backbone::read(reader);
  reader.finish();
  return c;
}

std::unique_ptr<Model> make_forecaster(const ForecasterConfig& config, const Rng& rng) {
  STEPWELL_CHECK(config.channels >= 1, kForecaster,
                 "channels = " + std::to_string(config.channels) + ", expected at least 1");
  STEPWELL_CHECK(config.outputs >= 0 && config.outputs <= config.channels, kForecaster,
                 "outputs = " + std::to_string(config.outputs) + ", expected 0 to " + std::to_string(config.channels));
  ForecasterConfig complete = config;
  if (complete.outputs == 0) complete.outputs = config.channels;
  if (complete.scales.empty()) complete.scales.resize(static_cast<std::size_t>(config.channels));
  STEPWELL_CHECK(static_cast<std::int64_t>(complete.scales.size()) == config.channels, kForecaster,
                 std::to_string(complete.scales.size()) + " means and deviations for " +
                     std::to_string(config.channels) + " channels");
  for (const auto& [mean, deviation] : complete.scales) {
    STEPWELL_CHECK(std::isfinite(mean) && std::isfinite(deviation) && deviation > 0, kForecaster,
                   "mean " + std::to_string(mean) + " and deviation " + std::to_string(deviation) +
                       ", expected finite numbers and a deviation above 0");
  }
  return std::make_unique<Forecaster>(complete, rng);
}

}  // namespace stepwell::models
