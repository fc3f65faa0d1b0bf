// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/ops/gated_delta.h"

#include "tests/ops/rows.h"

// Random gated delta rules for the tests: inputs in rows with gaps, every gap and every output NaN.
namespace stepwell::ops::testing {

// A gate is absent, one number per head or one per channel; of key heads or of value heads.
enum class GateOf { None, Head, Channel, ValueHead, ValueChannel };

// How log decays are drawn; the first six are the mixes that forms are compared on.
enum class DecayMix { Mild, Wide, Bursts30, Bursts90, Strong, Resets, Zero };
inline constexpr DecayMix kDecayMixes[] = {DecayMix::Mild,     DecayMix::Wide,   DecayMix::Bursts30,
                                           DecayMix::Bursts90, DecayMix::Strong, DecayMix::Resets};

struct DeltaOptions {
  std::vector<std::int64_t> lengths{5};
  std::int64_t H = 1, G = 1, K = 4, V = 3;                                    // G value heads per key head
  GateOf g = GateOf::Channel, b = GateOf::Channel, w = GateOf::ValueChannel;  // w: None, ValueHead or ValueChannel
  DecayMix mix = DecayMix::Wide;                                              // of DecayGate::Given
  DecayGate gate = DecayGate::Given;
  bool l2norm = false;
  bool unit_keys = true;  // keys and queries of length 1 before l2norm, so that states stay bounded
  std::uint64_t seed = 1;

  std::int64_t HV() const { return H * G; }
  std::string to_string() const {
    std::string text = "T";
    for (auto length : lengths) text += " " + std::to_string(length);
    const auto number = [](auto value) { return std::to_string(static_cast<int>(value)); };
    return text + " H " + std::to_string(H) + " G " + std::to_string(G) + " K " + std::to_string(K) + " V " +
           std::to_string(V) + " gates " + number(g) + number(b) + number(w) + " mix " + number(mix) + " gate " +
           number(gate) + (l2norm ? " l2norm" : "") + " seed " + std::to_string(seed);
  }
};

template <class T>
struct DeltaCase {
  DeltaOptions options;
  std::vector<std::int64_t> offsets;
  // A state is a row [units·K·16] per sequence and value head; its columns beyond V are as random as the others.
  Rows<T> q, k, v, g, b, w, A_log, dt_bias, state, grad_o, grad_state;

  explicit DeltaCase(const DeltaOptions& o) : options(o), offsets{0} {
    for (auto length : o.lengths) offsets.push_back(offsets.back() + length);
    const std::int64_t L = tokens();
    std::mt19937_64 engine(o.seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0, 1);
    const auto rows = [&](std::int64_t I, std::int64_t J, std::int64_t C, auto value) {
      Rows<T> r(I, J, C);
      // Through float, so that both types see the same numbers.
      r.fill([&](std::int64_t) { return static_cast<float>(value()); });
      return r;
    };
    const auto gate_rows = [&](GateOf of, std::int64_t channels, auto value) {
      if (of == GateOf::None) return Rows<T>();
      const bool wide = of == GateOf::Channel || of == GateOf::ValueChannel;
      return rows(L, heads(of), wide ? channels : 1, value);
    };
    const double length = o.unit_keys ? 1 / std::sqrt(static_cast<double>(o.K)) : 1;
    q = rows(L, o.H, o.K, [&] { return normal(engine); });
    k = rows(L, o.H, o.K, [&] { return length * normal(engine); });
    v = rows(L, o.HV(), o.V, [&] { return normal(engine); });
    g = gate_rows(o.g, o.K, [&] { return o.gate == DecayGate::Given ? log_decay(engine) : normal(engine); });
    b = gate_rows(o.b, o.K, [&] { return uniform(engine); });
    w = gate_rows(o.w, o.V, [&] { return uniform(engine); });
    if (o.gate != DecayGate::Given && o.g != GateOf::None) {
      const bool wide = o.g == GateOf::Channel || o.g == GateOf::ValueChannel;
      A_log = rows(1, heads(o.g), 1, [&] { return 0.5 * normal(engine); });
      dt_bias = rows(1, heads(o.g), wide ? o.K : 1, [&] { return normal(engine) - 1; });
    }
    const std::int64_t size = state_units(o.V) * o.K * kStateUnit;
    state = rows(sequences() * o.HV(), size, 1, [&] { return normal(engine); });
    grad_o = rows(L, o.HV(), o.V, [&] { return normal(engine); });
    grad_state = rows(sequences() * o.HV(), size, 1, [&] { return normal(engine); });
  }
  template <class U>
  explicit DeltaCase(const DeltaCase<U>& other)
      : options(other.options),
        offsets(other.offsets),
        q(other.q.template as<T>()),
        k(other.k.template as<T>()),
        v(other.v.template as<T>()),
        g(other.g.template as<T>()),
        b(other.b.template as<T>()),
        w(other.w.template as<T>()),
        A_log(other.A_log.template as<T>()),
        dt_bias(other.dt_bias.template as<T>()),
        state(other.state.template as<T>()),
        grad_o(other.grad_o.template as<T>()),
        grad_state(other.grad_state.template as<T>()) {}

