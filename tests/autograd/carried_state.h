// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/expect_gradients.h"

namespace stepwell {

// A mixer under test: leaves whose first dimension counts tokens (`rows`), leaves that do not (`shared`), and a state.
struct CarriedCase {
  std::vector<Tensor> rows, shared;
  Tensor state;
  // Output and outgoing state of the tokens in `rows`.
  std::function<std::pair<Variable, Variable>(Context&, const Variables& rows, const Variables& shared, Variable state,
                                              const Segments&)>
      run;
};

// Values and gradients of everything, the initial state included, when L tokens are run as consecutive parts of the
// given lengths with the state handed on.
inline std::vector<Tensor> run_in_parts(const CarriedCase& c, const std::vector<std::int64_t>& lengths) {
  Context ctx = Context::serial();
  Variables rows, shared;
  for (const Tensor& t : c.rows) rows.push_back(Variable::leaf(t));
  for (const Tensor& t : c.shared) shared.push_back(Variable::leaf(t));
  const Variable initial = Variable::leaf(c.state);
  Variable state = initial;
  Variables outputs;
  std::vector<Tensor> cotangents, results;
  const std::int64_t L = c.rows[0].size(0);
  const Tensor grad_y = random_tensor({L, 1000}, 50);  // row t is the same however the tokens are cut
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    Tensor index = Tensor::empty({length}, DType::I64);
    for (std::int64_t i = 0; i < length; ++i) index.data<std::int64_t>()[i] = start + i;
    Variables part;
    for (const Variable& v : rows) part.push_back(gather_rows(ctx, v, index));
    auto [y, next] = c.run(ctx, part, shared, state, Segments::uniform(1, length));
    state = next;
    std::int64_t width = 1;
    for (int i = 1; i < y.shape().rank(); ++i) width *= y.size(i);
    outputs.push_back(reshape(ctx, y, {length, width}));
    cotangents.push_back(grad_y.slice(0, start, length).slice(1, 0, width).clone());
    results.push_back(outputs.back().value());
    start += length;
  }
  EXPECT_EQ(start, L);
  // Outputs of the parts one below the other, to compare them with those of one run.
  const std::int64_t width = results[0].size(1);
  const Tensor joined = Tensor::empty({L, width}, DType::F64);
  start = 0;
  for (const Tensor& t : results) {
    joined.slice(0, start, t.size(0)).copy_from(t);
    start += t.size(0);
  }
  outputs.push_back(state);
  cotangents.push_back(random_tensor(state.shape(), 51));
  const Gradients g = backward(ctx, outputs, cotangents);
  results = {joined, state.value(), g.of(initial)};
  for (const Variable& v : rows) results.push_back(g.of(v));
  for (const Variable& v : shared) results.push_back(g.of(v));
  return results;
}

// Runs in parts equal one run: outputs and last state bit for bit (X1), gradients to rounding.
inline void expect_parts_equal_whole(const CarriedCase& c, const std::vector<std::vector<std::int64_t>>& cuts) {
  const std::vector<Tensor> whole = run_in_parts(c, {c.rows[0].size(0)});
  for (const auto& lengths : cuts) {
    const std::vector<Tensor> parts = run_in_parts(c, lengths);
    ASSERT_EQ(parts.size(), whole.size());
    EXPECT_TRUE(parts[0].same_bits(whole[0])) << "outputs";
    EXPECT_TRUE(parts[1].same_bits(whole[1])) << "last state";
    for (std::size_t i = 2; i < whole.size(); ++i) {
      double largest = 0;
      for (std::int64_t j = 0; j < whole[i].numel(); ++j) largest = std::max(largest, std::fabs(whole[i].at(j)));
      EXPECT_GT(largest, 0) << "gradient " << i << " vanished";
      for (std::int64_t j = 0; j < whole[i].numel(); ++j) {
        EXPECT_NEAR(parts[i].at(j), whole[i].at(j), 1e-12 * largest) << "gradient " << i << ", element " << j;
      }
    }
  }
}

