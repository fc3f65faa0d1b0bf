// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/norm_simd.cc"
#include "ops/norm/norm_simd.h"

#include <cmath>

#include "hwy/foreach_target.h"

#include "simd/activations-inl.h"
#include "simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stepwell::ops::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;  // NOLINT: the lane interface of this target

using Index = std::int64_t;

// 1/sqrt(mean + eps); 0 where that is a division by zero, so that a group of zeros stays zero.
template <class T>
HWY_INLINE T inverse_root(T mean_square, T eps) {
  const T d = mean_square + eps;
  return d == 0 ? T{0} : T{1} / std::sqrt(d);
}

// The gate's activation and its derivative.
template <GateActivation A, class T>
HWY_INLINE Vec<T> gate_of(Vec<T> z) {
  if constexpr (A == GateActivation::Silu) {
    return silu(z);
  } else {
    return sigmoid(z);
  }
}
template <GateActivation A, class T>
HWY_INLINE Vec<T> gate_derivative(Vec<T> z) {
  if constexpr (A == GateActivation::Silu) {
    return silu_derivative(z);
  } else {
    return sigmoid_derivative(z);
  }
}

// One group of one row: the pointers of `in` are at its first entry.
template <GateActivation A, class T>
HWY_INLINE void rms_norm_group(const RmsNormRows<T>& in, T* y) {
  const Index n = in.group;
  const bool before = in.z && in.gate == GateOrder::Before, after = in.z && !before;
  if (before) {
    for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
      store_part<T>(hn::Mul(load_part(in.x + i, lanes), gate_of<A, T>(load_part(in.z + i, lanes))), y + i, lanes);
    });
  }
  const T* u = before ? y : in.x;
  const Vec<T> inverse = set<T>(inverse_root(dot16(u, u, n) / static_cast<T>(n), in.eps));
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    Vec<T> v = hn::Mul(load_part(u + i, lanes), inverse);
    if (in.weight) v = hn::Mul(v, load_part(in.weight + i, lanes));
    if (after) v = hn::Mul(v, gate_of<A, T>(load_part(in.z + i, lanes)));
    store_part<T>(v, y + i, lanes);
  });
}

template <class T>
RmsNormRows<T> group_of(RmsNormRows<T> in, Index row, Index group) {
  const Index at = group * in.group, offset = row * in.groups * in.group + at;
  in.x += offset;
  if (in.z) in.z += offset;
  if (in.weight) in.weight += at;
  return in;
}

template <GateActivation A, class T>
void rms_norm_rows_with(const RmsNormRows<T>& in, Index rows, T* y) {
  for (Index r = 0; r < rows; ++r) {
    for (Index g = 0; g < in.groups; ++g) rms_norm_group<A>(group_of(in, r, g), y + (r * in.groups + g) * in.group);
  }
}
template <class T>
void rms_norm_rows_t(const RmsNormRows<T>& in, Index rows, T* y) {
  switch (in.activation) {
    case GateActivation::Silu: return rms_norm_rows_with<GateActivation::Silu>(in, rows, y);
    case GateActivation::Sigmoid: return rms_norm_rows_with<GateActivation::Sigmoid>(in, rows, y);
  }
}

// With v = u/rms(u), w the weight: g_v = g_y·w (·a(z) for a gate after), g_u = (g_v − v·mean(g_v·v))/rms(u).
template <GateActivation A, class T>
HWY_INLINE void rms_norm_backward_group(const RmsNormRows<T>& in, const T* grad_y, const RmsNormRowGradients<T>& out) {
  const Index n = in.group;
  const bool before = in.z && in.gate == GateOrder::Before, after = in.z && !before;
  T *normed = out.scratch, *grad_normed = out.scratch + n;
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    Vec<T> u = load_part(in.x + i, lanes);
    if (before) u = hn::Mul(u, gate_of<A, T>(load_part(in.z + i, lanes)));
    store_part<T>(u, normed + i, lanes);
  });
  const Vec<T> inverse = set<T>(inverse_root(dot16(normed, normed, n) / static_cast<T>(n), in.eps));
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    const Vec<T> v = hn::Mul(load_part(normed + i, lanes), inverse);
    const Vec<T> w = in.weight ? load_part(in.weight + i, lanes) : set<T>(1);
    Vec<T> g = load_part(grad_y + i, lanes);
    if (after) {
      const Vec<T> z = load_part(in.z + i, lanes);
      if (out.z) store_part<T>(hn::Mul(hn::Mul(g, hn::Mul(v, w)), gate_derivative<A, T>(z)), out.z + i, lanes);
      g = hn::Mul(g, gate_of<A, T>(z));
    }
    if (out.weight) store_part<T>(fma(g, v, load_part(out.weight + i, lanes)), out.weight + i, lanes);
    store_part<T>(v, normed + i, lanes);
    store_part<T>(hn::Mul(g, w), grad_normed + i, lanes);
  });
  if (!out.x && !(before && out.z)) return;
  const Vec<T> mean = set<T>(dot16(grad_normed, normed, n) / static_cast<T>(n));
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    Vec<T> g = fnma(load_part(normed + i, lanes), mean, load_part(grad_normed + i, lanes));
    g = hn::Mul(g, inverse);
    if (before) {
      const Vec<T> x = load_part(in.x + i, lanes), z = load_part(in.z + i, lanes);
      if (out.z) store_part<T>(hn::Mul(hn::Mul(g, x), gate_derivative<A, T>(z)), out.z + i, lanes);
      g = hn::Mul(g, gate_of<A, T>(z));
    }
    if (out.x) store_part<T>(g, out.x + i, lanes);
  });
}

