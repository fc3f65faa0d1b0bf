// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/models/stream.h"

#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stepwell/layers/registry.h"

#include "models/snapshot.h"

namespace stepwell::models {

namespace {

// Tokens of one call in prefill(): bounds its scratch memory. Bits do not depend on it.
constexpr std::int64_t kPrefillPiece = 512;

}  // namespace

struct Stream::Impl {
  const Model* model;
  Context* ctx;
  States states;
  Tensor input;         // of a step: I64 [1, 1], or F32 [1, 1, channels]
  bool scaled = false;  // whether the series' own units are others than the model's
  std::int64_t position = 0;
  std::string fingerprint;  // of the model, once a file needs it

  Impl(const Model& m, Context& c);
  Impl(const Impl& other);

  void start();  // at position 0
  void check_in_place();
  void run(const Tensor& tokens, std::span<float> output);
  void to_model(std::span<float> values) const;
  void to_series(std::span<float> values) const;
  template <class T>
  bool accepts(std::span<const T> inputs, std::span<float> output) const;
  template <class T>
  void prefill(std::span<const T> inputs, std::span<float> output);
  const std::string& model_fingerprint();
};

Stream::Impl::Impl(const Model& m, Context& c) : model(&m), ctx(&c) {
  STEPWELL_CHECK(m.dtype() == DType::F32, "Stream", "a model in F64, expected F32");
  const layers::MixerRow& row = layers::find_mixer(m.mixers().front()->type());
  if (!row.constant_memory) {
    fail(ErrorCode::Unsupported, "Stream", "the state of " + std::string(row.name) + " grows with every token");
  }
  for (const auto& mixer : m.mixers()) states.push_back(mixer->zero_state(1));
  input = m.vocab_size() > 0 ? Tensor::zeros({1, 1}, DType::I64) : Tensor::zeros({1, 1, m.input_width()});
  scaled = std::ranges::any_of(m.scales(), [](const ChannelScale& scale) { return scale != ChannelScale(); });
  check_in_place();
  std::vector<float> output(static_cast<std::size_t>(m.output_width()));
  run(input, output);
  start();
}

void Stream::Impl::start() {
  NoGrad constant;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const layers::State first = model->mixers()[i]->initial_state(*ctx, 1);
    for (int f = 0; f < first.count(); ++f) states[i][f].value().copy_from(first[f].value());
  }
  position = 0;
}

Stream::Impl::Impl(const Impl& other)
    : model(other.model),
      ctx(other.ctx),
      input(other.input.clone()),
      scaled(other.scaled),
      position(other.position),
      fingerprint(other.fingerprint) {
  for (const layers::State& state : other.states) {
    layers::State copy;
    for (int i = 0; i < state.count(); ++i) copy.push(state[i].value().clone());
    states.push_back(std::move(copy));
  }
}

// A step's tensors live in the context's arena and end with it; the states must not be among them.
void Stream::Impl::check_in_place() {
  std::vector<const void*> homes;
  const auto visit = [&](auto&& f) {
    for (const layers::State& state : states) {
      for (int i = 0; i < state.count(); ++i) f(state[i].value().raw());
    }
  };
  visit([&](const void* memory) { homes.push_back(memory); });
  NoGrad constant;
  TensorScope scope(*ctx);
  model->hidden(*ctx, input, states);
  std::size_t i = 0;
  bool in_place = true;
  visit([&](const void* memory) { in_place = in_place && memory == homes[i++]; });
  if (in_place) return;
  states.clear();
  fail(ErrorCode::Internal, "Stream", "a layer did not return its state in the memory it was handed in");
}

// Vectors in the series' units into the model's, in place; and back.
void Stream::Impl::to_model(std::span<float> values) const {
  if (!scaled) return;
  const auto scales = model->scales();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [mean, deviation] = scales[i % scales.size()];
    values[i] = static_cast<float>((values[i] - mean) / deviation);
  }
}

void Stream::Impl::to_series(std::span<float> values) const {
  if (!scaled) return;
  const auto scales = model->scales();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [mean, deviation] = scales[i % scales.size()];
    values[i] = static_cast<float>(mean + deviation * values[i]);
  }
}

// Feeds tokens [1, T(, channels)], T ≥ 1, and writes the output after the last.
void Stream::Impl::run(const Tensor& tokens, std::span<float> output) {
  NoGrad constant;
  TensorScope scope(*ctx);
  const Variable hidden = model->hidden(*ctx, tokens, states);
  const Variable last = model->head(*ctx, hidden.value().slice(1, tokens.size(1) - 1, 1));
  std::ranges::copy(last.value().span<float>(), output.begin());
  to_series(output);
  position += tokens.size(1);
}

template <class T>
bool Stream::Impl::accepts(std::span<const T> inputs, std::span<float> output) const {
  if (static_cast<std::int64_t>(output.size()) != model->output_width()) return false;
  if constexpr (std::is_same_v<T, float>) {
    return model->vocab_size() == 0 && static_cast<std::int64_t>(inputs.size()) % model->input_width() == 0;
  } else {
    return std::ranges::all_of(inputs, [&](std::int64_t id) { return id >= 0 && id < model->vocab_size(); });
  }
}

