// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/memory/updater.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "stepwell/layers/registry.h"
#include "stepwell/memory/cells.h"
#include "stepwell/memory/mixer_memory.h"
#include "stepwell/ops/elementwise.h"

#include "layers/initial_values.h"
#include "memory/named_tensors.h"

namespace stepwell::memory {

namespace {

constexpr std::string_view kCloning = "cloning.", kCorrection = "correction.";
constexpr int kPowerSteps = 50;

void check_tensor(const char* name, const Tensor& t, const Shape& shape, DType dtype) {
  STEPWELL_CHECK(t.defined() && t.shape() == shape && t.dtype() == dtype, "MemoryUpdater",
                 std::string(name) + " is " + (t.defined() ? t.shape().to_string() : "not defined") + ", expected " +
                     std::string(dtype_name(dtype)) + " " + shape.to_string());
}

// The largest singular value of the matrix j [n, n], row-major.
double largest_singular_value(const double* j, std::int64_t n) {
  std::vector<double> v(static_cast<std::size_t>(n), 1 / std::sqrt(static_cast<double>(n))), u(v.size());
  // A start that no symmetry of the matrix makes orthogonal to what is looked for.
  for (std::int64_t i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] *= 1 + 0.1 * static_cast<double>(i % 7);
  double norm = 0;
  for (int step = 0; step < kPowerSteps; ++step) {
    double squares = 0;
    for (const double x : v) squares += x * x;
    if (!(squares > 0)) return 0;
    for (double& x : v) x /= std::sqrt(squares);
    double stretched = 0;
    for (std::int64_t r = 0; r < n; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < n; ++c) sum += j[r * n + c] * v[static_cast<std::size_t>(c)];
      u[static_cast<std::size_t>(r)] = sum;
      stretched += sum * sum;
    }
    norm = std::sqrt(stretched);
    for (std::int64_t c = 0; c < n; ++c) {
      double sum = 0;
      for (std::int64_t r = 0; r < n; ++r) sum += j[r * n + c] * u[static_cast<std::size_t>(r)];
      v[static_cast<std::size_t>(c)] = sum;
    }
  }
  return norm;
}

}  // namespace

MemoryUpdater::MemoryUpdater(std::int64_t memory, std::int64_t token, std::int64_t output, std::int64_t context,
                             double clamp)
    : memory_width_(memory), token_width_(token), output_width_(output), context_(context), clamp_(clamp) {
  STEPWELL_CHECK(memory >= 1 && token >= 1 && output >= 1, "MemoryUpdater",
                 "widths of memory, token and output " + std::to_string(memory) + ", " + std::to_string(token) + ", " +
                     std::to_string(output) + ", expected at least 1");
}

void MemoryUpdater::add_readout(const Rng& rng) {
  read_ = &add_matrix("w_read",
                      layers::uniform_fan_in(rng.stream("w_read"), {output_width_, memory_width_}, memory_width_));
}

void MemoryUpdater::check_arguments(const Variable& memory, const Variable& tokens) const {
  const std::int64_t batch = memory.defined() && memory.shape().rank() == 2 ? memory.size(0) : 1;
  check_tensor("memory", memory.value(), {batch, memory_width_}, dtype());
  check_tensor("tokens", tokens.value(), {batch, context_, token_width_}, dtype());
}

Variable MemoryUpdater::readout(Context& ctx, const Variable& memory) const {
  return apply(ctx, memory, *read_, nullptr);
}

Tensor MemoryUpdater::step(Context& ctx, const Tensor& memory, const Tensor& tokens) const {
  NoGrad no_grad;
  const bool single = memory.defined() && memory.rank() == 1;
  const Tensor m = single ? memory.reshape({1, memory.numel()}) : memory;
  const Tensor x = single && tokens.defined() && tokens.numel() == context_ * token_width_
                       ? tokens.reshape({1, context_, token_width_})
                       : tokens;
  const Tensor next = transition(ctx, m, x).value();
  Tensor out = single ? next.reshape({memory_width_}) : next;
  if (clamp_ == 0) return out;
  const Tensor clamped = Tensor::empty(out.shape(), out.dtype());
  ops::clamp(ctx, out.contiguous(ctx), -clamp_, clamp_, clamped);
  return clamped;
}

Tensor MemoryUpdater::predict(Context& ctx, const Tensor& memory) const {
  NoGrad no_grad;
  return readout(ctx, memory).value();
}

Tensor MemoryUpdater::initial_memory(Context&, std::int64_t batch) const {
  return Tensor::zeros({batch, memory_width_}, dtype());
}

std::vector<layers::Parameter*> MemoryUpdater::all_but_readout() {
  std::vector<layers::Parameter*> most = parameters();
  std::erase(most, read_);
  return most;
}

