// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Field reports about the cells of xLSTM.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/rng.h"
#include "stepwell/ops/mlstm.h"
#include "stepwell/ops/slstm.h"

#include "ops/mlstm/reference.h"

namespace stepwell::ops {
namespace {

constexpr std::int64_t kTokens = 8, kWidth = 8;

Tensor random(const Shape& shape, const char* name) { return Rng(8).stream(name).normal(shape, 0, 1); }

struct Cell {
  Tensor q = random({kTokens, 1, kWidth}, "q"), k = random({kTokens, 1, kWidth}, "k"),
         v = random({kTokens, 1, kWidth}, "v"), i = Tensor::zeros({kTokens, 1}), f = Tensor::full({kTokens, 1}, 5.0);

  template <class T>
  MlstmInputs<T> inputs(const std::vector<Tensor>& held) const {
    return {held[0].view<const T, 3>(),
            held[1].view<const T, 3>(),
            held[2].view<const T, 3>(),
            held[3].view<const T, 2>(),
            held[4].view<const T, 2>(),
            T(1) / std::sqrt(T(kWidth)),
            InputGate::Exponential,
            true,
            T(0)};
  }
};

// The cell without any stabiliser, in double: exp(i) as it is, the floor 1.
Tensor without_stabiliser(const Cell& cell) {
  const Tensor h = Tensor::empty({kTokens, 1, kWidth}, DType::F64);
  std::vector<double> C(kWidth * kWidth), n(kWidth);
  const double scale = 1 / std::sqrt(static_cast<double>(kWidth));
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const double forget = reference::sigmoid(cell.f.at(t)), input = std::exp(cell.i.at(t));
    double a = 0;
    for (std::int64_t d = 0; d < kWidth; ++d) {
      const double k = cell.k.at(t * kWidth + d);
      n[d] = forget * n[d] + input * k;
      a += scale * cell.q.at(t * kWidth + d) * n[d];
      for (std::int64_t c = 0; c < kWidth; ++c) {
        C[d * kWidth + c] = forget * C[d * kWidth + c] + input * k * cell.v.at(t * kWidth + c);
      }
    }
    for (std::int64_t c = 0; c < kWidth; ++c) {
      double sum = 0;
      for (std::int64_t d = 0; d < kWidth; ++d) sum += scale * cell.q.at(t * kWidth + d) * C[d * kWidth + c];
      h.data<double>()[t * kWidth + c] = sum / std::max(std::abs(a), 1.0);
    }
  }
  return h;
}

struct Result {
  Tensor h, C, n, m;
  std::vector<Tensor> gradients;
};

Result run(const Cell& cell, Form form) {
  Context ctx = Context::serial();
  Result r{Tensor::zeros({kTokens, 1, kWidth}),
           Tensor::zeros({1, 1, kWidth, kStateUnit}),
           Tensor::zeros({1, kWidth}),
           Tensor::zeros({1}),
           {}};
  const std::vector<Tensor> held = {cell.q, cell.k, cell.v, cell.i, cell.f};
  const auto in = cell.inputs<float>(held);
  const Segments segments = Segments::uniform(1, kTokens);
  mlstm<float>(ctx, in, segments, {r.C.view<float, 4>(), r.n.view<float, 2>(), r.m.data<float>()}, r.h.view<float, 3>(),
               {.form = form, .chunk = 3, .checkpoints = {}});
  for (const Tensor& t : held) r.gradients.push_back(Tensor::full(t.shape(), NAN));
  MlstmGradients<float> out;
  out.q = r.gradients[0].view<float, 3>();
  out.k = r.gradients[1].view<float, 3>();
  out.v = r.gradients[2].view<float, 3>();
  out.i = r.gradients[3].view<float, 2>();
  out.f = r.gradients[4].view<float, 2>();
  const Tensor grad_h = random({kTokens, 1, kWidth}, "grad_h");
  mlstm_backward<float>(ctx, in, segments, {}, {}, r.h.view<const float, 3>(),
                        {r.C.view<const float, 4>(), r.n.view<const float, 2>(), r.m.data<float>()},
                        grad_h.view<const float, 3>(), {}, out);
  return r;
}

bool all_finite(const Tensor& t) {
  for (const float x : t.span<float>()) {
    if (!std::isfinite(x)) return false;
  }
  return true;
}

TEST(FieldReport, P8_GatesOfHundredsAgainstTheCellWithoutAStabiliser) {
  const std::vector<std::pair<const char*, std::function<double(std::int64_t)>>> inputs = {
      {"all -100", [](std::int64_t) { return -100; }},
      {"all +80", [](std::int64_t) { return 80; }},
      {"+300, then -100", [](std::int64_t t) { return t == 0 ? 300 : -100; }},
      {"+200 and -200 in turn", [](std::int64_t t) { return t % 2 == 0 ? 200 : -200; }},
  };
  for (const auto& [name, input] : inputs) {
    for (const double forget : {5.0, -50.0, -1e4}) {
      for (const Form form : {Form::Recurrent, Form::Chunked}) {
        SCOPED_TRACE(std::string(name) + ", forget gates " + std::to_string(forget));
        Cell cell;
        for (std::int64_t t = 0; t < kTokens; ++t) cell.i.data<float>()[t] = static_cast<float>(input(t));
        cell.f.fill(forget);
        const Result r = run(cell, form);
        for (const Tensor* t : {&r.h, &r.C, &r.n, &r.m}) EXPECT_TRUE(all_finite(*t));
        for (const Tensor& t : r.gradients) EXPECT_TRUE(all_finite(t));
        const Tensor expected = without_stabiliser(cell);
        double largest = 0;
        for (std::int64_t j = 0; j < expected.numel(); ++j) largest = std::max(largest, std::abs(expected.at(j)));
        if (largest < 1e-30) largest = 1e-25;  // below float's range: anything as small will do
        for (std::int64_t j = 0; j < expected.numel(); ++j) EXPECT_NEAR(r.h.at(j), expected.at(j), 2e-5 * largest) << j;
      }
    }
  }
}

TEST(FieldReport, P8_TheDenominatorIsTheSizeOfTheProduct) {
  Cell cell;
  for (Tensor* t : {&cell.q, &cell.k, &cell.v}) t->fill(0);
  cell.k.data<float>()[0] = 1;
  cell.v.data<float>()[0] = 3;
  cell.q.data<float>()[0] = -5 * std::sqrt(static_cast<float>(kWidth));
  for (const Form form : {Form::Recurrent, Form::Chunked}) {
    EXPECT_NEAR(run(cell, form).h.at(0), -3, 1e-6) << "n·q = −5 and C·q = −15: divided by 5, not by 1";
  }
}

TEST(FieldReport, P8_SlstmGatesOfHundreds) {
  Context ctx = Context::serial();
  const Segments segments = Segments::uniform(1, kTokens);
  const Tensor R = Tensor::zeros({1, 4 * kWidth, kWidth});
  for (const double input : {-100.0, 80.0, 300.0}) {
    for (const double forget : {5.0, -50.0, -1e4}) {
      const Tensor x = random({kTokens, 4 * kWidth}, "x"), state = Tensor::zeros({1, 4, kWidth}),
                   y = Tensor::empty({kTokens, kWidth}), trace = Tensor::empty({1, kTokens, kSlstmTrace * kWidth}),
                   grad_y = random({kTokens, kWidth}, "grad_y"), grad_x = Tensor::full(x.shape(), NAN);
      x.slice(1, 0, kWidth).fill(input);
      x.slice(1, kWidth, kWidth).fill(forget);
      const SlstmInputs<float> in{x.view<const float, 2>(), R.view<const float, 3>(), nullptr};
      slstm<float>(ctx, in, segments, state.view<float, 3>(), y.view<float, 2>(), trace.view<float, 3>());
      SlstmGradients<float> out;
      out.x = grad_x.view<float, 2>();
      slstm_backward<float>(ctx, in, segments, {}, y.view<const float, 2>(), trace.view<const float, 3>(),
                            grad_y.view<const float, 2>(), {}, out);
      EXPECT_TRUE(all_finite(y) && all_finite(state) && all_finite(grad_x)) << input << " " << forget;
      // An average of tanh(z), whatever the size of the gates.
      for (const float v : y.span<float>()) EXPECT_LE(std::abs(v), 1);
    }
  }
}

}  // namespace
}  // namespace stepwell::ops
