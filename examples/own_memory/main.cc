// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include "stepwell/autograd/functions.h"
#include "stepwell/core/context.h"
#include "stepwell/memory/updater.h"
#include "stepwell/train/sequence_task.h"

namespace {

using namespace stepwell;

// A cell of one's own: every entry leaks towards a mixture of the token's numbers, each at a rate of its own.
//   M' = M + sigmoid(rate) ⊙ (w_in x − M)
class LeakyMemory : public memory::MemoryUpdater {
 public:
  LeakyMemory(std::int64_t memory, std::int64_t token, std::int64_t output, const Rng& rng)
      : MemoryUpdater(memory, token, output, /*context=*/1, /*clamp=*/0) {
    in_ = &add_matrix("w_in", rng.stream("w_in").normal({memory, token}, 0, 0.5));
    rate_ = &add_parameter("rate", rng.stream("rate").uniform(Shape{memory}, -3, 3), /*decay=*/false);
    add_readout(rng);
  }
  std::string_view type() const override { return "leaky"; }
  Config config() const override { return Config::Object{}; }

  Variable transition(Context& ctx, const Variable& memory, const Variable& tokens) const override {
    check_arguments(memory, tokens);
    const Variable x = reshape(ctx, tokens, {tokens.size(0), tokens.size(2)});
    const Variable change = sub(ctx, apply(ctx, x, *in_, nullptr), memory);
    return add(ctx, memory, mul(ctx, change, sigmoid(ctx, rate_->value)));
  }

 private:
  layers::Parameter *in_, *rate_;
};

// A teacher of one's own: anything that makes a memory after every token of whole sequences at once. Here the means of
// the last 2, 6 and 18 values; x [B, T, 1] → [B, T, 3].
constexpr std::int64_t kWindows[] = {2, 6, 18}, kMemory = 3;

Tensor teach(const Tensor& x) {
  const std::int64_t batch = x.size(0), time = x.size(1);
  Tensor memory = Tensor::zeros({batch, time, kMemory});
  for (std::int64_t i = 0; i < batch * time * kMemory; ++i) {
    const std::int64_t t = i / kMemory % time, n = std::min(kWindows[i % kMemory], t + 1);
    for (std::int64_t k = 0; k < n; ++k) {
      memory.data<float>()[i] += x.data<float>()[i / kMemory - k] / static_cast<float>(n);
    }
  }
  return memory;
}

// Every step of every sequence is an example of its own: the memory before, the token, the memory after.
memory::Transitions transitions(const train::SequenceBatch& batch) {
  const std::int64_t rows = batch.x.size(0) * batch.x.size(1);
  const Tensor after = teach(batch.x);
  Tensor before = Tensor::zeros(after.shape());
  for (std::int64_t b = 0; b < batch.x.size(0); ++b) {
    const std::int64_t later = batch.x.size(1) - 1;
    before.slice(0, b, 1).slice(1, 1, later).copy_from(after.slice(0, b, 1).slice(1, 0, later));
  }
  return {.memory = before.reshape({rows, kMemory}),
          .tokens = batch.x.reshape({rows, 1, batch.x.size(2)}),
          .target = after.reshape({rows, kMemory}),
          .next = batch.target.reshape({rows, batch.target.size(2)})};
}

// The cell on its own memories: the figure of what it predicts.
double run_freely(Context& ctx, const memory::MemoryUpdater& cell, const train::SequenceTask& task,
                  const train::SequenceBatch& batch) {
  Tensor memory = cell.initial_memory(ctx, batch.x.size(0)), prediction = Tensor::empty(batch.target.shape());
  for (std::int64_t t = 0; t < batch.x.size(1); ++t) {
    memory = cell.step(ctx, memory, batch.x.slice(1, t, 1).contiguous(ctx));
    const Tensor next = cell.predict(ctx, memory);
    prediction.slice(1, t, 1).copy_from(next.reshape({next.size(0), 1, next.size(1)}));
  }
  return train::score(task, batch, prediction);
}

}  // namespace

int main() try {
  Context ctx = Context::parallel();
  const auto task = train::make_sequence_task("regimes");
  LeakyMemory cell(kMemory, task->input_width(), task->output_width(), Rng(1));
  memory::UpdateReport report;
  for (int step = 0; step < 400; ++step) {
    report = cell.train_step(ctx, transitions(task->sample(1, "train", 32 * step, 32, 64)), 1e-2);
  }
  std::printf("after training: memory %.4f, readout %.4f (mean squares, one step from the teacher's memory)\n",
              report.memory_loss, report.readout_loss);

  const train::SequenceBatch held_out = task->sample(1, "held-out", 0, 256, 256);
  const double own = run_freely(ctx, cell, *task, held_out);
  std::printf("held-out sequences of 256 values, the cell on its own memories:\n  %-28s %.4f\n", "the cell", own);
  double best = own;
  for (const auto& [name, value] : task->baselines(held_out)) {
    std::printf("  %-28s %.4f\n", name.c_str(), value);
    if (name != "bayes_filter") best = std::min(best, value);
  }
  std::printf("better than persistence and any single average: %s\n", own <= best ? "yes" : "NO");
  return own <= best ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "own_memory: %s\n", error.what());
  return 1;
}
