// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "train/text_task.h"

#include <algorithm>
#include <numbers>
#include <string>
#include <utility>

#include "stepwell/autograd/functions.h"
#include "stepwell/io/blake3.h"

namespace stepwell::train {

namespace {

constexpr std::int64_t kSegment = 1024;  // tokens of a document given to the model at once
constexpr std::int64_t kByteValues = 256;
constexpr char kBeforeDocument = '\n';

std::int64_t id(char byte) { return static_cast<unsigned char>(byte); }

}  // namespace

TextTask::TextTask(ByteText text, std::int64_t length, std::uint64_t seed)
    : text_(std::move(text)), length_(length), windows_(Rng(seed).stream("windows")) {
  const auto bytes = static_cast<std::int64_t>(text_.train.size());
  if (bytes <= length) {
    fail(ErrorCode::File, "text",
         std::to_string(bytes) + " bytes to train on, expected at least " + std::to_string(length + 1) +
             " for sequences of length " + std::to_string(length) + ": give more text or set train.length lower");
  }
}

Variable TextTask::loss(Context& ctx, const models::Model& model, std::int64_t first, std::int64_t count,
                        const Rng* dropout_rng) const {
  const Tensor input = Tensor::empty({count, length_}, DType::I64),
               target = Tensor::empty({count * length_}, DType::I64);
  auto *x = input.data<std::int64_t>(), *y = target.data<std::int64_t>();
  const auto starts = static_cast<std::uint64_t>(text_.train.size()) - static_cast<std::uint64_t>(length_);
  for (std::int64_t sequence = 0; sequence < count; ++sequence) {
    const char* window = text_.train.data() + windows_.below(static_cast<std::uint64_t>(first + sequence), starts);
    for (std::int64_t t = 0; t < length_; ++t) {
      *x++ = id(window[t]);
      *y++ = id(window[t + 1]);
    }
  }
  models::States states;
  const Variable logits = model.forward(ctx, input, states, {}, dropout_rng);
  return cross_entropy(ctx, reshape(ctx, logits, {count * length_, model.output_width()}), target);
}

double document_bits(Context& ctx, const models::Model& model, std::string_view document) {
  if (model.vocab_size() != kByteValues) {
    fail(ErrorCode::Unsupported, "document_bits",
         "a " + std::string(model.type()) + " with a vocabulary of " + std::to_string(model.vocab_size()) +
             ", expected a language model over 256 bytes");
  }
  NoGrad no_grad;
  models::States states;
  double nats = 0;
  const auto size = static_cast<std::int64_t>(document.size());
  for (std::int64_t begin = 0; begin < size; begin += kSegment) {
    const std::int64_t n = std::min(kSegment, size - begin);
    const Tensor input = Tensor::empty({1, n}, DType::I64), target = Tensor::empty({n}, DType::I64);
    for (std::int64_t t = 0; t < n; ++t) {
      const std::int64_t at = begin + t;
      input.data<std::int64_t>()[t] = id(at ? document[static_cast<std::size_t>(at - 1)] : kBeforeDocument);
      target.data<std::int64_t>()[t] = id(document[static_cast<std::size_t>(at)]);
    }
    const Variable logits = model.forward(ctx, input, states);
    const Variable loss = cross_entropy(ctx, reshape(ctx, logits, {n, model.output_width()}), target);
    nats += loss.value().at(0) * static_cast<double>(n);
  }
  return nats / std::numbers::ln2;
}

Figures TextTask::evaluate(Context& ctx, const models::Model& model, std::int64_t most) const {
  if (text_.held_out.empty()) return {};
  const auto share = static_cast<std::size_t>(
      most == 0 ? text_.held_out_bytes()
                : std::max<std::int64_t>(most / static_cast<std::int64_t>(text_.held_out.size()), 1));
  const Unigram unigram(text_.train);
  double bits = 0, unigram_bits = 0, bytes = 0;
  for (const std::string& document : text_.held_out) {
    const auto part = std::string_view(document).substr(0, share);
    bits += document_bits(ctx, model, part);
    for (const char c : part) unigram_bits += unigram.bits(static_cast<unsigned char>(c));
    bytes += static_cast<double>(part.size());
  }
  return {{"bits_per_byte", bits / bytes}, {"unigram", unigram_bits / bytes}, {"bytes", bytes}};
}

std::string TextTask::fingerprint() const {
  io::Blake3 hash;
  hash.update(text_.train);
  for (const std::string& document : text_.held_out) {
    const auto size = static_cast<std::uint64_t>(document.size());
    hash.update(std::as_bytes(std::span(&size, 1)));  // where one ends is part of the data
    hash.update(document);
  }
  return io::to_hex(hash.digest());
}

std::string TextTask::describe() const {
  const std::size_t documents = text_.held_out.size();
  return std::to_string(text_.train.size()) + " bytes to train on, " + std::to_string(text_.held_out_bytes()) +
         " held out in " + std::to_string(documents) + (documents == 1 ? " document" : " documents");
}

}  // namespace stepwell::train
