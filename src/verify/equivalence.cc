// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/verify/equivalence.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepwell/layers/mlstm.h"

#include "verify/case_file.h"
#include "verify/promises.h"
#include "verify/xlstm_cases.h"

namespace stepwell::verify {

bool EquivalenceRow::within() const {
  return largest <= largest_bound && (mean_bound == 0 ? mean == mean : mean < mean_bound);
}

bool Equivalence::passed() const { return !rows.empty() && std::ranges::all_of(rows, &EquivalenceRow::within); }

Config Equivalence::to_config() const {
  Config::Array all;
  for (const EquivalenceRow& row : rows) {
    all.emplace_back(Config::Object{{"comparison", row.comparison},
                                    {"dtype", std::string(dtype_name(row.dtype))},
                                    {"time", row.time},
                                    {"tensor", row.tensor},
                                    {"mean", std::isfinite(row.mean) ? Config(row.mean) : Config()},
                                    {"largest", std::isfinite(row.largest) ? Config(row.largest) : Config()},
                                    {"within", row.within()}});
  }
  return Config(Config::Object{{"passed", passed()}, {"not_run", not_run}, {"rows", std::move(all)}});
}

namespace {

constexpr std::int64_t kTimes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 64, 100, 257};
constexpr std::int64_t kWidth = 16, kBatch = 1, kBlocks = 8;
constexpr std::string_view kInputBias = "gradient of mlstm_cell.igate.bias",
                           kForgetBias = "gradient of mlstm_cell.fgate.bias";

using Tensors = std::map<std::string, Tensor>;

struct Difference {
  double mean = 0, largest = 0;  // |Δ|; NaN counts as infinite
};
Difference difference(const Tensor& got, const Tensor& expected) {
  Difference d;
  const std::int64_t n = expected.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = std::fabs(got.at(i) - expected.at(i));
    const double bounded = std::isnan(x) ? INFINITY : x;
    d.mean += bounded / static_cast<double>(n);
    d.largest = std::max(d.largest, bounded);
  }
  return d;
}
double largest_of(const Tensor& t) {
  double largest = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) largest = std::max(largest, std::fabs(t.at(i)));
  return largest;
}

// The layer under comparison, one of a model of eight: every parameter away from its first value, gates that depend on
// the token.
class LayerUnderTest {
 public:
  explicit LayerUnderTest(DType dtype)
      : layer_({.embedding_dim = kWidth,
                .num_heads = 4,
                .bias = true,
                .num_blocks = kBlocks,
                .init = layers::GateInit::Active},
               Rng(23)),
        dtype_(dtype) {
    for (layers::Parameter* p : layer_.parameters()) {
      const Tensor moved = p->value.value().clone();
      const Tensor noise = random_tensor(moved.shape(), DType::F32, p->name.c_str(), 0.05);
      for (std::int64_t i = 0; i < moved.numel(); ++i) moved.data<float>()[i] += noise.data<float>()[i];
      p->set(moved);
    }
    layer_.to(dtype);
  }

  // Outputs, last state and all gradients of `time` tokens in pieces of the given lengths.
  Tensors run(std::int64_t time, ops::Form form, std::int64_t chunk, const std::vector<std::int64_t>& lengths) {
    Context ctx = Context::serial();
    layer_.use_form(form, chunk);
    const auto input = [&](const Shape& shape, const std::string& name, double deviation = 1) {
      return random_tensor(shape, DType::F32, name.c_str(), deviation).to(dtype_).clone();
    };
    const Variable x = Variable::leaf(input({kBatch, time, kWidth}, "x"));
    layers::State start;
    for (const Variable& field : layer_.export_state(ctx, random_state(layer_, kBatch, "start"))) start.push(field);
    start = layer_.import_state(ctx, {start[0], start[1], start[2], start[3]});  // without padding
    layers::State state;
    for (int i = 0; i < start.count(); ++i) state.push(Variable::leaf(start[i].value()));
    start = state;

    const Variable by_time = transpose_last2(ctx, x);
    const Tensor y = Tensor::empty({kBatch, time, kWidth}, dtype_), cotangent = input(y.shape(), "cotangent of y");
    std::vector<Variable> outputs;
    std::vector<Tensor> cotangents;
    std::int64_t at = 0;
    for (const std::int64_t length : lengths) {
      const std::int64_t widths[] = {at, length, time - at - length};
      layers::LayerOutput out =
          layer_.forward(ctx, transpose_last2(ctx, split(ctx, by_time, widths)[1]), std::move(state));
      y.slice(1, at, length).copy_from(out.y.value());
      outputs.push_back(out.y);
      cotangents.push_back(cotangent.slice(1, at, length).clone());
      state = std::move(out.state);
      at += length;
    }
    Tensors found = {{"y", y}};
    const std::vector<Variable> last = layer_.export_state(ctx, state);
    const auto& fields = layer_.state_fields();
    for (std::size_t i = 0; i < last.size(); ++i) {
      const std::string name = "last " + std::string(fields[i].name);
      found.emplace(name, last[i].value());
      outputs.push_back(last[i]);
      cotangents.push_back(input(last[i].shape(), "cotangent of " + name, 0.1));
    }
    const Gradients gradients = backward(ctx, outputs, cotangents);
    found.emplace("gradient of x", gradients.of(x));
    for (int i = 0; i < start.count(); ++i) {
      found.emplace("gradient of first " + std::string(fields[static_cast<std::size_t>(i)].name),
                    gradients.of(start[i]));
    }
    for (const layers::Parameter* p : std::as_const(layer_).parameters()) {
      found.emplace("gradient of " + p->name, gradients.of(p->value));
    }
    return found;
  }