  // Tokens first … last−1 of the first sequence.
  DeltaCase rows(std::int64_t first, std::int64_t last) const {
    DeltaCase part = *this;
    part.options.lengths = {last - first};
    part.offsets = {0, last - first};
    for (auto member : {&DeltaCase::q, &DeltaCase::k, &DeltaCase::v, &DeltaCase::g, &DeltaCase::b, &DeltaCase::w,
                        &DeltaCase::grad_o}) {
      part.*member = (this->*member).rows(first, last);
    }
    return part;
  }

  std::int64_t tokens() const { return offsets.back(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  Segments segments() const { return Segments::from_offsets(offsets, tokens()); }
  View<T, 4> states(Rows<T>& rows) const {
    const std::int64_t units = state_units(options.V), unit = options.K * kStateUnit;
    const View<T, 2> flat = rows.view2();
    return {flat.data, {flat.extent[0], units, options.K, kStateUnit}, {flat.stride[0], unit, kStateUnit, 1}};
  }
  GatedDeltaInputs<T> inputs() {
    const auto view = [](Rows<T>& rows) { return rows ? View<const T, 3>(rows.view3()) : View<const T, 3>{}; };
    GatedDeltaInputs<T> in;
    in.q = view(q);
    in.k = view(k);
    in.v = view(v);
    in.g = view(g);
    in.b = view(b);
    in.w = view(w);
    in.scale = static_cast<T>(1 / std::sqrt(static_cast<double>(options.K)));
    in.l2norm = options.l2norm;
    in.gate = options.gate;
    in.A_log = A_log ? A_log.data() : nullptr;
    in.dt_bias = dt_bias ? dt_bias.data() : nullptr;
    return in;
  }

 private:
  std::int64_t heads(GateOf of) const {
    return of == GateOf::ValueHead || of == GateOf::ValueChannel ? options.HV() : options.H;
  }
  double log_decay(std::mt19937_64& engine) const {
    const double u = std::uniform_real_distribution<double>(0, 1)(engine);
    const auto between = [&](double low, double high) {
      return low + (high - low) * std::uniform_real_distribution<double>(0, 1)(engine);
    };
    switch (options.mix) {
      case DecayMix::Mild: return between(-0.1, -0.001);
      case DecayMix::Wide: return between(-5, -0.01);
      case DecayMix::Bursts30: return u < 0.3 ? -30 : between(-0.05, -0.001);
      case DecayMix::Bursts90: return u < 0.5 ? -90 : between(-0.02, -0.0005);
      case DecayMix::Strong: return options.seed % 2 ? -6.5 : -20;
      case DecayMix::Resets: return u < 0.1 ? -std::numeric_limits<double>::infinity() : between(-0.1, -0.001);
      case DecayMix::Zero: return 0;
    }
    return 0;
  }
};

template <class T>
struct DeltaOutputs {
  Rows<T> o, state;
};

// Runs `rule(in, segments, state, o)` from the case's initial state.
template <class T, class Rule>
DeltaOutputs<T> run_delta(DeltaCase<T>& c, Rule rule) {
  DeltaOutputs<T> out{Rows<T>(c.tokens(), c.options.HV(), c.options.V), c.state};
  rule(c.inputs(), c.segments(), c.states(out.state), out.o.view3());
  return out;
}

template <class T>
struct DeltaGradients {
  Rows<T> q, k, v, g, b, w, A_log, dt_bias, state;

  // name → values
  std::vector<std::pair<std::string, const Rows<T>*>> all() const {
    return {{"q", &q},        {"k", &k}, {"v", &v},         {"g", &g},
            {"b", &b},        {"w", &w}, {"A_log", &A_log}, {"dt_bias", &dt_bias},
            {"state", &state}};
  }
};

// Runs `backward(in, segments, state, grad_o, grad_state, gradients)` on the case.
template <class T, class Backward>
DeltaGradients<T> run_delta_backward(DeltaCase<T>& c, Backward backward) {
  const auto like = [](const Rows<T>& rows) {
    Rows<T> other = rows;
    other.fill([](std::int64_t) { return std::numeric_limits<T>::quiet_NaN(); });
    return other;
  };
  DeltaGradients<T> g{like(c.q), like(c.k),     like(c.v),       like(c.g),    like(c.b),
                      like(c.w), like(c.A_log), like(c.dt_bias), like(c.state)};
  const auto view = [](Rows<T>& rows) { return rows ? rows.view3() : View<T, 3>{}; };
  GatedDeltaGradients<T> out;
  out.q = view(g.q);
  out.k = view(g.k);
  out.v = view(g.v);
  out.g = view(g.g);
  out.b = view(g.b);
  out.w = view(g.w);
  out.A_log = g.A_log ? g.A_log.data() : nullptr;
  out.dt_bias = g.dt_bias ? g.dt_bias.data() : nullptr;
  out.state = c.states(g.state);
  backward(c.inputs(), c.segments(), c.states(c.state), c.grad_o.view3(), c.states(c.grad_state), out);
  return g;
}

}  // namespace stepwell::ops::testing
