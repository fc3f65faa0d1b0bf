// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "stepwell/layers/registry.h"
#include "stepwell/verify/verify.h"

#include "models/published.h"
#include "verify/case_file.h"
#include "verify/delta_cases.h"
#include "verify/tally.h"
#include "verify/xlstm_cases.h"

namespace stepwell::verify {

std::map<std::string, Variable> leaves_of(const CaseFile& file, DType dtype) {
  std::map<std::string, Variable> leaves;
  for (const auto& [name, tensor] : file.tensors("in.")) {
    if (tensor.dtype() == DType::F64) leaves.emplace("in." + name, Variable::leaf(tensor.to(dtype).clone()));
  }
  return leaves;
}

CaseRun run_layer(Context& ctx, const CaseFile& file, DType dtype) {
  const std::string type = file.config().find("type")->as_string("type");
  const layers::MixerRow* row = nullptr;
  for (const layers::MixerRow& candidate : layers::mixers()) {
    if (candidate.name == type) row = &candidate;
  }
  if (!row) fail(ErrorCode::Unsupported, file.name(), "there is no layer " + type);
  Config options;
  for (const auto& [key, value] : file.config().as_object("config")) {
    if (key != "type" && key != "d_model") options.set(key, value);
  }
  const Tensor x = file.find("in.x");
  const auto layer = row->make(x.size(-1), options, Rng(0));
  layer->to(dtype);
  layer->set_named_parameters(file.tensors("param."));

  CaseRun run;
  run.leaves = leaves_of(file, dtype);
  for (const layers::Parameter* p : std::as_const(*layer).parameters())
    run.leaves.emplace("param." + p->name, p->value);
  const auto fields = layer->state_fields();
  std::vector<Variable> incoming;
  for (const auto& field : fields) {
    const auto found = run.leaves.find("in." + std::string(field.name));
    if (found != run.leaves.end()) incoming.push_back(found->second);
  }
  layers::State state;
  if (!incoming.empty()) state = layer->import_state(ctx, std::move(incoming));
  layers::LayerOutput out = layer->forward(ctx, run.leaves.at("in.x"), std::move(state));
  run.outputs.emplace("y", out.y);
  const std::vector<Variable> last = layer->export_state(ctx, out.state);
  for (std::size_t i = 0; i < fields.size(); ++i) run.outputs.emplace(std::string(fields[i].name), last[i]);
  return run;
}

namespace {

CaseRun run_selective_scan(Context& ctx, const CaseFile& file, DType dtype) {
  ConfigReader config(file.config(), file.name());
  const bool constant = config.boolean("const_bc", false);
  const bool softplus = config.boolean("softplus", true);
  CaseRun run;
  run.leaves = leaves_of(file, dtype);
  auto leaf = [&](const char* name) {
    const auto found = run.leaves.find(std::string("in.") + name);
    return found == run.leaves.end() ? Variable() : found->second;
  };
  const Variable u = leaf("u");
  const std::int64_t batch = u.size(0), time = u.size(1), tokens = batch * time;
  // [B, T, …] → [B·T, …]
  auto rows = [&](const Variable& v) {
    if (!v) return v;
    if (v.shape().rank() == 4) return reshape(ctx, v, {tokens, v.size(2), v.size(3)});
    return reshape(ctx, v, {tokens, v.size(2)});
  };
  SelectiveScanArguments in;
  in.u = rows(u);
  in.dt = rows(leaf("dt"));
  in.A = leaf("A");
  in.B = constant ? leaf("B") : rows(leaf("B"));
  in.C = constant ? leaf("C") : rows(leaf("C"));
  in.z = rows(leaf("z"));
  in.D = leaf("D");
  in.dt_bias = leaf("dt_bias");
  in.softplus = softplus;
  in.constant_bc = constant;
  auto [y, h] = selective_scan(ctx, in, transpose_last2(ctx, leaf("h0")), Segments::uniform(batch, time));
  run.outputs.emplace("y", reshape(ctx, y, u.shape()));
  run.outputs.emplace("h", transpose_last2(ctx, h));
  return run;
}

// argmax continuations of the first tokens of each row, one token at a time.
Tensor greedy(Context& ctx, const models::Model& model, const Tensor& ids, std::int64_t prompt, std::int64_t count) {
  NoGrad constant;
  const std::int64_t batch = ids.size(0), vocab = model.output_width();
  const Tensor tokens = Tensor::empty({batch, count}, DType::I64);
  models::States states;
  Tensor next = ids.slice(1, 0, prompt).clone();
  for (std::int64_t t = 0; t < count; ++t) {
    const Tensor logits = model.forward(ctx, next, states).value().slice(1, next.size(1) - 1, 1).clone();
    next = Tensor::zeros({batch, 1}, DType::I64);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int64_t best = 0;
      for (std::int64_t v = 1; v < vocab; ++v) {
        if (logits.at(b * vocab + v) > logits.at(b * vocab + best)) best = v;
      }
      next.data<std::int64_t>()[b] = tokens.data<std::int64_t>()[b * count + t] = best;
    }
  }
  return tokens;
}

// What a position's logits are to predict: the next token, and nothing at the last one; or what the case says.
Tensor targets_of(const CaseFile& file, const Tensor& ids, std::string_view loss, std::int64_t ignore) {
  if (loss == "targets") return file.find("in.targets").reshape({ids.numel()});
  const std::int64_t batch = ids.size(0), time = ids.size(1);
  const Tensor targets = Tensor::full({batch * time}, static_cast<double>(ignore), DType::I64);
  for (std::int64_t b = 0; b < batch && time > 0; ++b) {
    targets.slice(0, b * time, time - 1).copy_from(ids.slice(0, b, 1).slice(1, 1, time - 1).reshape({time - 1}));
  }
  return targets;
}

CaseRun run_lm(Context& ctx, const CaseFile& file, DType dtype) {
  constexpr std::string_view kLosses[] = {"none", "next_token", "targets"};
  constexpr std::int64_t kIgnore = -100;
  ConfigReader config(file.config(), file.name());
  Config described = config.child("model");
  if (config.text("type", "") == "xlstm") described.set("m0", config.text("m0", "zero"));
  const models::PublishedModel published =
      models::read_published(described, file.tensors("param."), dtype, file.name());
  const models::Model& model = *published.model;
  CaseRun run;
  for (const layers::Parameter* p : model.parameters()) {
    for (const auto& [theirs, ours] : published.names) {
      if (ours == p->name) run.leaves.emplace("param." + theirs, p->value);
    }
  }
  const Tensor ids = file.find("in.input_ids");
  models::States states;
  const Variable logits = model.forward(ctx, ids, states);
  run.outputs.emplace("logits", logits);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto& mixer = *model.mixers()[i];
    const std::vector<Variable> fields = mixer.export_state(ctx, states[i]);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      run.outputs.emplace(fmt::format("state{}.{}", i, mixer.state_fields()[f].name), fields[f]);
    }
  }
  if (const int loss = config.choice("loss", "none", kLosses); loss > 0) {
    const Variable rows = reshape(ctx, logits, {ids.numel(), model.output_width()});
    const Tensor targets = targets_of(file, ids, kLosses[static_cast<std::size_t>(loss)], kIgnore);
    run.outputs.emplace("loss", cross_entropy(ctx, rows, targets, kIgnore));
  }
  if (config.has("greedy")) {
    ConfigReader reader(config.child("greedy"), file.name());
    const std::int64_t prompt = reader.integer("prompt_length", 1, 1, ids.size(1));
    const std::int64_t count = reader.integer("new_tokens", 1, 1, 1 << 20);
    run.outputs.emplace("greedy", greedy(ctx, model, ids, prompt, count));
  }
  return run;
}

