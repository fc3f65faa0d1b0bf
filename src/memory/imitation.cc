// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/imitation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "memory/named_tensors.h"
#include "memory/rollout.h"

namespace stepwell::memory {

namespace {

constexpr std::int64_t kRoundColumns = 6;

double power(double base, std::int64_t exponent) {
  double result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) result *= base;
  return result;
}

}  // namespace

Imitation::Imitation(Context& ctx, const DistillRecipe& recipe, const train::SequenceTask& task,
                     const SetEncoderTeacher& teacher, MemoryUpdater& cell)
    : ctx_(ctx),
      options_(recipe.imitation),
      horizon_(recipe.imitation.horizon > 0 ? recipe.imitation.horizon : recipe.length),
      seed_(recipe.seed),
      task_(task),
      teacher_(teacher),
      cell_(cell),
      rng_(Rng(static_cast<std::uint64_t>(recipe.seed)).stream("imitation")),
      pool_(cell.memory_width(), cell.context() * cell.token_width(), options_.capacity, rng_.stream("reservoir")) {}

double Imitation::rate(std::int64_t step) const {
  const train::Schedule schedule{.peak = options_.lr, .decay = train::Decay::Cosine, .steps = steps()};
  return schedule.at(step);
}

Tensor Imitation::sequences(const char* purpose, std::int64_t first, std::int64_t count) const {
  return task_.sample(seed_, purpose, first, count, horizon_).x;
}

double Imitation::drift() const {
  return mean_square_difference(free_rollout(ctx_, cell_, validation_), validation_memory_);
}

void Imitation::remember_best() {
  best_.clear();
  for (const auto& [name, tensor] : cell_.named_parameters()) best_.emplace_back(name, tensor.clone());
}

// Before the first round: the teacher's own transitions, and where the cell stands.
void Imitation::begin() {
  const Tensor x = sequences("imitation-teacher", 0, options_.sequences);
  pool_.keep(teacher_transitions(ctx_, cell_, x, teacher_.encode_trajectory(ctx_, x)));
  cell_.reset_correction();
  best_drift_ = drift();
  remember_best();
  rounds_.push_back({.drift = best_drift_, .memory_loss = 0, .accepted = true});
}

void Imitation::begin_round(std::int64_t round) {
  const Tensor x = sequences("imitation", round * options_.sequences, options_.sequences);
  const RolloutOptions rollout{.beta = options_.beta * power(options_.beta_decay, round), .guard = options_.guard};
  const Visits visits = visit(ctx_, cell_, x, teacher_.encode_trajectory(ctx_, x), rollout,
                              rng_.stream("beta").stream(static_cast<std::uint64_t>(round)));
  pool_.visit(visits.transitions);
  restarts_ = visits.restarts;
  loss_sum_ = 0;
  skipped_ = 0;
}

bool Imitation::end_round(std::int64_t round) {
  RoundReport report;
  report.drift = drift();
  report.memory_loss = loss_sum_ / static_cast<double>(options_.steps);
  report.visited = pool_.visited();
  report.restarts = restarts_;
  report.skipped = skipped_;
  report.accepted = !options_.keep_best || report.drift < best_drift_;
  rounds_.push_back(report);
  std::int64_t without = 0;
  for (auto last = rounds_.rbegin(); last != rounds_.rend() && !last->accepted; ++last) ++without;
  const bool more = round + 1 < options_.rounds && (options_.patience == 0 || without < options_.patience);
  if (report.accepted) {
    best_drift_ = report.drift;
    remember_best();
  } else if (!more || !std::isfinite(report.drift)) {
    cell_.set_named_parameters(best_);
    cell_.reset_correction();
  }
  return more;
}

bool Imitation::advance(std::int64_t step, UpdateReport& report) {
  const std::int64_t round = step / options_.steps, within = step % options_.steps;
  if (!validation_.defined()) {
    validation_ = sequences("validation", 0, options_.validation_sequences);
    validation_memory_ = teacher_.encode_trajectory(ctx_, validation_);
  }
  if (step == 0) begin();
  if (within == 0) begin_round(round);
  const Rng draws = rng_.stream("draws").stream(static_cast<std::uint64_t>(step));
  report = cell_.train_step_memory(ctx_, pool_.draw(draws, options_.batch, cell_.context()), rate(step));
  if (report.skipped) {
    ++skipped_;
  } else {
    loss_sum_ += report.memory_loss;
  }
  return within + 1 < options_.steps || end_round(round);
}

layers::NamedTensors Imitation::state() const {
  layers::NamedTensors state;
  add_under("pool.", pool_.state(), state);
  add_under("best.", best_, state);
  const auto n = static_cast<std::int64_t>(rounds_.size());
  const Tensor rounds = Tensor::zeros({n, kRoundColumns}, DType::F64);
  for (std::int64_t i = 0; i < n; ++i) {
    const RoundReport& r = rounds_[static_cast<std::size_t>(i)];
    double* row = rounds.data<double>() + i * kRoundColumns;
    row[0] = r.drift;
    row[1] = r.memory_loss;
    row[2] = r.accepted ? 1 : 0;
    row[3] = static_cast<double>(r.visited);
    row[4] = static_cast<double>(r.restarts);
    row[5] = static_cast<double>(r.skipped);
  }
  state.emplace_back("rounds", rounds);
  const double now[] = {best_drift_, loss_sum_, static_cast<double>(skipped_), static_cast<double>(restarts_)};
  state.emplace_back("round", Tensor::from<double>(now, {4}));
  return state;
}

void Imitation::set_state(const layers::NamedTensors& state) {
  pool_.set_state(those_under("pool.", state));
  best_.clear();
  for (const auto& [name, tensor] : those_under("best.", state)) best_.emplace_back(name, tensor.clone());
  const Tensor &rounds = tensor_named("rounds", state), &now = tensor_named("round", state);
  rounds_.clear();
  for (std::int64_t i = 0; i < rounds.size(0); ++i) {
    const double* row = rounds.data<double>() + i * kRoundColumns;
    rounds_.push_back({.drift = row[0],
                       .memory_loss = row[1],
                       .accepted = row[2] != 0,
                       .visited = static_cast<std::int64_t>(row[3]),
                       .restarts = static_cast<std::int64_t>(row[4]),
                       .skipped = static_cast<std::int64_t>(row[5])});
  }
  best_drift_ = now.data<double>()[0];
  loss_sum_ = now.data<double>()[1];
  skipped_ = static_cast<std::int64_t>(now.data<double>()[2]);
  restarts_ = static_cast<std::int64_t>(now.data<double>()[3]);
}

}  // namespace stepwell::memory
