// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// Associative recall with every registered mixer at equal state size: which memories of a fixed size can say, of many
// keys, which value stood behind each? Trains a two-layer model per mixer on generated data, tests it on sequences none
// of them saw, and prints accuracies as a table with bars; --svg draws them as a chart. Exit status 1 if the mark is
// missed: some delta-rule mixer recalls at least 99 % where no additive memory does.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stepwell/autograd/functions.h"
#include "stepwell/core/context.h"
#include "stepwell/io/chart.h"
#include "stepwell/io/file.h"
#include "stepwell/io/json.h"
#include "stepwell/layers/registry.h"
#include "stepwell/models/causal_lm.h"
#include "stepwell/train/adam.h"
#include "stepwell/train/schedule.h"

#include "examples/recall/task.h"

namespace {

using namespace stepwell;

constexpr recall::Task kTask;
constexpr std::int64_t kWidth = 64, kLayers = 2, kBatch = 32, kHeldOut = 512;

enum class Family { Delta, Additive, Other };

// How a mixer is set up so that its memory holds 512 numbers a layer, as near as its sizes allow.
struct Contestant {
  std::string_view mixer;
  Family family;
  std::string_view options;
};
constexpr Contestant kContestants[] = {
    {"gated_delta_net2", Family::Delta, R"({"num_heads": 2, "head_dim": 16, "expand_v": 1})"},
    {"kimi_delta_attention", Family::Delta, R"({"num_heads": 2, "head_dim": 16, "expand_v": 1})"},
    {"gated_delta_net", Family::Delta, R"({"num_heads": 2, "head_dim": 16, "expand_v": 1})"},
    {"delta_net", Family::Delta, R"({"num_heads": 2, "expand_k": 0.5, "expand_v": 0.5})"},
    {"gated_linear_attention", Family::Additive, R"({"num_heads": 2, "expand_k": 0.5, "expand_v": 0.5})"},
    {"linear_attention", Family::Additive, R"({"num_heads": 2, "head_dim": 16})"},
    {"mamba2", Family::Additive, R"({"d_state": 16, "headdim": 16, "d_ssm": 32})"},
    {"mamba", Family::Additive, R"({"d_state": 4, "d_inner": 128})"},
    {"mlstm", Family::Additive, R"({"num_heads": 8, "proj_factor": 1})"},
    {"slstm", Family::Other, R"({"num_heads": 4})"},
};

struct Result {
  const Contestant* contestant;
  std::int64_t memory;  // numbers a layer
  double accuracy, seconds;
};

// Numbers in the memory of a layer in its published layout, its convolution windows left out.
std::int64_t memory_of(Context& ctx, const layers::Layer& layer) {
  const NoGrad no_grad;
  const auto& fields = layer.state_fields();
  const std::vector<Variable> state = layer.export_state(ctx, layer.zero_state(1));
  std::int64_t size = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name.find("conv") == std::string_view::npos) size += state[i].value().numel();
  }
  return size;
}

Variable logits_of(Context& ctx, const models::Model& model, const recall::Batch& batch) {
  models::States states;
  const Variable logits = model.forward(ctx, batch.tokens, states);
  return reshape(ctx, logits, {batch.targets.size(0), kTask.vocab_size()});
}