// A layer in the forms that training and inference choose.
template <Mode kMode>
CaseRun run_layer_in(Context&, const CaseFile& file, DType dtype) {
  Context ctx = Context::serial(kMode);
  return run_layer(ctx, file, dtype);
}

// Evaluates a case in F32 or F64. Throws Error with ErrorCode::Unsupported for a type that does not exist.
struct Kind {
  std::string_view name;
  CaseRun (*run)(Context& ctx, const CaseFile& file, DType dtype);
  std::string_view form = "";  // a kind has a row for each of its forms
};
constexpr Kind kKinds[] = {
    {"selective_scan", run_selective_scan},
    {"layer", run_layer_in<Mode::Exact>, "exact"},
    {"layer", run_layer_in<Mode::Fast>, "fast"},
    {"lm", run_lm},
    {"gated_delta", run_gated_delta<kRecurrent>, "recurrent"},
    {"gated_delta", run_gated_delta<1>, "chunk 1"},
    {"gated_delta", run_gated_delta<2>, "chunk 2"},
    {"gated_delta", run_gated_delta<5>, "chunk 5"},
    {"gated_delta", run_gated_delta<16>, "chunk 16"},
    {"gated_delta", run_gated_delta<32>, "chunk 32"},
    {"gated_delta", run_gated_delta<64>, "chunk 64"},
    {"gated_delta", run_gated_delta<128>, "chunk 128"},
    {"ssd", run_ssd<kRecurrent>, "recurrent"},
    {"ssd", run_ssd<1>, "chunk 1"},
    {"ssd", run_ssd<2>, "chunk 2"},
    {"ssd", run_ssd<5>, "chunk 5"},
    {"ssd", run_ssd<16>, "chunk 16"},
    {"ssd", run_ssd<32>, "chunk 32"},
    {"ssd", run_ssd<64>, "chunk 64"},
    {"ssd", run_ssd<128>, "chunk 128"},
    {"mlstm", run_mlstm<kRecurrent>, "recurrent"},
    {"mlstm", run_mlstm<1>, "chunk 1"},
    {"mlstm", run_mlstm<16>, "chunk 16"},
    {"mlstm", run_mlstm<32>, "chunk 32"},
    {"mlstm", run_mlstm<64>, "chunk 64"},
    {"mlstm", run_mlstm<kParallel>, "parallel"},
    {"slstm", run_slstm},
    {"block_stack", run_block_stack},
};