 private:
  layers::Mlstm layer_;
  DType dtype_;
};

void compare(const Tensors& got, const Tensors& expected, const std::string& comparison, DType dtype, std::int64_t time,
             std::vector<EquivalenceRow>& rows) {
  for (const auto& [name, tensor] : expected) {
    const bool gradient = name.starts_with("gradient"), single = dtype == DType::F32;
    const Difference d = difference(got.at(name), tensor);
    double scale = largest_of(tensor);
    if (name == kInputBias) scale = std::max(scale, largest_of(expected.at(std::string(kForgetBias))));
    EquivalenceRow row;
    row.comparison = comparison;
    row.dtype = dtype;
    row.time = time;
    row.tensor = name;
    row.mean = d.mean;
    row.largest = d.largest == 0 ? 0 : d.largest / scale;
    row.mean_bound = single && time <= 12 ? (gradient ? 1e-6 : 1e-7) : 0;
    row.largest_bound = single ? (gradient ? 1e-4 : 2e-5) : (gradient ? 1e-10 : 1e-12);
    rows.push_back(std::move(row));
  }
}

void compare_forms(std::vector<EquivalenceRow>& rows) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    LayerUnderTest layer(dtype);
    for (const std::int64_t time : kTimes) {
      const Tensors recurrent = layer.run(time, ops::Form::Recurrent, 0, {time});
      for (const std::int64_t chunk : {std::int64_t{4}, std::int64_t{16}, std::int64_t{64}, time}) {
        const std::string name = chunk == time ? "parallel" : fmt::format("chunk {}", chunk);
        compare(layer.run(time, ops::Form::Chunked, chunk, {time}), recurrent, name, dtype, time, rows);
      }
      compare(layer.run(time, ops::Form::Recurrent, 0, {time / 2, time - time / 2}), recurrent, "two segments", dtype,
              time, rows);
    }
  }
}

// One case in one form against the numbers it holds.
void compare_case(const CaseFile& file, DType dtype, const std::string& form, const CaseRun& run, Context& ctx,
                  std::vector<EquivalenceRow>& rows) {
  const Variable& first = run.outputs.at(run.outputs.contains("h") ? "h" : "y");
  const auto add = [&](const Tensor& got, const Tensor& expected, const std::string& stored, const std::string& name) {
    const auto [relative, absolute] = file.tolerance(stored, dtype);
    const Difference d = difference(got, expected);
    const double scale = largest_of(expected);
    EquivalenceRow row;
    row.comparison = "golden, " + form;
    row.dtype = dtype;
    row.time = first.shape().rank() == 4 ? first.size(2) : first.size(1);
    row.tensor = name;
    row.mean = d.mean;
    row.largest = d.largest <= absolute ? 0 : (d.largest - absolute) / scale;  // beyond the case's absolute allowance
    row.largest_bound = relative;
    rows.push_back(std::move(row));
  };
  std::vector<Variable> outputs;
  std::vector<Tensor> cotangents;
  for (const auto& [name, expected] : file.tensors("out.")) {
    const Variable& output = run.outputs.at(name);
    add(output.value(), expected, "out." + name, name == "h" || name == "y" ? name : "last " + name);
    if (const Tensor cotangent = file.find("cot." + name)) {
      outputs.push_back(output);
      cotangents.push_back(cotangent.to(dtype).clone());
    }
  }
  if (outputs.empty()) return;
  const Gradients gradients = backward(ctx, outputs, cotangents);
  for (const auto& [name, expected] : file.tensors("grad.")) {
    const Tensor got = gradients.of(run.leaves.at(name));
    add(got ? got : Tensor::zeros(expected.shape(), dtype), expected, "grad." + name,
        "gradient of " + name.substr(name.find('.') + 1));
  }
}

void compare_golden(const std::string& folder, Equivalence& result) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
  }
  if (error) fail(ErrorCode::File, folder, "cannot be read: " + error.message());
  std::ranges::sort(paths);
  constexpr std::pair<const char*, std::int64_t> kForms[] = {
      {"recurrent", kRecurrent}, {"chunk 16", 16}, {"chunk 32", 32}, {"chunk 64", 64}, {"parallel", kParallel}};
  Context ctx = Context::serial();
  const std::size_t before = result.rows.size();
  for (const std::string& path : paths) {
    const CaseFile file(path);
    for (const DType dtype : {DType::F32, DType::F64}) {
      if (!file.runs_in(dtype)) continue;
      if (file.kind() == "mlstm") {
        for (const auto& [form, chunk] : kForms) {
          compare_case(file, dtype, form, run_mlstm_in(ctx, file, dtype, chunk), ctx, result.rows);
        }
      } else if (file.group() == "layer mlstm") {
        compare_case(file, dtype, "layer", run_layer(ctx, file, dtype), ctx, result.rows);
      }
    }
  }
  if (result.rows.size() == before) result.not_run = folder + " holds no case of the mLSTM cell or layer";
}

}  // namespace

Equivalence measure_equivalence(const std::string& golden_folder) {
  Equivalence result;
  compare_forms(result.rows);
  if (golden_folder.empty()) result.not_run = "golden results: no folder of cases given";
  else compare_golden(golden_folder, result);
  return result;
}

}  // namespace stepwell::verify
