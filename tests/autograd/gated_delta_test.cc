// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "tests/autograd/carried_state.h"

namespace stepwell {
namespace {

// The arguments of `v`: q, k, v, then the gates that are there.
GatedDeltaArguments arguments(const Variables& v, bool g, bool b, bool w) {
  GatedDeltaArguments in;
  std::size_t next = 0;
  in.q = v[next++];
  in.k = v[next++];
  in.v = v[next++];
  if (g) in.g = v[next++];
  if (b) in.b = v[next++];
  if (w) in.w = v[next++];
  in.scale = 0.7;
  return in;
}

Variables both(std::pair<Variable, Variable> result) { return {std::move(result.first), std::move(result.second)}; }

// Inputs for L tokens, H key heads of K, HV value heads of V; gates as wide as asked.
std::vector<GradcheckInput> inputs(std::int64_t L, std::int64_t H, std::int64_t K, std::int64_t HV, std::int64_t V,
                                   const Shape& g, const Shape& b, const Shape& w) {
  std::vector<GradcheckInput> all = {
      {"q", random_tensor({L, H, K}, 1)}, {"k", random_tensor({L, H, K}, 2)}, {"v", random_tensor({L, HV, V}, 3)}};
  if (g.rank()) all.push_back({"g", random_tensor(g, 4, -2, -0.1)});
  if (b.rank()) all.push_back({"b", random_tensor(b, 5, 0, 1)});
  if (w.rank()) all.push_back({"w", random_tensor(w, 6, 0, 1)});
  return all;
}

TEST(GatedDelta, HasTheGradientsOfItsDefinition) {
  const std::vector<std::vector<std::int64_t>> layouts = {{0, 5}, {0, 2, 5}, {0, 0, 1, 1, 5, 5}, {0, 0}, {0}};
  for (const auto& offsets : layouts) {
    for (const auto& [H, K, HV, V] : {std::array<std::int64_t, 4>{1, 1, 1, 1}, {2, 3, 2, 2}, {1, 2, 3, 5}}) {
      const std::int64_t L = offsets.back(), S = static_cast<std::int64_t>(offsets.size()) - 1;
      const Tensor state = random_tensor({S, HV, 1, K, 16}, 7);
      const std::vector<std::array<Shape, 3>> gates = {{Shape{L, H, K}, Shape{L, H, K}, Shape{L, HV, V}},
                                                       {Shape{L, HV, K}, Shape{L, HV, 1}, Shape{L, HV, 1}},
                                                       {Shape{L, HV, 1}, Shape{L, HV, 1}, Shape{L, HV, 1}},
                                                       {Shape{}, Shape{L, H, 1}, Shape{}},
                                                       {Shape{L, H, 1}, Shape{}, Shape{}}};
      for (const auto& [g, b, w] : gates) {
        auto all = inputs(L, H, K, HV, V, g, b, w);
        all.push_back({"state", state});
        expect_gradients(
            [&](Context& ctx, const Variables& v) {
              return both(gated_delta(ctx, arguments(v, g.rank(), b.rank(), w.rank()), v.back(),
                                      Segments::from_offsets(offsets, L)));
            },
            all, 0);
      }
    }
  }
}

// The decay gates and the norm inside, and the same tensor in several places.
TEST(GatedDelta, HasTheGradientsOfItsGates) {
  for (const ops::DecayGate gate : {ops::DecayGate::Softplus, ops::DecayGate::Bounded}) {
    auto all = inputs(5, 2, 3, 4, 2, {5, 2, 3}, {5, 2, 1}, {});
    all.push_back({"A_log", random_tensor({2}, 8)});
    all.push_back({"dt_bias", random_tensor({6}, 9)});
    expect_gradients(
        [&](Context& ctx, const Variables& v) {
          GatedDeltaArguments in = arguments(v, true, true, false);
          in.gate = gate;
          in.A_log = v[5];
          in.dt_bias = v[6];
          in.l2norm = true;
          return both(gated_delta(ctx, in, {}, Segments::uniform(1, 5)));
        },
        all);
  }
  expect_gradients(
      [](Context& ctx, const Variables& v) {
        GatedDeltaArguments in = arguments({v[0], v[0], v[0]}, false, false, false);
        in.b = in.w = sigmoid(ctx, v[1]);
        return Variables{gated_delta(ctx, in, {}, Segments::uniform(2, 2)).first,
                         gated_delta(ctx, in, {}, Segments::uniform(1, 4)).second};
      },
      {{"x", random_tensor({4, 2, 3}, 1)}, {"beta", random_tensor({4, 2, 1}, 2)}});
}

// Forms differ by rounding, and the form does not change the gradient.
TEST(GatedDelta, FormsAgree) {
  Context ctx = Context::serial(Mode::Fast);
  const auto run = [&](ops::Form form, std::int64_t chunk) {
    Variables leaves;
    for (const GradcheckInput& input : inputs(70, 2, 5, 2, 18, {70, 2, 5}, {70, 2, 5}, {70, 2, 18})) {
      leaves.push_back(Variable::leaf(input.value));
    }
    GatedDeltaArguments in = arguments(leaves, true, true, true);
    in.form = form;
    in.chunk = chunk;
    in.l2norm = true;
    const Variables outputs = both(gated_delta(ctx, in, {}, Segments::uniform(1, 70)));
    const std::array<Tensor, 2> cotangents = {random_tensor(outputs[0].shape(), 60),
                                              random_tensor(outputs[1].shape(), 61)};
    const Gradients g = backward(ctx, outputs, cotangents);
    std::vector<Tensor> results = {outputs[0].value(), outputs[1].value()};
    for (const Variable& leaf : leaves) results.push_back(g.of(leaf));
    return results;
  };
  const auto expected = run(ops::Form::Recurrent, 0);
  for (const std::int64_t chunk : {0, 1, 7, 64, 100}) {
    const auto got = run(ops::Form::Chunked, chunk);
    for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], expected[i]);
  }
}

