// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "train/series_task.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "stepwell/autograd/functions.h"
#include "stepwell/io/blake3.h"
#include "stepwell/io/json.h"
#include "stepwell/train/forecast.h"

namespace stepwell::train {

namespace {

float scaled(double value, const models::ChannelScale& scale) {
  return static_cast<float>((value - scale.mean) / scale.deviation);
}

}  // namespace

SeriesTask::SeriesTask(std::vector<double> values, double fraction, std::int64_t length, std::uint64_t seed)
    : raw_(std::move(values)), length_(length), windows_(Rng(seed).stream("windows")) {
  trained_ = raw_.size() - static_cast<std::size_t>(std::floor(fraction * static_cast<double>(raw_.size())));
  if (static_cast<std::int64_t>(trained_) <= length) {
    fail(ErrorCode::File, "series",
         std::to_string(trained_) + " values to train on, expected at least " + std::to_string(length + 1) +
             " for sequences of length " + std::to_string(length) + ": give more values or set train.length lower");
  }
  const auto trained = std::span(raw_).first(trained_);
  const auto [lowest, highest] = std::minmax_element(trained.begin(), trained.end());
  const auto count = static_cast<double>(trained_);
  double mean = 0, variance = 0;
  for (const double x : trained) mean += x / count;
  for (const double x : trained) variance += (x - mean) * (x - mean) / count;
  scale_ = {mean, std::sqrt(variance)};
  if (*lowest == *highest || !(scale_.deviation > 0) || !std::isfinite(scale_.deviation)) {
    fail(ErrorCode::File, "series",
         "the values to train on run from " + io::to_json(Config(*lowest)) + " to " + io::to_json(Config(*highest)) +
             ", expected more than one value and a finite variance");
  }
  for (std::size_t i = 0; i < trained_; ++i) values_.push_back(scaled(raw_[i], scale_));
}

void SeriesTask::complete(Config& model) const {
  Task::complete(model);
  model.set("mean", Config::Array{scale_.mean});
  model.set("deviation", Config::Array{scale_.deviation});
}

Variable SeriesTask::loss(Context& ctx, const models::Model& model, std::int64_t first, std::int64_t count,
                          const Rng* dropout_rng) const {
  const Tensor input = Tensor::empty({count, length_, 1}), target = Tensor::empty({count, length_, 1});
  const auto starts = static_cast<std::uint64_t>(trained_) - static_cast<std::uint64_t>(length_);
  for (std::int64_t sequence = 0; sequence < count; ++sequence) {
    const float* window = values_.data() + windows_.below(static_cast<std::uint64_t>(first + sequence), starts);
    std::copy_n(window, length_, input.data<float>() + sequence * length_);
    std::copy_n(window + 1, length_, target.data<float>() + sequence * length_);
  }
  models::States states;
  return mse_loss(ctx, model.forward(ctx, input, states, {}, dropout_rng), target);
}

Figures SeriesTask::evaluate(Context& ctx, const models::Model& model, std::int64_t most) const {
  const auto held_out = std::span(raw_).subspan(trained_);
  const auto after_first = static_cast<std::int64_t>(held_out.size()) - 1;  // values with one before them
  const std::int64_t count = most == 0 ? after_first : std::min(after_first, most);
  if (count < 1) return {};
  const Forecast f = forecast(ctx, model, held_out.first(static_cast<std::size_t>(count) + 1), 1);
  return {{"mse", f.mse},
          {"persistence", f.persistence},
          {"best_exponential_average", f.best_exponential_average},
          {"values", static_cast<double>(f.values)}};
}

std::string SeriesTask::fingerprint() const {
  io::Blake3 hash;
  hash.update(std::as_bytes(std::span(raw_)));
  const std::uint64_t border = trained_;
  hash.update(std::as_bytes(std::span(&border, 1)));
  return io::to_hex(hash.digest());
}

std::string SeriesTask::describe() const {
  return std::to_string(trained_) + " values to train on, " + std::to_string(raw_.size() - trained_) + " held out";
}

}  // namespace stepwell::train
