// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0

// The table of docs/gated-delta.md: the float error of Stepwell's forms beside that of two ways to write a chunk that
// are found in the wild, an inverse decay and differences of cumulative sums, on six mixes of decays.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

#include "stepwell/core/rng.h"
#include "stepwell/ops/gated_delta.h"

#include "ops/gated_delta/reference.h"

namespace {

using namespace stepwell;

constexpr std::int64_t kTokens = 192, kK = 64, kV = 32, kChunk = 64, kSeeds = 10;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Inputs {
  std::vector<float> q, k, v, g, b, w;
};

template <class T>
struct Outputs {
  std::vector<T> o, state;
};

template <class T>
ops::GatedDeltaInputs<T> views(const std::vector<T>* x) {
  const auto rows = [](const std::vector<T>& values, std::int64_t width) {
    return View<const T, 3>::contiguous(values.data(), {kTokens, 1, width});
  };
  ops::GatedDeltaInputs<T> in;
  in.q = rows(x[0], kK);
  in.k = rows(x[1], kK);
  in.v = rows(x[2], kV);
  in.g = rows(x[3], kK);
  in.b = rows(x[4], kK);
  in.w = rows(x[5], kV);
  in.scale = T(0.125);
  return in;
}

template <class T, class Rule>
Outputs<T> run(const Inputs& in, Rule rule) {
  const std::vector<T> x[] = {{in.q.begin(), in.q.end()}, {in.k.begin(), in.k.end()}, {in.v.begin(), in.v.end()},
                              {in.g.begin(), in.g.end()}, {in.b.begin(), in.b.end()}, {in.w.begin(), in.w.end()}};
  Outputs<T> out{std::vector<T>(kTokens * kV), std::vector<T>(kK * kV)};
  rule(views(x), Segments::uniform(1, kTokens),
       View<T, 4>::contiguous(out.state.data(), {1, kV / ops::kStateUnit, kK, ops::kStateUnit}),
       View<T, 3>::contiguous(out.o.data(), {kTokens, 1, kV}));
  return out;
}

Outputs<float> run_form(const Inputs& in, ops::Form form) {
  return run<float>(in, [form](const auto& x, const Segments& segments, auto state, auto o) {
    Context ctx = Context::serial();
    ops::gated_delta<float>(ctx, x, segments, state, o, {.form = form, .chunk = kChunk, .checkpoints = {}});
  });
}

// A chunk as it is often written. score(x, G_i, k, G_j) is one channel of x_i k_j exp(G_i − G_j).
using Score = float (*)(float x, float G_i, float k, float G_j);
float inverse_decay(float x, float G_i, float k, float G_j) { return (x * std::exp(G_i)) * (k * std::exp(-G_j)); }
float cumulative_difference(float x, float G_i, float k, float G_j) { return x * k * std::exp(G_i - G_j); }

Outputs<float> run_chunks(const Inputs& in, Score score) {
  Outputs<float> out{std::vector<float>(kTokens * kV), std::vector<float>(kK * kV)};
  std::vector<float>& S = out.state;  // [K, V]
  for (std::int64_t first = 0; first < kTokens; first += kChunk) {
    std::vector<float> G(kChunk * kK), u(kChunk * kV), total(kK);
    for (std::int64_t i = 0; i < kChunk; ++i) {
      for (std::int64_t d = 0; d < kK; ++d) G[i * kK + d] = total[d] += in.g[(first + i) * kK + d];
    }
    const auto sum = [&](std::int64_t i, std::int64_t j, const auto& row) {
      float result = 0;
      for (std::int64_t d = 0; d < kK; ++d) {
        result += score(row(i, d), G[i * kK + d], in.k[(first + j) * kK + d], G[j * kK + d]);
      }
      return result;
    };
    const auto e = [&](std::int64_t i, std::int64_t d) {
      return in.b[(first + i) * kK + d] * in.k[(first + i) * kK + d];
    };
    const auto q = [&](std::int64_t i, std::int64_t d) { return 0.125f * in.q[(first + i) * kK + d]; };
    for (std::int64_t i = 0; i < kChunk; ++i) {
      for (std::int64_t c = 0; c < kV; ++c) {
        float& residual = u[i * kV + c] = in.w[(first + i) * kV + c] * in.v[(first + i) * kV + c];
        for (std::int64_t d = 0; d < kK; ++d) residual -= e(i, d) * std::exp(G[i * kK + d]) * S[d * kV + c];
      }
      for (std::int64_t j = 0; j < i; ++j) {
        const float t = sum(i, j, e);
        for (std::int64_t c = 0; c < kV; ++c) u[i * kV + c] -= t * u[j * kV + c];
      }
      float* o = out.o.data() + (first + i) * kV;
      for (std::int64_t d = 0; d < kK; ++d) {
        for (std::int64_t c = 0; c < kV; ++c) o[c] += q(i, d) * std::exp(G[i * kK + d]) * S[d * kV + c];
      }
      for (std::int64_t j = 0; j <= i; ++j) {
        const float a = sum(i, j, q);
        for (std::int64_t c = 0; c < kV; ++c) o[c] += a * u[j * kV + c];
      }
    }
    for (std::int64_t d = 0; d < kK; ++d) {
      for (std::int64_t c = 0; c < kV; ++c) {
        float& cell = S[d * kV + c];
        cell *= std::exp(total[d]);
        for (std::int64_t j = 0; j < kChunk; ++j) {
          cell += score(1, total[d], in.k[(first + j) * kK + d], G[j * kK + d]) * u[j * kV + c];
        }
      }
    }
  }
  return out;
}

// max |Δ| / max |expected|; infinite for a number that is none.
double error_of(const std::vector<float>& got, const std::vector<double>& expected) {
  double largest = 0, scale = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    scale = std::max(scale, std::abs(expected[i]));
    if (!std::isfinite(got[i])) return kInfinity;
    largest = std::max(largest, std::abs(got[i] - expected[i]));
  }
  return largest / scale;
}