// The gradient of one input alone has the bits it has beside all others': what is not wanted is skipped, no more.
inline void expect_gradients_of_single_inputs(const CarriedCase& c) {
  const std::int64_t L = c.rows[0].size(0);
  std::vector<Tensor> values = c.rows;
  values.insert(values.end(), c.shared.begin(), c.shared.end());
  values.push_back(c.state);
  // Gradients of the inputs for which `leaf` is true.
  const auto gradients = [&](const std::function<bool(std::size_t)>& leaf) {
    Context ctx = Context::serial();
    Variables v;
    for (std::size_t i = 0; i < values.size(); ++i) {
      v.push_back(leaf(i) ? Variable::leaf(values[i]) : Variable(values[i]));
    }
    const auto shared = v.begin() + static_cast<std::ptrdiff_t>(c.rows.size());
    const auto [y, state] = c.run(ctx, {v.begin(), shared}, {shared, v.end() - 1}, v.back(), Segments::uniform(1, L));
    const std::array<Variable, 2> outputs = {y, state};
    const std::array<Tensor, 2> cotangents = {random_tensor(y.shape(), 60), random_tensor(state.shape(), 61)};
    const Gradients g = backward(ctx, outputs, cotangents);
    std::vector<Tensor> found;
    for (const Variable& variable : v) found.push_back(g.of(variable));
    return found;
  };
  const std::vector<Tensor> all = gradients([](std::size_t) { return true; });
  for (std::size_t only = 0; only < values.size(); ++only) {
    const std::vector<Tensor> one = gradients([only](std::size_t i) { return i == only; });
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(one[i].defined(), i == only);
      if (i == only) {
        EXPECT_TRUE(one[i].same_bits(all[i])) << "input " << i;
      }
    }
  }
}

// A state is updated in place only where nothing is recorded and it was moved in by its only holder.
inline void expect_state_donation(const CarriedCase& c) {
  Context ctx = Context::serial();
  const Segments segments = Segments::uniform(1, c.rows[0].size(0));
  Variables rows(c.rows.begin(), c.rows.end()), shared(c.shared.begin(), c.shared.end());
  const auto [y, expected] = c.run(ctx, rows, shared, c.state, segments);
  const Tensor before = c.state.clone();

  const auto donate = [&](Tensor given) {  // → whether the memory was reused
    const void* memory = given.raw();
    const auto [out, next] = c.run(ctx, rows, shared, Variable(std::move(given)), segments);
    EXPECT_TRUE(out.value().same_bits(y.value()));
    EXPECT_TRUE(next.value().same_bits(expected.value()));
    return next.value().raw() == memory;
  };
  NoGrad no_grad;
  EXPECT_TRUE(donate(c.state.clone()));
  EXPECT_FALSE(donate(c.state));  // held by the case
  EXPECT_TRUE(c.state.same_bits(before));
  // Memory that is not the library's is never written.
  std::vector<double> foreign(c.state.span<double>().begin(), c.state.span<double>().end());
  EXPECT_FALSE(donate(Tensor::wrap(foreign.data(), c.state.shape(), DType::F64, nullptr)));
  EXPECT_TRUE(std::equal(foreign.begin(), foreign.end(), before.span<double>().begin()));
}

// With something to record, a donated state stays as it was: its old value may be needed.
inline void expect_no_donation_while_recording(const CarriedCase& c) {
  Context ctx = Context::serial();
  Variables rows, shared(c.shared.begin(), c.shared.end());
  for (const Tensor& t : c.rows) rows.push_back(Variable::leaf(t));
  Tensor given = c.state.clone();
  const void* memory = given.raw();
  const auto [y, next] = c.run(ctx, rows, shared, Variable(std::move(given)), Segments::uniform(1, c.rows[0].size(0)));
  EXPECT_NE(next.value().raw(), memory);
}

}  // namespace stepwell
