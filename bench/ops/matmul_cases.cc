// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "stepwell/ops/matmul.h"

#include "bench/measure/limits_simd.h"
#include "bench/ops/cases.h"

namespace stepwell::bench {

namespace {

struct Shape3 {
  std::int64_t M, K, N;
};

enum class Weight { Plain, Packed };

struct Buffers {
  Tensor a, b, c;
  ops::PackedMatrix packed;
};

Workload make(ops::Product product, Shape3 s, Weight weight) {
  const bool at = product == ops::Product::AtB, bt = product == ops::Product::ABt;
  auto buffers = std::make_shared<Buffers>();
  buffers->a = at ? spread({s.K, s.M}, -0.5f, 0.5f) : spread({s.M, s.K}, -0.5f, 0.5f);
  buffers->b = bt ? spread({s.N, s.K}, -0.5f, 0.5f) : spread({s.K, s.N}, -0.5f, 0.5f);
  buffers->c = Tensor::zeros({s.M, s.N});
  Workload work;
  work.unit = "GF/s";
  work.units = 2e-9 * static_cast<double>(s.M) * static_cast<double>(s.N) * static_cast<double>(s.K);
  if (weight == Weight::Packed && s.M < 8) {
    work.bound = Bound::MemoryRead;
    work.cost = 4.0 * static_cast<double>(s.N) * static_cast<double>(s.K);
  } else {
    work.cost = work.units * 1e9 / 2 / lanes_f32();
  }
  work.gemm = Gemm{at, bt, s.M, s.N, s.K, buffers->a.data<float>(), buffers->b.data<float>(), buffers->c.data<float>()};
  if (weight == Weight::Packed) {
    Context ctx = Context::serial();
    buffers->packed = ops::PackedMatrix::pack<float>(ctx, product, buffers->b.view<const float, 2>());
    work.run = [buffers](Context& ctx) {
      ops::matmul<float>(ctx, buffers->a.view<const float, 2>(), buffers->packed, buffers->c.view<float, 2>());
    };
  } else {
    work.run = [buffers, product](Context& ctx) {
      ops::matmul<float>(ctx, product, buffers->a.view<const float, 2>(), buffers->b.view<const float, 2>(),
                         buffers->c.view<float, 2>());
    };
  }
  return work;
}

}  // namespace

std::vector<Case> matmul_cases() {
  using ops::Product;
  std::vector<Case> cases;
  const auto add = [&](Product product, Shape3 s, Weight weight = Weight::Plain) {
    const std::string name = product == Product::AB ? "AB" : product == Product::ABt ? "ABt" : "AtB";
    cases.push_back({"matmul",
                     name + " " + std::to_string(s.M) + "x" + std::to_string(s.K) + "x" + std::to_string(s.N) +
                         (weight == Weight::Packed ? " packed" : ""),
                     [=] { return make(product, s, weight); }});
  };
  for (const Product product : {Product::AB, Product::ABt, Product::AtB}) {
    for (const Shape3 s : {Shape3{64, 128, 128}, {64, 64, 128}, {128, 128, 64}, {512, 512, 512}, {2048, 768, 3072}}) {
      add(product, s);
    }
  }
  add(Product::AtB, {768, 8192, 768});  // a weight gradient
  for (const Shape3 s : {Shape3{64, 128, 128}, {512, 512, 512}, {2048, 768, 3072}})
    add(Product::ABt, s, Weight::Packed);
  for (const std::int64_t M : {1, 2, 5}) {
    add(Product::ABt, {M, 768, 3072});
    add(Product::ABt, {M, 768, 3072}, Weight::Packed);
  }
  add(Product::AB, {1, 768, 3072});
  add(Product::ABt, {1, 768, 50280}, Weight::Packed);
  return cases;
}

}  // namespace stepwell::bench