CarriedCase carried_case() {
  std::vector<Tensor> rows;
  for (const GradcheckInput& input : inputs(11, 1, 3, 2, 4, {11, 1, 3}, {11, 1, 3}, {11, 2, 4})) {
    rows.push_back(input.value);
  }
  return {
      .rows = rows,
      .shared = {random_tensor({1}, 8), random_tensor({3}, 9)},
      .state = random_tensor({1, 2, 1, 3, 16}, 7),
      .run = [](Context& ctx, const Variables& v, const Variables& shared, Variable state, const Segments& segments) {
        GatedDeltaArguments in = arguments(v, true, true, true);
        in.gate = ops::DecayGate::Softplus;
        in.A_log = shared[0];
        in.dt_bias = shared[1];
        return gated_delta(ctx, in, std::move(state), segments);
      }};
}

TEST(GatedDelta, SegmentsWithACarriedStateEqualOneRun) {
  expect_parts_equal_whole(carried_case(), {{5, 6}, {1, 10}, {10, 1}, {0, 11}, {2, 1, 0, 3, 5}});
}

TEST(GatedDelta, SkipsOnlyWhatIsNotWanted) { expect_gradients_of_single_inputs(carried_case()); }

TEST(GatedDelta, UpdatesADonatedStateInPlace) {
  expect_state_donation(carried_case());
  expect_no_donation_while_recording(carried_case());
}

TEST(GatedDelta, SameBitsForEveryNumberOfThreads) {
  expect_same_bits(
      [](Context& ctx, const Variables& v) {
        return both(gated_delta(ctx, arguments(v, true, true, true), v.back(), Segments::uniform(2, 60)));
      },
      {random_tensor({120, 3, 7}, 1, -0.3, 0.3), random_tensor({120, 3, 7}, 2, -0.3, 0.3),
       random_tensor({120, 3, 19}, 3), random_tensor({120, 3, 7}, 4, -1, 0), random_tensor({120, 3, 7}, 5, 0, 1),
       random_tensor({120, 3, 19}, 6, 0, 1), random_tensor({2, 3, 2, 7, 16}, 7)});
}

TEST(PackState, GoesThereAndBack) {
  Context ctx = Context::serial();
  for (const std::int64_t V : {1, 15, 16, 17, 33}) {
    const Tensor state = random_tensor({2, 3, 4, V}, 1);
    const Variable packed = pack_state(ctx, state);
    EXPECT_EQ(packed.shape(), Shape({2, 3, ops::state_units(V), 4, 16}));
    EXPECT_TRUE(unpack_state(ctx, packed, V).value().same_bits(state));
    expect_gradients([](Context& c, const Variables& v) { return Variables{pack_state(c, v[0])}; }, {{"state", state}});
    expect_gradients([V](Context& c, const Variables& v) { return Variables{unpack_state(c, v[0], V)}; },
                     {{"packed", random_tensor(packed.shape(), 2)}});
  }
}

TEST(GatedDelta, NamesWhatIsWrong) {
  Context ctx = Context::serial();
  const Segments one = Segments::uniform(1, 4);
  GatedDeltaArguments in;
  in.q = in.k = Tensor::zeros({4, 2, 3});
  in.v = Tensor::zeros({4, 4, 5});
  const auto error = [&](auto change) {
    GatedDeltaArguments other = in;
    change(other);
    return error_of([&] { gated_delta(ctx, other, {}, one); });
  };
  EXPECT_EQ(error([](auto&) {}), "");
  EXPECT_EQ(error([](auto& a) { a.v = Tensor::zeros({4, 3, 5}); }),
            "[gated_delta] 3 value heads for 2 key heads, expected a multiple");
  EXPECT_EQ(error([](auto& a) { a.w = Tensor::zeros({4, 2, 1}); }),
            "[gated_delta] w is [4, 2, 1] for q [4, 2, 3] and v [4, 4, 5]; expected [L, HV, 1 or V]");
  EXPECT_EQ(error([](auto& a) { a.A_log = Tensor::zeros({2}); }),
            "[gated_delta] A_log or dt_bias with g given as log decay; expected them with a softplus or bounded gate "
            "only");
  EXPECT_EQ(error([](auto& a) { a.chunk = -1; }),
            "[gated_delta] chunk = -1, expected at least 1, or 0 for what is fastest");
  EXPECT_EQ(error_of([&] { gated_delta(ctx, in, Tensor::zeros({1, 4, 3, 5}), one); }),
            "[gated_delta] state is [1, 4, 3, 5], expected [1, 4, 1, 3, 16]");
  EXPECT_EQ(error_of([&] { unpack_state(ctx, Tensor::zeros({1, 2, 1, 3, 16}), 17); }),
            "[unpack_state] a state [1, 2, 1, 3, 16] of 17 value columns, expected [S, HV, ⌈V/16⌉, K, 16]");
}

}  // namespace
}  // namespace stepwell
