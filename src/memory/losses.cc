// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/losses.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stepwell::memory {

namespace {

constexpr double kLengthEps = 1e-12;  // in the mean square that rows are divided by

// Rows first, first + 2, … of x.
Variable every_other(Context& ctx, const Variable& x, std::int64_t first) {
  const Tensor index = Tensor::empty({x.size(0) / 2}, DType::I64);
  for (std::int64_t i = 0; i < index.numel(); ++i) index.data<std::int64_t>()[i] = 2 * i + first;
  return gather_rows(ctx, x, index);
}

}  // namespace

MemoryPair encode_pairs(Context& ctx, const SetEncoderTeacher& teacher, const MemoryUpdater& cell, const Draw& draw) {
  const Variable both = teacher.encode(ctx, draw.rows, draw.windows);
  MemoryPair pair{every_other(ctx, both, 0), every_other(ctx, both, 1)};
  if (std::find(draw.first.begin(), draw.first.end(), true) == draw.first.end()) return pair;
  const std::int64_t B = pair.before.size(0), n = pair.before.size(1);
  const Tensor keep = Tensor::full({B, n}, 1), start = cell.initial_memory(ctx, B).clone();
  for (std::int64_t b = 0; b < B; ++b) {
    const bool first = draw.first[static_cast<std::size_t>(b)];
    std::fill_n((first ? keep : start).data<float>() + b * n, n, 0.0f);
  }
  pair.before = add(ctx, mul(ctx, pair.before, keep), start);
  return pair;
}

Variable encode_after(Context& ctx, const SetEncoderTeacher& teacher, const Draw& draw) {
  std::vector<ops::RowWindow> after;
  for (std::size_t i = 1; i < draw.windows.size(); i += 2) after.push_back(draw.windows[i]);
  return teacher.encode(ctx, draw.rows, after);
}

Variable uniformity_loss(Context& ctx, const Variable& x) {
  const std::int64_t B = x.size(0), n = x.size(1);
  const Variable unit = scale(ctx, rms_norm(ctx, x, {}, kLengthEps), 1 / std::sqrt(static_cast<double>(n)));
  const Variable cosines = matmul(ctx, unit, unit, ops::Product::ABt);
  // −2 |u − v|² = 4 (u·v − 1). A row with itself is left out by a large number in its place.
  const Tensor off = Tensor::full({B, B}, -4, x.dtype());
  dispatch_float(x.dtype(), "uniformity_loss", [&]<class T>(T) {
    for (std::int64_t i = 0; i < B; ++i) off.data<T>()[i * B + i] = -1000;
  });
  const Variable terms = exp(ctx, add(ctx, scale(ctx, cosines, 4), off));
  const auto pairs = static_cast<double>(B * (B - 1));
  return log(ctx, scale(ctx, sum(ctx, terms), 1 / pairs));
}

Variable answer_loss(Context& ctx, const Variable& prediction, const Tensor& answers) {
  const Tensor keep = Tensor::full(answers.shape(), 1), target = answers.clone();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < answers.numel(); ++i) {
    const bool there = !std::isnan(answers.data<float>()[i]);
    count += there;
    if (!there) keep.data<float>()[i] = target.data<float>()[i] = 0;
  }
  if (count == answers.numel()) return mse_loss(ctx, prediction, answers);
  const double share = static_cast<double>(answers.numel()) / static_cast<double>(std::max<std::int64_t>(count, 1));
  return scale(ctx, mse_loss(ctx, mul(ctx, prediction, keep), target), share);
}

JointLoss joint_loss(Context& ctx, const SetEncoderTeacher& teacher, const MemoryUpdater& cell, const Draw& draw,
                     const DistillRecipe& recipe) {
  MemoryPair pair = encode_pairs(ctx, teacher, cell, draw);
  const Variable decoding = answer_loss(ctx, teacher.predict(ctx, pair.after), draw.answers);
  const Variable uniformity = uniformity_loss(ctx, pair.after);
  JointLoss loss;
  loss.variance = mean_variance(pair.after.value());
  const Variable target = recipe.detach ? pair.after.detach() : pair.after;
  const Variable stepped = cell.transition(ctx, recipe.detach ? pair.before.detach() : pair.before, draw.tokens);
  const Variable difference = sub(ctx, stepped, target), dynamics = mean(ctx, mul(ctx, difference, difference));
  loss.decoding = decoding.value().at(0);
  loss.dynamics = dynamics.value().at(0);
  loss.uniformity = uniformity.value().at(0);
  loss.total = add(ctx, add(ctx, scale(ctx, decoding, recipe.decoding), scale(ctx, dynamics, recipe.dynamics)),
                   scale(ctx, uniformity, recipe.uniformity));
  return loss;
}

Variable unrolled_loss(Context& ctx, const MemoryUpdater& cell, const train::SequenceBatch& batch) {
  const std::int64_t B = batch.x.size(0), T = batch.x.size(1), n = cell.memory_width();
  const std::int64_t out = cell.output_width();
  std::vector<Variable> memories;
  Variable memory = cell.initial_memory(ctx, B);
  for (std::int64_t t = 0; t < T; ++t) {
    memory = cell.transition(ctx, memory, tokens_at(batch.x, t, cell.context()));
    memories.push_back(memory);
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < B * T; ++row) {
    if (batch.asked.data<bool>()[row]) rows.push_back(row);
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const Tensor index = Tensor::from<std::int64_t>(rows, {count});
  const Variable all = reshape(ctx, concat(ctx, memories), {B * T, n});
  const Variable target = gather_rows(ctx, batch.target.reshape({B * T, out}), index);
  return mse_loss(ctx, cell.readout(ctx, gather_rows(ctx, all, index)), target.value());
}

double mean_variance(const Tensor& x) {
  const std::int64_t width = x.size(-1), n = x.shape().rows();
  const auto values = x.span<const float>();
  double total = 0;
  for (std::int64_t c = 0; c < width; ++c) {
    double mean = 0, squares = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += static_cast<double>(values[static_cast<std::size_t>(i * width + c)]);
    mean /= static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(values[static_cast<std::size_t>(i * width + c)]) - mean;
      squares += d * d;
    }
    total += squares / static_cast<double>(n);
  }
  return total / static_cast<double>(width);
}

}  // namespace stepwell::memory
