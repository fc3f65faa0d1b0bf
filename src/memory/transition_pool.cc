// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/transition_pool.h"

#include <algorithm>

namespace stepwell::memory {

TransitionPool::TransitionPool(std::int64_t memory_width, std::int64_t token_numbers, std::int64_t capacity,
                               const Rng& rng)
    : memory_width_(memory_width), token_numbers_(token_numbers), capacity_(capacity), reservoir_(rng) {}

void TransitionPool::write_row(const Transitions& from, std::int64_t i, float* row) const {
  row = std::copy_n(from.memory.data<float>() + i * memory_width_, memory_width_, row);
  row = std::copy_n(from.tokens.data<float>() + i * token_numbers_, token_numbers_, row);
  std::copy_n(from.target.data<float>() + i * memory_width_, memory_width_, row);
}

void TransitionPool::keep(const Transitions& transitions) {
  const std::int64_t n = transitions.memory.size(0), before = kept();
  kept_.resize(static_cast<std::size_t>((before + n) * width()));
  for (std::int64_t i = 0; i < n; ++i) write_row(transitions, i, kept_.data() + (before + i) * width());
}

void TransitionPool::visit(const Transitions& transitions) {
  for (std::int64_t i = 0; i < transitions.memory.size(0); ++i, ++seen_) {
    std::int64_t at = visited();
    if (at < capacity_) {
      visited_.resize(static_cast<std::size_t>((at + 1) * width()));
    } else {
      const auto seen = static_cast<std::uint64_t>(seen_);
      at = static_cast<std::int64_t>(reservoir_.below(seen, seen + 1));
      if (at >= capacity_) continue;
    }
    write_row(transitions, i, visited_.data() + at * width());
  }
}

Transitions TransitionPool::draw(const Rng& rng, std::int64_t count, std::int64_t context) const {
  Transitions drawn;
  drawn.memory = Tensor::empty({count, memory_width_});
  drawn.tokens = Tensor::empty({count, context, token_numbers_ / context});
  drawn.target = Tensor::empty({count, memory_width_});
  const auto all = static_cast<std::uint64_t>(kept() + visited());
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(i), all));
    const float* row = at < kept() ? kept_.data() + at * width() : visited_.data() + (at - kept()) * width();
    std::copy_n(row, memory_width_, drawn.memory.data<float>() + i * memory_width_);
    std::copy_n(row + memory_width_, token_numbers_, drawn.tokens.data<float>() + i * token_numbers_);
    std::copy_n(row + memory_width_ + token_numbers_, memory_width_, drawn.target.data<float>() + i * memory_width_);
  }
  return drawn;
}

layers::NamedTensors TransitionPool::state() const {
  return {{"kept", Tensor::from<float>(kept_, {kept(), width()})},
          {"visited", Tensor::from<float>(visited_, {visited(), width()})},
          {"seen", Tensor::full({1}, static_cast<double>(seen_), DType::I64)}};
}

void TransitionPool::set_state(const layers::NamedTensors& state) {
  for (const auto& [name, tensor] : state) {
    if (name == "seen") {
      seen_ = *tensor.data<std::int64_t>();
    } else {
      STEPWELL_CHECK(tensor.rank() == 2 && tensor.size(1) == width(), "TransitionPool",
                     name + " is " + tensor.shape().to_string() + ", expected rows of " + std::to_string(width()));
      const auto values = tensor.span<const float>();
      (name == "kept" ? kept_ : visited_).assign(values.begin(), values.end());
    }
  }
}

}  // namespace stepwell::memory