template <GateActivation A, class T>
void rms_norm_backward_rows_with(const RmsNormRows<T>& in, const T* grad_y, Index rows,
                                 const RmsNormRowGradients<T>& out) {
  for (Index r = 0; r < rows; ++r) {
    for (Index g = 0; g < in.groups; ++g) {
      const Index at = g * in.group, offset = r * in.groups * in.group + at;
      rms_norm_backward_group<A>(group_of(in, r, g), grad_y + offset,
                                 {out.x ? out.x + offset : nullptr, out.z ? out.z + offset : nullptr,
                                  out.weight ? out.weight + at : nullptr, out.scratch});
    }
  }
}
template <class T>
void rms_norm_backward_rows_t(const RmsNormRows<T>& in, const T* grad_y, Index rows,
                              const RmsNormRowGradients<T>& out) {
  using enum GateActivation;
  switch (in.activation) {
    case Silu: return rms_norm_backward_rows_with<Silu>(in, grad_y, rows, out);
    case Sigmoid: return rms_norm_backward_rows_with<Sigmoid>(in, grad_y, rows, out);
  }
}

// 1/Σx; 0 where the sum is.
template <class T>
HWY_INLINE T inverse_sum(const T* x, Index n) {
  const T sum = sum16(x, n);
  return sum == 0 ? T{0} : T{1} / sum;
}

template <class T>
void sum_norm_rows_t(const T* x, Index rows, Index width, T* y) {
  for (Index at = 0; at < rows * width; at += width) {
    const Vec<T> inverse = set<T>(inverse_sum(x + at, width));
    for_vectors<T>(width, [&](Index i, Index lanes) HWY_ATTR {
      store_part<T>(hn::Mul(load_part(x + at + i, lanes), inverse), y + at + i, lanes);
    });
  }
}

// g_x = (g_y − Σ g_y·y)/Σx.
template <class T>
void sum_norm_backward_rows_t(const T* x, const T* grad_y, Index rows, Index width, T* grad_x) {
  for (Index at = 0; at < rows * width; at += width) {
    const T inverse = inverse_sum(x + at, width);
    const Vec<T> along = set<T>(dot16(x + at, grad_y + at, width) * inverse), factor = set<T>(inverse);
    for_vectors<T>(width, [&](Index i, Index lanes) HWY_ATTR {
      store_part<T>(hn::Mul(hn::Sub(load_part(grad_y + at + i, lanes), along), factor), grad_x + at + i, lanes);
    });
  }
}

// centred = x − mean(x); returns 1/sqrt(variance + eps).
template <class T>
HWY_INLINE T centre(const T* x, Index n, T eps, T* centred) {
  const T count = static_cast<T>(n);
  const Vec<T> mean = set<T>(sum16(x, n) / count);
  for_vectors<T>(n, [&](Index i, Index lanes)
                        HWY_ATTR { store_part<T>(hn::Sub(load_part(x + i, lanes), mean), centred + i, lanes); });
  return inverse_root(dot16(centred, centred, n) / count, eps);
}

template <class T>
LayerNormRows<T> group_of(LayerNormRows<T> in, Index row, Index group) {
  const Index at = group * in.group;
  in.x += row * in.groups * in.group + at;
  if (in.weight) in.weight += at;
  if (in.bias) in.bias += at;
  return in;
}

