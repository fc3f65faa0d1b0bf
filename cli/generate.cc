// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "stepwell/autograd/functions.h"
#include "stepwell/core/config.h"
#include "stepwell/core/context.h"
#include "stepwell/core/rng.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/models/stream.h"
#include "stepwell/train/trainer.h"

#include "cli/command.h"

namespace stepwell::cli {

namespace {

constexpr std::int64_t kBytes = 256;  // vocabulary of a model over bytes
constexpr std::int64_t kLargestPrompt = std::int64_t{1} << 30;
constexpr double kColdest = 1e-30;  // below, only the likeliest byte has a probability, and float has no 1/temperature
constexpr std::int64_t kMostSeeds = std::int64_t{1} << 53;

struct GenerateArguments {
  std::string path, prompt, prompt_file, load, save;
  std::int64_t bytes = 200, seed = 0;
  double temperature = 0.8;
};

std::vector<std::int64_t> tokens_of(std::string_view text) {
  std::vector<std::int64_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

// A stream in a folder, with the bytes that are still to be fed: the last one generated, so that going on needs no
// output of the process that stopped.
void save_session(const models::Stream& stream, const std::vector<std::int64_t>& pending, const std::string& folder) {
  io::make_folder(folder);
  stream.save(io::join_path(folder, "stream.safetensors"));
  const Config::Array bytes(pending.begin(), pending.end());
  const Config::Object session{{"position", stream.position()}, {"pending", bytes}};
  io::write_file(io::join_path(folder, "session.json"), io::to_json(Config(session)) + "\n");
}

std::vector<std::int64_t> load_session(models::Stream& stream, const std::string& folder) {
  const std::string path = io::join_path(folder, "session.json");
  const Config session = io::read_json(path);
  ConfigReader reader(session, path);
  const std::int64_t position = reader.integer("position", -1, 0, kMostSeeds);
  reader.ignore("pending");
  reader.finish();
  const Config* bytes = session.find("pending");
  if (!bytes) fail(ErrorCode::File, "session", path + " has no pending");
  std::vector<std::int64_t> pending;
  for (const Config& byte : bytes->as_array(path)) {
    pending.push_back(byte.as_integer(path));
    if (pending.back() < 0 || pending.back() >= kBytes)
      fail(ErrorCode::File, "session", path + ": a pending byte is out of range");
  }
  stream.restore(io::join_path(folder, "stream.safetensors"));
  if (stream.position() != position) {
    fail(ErrorCode::File, "session",
         path + " is of position " + std::to_string(position) + ", the stream beside it of " +
             std::to_string(stream.position()));
  }
  return pending;
}

// The byte drawn from softmax(logits / temperature) with a number in [0, 1); the likeliest for temperature 0.
std::int64_t draw(Context& ctx, const Tensor& logits, double temperature, double number) {
  if (temperature < kColdest) {
    const auto values = logits.span<float>();
    return std::max_element(values.begin(), values.end()) - values.begin();
  }
  const Variable probabilities = softmax(ctx, scale(ctx, logits, 1 / temperature));
  double below = 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < kBytes; ++i) {
    const double p = probabilities.value().at(i);
    below += p;
    if (p > 0) last = i;
    if (number < below) return i;
  }
  return last;  // the sum may round to a little less than 1
}

// To a terminal go no control characters but tab and newline.
void write_bytes(std::string_view bytes) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
    std::putchar(terminal && control ? '?' : byte);
  }
  std::fflush(stdout);
}

int generate_command(const GenerateArguments& a) {
  if (!a.prompt.empty() && !a.prompt_file.empty()) {
    fail(ErrorCode::Config, "generate", "both --prompt and --prompt-file, expected one of them");
  }
  const std::string prompt = a.prompt_file.empty()  ? a.prompt
                             : a.prompt_file == "-" ? io::read_file("/dev/stdin", kLargestPrompt)
                                                    : io::read_file(a.prompt_file, kLargestPrompt);
  Context ctx = Context::serial();
  const auto model = models::load_model(train::model_folder(a.path));
  if (model->vocab_size() != kBytes) {
    fail(ErrorCode::Unsupported, "generate",
         a.path + " is a " + std::string(model->type()) + " with a vocabulary of " +
             std::to_string(model->vocab_size()) + ", expected a language model over 256 bytes");
  }
  model->prepare(ctx);
  models::Stream stream(*model, ctx);
  std::vector<std::int64_t> pending;
  if (!a.load.empty()) pending = load_session(stream, a.load);
  const auto given = tokens_of(prompt);
  pending.insert(pending.end(), given.begin(), given.end());
  if (pending.empty() && stream.position() == 0) pending.push_back('\n');  // as before the first byte of a document

  const NoGrad no_grad;
  const Rng rng = Rng(static_cast<std::uint64_t>(a.seed)).stream("generate");
  const Tensor logits = Tensor::zeros({kBytes});
  write_bytes(prompt);
  for (std::int64_t i = 0; i < a.bytes && !pending.empty(); ++i) {
    stream.prefill(pending, logits.span<float>());
    // Numbered by position: a stream that is saved and continued draws what it would have drawn.
    const double number = rng.uniform(static_cast<std::uint64_t>(stream.position()));
    pending.assign(1, draw(ctx, logits, a.temperature, number));
    const char byte = static_cast<char>(pending.front());
    write_bytes({&byte, 1});
  }
  if (!a.save.empty()) save_session(stream, pending, a.save);
  return kSuccess;
}

}  // namespace

Action declare_generate(Options& options) {
  const auto a = std::make_shared<GenerateArguments>();
  options.argument("model", a->path, true, "Run or model folder");
  options.text("--prompt", a->prompt, "TEXT", "Text to continue");
  options.text("--prompt-file", a->prompt_file, "FILE", "File to continue (-: standard input)");
  options.integer("--bytes", a->bytes, 0, kLargestPrompt, "Bytes to generate (default 200)");
  options.number("--temperature", a->temperature, 0, 100,
                 "Below 1: more likely text; 0: always the likeliest byte (default 0.8)");
  options.integer("--seed", a->seed, 0, kMostSeeds, "Seed of the random numbers (default 0)");
  options.text("--save-stream", a->save, "FOLDER", "Save the stream at the end");
  options.text("--load-stream", a->load, "FOLDER", "Go on from a saved stream");
  return [a] { return generate_command(*a); };
}

}  // namespace stepwell::cli
