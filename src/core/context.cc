// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/context.h"

#include <utility>

namespace stepwell {

Context::Context(std::unique_ptr<Executor> executor, Mode mode)
    : executor_(std::move(executor)), tensors_(std::make_unique<Arena>()), mode_(mode) {
  select_instruction_set();
  const int workers = executor_ ? executor_->workers() : 1;
  for (int i = 0; i < workers + 1; ++i) arenas_.push_back(std::make_unique<Arena>());
}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

Context Context::serial(Mode mode) { return Context(nullptr, mode); }

void Context::set_interrupt(const std::function<void()>* interrupt) {
  for (const auto& arena : arenas_) arena->set_interrupt(interrupt);
}

TensorScope::TensorScope(Context& ctx) : ctx_(ctx), mark_(ctx.tensors_->mark()), outer_(ctx.in_tensor_scope_) {
  ctx_.in_tensor_scope_ = true;
}
TensorScope::~TensorScope() {
  ctx_.tensors_->release(mark_);
  ctx_.in_tensor_scope_ = outer_;
}

}  // namespace stepwell
