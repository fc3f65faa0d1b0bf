// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "train/sampled_task.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "stepwell/autograd/functions.h"
#include "stepwell/io/blake3.h"
#include "stepwell/io/json.h"

namespace stepwell::train {

namespace {

constexpr std::int64_t kTokensAtOnce = 1 << 14;  // given to the model by evaluate(): bounds its memory

// Positions in [B · T] where something is asked, and the targets there [n, out].
std::pair<Tensor, Tensor> questions(const SequenceBatch& batch) {
  const std::int64_t out = batch.target.size(2);
  std::vector<std::int64_t> index;
  std::vector<float> target;
  for (std::int64_t i = 0; i < batch.asked.numel(); ++i) {
    if (!batch.asked.data<bool>()[i]) continue;
    index.push_back(i);
    const float* row = batch.target.data<float>() + i * out;
    target.insert(target.end(), row, row + out);
  }
  const auto count = static_cast<std::int64_t>(index.size());
  return {Tensor::from<std::int64_t>(index, {count}), Tensor::from<float>(target, {count, out})};
}

}  // namespace

SampledTask::SampledTask(std::string name, std::unique_ptr<SequenceTask> task, std::int64_t seed, std::int64_t length,
                         std::int64_t held_out)
    : name_(std::move(name)), task_(std::move(task)), seed_(seed), length_(length), held_out_(held_out) {
  task_->sample(seed_, "train", 0, 1, length_);  // throws for a length that is too short
}

void SampledTask::complete(Config& model) const {
  Task::complete(model);
  model.set("channels", task_->input_width());
  model.set("outputs", task_->output_width());
}

Variable SampledTask::loss(Context& ctx, const models::Model& model, std::int64_t first, std::int64_t count,
                           const Rng* dropout_rng) const {
  const SequenceBatch batch = task_->sample(seed_, "train", first, count, length_);
  const auto [index, target] = questions(batch);
  models::States states;
  const Variable hidden = model.hidden(ctx, batch.x, states, {}, dropout_rng);
  const Variable rows = reshape(ctx, hidden, {count * length_, hidden.size(2)});
  const Variable answers = model.head(ctx, gather_rows(ctx, rows, index));
  if (task_->answer() == Answer::Value) return mse_loss(ctx, answers, target);
  return scale(ctx, mean(ctx, log_sigmoid(ctx, mul(ctx, answers, target))), -1);
}

Figures SampledTask::evaluate(Context& ctx, const models::Model& model, std::int64_t most) const {
  const std::int64_t count = most == 0 ? held_out_ : std::clamp<std::int64_t>(most / length_, 1, held_out_);
  STEPWELL_CHECK(model.vocab_size() == 0 && model.input_width() == task_->input_width() &&
                     model.output_width() == task_->output_width(),
                 name_,
                 "a " + std::string(model.type()) + " of " + std::to_string(model.input_width()) + " channels, " +
                     std::to_string(model.output_width()) + " of them predicted, expected a forecaster of " +
                     std::to_string(task_->input_width()) + " and " + std::to_string(task_->output_width()));
  const NoGrad no_grad;
  const SequenceBatch batch = task_->sample(seed_, "held-out", 0, count, length_);
  const Tensor prediction = Tensor::empty(batch.target.shape());
  const std::int64_t at_once = std::max<std::int64_t>(kTokensAtOnce / length_, 1);
  for (std::int64_t row = 0; row < count; row += at_once) {
    const std::int64_t n = std::min(at_once, count - row);
    models::States states;
    prediction.slice(0, row, n).copy_from(model.forward(ctx, batch.x.slice(0, row, n), states).value());
  }
  Figures figures{{task_->answer() == Answer::Value ? "mse" : "accuracy", score(*task_, batch, prediction)}};
  for (auto& baseline : task_->baselines(batch)) figures.push_back(std::move(baseline));
  figures.emplace_back("sequences", static_cast<double>(count));
  return figures;
}

std::string SampledTask::fingerprint() const {
  io::Blake3 hash;
  hash.update(name_ + io::to_json(task_->config(), 0));
  const std::int64_t numbers[] = {seed_, length_, held_out_};
  hash.update(std::as_bytes(std::span(numbers)));
  const SequenceBatch sample = task_->sample(seed_, "train", 0, 4, length_);  // what this version makes of it
  hash.update(std::as_bytes(sample.x.span<float>()));
  hash.update(std::as_bytes(sample.target.span<float>()));
  return io::to_hex(hash.digest());
}

std::string SampledTask::describe() const {
  return "task " + name_ + ": fresh sequences of " + std::to_string(length_) + " tokens to train on, " +
         std::to_string(held_out_) + " held out";
}

}  // namespace stepwell::train
