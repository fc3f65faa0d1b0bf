// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/ops/selective_scan.h"

#include "tests/ops/rows.h"

// Random selective scans for the tests: inputs in rows with gaps, every gap and every output NaN.
namespace stepwell::ops::testing {

struct ScanOptions {
  std::vector<std::int64_t> lengths{5};
  std::int64_t D = 3, N = 4, G = 1;
  bool z = true, skip = true, bias = true, softplus = true, constant_bc = false;
  Discretisation discretisation = Discretisation::Euler;
  double step = -1;  // mean of the step's pre-activation
  std::uint64_t seed = 1;

  std::string to_string() const {
    std::string text = "T";
    for (auto length : lengths) text += " " + std::to_string(length);
    return text + " D " + std::to_string(D) + " N " + std::to_string(N) + " G " + std::to_string(G) + (z ? " z" : "") +
           (skip ? " skip" : "") + (bias ? " bias" : "") + (softplus ? " softplus" : "") +
           (constant_bc ? " constant" : "") + (discretisation == Discretisation::ZeroOrder ? " zero-order" : "");
  }
};

template <class T>
struct ScanCase {
  ScanOptions options;
  std::vector<std::int64_t> offsets;
  Rows<T> u, dt, A, B, C, z, skip, bias, h0, grad_y, grad_h;

  explicit ScanCase(const ScanOptions& o) : options(o), offsets{0} {
    for (auto length : o.lengths) offsets.push_back(offsets.back() + length);
    const std::int64_t L = tokens(), S = sequences();
    std::mt19937_64 engine(o.seed);
    std::normal_distribution<double> normal_distribution;
    const auto normal = [&](std::int64_t) { return normal_distribution(engine); };
    const auto rows = [&](std::int64_t I, std::int64_t J, std::int64_t K, auto value) {
      Rows<T> r(I, J, K);
      // Through float, so that both types see the same numbers.
      r.fill([&](std::int64_t i) { return static_cast<float>(value(i)); });
      return r;
    };
    u = rows(L, o.D, 1, normal);
    dt = rows(L, o.D, 1, [&](std::int64_t i) {
      const double raw = o.step + normal(i);
      return o.softplus ? raw : 0.3 * std::abs(raw);
    });
    A = rows(o.D, o.N, 1, [&](std::int64_t i) { return -static_cast<double>(i % o.N + 1) * (1 + 0.1 * normal(i)); });
    const bool c = o.constant_bc;
    B = rows(c ? o.D : L, c ? 1 : o.G, o.N, normal);
    C = rows(c ? o.D : L, c ? 1 : o.G, o.N, normal);
    if (o.z) z = rows(L, o.D, 1, normal);
    if (o.skip) skip = rows(1, o.D, 1, normal);
    if (o.bias) bias = rows(1, o.D, 1, [](std::int64_t) { return 0.7; });
    h0 = rows(S, o.N, o.D, normal);
    grad_y = rows(L, o.D, 1, normal);
    grad_h = rows(S, o.N, o.D, normal);
  }
  template <class U>
  explicit ScanCase(const ScanCase<U>& other)
      : options(other.options),
        offsets(other.offsets),
        u(other.u.template as<T>()),
        dt(other.dt.template as<T>()),
        A(other.A.template as<T>()),
        B(other.B.template as<T>()),
        C(other.C.template as<T>()),
        z(other.z.template as<T>()),
        skip(other.skip.template as<T>()),
        bias(other.bias.template as<T>()),
        h0(other.h0.template as<T>()),
        grad_y(other.grad_y.template as<T>()),
        grad_h(other.grad_h.template as<T>()) {}

  // Tokens first … last−1 of the first sequence.
  ScanCase rows(std::int64_t first, std::int64_t last) const {
    ScanCase part = *this;
    part.options.lengths = {last - first};
    part.offsets = {0, last - first};
    for (auto member : {&ScanCase::u, &ScanCase::dt, &ScanCase::z, &ScanCase::grad_y}) {
      part.*member = (this->*member).rows(first, last);
    }
    if (!options.constant_bc) {
      part.B = B.rows(first, last);
      part.C = C.rows(first, last);
    }
    return part;
  }

  std::int64_t tokens() const { return offsets.back(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  Segments segments() const { return Segments::from_offsets(offsets, tokens()); }
  SelectiveScanInputs<T> inputs() {
    SelectiveScanInputs<T> in;
    in.u = u.view2();
    in.dt = dt.view2();
    in.A = A.view2();
    in.B = B.view3();
    in.C = C.view3();
    if (z) in.z = z.view2();
    in.D = skip ? skip.data() : nullptr;
    in.dt_bias = bias ? bias.data() : nullptr;
    in.softplus = options.softplus;
    in.constant_bc = options.constant_bc;
    in.discretisation = options.discretisation;
    return in;
  }
};

template <class T>
struct ScanOutputs {
  Rows<T> y, h, h_all;
};

// Runs `scan(in, segments, h, y, h_all)` from the case's initial state.
template <class T, class Scan>
ScanOutputs<T> run_scan(ScanCase<T>& c, Scan scan) {
  ScanOutputs<T> out{Rows<T>(c.tokens(), c.options.D), c.h0, Rows<T>(c.tokens(), c.options.N, c.options.D)};
  scan(c.inputs(), c.segments(), out.h.view3(), out.y.view2(), out.h_all.view3());
  return out;
}

template <class T>
struct ScanGradients {
  Rows<T> u, dt, A, B, C, z, D, dt_bias, h;

  SelectiveScanGradients<T> views() {
    SelectiveScanGradients<T> g;
    g.u = u.view2();
    g.dt = dt.view2();
    g.A = A.view2();
    g.B = B.view3();
    g.C = C.view3();
    if (z) g.z = z.view2();
    if (D) g.D = D.data();
    if (dt_bias) g.dt_bias = dt_bias.data();
    g.h = h.view3();
    return g;
  }
  // name → values
  std::vector<std::pair<std::string, const Rows<T>*>> all() const {
    return {{"u", &u}, {"dt", &dt},           {"A", &A}, {"B", &B}, {"C", &C}, {"z", &z},
            {"D", &D}, {"dt_bias", &dt_bias}, {"h", &h}};
  }
};

// Runs `backward(in, segments, h0, grad_y, grad_h, gradients)` on the case.
template <class T, class Backward>
ScanGradients<T> run_backward(ScanCase<T>& c, Backward backward) {
  const ScanOptions& o = c.options;
  const std::int64_t L = c.tokens(), S = c.sequences(), bc = o.constant_bc ? o.D : L, G = o.constant_bc ? 1 : o.G;
  ScanGradients<T> g{
      Rows<T>(L, o.D),     Rows<T>(L, o.D), Rows<T>(o.D, o.N), Rows<T>(bc, G, o.N), Rows<T>(bc, G, o.N), {}, {}, {},
      Rows<T>(S, o.N, o.D)};
  if (o.z) g.z = Rows<T>(L, o.D);
  if (o.skip) g.D = Rows<T>(1, o.D);
  if (o.bias) g.dt_bias = Rows<T>(1, o.D);
  backward(c.inputs(), c.segments(), c.h0.view3(), c.grad_y.view2(), c.grad_h.view3(), g.views());
  return g;
}

}  // namespace stepwell::ops::testing