// Runs a case in one form and adds every output and gradient the file knows to the tally.
void measure_form(Context& ctx, const CaseFile& file, DType dtype, const Kind& kind, Tally& tally) {
  const CaseRun run = kind.run(ctx, file, dtype);
  auto compare = [&](const Tensor& got, const Tensor& expected, const std::string& name) {
    if (expected.dtype() == DType::I64) return tally.same_bits(got, expected, file.name() + " " + name);
    const auto [relative, absolute] = file.tolerance(name, dtype);
    const std::string what = file.name() + " " + name;
    tally.within(got, expected, relative, absolute, kind.form.empty() ? what : fmt::format("{}, {}", what, kind.form));
  };
  std::vector<Variable> outputs;
  std::vector<Tensor> cotangents;
  for (const auto& [name, expected] : file.tensors("out.")) {
    const auto found = run.outputs.find(name);
    if (found == run.outputs.end()) fail(ErrorCode::Unsupported, file.name(), "there is no output " + name);
    compare(found->second.value(), expected, "out." + name);
    if (const Tensor cotangent = file.find("cot." + name)) {
      outputs.push_back(found->second);
      cotangents.push_back(cotangent.to(dtype).clone());
    }
  }
  if (outputs.empty()) return;
  const Gradients gradients = backward(ctx, outputs, cotangents);
  for (const auto& [name, expected] : file.tensors("grad.")) {
    const auto found = run.leaves.find(name);
    if (found == run.leaves.end()) fail(ErrorCode::Unsupported, file.name(), "there is no input " + name);
    const Tensor got = gradients.of(found->second);
    compare(got ? got : Tensor::zeros(expected.shape(), dtype), expected, "grad." + name);
  }
}

void measure_case(Context& ctx, const CaseFile& file, DType dtype, Tally& tally) {
  bool ran = false;
  for (const Kind& kind : kKinds) {
    if (kind.name != file.kind()) continue;
    measure_form(ctx, file, dtype, kind, tally);
    ran = true;
  }
  if (!ran) fail(ErrorCode::Unsupported, file.name(), "there is no runner for kind " + file.kind());
}

}  // namespace

std::vector<std::string> case_paths(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (auto it = std::filesystem::recursive_directory_iterator(folder, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".safetensors") paths.push_back(it->path().string());
  }
  if (error) fail(ErrorCode::File, folder, "cannot be read: " + error.message());
  if (paths.empty()) fail(ErrorCode::File, folder, "holds no .safetensors file");
  std::sort(paths.begin(), paths.end());
  return paths;
}

void verify_cases(const std::string& folder, const Options& options, Report& report) {
  struct Group {
    Tally tally;
    std::int64_t cases = 0, unsupported = 0;
    std::string why;  // the first one
  };
  std::map<std::pair<std::string, std::string>, Group> groups;  // by what is run, and the type
  Context ctx = Context::serial();
  for (const std::string& path : case_paths(folder)) {
    const CaseFile file(path);
    for (const DType dtype : {DType::F64, DType::F32}) {
      if (!file.runs_in(dtype)) continue;
      Group& group = groups[{file.group(), dtype == DType::F64 ? "f64" : "f32"}];
      ++group.cases;
      try {
        measure_case(ctx, file, dtype, group.tally);
      } catch (const Error& e) {
        if (e.code() == ErrorCode::Unsupported) {
          if (group.unsupported++ == 0) group.why = e.what();
        } else {
          group.tally.require(false, e.what());
        }
      }
    }
  }
  for (auto& [key, group] : groups) {
    group.tally.not_run(group.why);
    Check check = group.tally.finish("cases " + key.first, fmt::format("{} × {}", group.cases, key.second));
    if (group.unsupported > 0 && check.compared > 0) {
      check.reason +=
          fmt::format("{}{} of them not run: {}", check.reason.empty() ? "" : "; ", group.unsupported, group.why);
    }
    if (options.on_check) options.on_check(check);
    report.add(std::move(check));
  }
}

}  // namespace stepwell::verify
