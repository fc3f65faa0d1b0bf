// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "stepwell/core/arena.h"
#include "stepwell/core/flush_to_zero.h"

namespace stepwell {

// Exact: recurrent form everywhere; bits depend on nothing but a token's own past (X1). Fast: chunked forms allowed.
enum class Mode { Exact, Fast };

enum class DeviceKind { Cpu };

struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

// A reference to a callable; the callable must outlive it. Never allocates.
template <class Signature>
class FunctionRef;
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* o, A... a) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(o))(static_cast<A>(a)...);
        }) {}
  R operator()(A... a) const { return call_(object_, static_cast<A>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

// Runs tasks 0 … n−1, each once, on up to workers() threads; returns when all are done. Which worker runs which task is
// free: results must not depend on it.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual int workers() const = 0;
  virtual void run(std::int64_t tasks, FunctionRef<void(std::int64_t task, int worker)> body) = 0;
};

// Applies STEPWELL_ISA before the first op runs. Defined by the simd floor (simd/isa.cc).
void select_instruction_set();

// How and where ops run: executor, scratch memory, mode, device. Passed to every op; one thread at a time.
class Context {
 public:
  // Everything on the calling thread: no locks, no threads. The default of stepwell::ops and stepwell::infer.
  static Context serial(Mode mode = Mode::Exact);

  // `threads` workers of oneTBB (≥ 1; 0 = all processors). In stepwell::stepwell only.
  static Context parallel(int threads = 0, Mode mode = Mode::Exact);

  Context(std::unique_ptr<Executor> executor, Mode mode);
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  Mode mode() const { return mode_; }
  void set_mode(Mode mode) { mode_ = mode; }
  Device device() const { return {}; }
  int threads() const { return executor_ ? executor_->workers() : 1; }

  // `interrupt` (null: none; it must outlive its use) is called again and again while ops run, on any of the context's
  // threads: for every task, and within long ones. What it throws ends the op and reaches its caller.
  void set_interrupt(const std::function<void()>* interrupt);

  // Scratch of the calling thread, for buffers that live across parallel_for calls. Use with ArenaScope.
  Arena& scratch() { return *arenas_[0]; }

  // Runs body(task, scratch) for task = 0 … tasks−1 with flush-to-zero set. Cut the work by shape, not by threads(),
  // unless no bit depends on the cut; `scratch` is the worker's own arena, released after each task. Must not be
  // nested.
  template <class Body>
  void parallel_for(std::int64_t tasks, Body&& body) {
    auto one = [&](std::int64_t task, int worker) {
      FlushToZero mode;
      Arena& scratch = *arenas_[worker + 1];
      ArenaScope scope(scratch);
      scratch.check_interrupt();
      body(task, scratch);
    };
    if (tasks == 1 || !executor_) {
      for (std::int64_t task = 0; task < tasks; ++task) one(task, 0);
    } else if (tasks > 1) {
      executor_->run(tasks, one);
    }
  }

  // Where Tensor::empty(ctx, …) takes memory: the heap, or inside a TensorScope the tensor arena.
  Arena* tensor_arena() { return in_tensor_scope_ ? tensors_.get() : nullptr; }

 private:
  friend class TensorScope;
  std::unique_ptr<Executor> executor_;          // null: serial
  std::vector<std::unique_ptr<Arena>> arenas_;  // [0] the caller's, [1 + w] worker w's
  std::unique_ptr<Arena> tensors_;
  bool in_tensor_scope_ = false;
  Mode mode_;
};

// While it lives, tensors made through `ctx` are carved from the context's arena instead of the heap, and all are gone
// when it ends: none may outlive it. This is how a step allocates nothing (X6).
class TensorScope {
 public:
  explicit TensorScope(Context& ctx);
  ~TensorScope();
  TensorScope(const TensorScope&) = delete;
  TensorScope& operator=(const TensorScope&) = delete;

 private:
  Context& ctx_;
  Arena::Mark mark_;
  bool outer_;
};

}  // namespace stepwell
