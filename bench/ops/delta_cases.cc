// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "stepwell/ops/gated_delta.h"

#include "bench/measure/limits_simd.h"
#include "bench/ops/cases.h"

namespace stepwell::bench {

namespace {

struct Shape {
  const char* name;
  std::int64_t H, HV, K, V;
};
constexpr Shape kLarge{"H8 128x128", 8, 8, 128, 128}, kSmall{"H4 64x64", 4, 4, 64, 64};
constexpr Shape kState{"H24 P64 N128", 1, 24, 128, 64};  // Mamba-2: all heads share one key

// A member of the family: the last extents of its gates (0: absent, 1: per head, 2: per channel), whether decay and
// erase are of value heads, and the vector operations its forms need for a state vector and token.
struct Member {
  const char* name;
  int g, b, w;
  bool of_values;
  ops::Form form;
  double forward_slots, training_slots;
};
constexpr Member kGdn2{"GDN-2", 2, 2, 2, false, ops::Form::Recurrent, 4, 12};
constexpr Member kKda{"KDA", 2, 1, 1, true, ops::Form::Recurrent, 4, 12};
constexpr Member kGdn{"Gated DeltaNet", 1, 1, 1, true, ops::Form::Recurrent, 4, 12};
constexpr Member kDeltaNet{"DeltaNet", 0, 1, 1, true, ops::Form::Recurrent, 4, 12};
constexpr Member kGla{"GLA", 2, 0, 0, false, ops::Form::Recurrent, 3, 8};
constexpr Member kRetention{"retention", 1, 0, 0, true, ops::Form::Recurrent, 3, 8};
constexpr Member kSsd{"SSD", 1, 0, 0, true, ops::Form::Chunked, 2.25, 7.25};

// One sequence of `time` tokens, with gradients.
struct Delta {
  Delta(const Member& member, const Shape& shape, std::int64_t time)
      : segments(Segments::uniform(1, time)),
        q(spread({time, shape.H, shape.K}, -1, 1)),
        k(spread({time, shape.H, shape.K}, -key_length(shape), key_length(shape))),
        v(spread({time, shape.HV, shape.V}, -1, 1)),
        state(Tensor::zeros({shape.HV, ops::state_units(shape.V), shape.K, ops::kStateUnit})),
        checkpoints(Tensor::zeros(
            {ops::checkpoint_rows(segments, shape.HV), ops::state_units(shape.V), shape.K, ops::kStateUnit})),
        o(Tensor::zeros(v.shape())),
        grad_o(spread(v.shape(), -1, 1)) {
    const std::int64_t heads = member.of_values ? shape.HV : shape.H;
    const auto gate = [&](int kind, std::int64_t of, std::int64_t channels, float low, float high) {
      return kind ? spread({time, of, kind == 1 ? 1 : channels}, low, high) : Tensor();
    };
    g = gate(member.g, heads, shape.K, -0.2F, -0.001F);
    b = gate(member.b, heads, shape.K, 0, 1);
    w = gate(member.w, shape.HV, shape.V, 0, 1);
    const auto view = [](const Tensor& t) { return t.defined() ? t.view<const float, 3>() : View<const float, 3>{}; };
    in.q = view(q);
    in.k = view(k);
    in.v = view(v);
    in.g = view(g);
    in.b = view(b);
    in.w = view(w);
    in.scale = 1 / std::sqrt(static_cast<float>(shape.K));
    options.form = member.form;
    for (auto [gradient, input, out_view] : {std::tuple{&grad_q, &q, &out.q},
                                             {&grad_k, &k, &out.k},
                                             {&grad_v, &v, &out.v},
                                             {&grad_g, &g, &out.g},
                                             {&grad_b, &b, &out.b},
                                             {&grad_w, &w, &out.w}}) {
      if (!input->defined()) continue;
      *gradient = Tensor::zeros(input->shape());
      *out_view = gradient->view<float, 3>();
    }
  }
  // Keys of about length 1.
  static float key_length(const Shape& shape) { return std::sqrt(3 / static_cast<float>(shape.K)); }

  void forward(Context& ctx) {
    ops::gated_delta<float>(ctx, in, segments, state.view<float, 4>(), o.view<float, 3>(), options);
  }
  void training(Context& ctx) {
    state.fill(0);
    options.checkpoints = checkpoints.view<float, 4>();
    forward(ctx);
    ops::gated_delta_backward<float>(ctx, in, segments, {}, checkpoints.view<const float, 4>(),
                                     grad_o.view<const float, 3>(), {}, out);
  }

  Segments segments;
  Tensor q, k, v, g, b, w, state, checkpoints, o, grad_o;
  Tensor grad_q, grad_k, grad_v, grad_g, grad_b, grad_w;
  ops::GatedDeltaInputs<float> in;
  ops::GatedDeltaOptions<float> options;
  ops::GatedDeltaGradients<float> out;
};

Workload delta_workload(const Shape& shape, std::int64_t time, double slots) {
  Workload work;
  work.unit = "tok/s";
  work.units = static_cast<double>(time);
  work.cost = work.units * static_cast<double>(shape.HV * shape.K * shape.V) / lanes_f32() * slots;
  return work;
}

Workload delta_forward(const Member& member, const Shape& shape, std::int64_t time) {
  Workload work = delta_workload(shape, time, member.forward_slots);
  work.run = [delta = std::make_shared<Delta>(member, shape, time)](Context& ctx) { delta->forward(ctx); };
  return work;
}
Workload delta_training(const Member& member, const Shape& shape, std::int64_t time) {
  Workload work = delta_workload(shape, time, member.training_slots);
  work.run = [delta = std::make_shared<Delta>(member, shape, time)](Context& ctx) { delta->training(ctx); };
  return work;
}

// The member's own instance beside the general one: the same with every gate spelled out per channel.
Workload delta_ladder(const Member& member, const Shape& shape, std::int64_t time) {
  constexpr Member kGeneral{"general", 2, 2, 2, true, ops::Form::Recurrent, 4, 12};
  Workload work = delta_forward(member, shape, time);
  work.bound = Bound::Yardstick;
  work.yardstick_name = "general";
  work.yardstick = [delta = std::make_shared<Delta>(kGeneral, shape, time)](Context& ctx) { delta->forward(ctx); };
  return work;
}

}  // namespace

std::vector<Case> delta_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Member& member, const Shape& shape, std::int64_t time) {
    const std::string text = std::string(member.name) + " " + shape.name + " T" + std::to_string(time);
    cases.push_back({"gated_delta", text + " forward", [=] { return delta_forward(member, shape, time); }});
    if (time == 1) return;
    cases.push_back({"gated_delta", text + " forward+backward", [=] { return delta_training(member, shape, time); }});
  };
  for (const std::int64_t time : {256, 1024, 4096}) {
    add(kGdn2, kLarge, time);
    add(kGdn2, kSmall, time);
    for (const Member* member : {&kKda, &kGdn, &kDeltaNet, &kGla, &kRetention}) add(*member, kLarge, time);
    add(kSsd, kState, time);
  }
  add(kGdn2, kLarge, 1);
  for (const Member* member : {&kKda, &kGdn, &kDeltaNet, &kGla, &kRetention}) {
    const std::string text = std::string(member->name) + " H8 128x128 T1024 ladder";
    cases.push_back({"gated_delta", text, [=] { return delta_ladder(*member, kLarge, 1024); }});
  }
  return cases;
}

}  // namespace stepwell::bench
