// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "stepwell/io/json.h"
#include "stepwell/io/safetensors.h"
#include "stepwell/ops/verify_gated_delta.h"
#include "stepwell/verify/verify.h"

#include "verify/delta_cases.h"
#include "verify/tally.h"

namespace stepwell::verify {

namespace {

struct Inputs {
  std::map<std::string, Variable> tensors;  // "in.q"
  std::vector<std::int64_t> borders;        // cu_seqlens
  Config options;
};

constexpr const char* kExpected =
    "q, k, v and what there is of g, b, w or beta, A_log, dt_bias, initial_state, cu_seqlens";

// A misspelt tensor left out, or numbers that make every form NaN, would pass for a check.
void check_tensor(const std::string& path, const std::string& name, const Tensor& tensor) {
  static const std::vector<std::string> known = {"q", "k",    "v",     "g",       "b",
                                                 "w", "beta", "A_log", "dt_bias", "initial_state"};
  if (std::ranges::find(known, name) == known.end()) {
    fail(ErrorCode::File, path, "unknown tensor " + name + ", expected " + kExpected);
  }
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const double x = tensor.at(i);
    if (std::isfinite(x) || (name == "g" && x == -std::numeric_limits<double>::infinity())) continue;
    fail(ErrorCode::File, path, fmt::format("{} has {} at element {}, expected finite numbers", name, x, i));
  }
}

// The tensors of a file, with or without the prefix of case files; 16-bit floats widened.
Inputs load_inputs(const std::string& path) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  Inputs inputs;
  const io::Metadata metadata = file.metadata();
  if (const auto config = metadata.find("config"); config != metadata.end()) {
    inputs.options = io::parse_json(config->second, path + ": config");
  } else {
    inputs.options = Config(Config::Object());
  }
  bool wide = false;
  for (const auto& [name, tensor] : file.tensors()) wide = wide || tensor.dtype() == DType::F64;
  for (const auto& [name, tensor] : file.tensors()) {
    const std::string plain = name.starts_with("in.") ? name.substr(3) : name;
    if (plain.find('.') != std::string::npos) continue;  // of a case file: what must come out
    if (plain == "cu_seqlens") {
      const Tensor borders = tensor.to(DType::I64);
      inputs.borders.assign(borders.span<const std::int64_t>().begin(), borders.span<const std::int64_t>().end());
    } else {
      const Tensor widened = tensor.to(wide ? DType::F64 : DType::F32).clone();
      check_tensor(path, plain, widened);
      inputs.tensors.emplace("in." + plain, Variable(widened));
    }
  }
  for (const char* name : {"in.q", "in.k", "in.v"}) {
    const auto found = inputs.tensors.find(name);
    if (found == inputs.tensors.end()) {
      fail(ErrorCode::File, path, std::string("there is no tensor ") + (name + 3) + "; expected " + kExpected);
    }
    STEPWELL_CHECK(
        found->second.shape().rank() == 4, path,
        std::string(name + 3) + " is " + found->second.shape().to_string() + ", expected [B, T, heads, width]");
  }
  if (inputs.tensors.contains("in.beta") && (inputs.tensors.contains("in.b") || inputs.tensors.contains("in.w"))) {
    fail(ErrorCode::File, path, "beta beside b or w, expected beta alone: it stands for both");
  }
  return inputs;
}

}  // namespace

void verify_inputs(const std::string& path, std::int64_t chunk, const Options& options, Report& report) {
  const NoGrad no_grad;
  Context ctx = Context::serial();
  const Inputs inputs = load_inputs(path);
  ConfigReader config(inputs.options, path);
  const GatedDeltaArguments in = delta_arguments(ctx, inputs.tensors, config);
  config.ignore("variant");  // of a case file
  config.finish();
  const Shape& q = inputs.tensors.at("in.q").shape();
  const Segments segments =
      inputs.borders.empty() ? Segments::uniform(q[0], q[1]) : Segments::from_offsets(inputs.borders, q[0] * q[1]);
  const auto initial = inputs.tensors.find("in.initial_state");
  const Variable state = initial == inputs.tensors.end() ? Variable() : pack_state(ctx, initial->second);
  const bool wide = in.q.dtype() == DType::F64;
  const auto found = delta_differences(ctx, in, state, segments, chunk);
  for (const ops::FormDifference& d : found) {
    Check check{"inputs " + std::filesystem::path(path).stem().string(),
                fmt::format("{} {}", d.form, d.output),
                Outcome::Pass,
                {},
                {},
                1};
    const auto& w = d.worst;
    const std::string place = d.output == "o"
                                  ? fmt::format("token {}, head {}, column {}", w[0], w[1], w[2])
                                  : fmt::format("sequence {}, head {}, row {}, column {}", w[0], w[1], w[2], w[3]);
    check.figure = fmt::format("max |error| {:.2g} of {:.2g} at {}", d.largest, d.scale, place);
    const double bound = wide ? kRelativeF64 : kRelativeF32;
    if (!(d.relative() <= bound)) {
      check.outcome = Outcome::Fail;
      check.reason = fmt::format("{:.9g} instead of {:.9g}; {:.2g} of the largest value, bound {:.2g}", d.got,
                                 d.expected, d.relative(), bound);
    }
    if (options.on_check) options.on_check(check);
    report.add(std::move(check));
  }
}

}  // namespace stepwell::verify