// One group of one row: the pointers of `in` are at its first entry.
template <class T>
HWY_INLINE void layer_norm_group(const LayerNormRows<T>& in, T* y) {
  const Vec<T> inverse = set<T>(centre(in.x, in.group, in.eps, y)), offset = set(in.offset);
  for_vectors<T>(in.group, [&](Index i, Index lanes) HWY_ATTR {
    Vec<T> v = hn::Mul(load_part(y + i, lanes), inverse);
    if (in.weight) v = hn::Mul(v, hn::Add(load_part(in.weight + i, lanes), offset));
    if (in.bias) v = hn::Add(v, load_part(in.bias + i, lanes));
    store_part<T>(v, y + i, lanes);
  });
}

template <class T>
void layer_norm_rows_t(const LayerNormRows<T>& in, Index rows, T* y) {
  for (Index r = 0; r < rows; ++r) {
    for (Index g = 0; g < in.groups; ++g) layer_norm_group(group_of(in, r, g), y + (r * in.groups + g) * in.group);
  }
}

// With v the normalised group: g_v = g_y·w, g_x = (g_v − mean(g_v) − v·mean(g_v·v))/sqrt(variance + eps).
template <class T>
HWY_INLINE void layer_norm_backward_group(const LayerNormRows<T>& in, const T* grad_y,
                                          const LayerNormRowGradients<T>& out) {
  const Index n = in.group;
  const T count = static_cast<T>(n);
  T *normed = out.scratch, *grad_normed = out.scratch + n;
  const Vec<T> inverse = set<T>(centre(in.x, n, in.eps, normed)), offset = set(in.offset);
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    const Vec<T> v = hn::Mul(load_part(normed + i, lanes), inverse), g = load_part(grad_y + i, lanes);
    if (out.weight) store_part<T>(fma(g, v, load_part(out.weight + i, lanes)), out.weight + i, lanes);
    if (out.bias) store_part<T>(hn::Add(load_part(out.bias + i, lanes), g), out.bias + i, lanes);
    store_part<T>(v, normed + i, lanes);
    store_part<T>(in.weight ? hn::Mul(g, hn::Add(load_part(in.weight + i, lanes), offset)) : g, grad_normed + i, lanes);
  });
  if (!out.x) return;
  const Vec<T> mean = set<T>(sum16(grad_normed, n) / count);
  const Vec<T> slope = set<T>(dot16(grad_normed, normed, n) / count);
  for_vectors<T>(n, [&](Index i, Index lanes) HWY_ATTR {
    const Vec<T> g = fnma(load_part(normed + i, lanes), slope, hn::Sub(load_part(grad_normed + i, lanes), mean));
    store_part<T>(hn::Mul(g, inverse), out.x + i, lanes);
  });
}

template <class T>
void layer_norm_backward_rows_t(const LayerNormRows<T>& in, const T* grad_y, Index rows,
                                const LayerNormRowGradients<T>& out) {
  for (Index r = 0; r < rows; ++r) {
    for (Index g = 0; g < in.groups; ++g) {
      const Index at = g * in.group, offset = r * in.groups * in.group + at;
      layer_norm_backward_group(group_of(in, r, g), grad_y + offset,
                                {out.x ? out.x + offset : nullptr, out.weight ? out.weight + at : nullptr,
                                 out.bias ? out.bias + at : nullptr, out.scratch});
    }
  }
}

void rms_norm_rows_f32(const RmsNormRows<float>& in, std::int64_t rows, float* y) { rms_norm_rows_t(in, rows, y); }
void rms_norm_rows_f64(const RmsNormRows<double>& in, std::int64_t rows, double* y) { rms_norm_rows_t(in, rows, y); }
void rms_norm_backward_rows_f32(const RmsNormRows<float>& in, const float* grad_y, std::int64_t rows,
                                const RmsNormRowGradients<float>& out) {
  rms_norm_backward_rows_t(in, grad_y, rows, out);
}
void rms_norm_backward_rows_f64(const RmsNormRows<double>& in, const double* grad_y, std::int64_t rows,
                                const RmsNormRowGradients<double>& out) {
  rms_norm_backward_rows_t(in, grad_y, rows, out);
}
void sum_norm_rows_f32(const float* x, std::int64_t rows, std::int64_t width, float* y) {
  sum_norm_rows_t(x, rows, width, y);
}
void sum_norm_rows_f64(const double* x, std::int64_t rows, std::int64_t width, double* y) {
  sum_norm_rows_t(x, rows, width, y);
}
void sum_norm_backward_rows_f32(const float* x, const float* grad_y, std::int64_t rows, std::int64_t width,
                                float* grad_x) {
  sum_norm_backward_rows_t(x, grad_y, rows, width, grad_x);
}
void sum_norm_backward_rows_f64(const double* x, const double* grad_y, std::int64_t rows, std::int64_t width,
                                double* grad_x) {
  sum_norm_backward_rows_t(x, grad_y, rows, width, grad_x);
}
void layer_norm_rows_f32(const LayerNormRows<float>& in, std::int64_t rows, float* y) {
  layer_norm_rows_t(in, rows, y);
}
void layer_norm_rows_f64(const LayerNormRows<double>& in, std::int64_t rows, double* y) {
  layer_norm_rows_t(in, rows, y);
}
void layer_norm_backward_rows_f32(const LayerNormRows<float>& in, const float* grad_y, std::int64_t rows,
                                  const LayerNormRowGradients<float>& out) {
  layer_norm_backward_rows_t(in, grad_y, rows, out);
}
void layer_norm_backward_rows_f64(const LayerNormRows<double>& in, const double* grad_y, std::int64_t rows,
                                  const LayerNormRowGradients<double>& out) {
  layer_norm_backward_rows_t(in, grad_y, rows, out);
}

}  // namespace stepwell::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stepwell::ops {

