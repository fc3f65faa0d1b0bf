// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/verify_gated_delta.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/gated_delta/reference.h"

namespace stepwell::ops {

double FormDifference::relative() const { return largest == 0 ? 0 : largest / scale; }

namespace {

// A copy of a view in another type, without gaps.
template <class T, int R>
class Copy {
 public:
  template <class U>
  explicit Copy(const View<U, R>& view) : values_(view ? static_cast<std::size_t>(view.size()) : 0) {
    if (!view) return;
    view_ = View<T, R>::contiguous(values_.data(), view.extent);
    for (std::int64_t i = 0; i < view.size(); ++i) {
      std::int64_t left = i, offset = 0;
      for (int d = R - 1; d >= 0; --d) {
        offset += left % view.extent[d] * view.stride[d];
        left /= view.extent[d];
      }
      values_[static_cast<std::size_t>(i)] = static_cast<T>(view.data[offset]);
    }
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  View<T, R> view() const { return view_; }

 private:
  std::vector<T> values_;
  View<T, R> view_;
};

std::vector<double> wide(const auto* values, std::int64_t n) {
  return values ? std::vector<double>(values, values + n) : std::vector<double>();
}

// What the reference gives.
struct Expected {
  std::vector<double> o, state;
};

template <class T>
Expected reference_outputs(const GatedDeltaInputs<T>& in, const Segments& segments, View<const T, 4> state,
                           const std::array<std::int64_t, 4>& state_extent) {
  const Copy<double, 3> q(in.q), k(in.k), v(in.v), g(in.g), b(in.b), w(in.w);
  const std::int64_t heads = in.g ? in.g.extent[1] : 0, channels = in.g ? in.g.extent[2] : 0;
  const std::vector<double> A_log = wide(in.A_log, heads), dt_bias = wide(in.dt_bias, heads * channels);
  GatedDeltaInputs<double> x;
  x.q = q.view();
  x.k = k.view();
  x.v = v.view();
  x.g = g.view();
  x.b = b.view();
  x.w = w.view();
  x.scale = in.scale;
  x.l2norm = in.l2norm;
  x.gate = in.gate;
  x.A_log = in.A_log ? A_log.data() : nullptr;
  x.dt_bias = in.dt_bias ? dt_bias.data() : nullptr;
  x.lower_bound = in.lower_bound;
  Expected out;
  out.o.resize(static_cast<std::size_t>(in.v.size()));
  const Copy<double, 4> start(state);
  const View<double, 4> last = View<double, 4>::contiguous(nullptr, state_extent);
  out.state.resize(static_cast<std::size_t>(last.size()));
  if (state) std::copy_n(start.view().data, last.size(), out.state.data());
  reference::gated_delta(x, segments, View<double, 4>::contiguous(out.state.data(), state_extent),
                         View<double, 3>::contiguous(out.o.data(), in.v.extent));
  return out;
}

// Takes value `got` at `index` into the difference.
void compare(double got, double expected, const std::array<std::int64_t, 4>& index, FormDifference& difference) {
  if (std::isfinite(expected)) difference.scale = std::max(difference.scale, std::abs(expected));
  if (!std::isfinite(expected) || got == expected) return;
  const double error = std::isfinite(got) ? std::abs(got - expected) : std::numeric_limits<double>::infinity();
  if (error <= difference.largest) return;
  difference.largest = error;
  difference.worst = index;
  difference.got = got;
  difference.expected = expected;
}

}  // namespace

template <class T>
std::vector<FormDifference> verify_gated_delta(Context& ctx, const GatedDeltaInputs<T>& in, const Segments& segments,
                                               View<const T, 4> state, std::int64_t chunk) {
  const std::int64_t HV = in.v.extent[1], V = in.v.extent[2], K = in.q.extent[2];
  const std::array<std::int64_t, 4> extent = {segments.count() * HV, state_units(V), K, kStateUnit};
  const Expected expected = reference_outputs(in, segments, state, extent);
  std::vector<FormDifference> differences;
  const auto measure = [&](const std::string& name, const GatedDeltaOptions<T>& options) {
    std::vector<T> o(expected.o.size(), std::numeric_limits<T>::quiet_NaN());
    std::vector<T> last(expected.state.size());
    if (state) {
      const Copy<T, 4> start(state);
      std::copy_n(start.view().data, last.size(), last.data());
    }
    gated_delta(ctx, in, segments, View<T, 4>::contiguous(last.data(), extent),
                View<T, 3>::contiguous(o.data(), in.v.extent), options);
    FormDifference of_o{name, "o"}, of_state{name, "final_state"};
    for (std::size_t i = 0; i < o.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      compare(o[i], expected.o[i], {at / V / HV, at / V % HV, at % V, 0}, of_o);
    }
    for (std::size_t i = 0; i < last.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t row = at / (extent[1] * K * kStateUnit);
      const std::int64_t column = at / (K * kStateUnit) % extent[1] * kStateUnit + at % kStateUnit;
      if (column < V) {
        compare(last[i], expected.state[i], {row / HV, row % HV, at / kStateUnit % K, column}, of_state);
      }
    }
    differences.push_back(of_o);
    differences.push_back(of_state);
  };
  measure("recurrent", {.form = Form::Recurrent});
  measure("chunked " + std::to_string(chunk), {.form = Form::Chunked, .chunk = chunk});
  return differences;
}

template std::vector<FormDifference> verify_gated_delta(Context&, const GatedDeltaInputs<float>&, const Segments&,
                                                        View<const float, 4>, std::int64_t);
template std::vector<FormDifference> verify_gated_delta(Context&, const GatedDeltaInputs<double>&, const Segments&,
                                                        View<const double, 4>, std::int64_t);

}  // namespace stepwell::ops