struct Mix {
  const char* name;
  float (*log_decay)(double u, double w);  // of two numbers uniform in [0, 1)
};
float between(double low, double high, double u) { return static_cast<float>(low + (high - low) * u); }
constexpr Mix kMixes[] = {
    {"g in [-0.1, -0.001]", [](double, double w) { return between(-0.1, -0.001, w); }},
    {"g in [-5, -0.01]", [](double, double w) { return between(-5, -0.01, w); }},
    {"-30 in 3 of 10, else [-0.05, -0.001]",
     [](double u, double w) { return u < 0.3 ? -30 : between(-0.05, -0.001, w); }},
    {"-90 in 5 of 10, else [-0.02, -0.0005]",
     [](double u, double w) { return u < 0.5 ? -90 : between(-0.02, -0.0005, w); }},
    {"all -20", [](double, double) { return -20.0f; }},
    {"-inf in 1 of 10, else [-0.1, -0.001]",
     [](double u, double w) { return u < 0.1 ? -kInfinity : between(-0.1, -0.001, w); }},
};

Inputs draw(const Mix& mix, std::uint64_t seed) {
  const Rng rng(seed);
  const auto normal = [&](const char* name, std::int64_t width, double deviation) {
    const Tensor t = rng.stream(name).normal({kTokens, width}, 0, deviation);
    return std::vector<float>(t.span<float>().begin(), t.span<float>().end());
  };
  const auto uniform = [&](const char* name, std::int64_t width) {
    const Tensor t = rng.stream(name).uniform({kTokens, width}, 0, 1);
    return std::vector<float>(t.span<float>().begin(), t.span<float>().end());
  };
  Inputs in{normal("q", kK, 0.125), normal("k", kK, 0.125), normal("v", kV, 1), {}, uniform("b", kK), uniform("w", kV)};
  const std::vector<float> u = uniform("which", kK), w = uniform("g", kK);
  for (std::size_t i = 0; i < u.size(); ++i) in.g.push_back(mix.log_decay(u[i], w[i]));
  return in;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  constexpr const char* kColumns[] = {"recurrent", "chunked", "inverse decay", "cumulative difference"};
  std::printf("max |error| / max |value| of o in float, T %ld, K %ld, V %ld, chunks of %ld, median of %ld seeds\n",
              kTokens, kK, kV, kChunk, kSeeds);
  std::printf("%-40s", "log decays");
  for (const char* name : kColumns) std::printf(" %22s", name);
  std::printf("\n");
  for (const Mix& mix : kMixes) {
    std::vector<double> errors[4];
    for (std::int64_t seed = 0; seed < kSeeds; ++seed) {
      const Inputs in = draw(mix, static_cast<std::uint64_t>(seed));
      const Outputs<double> expected =
          run<double>(in, [](const auto&... a) { ops::reference::gated_delta<double>(a...); });
      errors[0].push_back(error_of(run_form(in, ops::Form::Recurrent).o, expected.o));
      errors[1].push_back(error_of(run_form(in, ops::Form::Chunked).o, expected.o));
      errors[2].push_back(error_of(run_chunks(in, inverse_decay).o, expected.o));
      errors[3].push_back(error_of(run_chunks(in, cumulative_difference).o, expected.o));
    }
    std::printf("%-40s", mix.name);
    for (const auto& column : errors) {
      const double error = median(column);
      std::isfinite(error) ? std::printf(" %22.1e", error) : std::printf(" %22s", "not finite");
    }
    std::printf("\n");
  }
  return 0;
}
