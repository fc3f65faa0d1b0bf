// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "memory/examples.h"

namespace stepwell::memory {

namespace {

// Collects transitions step by step.
class Recorder {
 public:
  Recorder(const MemoryUpdater& cell, std::int64_t batch, std::int64_t time) : batch_(batch) {
    out_.memory = Tensor::empty({batch * time, cell.memory_width()});
    out_.tokens = Tensor::empty({batch * time, cell.context(), cell.token_width()});
    out_.target = Tensor::empty({batch * time, cell.memory_width()});
  }
  void add(std::int64_t t, const Tensor& memory, const Tensor& tokens, const Tensor& target) {
    out_.memory.slice(0, t * batch_, batch_).copy_from(memory);
    out_.tokens.slice(0, t * batch_, batch_).copy_from(tokens);
    out_.target.slice(0, t * batch_, batch_).copy_from(target);
  }
  Transitions take() { return std::move(out_); }

 private:
  std::int64_t batch_;
  Transitions out_;
};

Tensor at_time(const Tensor& trajectory, std::int64_t t) {
  return trajectory.slice(1, t, 1).clone().reshape({trajectory.size(0), trajectory.size(2)});
}

double square(double x) { return x * x; }

// At the clamp, or not finite.
bool diverges(const float* memory, std::int64_t n, double clamp) {
  return std::any_of(memory, memory + n, [clamp](float m) {
    return !std::isfinite(m) || (clamp > 0 && std::fabs(m) >= static_cast<float>(clamp));
  });
}

}  // namespace

Tensor free_rollout(Context& ctx, const MemoryUpdater& cell, const Tensor& x) {
  const std::int64_t B = x.size(0), T = x.size(1), n = cell.memory_width();
  const Tensor trajectory = Tensor::empty({B, T, n});
  Tensor memory = cell.initial_memory(ctx, B);
  for (std::int64_t t = 0; t < T; ++t) {
    memory = cell.step(ctx, memory, tokens_at(x, t, cell.context()));
    trajectory.slice(1, t, 1).copy_from(memory.reshape({B, 1, n}));
  }
  return trajectory;
}

Visits visit(Context& ctx, const MemoryUpdater& cell, const Tensor& x, const Tensor& teacher,
             const RolloutOptions& options, const Rng& rng) {
  const std::int64_t B = x.size(0), T = x.size(1), n = cell.memory_width();
  Recorder recorder(cell, B, T);
  Visits visits;
  std::vector<std::int64_t> bad(static_cast<std::size_t>(B), 0);
  Tensor memory = cell.initial_memory(ctx, B);
  for (std::int64_t t = 0; t < T; ++t) {
    const Tensor tokens = tokens_at(x, t, cell.context()), target = at_time(teacher, t);
    recorder.add(t, memory, tokens, target);
    memory = cell.step(ctx, memory, tokens).clone();
    for (std::int64_t b = 0; b < B; ++b) {
      float* own = memory.data<float>() + b * n;
      std::int64_t& steps = bad[static_cast<std::size_t>(b)];
      steps = diverges(own, n, cell.clamp()) ? steps + 1 : 0;
      const bool finite = std::all_of(own, own + n, [](float m) { return std::isfinite(m); });
      const bool restart = steps >= options.guard || !finite;
      visits.restarts += restart;
      if (restart) steps = 0;
      if (restart || rng.uniform(static_cast<std::uint64_t>(t * B + b)) < options.beta) {
        std::copy_n(target.data<float>() + b * n, n, own);
      }
    }
  }
  visits.transitions = recorder.take();
  return visits;
}

Transitions teacher_transitions(Context& ctx, const MemoryUpdater& cell, const Tensor& x, const Tensor& teacher) {
  const std::int64_t B = x.size(0), T = x.size(1);
  Recorder recorder(cell, B, T);
  Tensor memory = cell.initial_memory(ctx, B);
  for (std::int64_t t = 0; t < T; ++t) {
    const Tensor target = at_time(teacher, t);
    recorder.add(t, memory, tokens_at(x, t, cell.context()), target);
    memory = target;
  }
  return recorder.take();
}

double mean_square_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.span<const float>(), y = b.span<const float>();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += square(static_cast<double>(x[i]) - static_cast<double>(y[i]));
  return std::isfinite(sum) ? sum / static_cast<double>(x.size()) : std::numeric_limits<double>::infinity();
}

}  // namespace stepwell::memory