template <class T>
void Stream::Impl::prefill(std::span<const T> inputs, std::span<float> output) {
  STEPWELL_CHECK(accepts(inputs, output), "Stream::prefill",
                 std::to_string(inputs.size()) + " inputs and room for " + std::to_string(output.size()) +
                     " outputs, expected " +
                     (model->vocab_size() > 0 ? "ids below " + std::to_string(model->vocab_size())
                                              : "vectors of " + std::to_string(model->input_width())) +
                     " and room for " + std::to_string(model->output_width()));
  const std::int64_t width = model->input_width(), count = static_cast<std::int64_t>(inputs.size()) / width;
  for (std::int64_t begin = 0; begin < count; begin += kPrefillPiece) {
    const std::int64_t time = std::min(kPrefillPiece, count - begin);
    const auto piece = inputs.subspan(static_cast<std::size_t>(begin * width), static_cast<std::size_t>(time * width));
    const Tensor tokens = Tensor::from<T>(piece, std::is_same_v<T, float> ? Shape{1, time, width} : Shape{1, time});
    if constexpr (std::is_same_v<T, float>) to_model(tokens.span<float>());
    run(tokens, output);
  }
}

const std::string& Stream::Impl::model_fingerprint() {
  if (fingerprint.empty()) fingerprint = models::fingerprint(*model);
  return fingerprint;
}

Stream::Stream(const Model& model, Context& ctx) : impl_(std::make_unique<Impl>(model, ctx)) {}
Stream::Stream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

bool Stream::step(std::int64_t token, std::span<float> output) noexcept {
  if (!impl_->accepts(std::span<const std::int64_t>(&token, 1), output)) return false;
  *impl_->input.data<std::int64_t>() = token;
  impl_->run(impl_->input, output);
  return true;
}

bool Stream::step(std::span<const float> input, std::span<float> output) noexcept {
  if (!impl_->accepts(input, output) || static_cast<std::int64_t>(input.size()) != impl_->model->input_width()) {
    return false;
  }
  std::ranges::copy(input, impl_->input.data<float>());
  impl_->to_model(impl_->input.span<float>());
  impl_->run(impl_->input, output);
  return true;
}

void Stream::prefill(std::span<const std::int64_t> tokens, std::span<float> output) { impl_->prefill(tokens, output); }
void Stream::prefill(std::span<const float> inputs, std::span<float> output) { impl_->prefill(inputs, output); }

std::int64_t Stream::position() const { return impl_->position; }

Stream Stream::clone() const { return Stream(std::make_unique<Impl>(*impl_)); }

void Stream::reset() {
  impl_->start();
  impl_->position = 0;
}

namespace {

std::string state_name(std::size_t layer, std::string_view field) {
  return "layers." + std::to_string(layer) + "." + std::string(field);
}

}  // namespace

void Stream::save(const std::string& path) const {
  NoGrad constant;
  Snapshot snapshot{.model = impl_->model_fingerprint(), .position = impl_->position, .states = {}};
  const auto& mixers = impl_->model->mixers();
  for (std::size_t i = 0; i < mixers.size(); ++i) {
    const std::vector<Variable> fields = mixers[i]->export_state(*impl_->ctx, impl_->states[i]);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      snapshot.states.emplace_back(state_name(i, mixers[i]->state_fields()[f].name), fields[f].value());
    }
  }
  write_snapshot(path, snapshot);
}

void Stream::restore(const std::string& path) {
  NoGrad constant;
  const Snapshot snapshot = read_snapshot(path);
  if (snapshot.model != impl_->model_fingerprint()) {
    fail(ErrorCode::File, path,
         "is a stream of another model: " + snapshot.model + ", this one is " + impl_->model_fingerprint());
  }
  const std::map<std::string, Tensor> tensors(snapshot.states.begin(), snapshot.states.end());
  const auto& mixers = impl_->model->mixers();
  States restored;
  std::size_t used = 0;
  for (std::size_t i = 0; i < mixers.size(); ++i) {
    std::vector<Variable> fields;
    for (const layers::StateField& field : mixers[i]->state_fields()) {
      const auto found = tensors.find(state_name(i, field.name));
      if (found == tensors.end()) fail(ErrorCode::File, path, state_name(i, field.name) + " is missing");
      fields.push_back(found->second);
      ++used;
    }
    restored.push_back(mixers[i]->import_state(*impl_->ctx, std::move(fields)));
  }
  if (used != tensors.size()) fail(ErrorCode::File, path, "holds more tensors than this model's states");
  // Into the memory the states have: steps rely on it.
  for (std::size_t i = 0; i < restored.size(); ++i) {
    for (int f = 0; f < restored[i].count(); ++f) impl_->states[i][f].value().copy_from(restored[i][f].value());
  }
  impl_->position = snapshot.position;
}

}  // namespace stepwell::models