UpdateReport MemoryUpdater::train_step(Context& ctx, const Transitions& examples, double lr) {
  const Variable memory = transition(ctx, examples.memory, examples.tokens);
  const Variable of_memory = mse_loss(ctx, memory, examples.target);
  const Variable of_readout = mse_loss(ctx, readout(ctx, memory), examples.next);
  const train::AdamReport adam = cloning_.step(ctx, parameters(), add(ctx, of_memory, of_readout), lr);
  return {.memory_loss = of_memory.value().at(0),
          .readout_loss = of_readout.value().at(0),
          .gradient_norm = adam.gradient_norm,
          .clipped = adam.clipped,
          .skipped = adam.skipped};
}

UpdateReport MemoryUpdater::train_step_memory(Context& ctx, const Transitions& examples, double lr) {
  const Variable loss = mse_loss(ctx, transition(ctx, examples.memory, examples.tokens), examples.target);
  const train::AdamReport adam = correction_.step(ctx, all_but_readout(), loss, lr);
  UpdateReport report;
  report.memory_loss = loss.value().at(0);
  report.gradient_norm = adam.gradient_norm;
  report.clipped = adam.clipped;
  report.skipped = adam.skipped;
  return report;
}

layers::NamedTensors MemoryUpdater::optimizer_state() const {
  layers::NamedTensors state;
  add_under(kCloning, cloning_.state(), state);
  add_under(kCorrection, correction_.state(), state);
  return state;
}

void MemoryUpdater::set_optimizer_state(const layers::NamedTensors& state) {
  layers::NamedTensors cloning, correction;
  for (const auto& [name, tensor] : state) {
    const bool of_cloning = name.starts_with(kCloning);
    STEPWELL_CHECK(
        of_cloning || name.starts_with(kCorrection), "MemoryUpdater",
        "unknown tensor " + name + ", expected " + std::string(kCloning) + "… or " + std::string(kCorrection) + "…");
    (of_cloning ? cloning : correction).emplace_back(name.substr((of_cloning ? kCloning : kCorrection).size()), tensor);
  }
  LazyAdam first, second;  // checked before anything changes
  first.set_state(parameters(), cloning);
  second.set_state(all_but_readout(), correction);
  cloning_ = std::move(first);
  correction_ = std::move(second);
}

double MemoryUpdater::contraction_estimate(Context& ctx, const Tensor& memory, const Tensor& tokens) const {
  check_arguments(memory, tokens);
  const std::int64_t n = memory_width_;
  // The rows of the Jacobian are the gradients of the entries of M', all at once: a batch of copies of one memory, the
  // i-th of which asks for entry i.
  const Tensor identity = Tensor::zeros({n, n}, dtype()), index = Tensor::empty({n}, DType::I64);
  dispatch_float(dtype(), "contraction_estimate", [&]<class T>(T) {
    for (std::int64_t i = 0; i < n; ++i) identity.data<T>()[i * n + i] = 1;
  });
  double most = 0;
  for (std::int64_t s = 0; s < memory.size(0); ++s) {
    for (std::int64_t& i : index.span<std::int64_t>()) i = s;
    const Variable copies = Variable::leaf(gather_rows(ctx, memory, index).value());
    const Variable next = transition(ctx, copies, gather_rows(ctx, tokens, index));
    const Tensor jacobian = backward(ctx, std::span(&next, 1), std::span(&identity, 1)).of(copies);
    if (!jacobian.defined()) continue;  // M' does not depend on M
    most = std::max(most, largest_singular_value(jacobian.to(DType::F64).data<double>(), n));
  }
  return most;
}

std::unique_ptr<MemoryUpdater> make_updater(std::string_view type, std::int64_t memory_width, std::int64_t token_width,
                                            std::int64_t output_width, const Config& options, const Rng& rng) {
  constexpr std::int64_t kDefaultWidth = 16;
  const std::int64_t width = memory_width == 0 ? kDefaultWidth : memory_width;
  if (type == "gated") {
    return std::make_unique<GatedMemoryUpdater>(width, token_width, output_width, options, rng);
  }
  if (type == "cloned") {
    return std::make_unique<ClonedMemoryUpdater>(width, token_width, output_width, options, rng);
  }
  std::vector<std::string> names = {"gated", "cloned"};
  for (const layers::MixerRow& row : layers::mixers()) names.emplace_back(row.name);
  if (std::find(names.begin(), names.end(), type) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    fail(ErrorCode::Config, "cell", "unknown cell " + std::string(type) + ", expected one of " + known);
  }
  auto cell = std::make_unique<MixerMemory>(type, token_width, output_width, options, rng);
  if (memory_width != 0 && memory_width != cell->memory_width()) {
    fail(ErrorCode::Config, "cell",
         "memory_width " + std::to_string(memory_width) + ", but the state of " + std::string(type) + " has " +
             std::to_string(cell->memory_width()) + " numbers; leave it out");
  }
  return cell;
}

}  // namespace stepwell::memory