// The part of the questions whose likeliest answer is right.
double accuracy_of(Context& ctx, const models::Model& model, const recall::Batch& batch) {
  const NoGrad no_grad;
  const Tensor logits = logits_of(ctx, model, batch).value().contiguous(ctx);
  std::int64_t asked = 0, right = 0;
  for (std::int64_t row = 0; row < batch.targets.size(0); ++row) {
    const std::int64_t target = batch.targets.data<std::int64_t>()[row];
    if (target < 0) continue;
    const float* scores = logits.data<float>() + row * kTask.vocab_size();
    ++asked;
    right += std::max_element(scores, scores + kTask.vocab_size()) - scores == target ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(asked);
}

Result compete(Context& ctx, const Contestant& contestant, std::int64_t steps, double rate) {
  const Rng rng(7);
  models::CausalLMConfig config;
  config.backbone = {.width = kWidth, .layers = kLayers, .mixer = std::string(contestant.mixer)};
  config.backbone.mixer_options = io::parse_json(std::string(contestant.options), contestant.mixer);
  config.vocab_size = kTask.vocab_size();
  const auto model = models::make_causal_lm(config, rng.stream("model"));
  const recall::Batch held_out = recall::draw(kTask, recall::Part::HeldOut, rng, 0, kHeldOut);
  train::Adam adam(model->parameters(), {.weight_decay = 0.01, .clip_norm = 1});
  const train::Schedule schedule{.peak = rate, .warmup = steps / 20, .decay = train::Decay::Cosine, .steps = steps};
  Result result{&contestant, memory_of(ctx, *model->mixers()[0]), 0, 0};
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t step = 0; step < steps; ++step) {
    const recall::Batch batch = recall::draw(kTask, recall::Part::Training, rng, step * kBatch, kBatch);
    const Variable loss = cross_entropy(ctx, logits_of(ctx, *model, batch), batch.targets);
    adam.step(ctx, backward(ctx, loss), schedule.at(step));
    if (step % 50 == 0 || step + 1 == steps) {
      std::fprintf(stderr, "\r%-24s step %5ld of %ld, loss %.4f ", std::string(contestant.mixer).c_str(), step + 1,
                   steps, loss.value().at(0));
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(stderr, "\r%-78s\r", "");
  result.accuracy = accuracy_of(ctx, *model, held_out);
  return result;
}

const char* name_of(Family family) {
  return family == Family::Delta ? "delta rule" : family == Family::Additive ? "additive" : "other";
}

std::string bar(double part) {
  std::string text;
  for (int i = 0; i < static_cast<int>(part * 30 + 0.5); ++i) text += "█";
  return text;
}

bool report(const std::vector<Result>& results) {
  std::printf("%-24s %-11s %8s %9s %9s\n", "mixer", "memory", "numbers", "seconds", "accuracy");
  double delta = 0, additive = 0;
  for (const Result& r : results) {
    std::printf("%-24s %-11s %8ld %9.1f %8.1f%%  %s\n", std::string(r.contestant->mixer).c_str(),
                name_of(r.contestant->family), r.memory, r.seconds, 100 * r.accuracy, bar(r.accuracy).c_str());
    if (r.contestant->family == Family::Delta) delta = std::max(delta, r.accuracy);
    if (r.contestant->family == Family::Additive) additive = std::max(additive, r.accuracy);
  }
  const bool passed = delta >= 0.99 && additive < 0.99;
  std::printf("\nbest delta rule %.1f %%, best additive memory %.1f %%; mark: 99 %% and below it   %s\n", 100 * delta,
              100 * additive, passed ? "PASS" : "FAIL");
  return passed;
}

void draw(const std::vector<Result>& results, std::int64_t steps, const std::string& file) {
  io::BarChart chart;
  chart.title =
      "Values recalled of " + std::to_string(kTask.pairs) + " keys, after " + std::to_string(steps) + " steps";
  chart.value = {.title = "% of held-out questions", .high = 100.0};
  for (const Result& r : results) {
    const std::string name = std::string(r.contestant->mixer) + ", " + name_of(r.contestant->family);
    chart.groups.push_back({.name = name, .values = {std::round(1000 * r.accuracy) / 10}});
  }
  io::write_file(file, io::to_svg(chart));
}

}  // namespace

// recall [STEPS [MIXER [RATE]]] [--svg FILE]
int main(int argc, char** argv) {
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    std::string svg;
    if (words.size() >= 2 && words[words.size() - 2] == "--svg") {
      svg = words.back();
      words.resize(words.size() - 2);
    }
    const std::int64_t steps = !words.empty() ? std::stoll(words[0]) : 1500;
    const std::string only = words.size() > 1 ? words[1] : "";
    const double rate = words.size() > 2 ? std::stod(words[2]) : 4e-3;
    Context ctx = Context::parallel();
    std::printf("Associative recall: %ld pairs of %ld keys and %ld values, then every key asked once; %ld layers of\n",
                kTask.pairs, kTask.keys, kTask.values, kLayers);
    std::printf("width %ld, %ld Adam steps on %ld fresh sequences each; %ld held-out sequences\n\n", kWidth, steps,
                kBatch, kHeldOut);
    std::vector<Result> results;
    for (const Contestant& contestant : kContestants) {
      const auto& rows = layers::mixers();
      const bool known =
          std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.name == contestant.mixer; });
      if (!known || (!only.empty() && only != contestant.mixer)) continue;
      results.push_back(compete(ctx, contestant, steps, rate));
    }
    std::sort(results.begin(), results.end(), [](auto& a, auto& b) { return a.accuracy > b.accuracy; });
    const bool passed = report(results);
    if (!svg.empty()) draw(results, steps, svg);
    return passed || !only.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recall: %s\n", error.what());
    return 1;
  }
}
