// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/examples.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace stepwell::memory {

Tensor next_answers(const train::SequenceBatch& batch, std::int64_t horizon) {
  const std::int64_t B = batch.target.size(0), T = batch.target.size(1), out = batch.target.size(2);
  const Tensor answers = Tensor::full({B, T, horizon * out}, std::numeric_limits<double>::quiet_NaN());
  const bool* asked = batch.asked.data<bool>();
  for (std::int64_t b = 0; b < B; ++b) {
    std::deque<const float*> next;  // what is asked for from this token on
    for (std::int64_t row = (b + 1) * T - 1; row >= b * T; --row) {
      if (asked[row]) next.push_front(batch.target.data<float>() + row * out);
      if (static_cast<std::int64_t>(next.size()) > horizon) next.pop_back();
      float* to = answers.data<float>() + row * horizon * out;
      for (const float* answer : next) to = std::copy_n(answer, out, to);
    }
  }
  return answers;
}

Tensor tokens_at(const Tensor& x, std::int64_t t, std::int64_t context) {
  const std::int64_t B = x.size(0), T = x.size(1), d = x.size(2);
  const Tensor tokens = Tensor::zeros({B, context, d});
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t i = std::max<std::int64_t>(0, context - 1 - t); i < context; ++i) {
      std::copy_n(x.data<float>() + (b * T + t - context + 1 + i) * d, d, tokens.data<float>() + (b * context + i) * d);
    }
  }
  return tokens;
}

Draw draw_transitions(const train::SequenceBatch& batch, const DrawOptions& options, const Rng& rng,
                      std::int64_t first) {
  const std::int64_t B = batch.x.size(0), T = batch.x.size(1), d = batch.x.size(2);
  const std::int64_t out = options.horizon * batch.target.size(2), window = options.window;
  const Tensor answers = next_answers(batch, options.horizon);
  const Rng time = rng.stream("time"), event = rng.stream("event");
  Draw draw;
  draw.tokens = Tensor::zeros({B, options.context, d});
  draw.answers = Tensor::empty({B, out});
  std::vector<float> rows;
  for (std::int64_t b = 0; b < B; ++b) {
    std::int64_t last = T;  // tokens with a question still to come
    while (last > 1 && std::isnan(answers.data<float>()[(b * T + last - 1) * out])) --last;
    const auto number = static_cast<std::uint64_t>(first + b);
    auto t = static_cast<std::int64_t>(time.below(number, static_cast<std::uint64_t>(last)));
    const std::int64_t decisive = batch.event.data<std::int64_t>()[b];
    if (decisive >= 0 && event.uniform(number) < options.event_share) t = decisive;

    const std::int64_t begin = std::max<std::int64_t>(0, t - window), count = t - begin + 1;
    const auto at = static_cast<std::int64_t>(rows.size()) / d;
    const float* from = batch.x.data<float>() + (b * T + begin) * d;
    rows.insert(rows.end(), from, from + count * d);
    const std::int64_t after = std::min(count, window);
    draw.windows.push_back({at, std::max<std::int64_t>(count - 1, 1)});
    draw.windows.push_back({at + count - after, after});
    draw.first.push_back(t == 0);
    const Tensor one = tokens_at(batch.x.slice(0, b, 1), t, options.context);
    draw.tokens.slice(0, b, 1).copy_from(one);
    std::copy_n(answers.data<float>() + (b * T + t) * out, out, draw.answers.data<float>() + b * out);
  }
  draw.rows = Tensor::from<float>(rows, {static_cast<std::int64_t>(rows.size()) / d, d});
  return draw;
}

}  // namespace stepwell::memory