HWY_EXPORT(rms_norm_rows_f32);
HWY_EXPORT(rms_norm_rows_f64);
HWY_EXPORT(rms_norm_backward_rows_f32);
HWY_EXPORT(rms_norm_backward_rows_f64);
HWY_EXPORT(sum_norm_rows_f32);
HWY_EXPORT(sum_norm_rows_f64);
HWY_EXPORT(sum_norm_backward_rows_f32);
HWY_EXPORT(sum_norm_backward_rows_f64);
HWY_EXPORT(layer_norm_rows_f32);
HWY_EXPORT(layer_norm_rows_f64);
HWY_EXPORT(layer_norm_backward_rows_f32);
HWY_EXPORT(layer_norm_backward_rows_f64);

void rms_norm_rows(const RmsNormRows<float>& in, std::int64_t rows, float* y) {
  HWY_DYNAMIC_DISPATCH(rms_norm_rows_f32)(in, rows, y);
}
void rms_norm_rows(const RmsNormRows<double>& in, std::int64_t rows, double* y) {
  HWY_DYNAMIC_DISPATCH(rms_norm_rows_f64)(in, rows, y);
}
void rms_norm_backward_rows(const RmsNormRows<float>& in, const float* grad_y, std::int64_t rows,
                            const RmsNormRowGradients<float>& out) {
  HWY_DYNAMIC_DISPATCH(rms_norm_backward_rows_f32)(in, grad_y, rows, out);
}
void rms_norm_backward_rows(const RmsNormRows<double>& in, const double* grad_y, std::int64_t rows,
                            const RmsNormRowGradients<double>& out) {
  HWY_DYNAMIC_DISPATCH(rms_norm_backward_rows_f64)(in, grad_y, rows, out);
}
void sum_norm_rows(const float* x, std::int64_t rows, std::int64_t width, float* y) {
  HWY_DYNAMIC_DISPATCH(sum_norm_rows_f32)(x, rows, width, y);
}
void sum_norm_rows(const double* x, std::int64_t rows, std::int64_t width, double* y) {
  HWY_DYNAMIC_DISPATCH(sum_norm_rows_f64)(x, rows, width, y);
}
void sum_norm_backward_rows(const float* x, const float* grad_y, std::int64_t rows, std::int64_t width, float* grad_x) {
  HWY_DYNAMIC_DISPATCH(sum_norm_backward_rows_f32)(x, grad_y, rows, width, grad_x);
}
void sum_norm_backward_rows(const double* x, const double* grad_y, std::int64_t rows, std::int64_t width,
                            double* grad_x) {
  HWY_DYNAMIC_DISPATCH(sum_norm_backward_rows_f64)(x, grad_y, rows, width, grad_x);
}
void layer_norm_rows(const LayerNormRows<float>& in, std::int64_t rows, float* y) {
  HWY_DYNAMIC_DISPATCH(layer_norm_rows_f32)(in, rows, y);
}
void layer_norm_rows(const LayerNormRows<double>& in, std::int64_t rows, double* y) {
  HWY_DYNAMIC_DISPATCH(layer_norm_rows_f64)(in, rows, y);
}
void layer_norm_backward_rows(const LayerNormRows<float>& in, const float* grad_y, std::int64_t rows,
                              const LayerNormRowGradients<float>& out) {
  HWY_DYNAMIC_DISPATCH(layer_norm_backward_rows_f32)(in, grad_y, rows, out);
}
void layer_norm_backward_rows(const LayerNormRows<double>& in, const double* grad_y, std::int64_t rows,
                              const LayerNormRowGradients<double>& out) {
  HWY_DYNAMIC_DISPATCH(layer_norm_backward_rows_f64)(in, grad_y, rows, out);
}

}  // namespace stepwell::ops
#endif
