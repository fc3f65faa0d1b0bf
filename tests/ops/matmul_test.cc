// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stepwell/simd/isa.h"

namespace stepwell {
namespace {

using ops::MatmulOptions;
using ops::PackedMatrix;
using ops::Product;

constexpr std::int64_t kSizes[] = {0, 1, 2, 3, 5, 7, 12, 13, 15, 16, 17, 31, 32, 33, 64, 100, 255, 256, 257, 513};

// Runs `body` on every instruction set of this machine and comes back to the one in use.
template <class Body>
void on_every_isa(Body&& body) {
  const simd::Isa best = simd::current_isa();
  for (const simd::Isa isa : simd::supported_isas()) {
    simd::set_isa(isa);
    SCOPED_TRACE(std::string(simd::isa_name(isa)));
    body(isa);
  }
  simd::set_isa(best);
}

// A matrix in memory of its own that ends right before a page nobody may touch. Elements lie `gap` apart in the inner
// dimension, rows `pad` elements further than they must; whatever lies between is NaN. `by_columns` swaps the
// dimensions' places in memory.
template <class T>
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t gap = 1, std::int64_t pad = 0, bool by_columns = false) {
    const std::int64_t outer = by_columns ? columns : rows, inner = by_columns ? rows : columns;
    const std::int64_t step = std::max<std::int64_t>(inner * gap + pad, 1);
    const std::int64_t count = outer && inner ? (outer - 1) * step + (inner - 1) * gap + 1 : 0;
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t data = (static_cast<std::size_t>(count) * sizeof(T) + page - 1) / page * page;
    bytes_ = data + page;
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) std::abort();
    char* const end = static_cast<char*>(memory_) + data;
    if (mprotect(end, page, PROT_NONE) != 0) std::abort();
    view.data = reinterpret_cast<T*>(end) - count;
    std::fill(view.data, view.data + count, std::numeric_limits<T>::quiet_NaN());
    view.extent = {rows, columns};
    view.stride = by_columns ? std::array<std::int64_t, 2>{gap, step} : std::array<std::int64_t, 2>{step, gap};
    count_ = count;
  }
  ~Matrix() { munmap(memory_, bytes_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  template <class Random>
  Matrix& fill(Random& random) {
    std::uniform_real_distribution<T> value(-1, 1);
    for (std::int64_t i = 0; i < view.extent[0]; ++i) {
      for (std::int64_t j = 0; j < view.extent[1]; ++j) view(i, j) = value(random);
    }
    return *this;
  }
  // How many elements outside the matrix are no longer NaN.
  std::int64_t overwritten() const {
    std::vector<bool> inside(static_cast<std::size_t>(count_));
    for (std::int64_t i = 0; i < view.extent[0]; ++i) {
      for (std::int64_t j = 0; j < view.extent[1]; ++j)
        inside[static_cast<std::size_t>(&view(i, j) - view.data)] = true;
    }
    std::int64_t touched = 0;
    for (std::int64_t i = 0; i < count_; ++i)
      touched += !inside[static_cast<std::size_t>(i)] && !std::isnan(view.data[i]);
    return touched;
  }
  View<const T, 2> read() const { return view; }

  View<T, 2> view;

 private:
  void* memory_;
  std::size_t bytes_;
  std::int64_t count_;
};

// The definition of stepwell/ops/matmul.h, element by element.
template <class T>
T oracle(Product product, View<const T, 2> a, View<const T, 2> b, std::int64_t m, std::int64_t n, const T* bias,
         const T* old) {
  const std::int64_t K = product == Product::AtB ? a.extent[0] : a.extent[1];
  T sum = 0;
  for (std::int64_t block = 0; block < K; block += 256) {
    T chain = 0;
    for (std::int64_t k = block; k < std::min(block + 256, K); ++k) {
      const T x = product == Product::AtB ? a(k, m) : a(m, k);
      const T y = product == Product::ABt ? b(n, k) : b(k, n);
      chain = std::fma(x, y, chain);
    }
    sum = block == 0 ? chain : sum + chain;
  }
  if (bias) sum = sum + bias[n];
  return old ? *old + sum : sum;
}

template <class T>
bool same(T x, T y) {
  return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof(T)) == 0;
}

// How many elements differ in their bits; any two NaNs are the same.
template <class T>
std::int64_t differing(View<const T, 2> x, View<const T, 2> y) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < x.extent[0]; ++i) {
    for (std::int64_t j = 0; j < x.extent[1]; ++j) count += !same(x(i, j), y(i, j));
  }
  return count;
}

constexpr Product kProducts[] = {Product::AB, Product::ABt, Product::AtB};

struct Layout {
  std::int64_t gap, pad;
  bool by_columns;
};
constexpr Layout kLayouts[] = {{1, 0, false}, {1, 3, false}, {1, 0, true}, {1, 5, true}, {2, 1, false}, {3, 0, true}};

// One product of the given sizes with operands laid out at random, against the oracle, on every instruction set.
template <class T>
void check_product(Product product, std::int64_t M, std::int64_t N, std::int64_t K, std::mt19937& random) {
  const auto layout = [&] { return kLayouts[random() % std::size(kLayouts)]; };
  const bool at = product == Product::AtB, bt = product == Product::ABt;
  const Layout la = layout(), lb = layout(), lc = layout();
  Matrix<T> a(at ? K : M, at ? M : K, la.gap, la.pad, la.by_columns);
  Matrix<T> b(bt ? N : K, bt ? K : N, lb.gap, lb.pad, lb.by_columns);
  Matrix<T> before(M, N), expected(M, N), bias(1, N);
  a.fill(random);
  b.fill(random);
  before.fill(random);
  bias.fill(random);
  MatmulOptions<T> options;
  options.bias = random() % 2 ? bias.view.data : nullptr;
  options.accumulate = random() % 2;
  for (std::int64_t m = 0; m < M; ++m) {
    for (std::int64_t n = 0; n < N; ++n) {
      expected.view(m, n) =
          oracle<T>(product, a.view, b.view, m, n, options.bias, options.accumulate ? &before.view(m, n) : nullptr);
    }
  }
  on_every_isa([&](simd::Isa isa) {
    Context ctx = Context::serial();
    for (const bool packed : {false, true}) {
      if (packed && at) continue;
      Matrix<T> c(M, N, lc.gap, lc.pad, lc.by_columns);
      if (options.accumulate) {
        for (std::int64_t m = 0; m < M; ++m) {
          for (std::int64_t n = 0; n < N; ++n) c.view(m, n) = before.view(m, n);
        }
      }
      if (packed) {
        ops::matmul<T>(ctx, a.view, PackedMatrix::pack<T>(ctx, product, b.view), c.view, options);
      } else {
        ops::matmul<T>(ctx, product, a.view, b.view, c.view, options);
      }
      EXPECT_EQ(c.overwritten(), 0);
      if (simd::has_fma(isa)) {
        EXPECT_EQ(differing<T>(c.view, expected.view), 0)
            << "M " << M << " N " << N << " K " << K << " product " << int(product) << " packed " << packed;
      } else {
        const T bound = std::numeric_limits<T>::epsilon() * T(std::min<std::int64_t>(K, 256) + K / 256 + 4) * T(K + 2);
        for (std::int64_t m = 0; m < M; ++m) {
          for (std::int64_t n = 0; n < N; ++n) EXPECT_NEAR(c.view(m, n), expected.view(m, n), bound);
        }
      }
    }
  });
}

template <class T>
void check_random_shapes(unsigned seed, int count, std::int64_t most) {
  std::mt19937 random(seed);
  for (int i = 0; i < count; ++i) {
    std::int64_t M, N, K;
    do {
      M = kSizes[random() % std::size(kSizes)];
      N = kSizes[random() % std::size(kSizes)];
      K = kSizes[random() % std::size(kSizes)];
    } while (M * N * K > most);
    check_product<T>(kProducts[random() % 3], M, N, K, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Matmul, EqualsTheDefinitionForAnyShape) { check_random_shapes<float>(1, 250, 1 << 19); }
TEST(Matmul, EqualsTheDefinitionForAnyShapeInDouble) { check_random_shapes<double>(2, 150, 1 << 19); }

// Shapes of several tasks and several blocks of k, at elements drawn at random.
template <class T>
void check_large(Product product, std::int64_t M, std::int64_t N, std::int64_t K) {
  std::mt19937 random(3);
  const bool at = product == Product::AtB, bt = product == Product::ABt;
  Matrix<T> a(at ? K : M, at ? M : K), b(bt ? N : K, bt ? K : N), c(M, N);
  a.fill(random);
  b.fill(random);
  on_every_isa([&](simd::Isa isa) {
    if (isa == simd::Isa::Scalar || !simd::has_fma(isa)) return;  // slow, and covered by the small shapes
    Context ctx = Context::serial();
    std::fill(c.view.data, c.view.data + M * N, std::numeric_limits<T>::quiet_NaN());
    ops::matmul<T>(ctx, product, a.view, b.view, c.view);
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t m = static_cast<std::int64_t>(random()) % M, n = static_cast<std::int64_t>(random()) % N;
      const T expected = oracle<T>(product, a.view, b.view, m, n, nullptr, nullptr);
      ASSERT_TRUE(same(c.view(m, n), expected)) << "at " << m << ", " << n;
    }
    EXPECT_EQ(std::count_if(c.view.data, c.view.data + M * N, [](T x) { return std::isnan(x); }), 0);
  });
}

TEST(Matmul, EqualsTheDefinitionOverSeveralTasks) {
  for (const Product product : kProducts) {
    check_large<float>(product, 600, 530, 600);
    check_large<double>(product, 300, 270, 520);
  }
}

// Columns enough for rows of a to be packed, a b too large to be read where it is, tiles of every height.
template <class T>
void check_packed_rows(unsigned seed) {
  std::mt19937 random(seed);
  for (const std::int64_t M : {13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 37, 47, 48, 49, 71}) {
    const std::int64_t N = 129 + static_cast<std::int64_t>(random() % 40);
    const std::int64_t K = 128 + static_cast<std::int64_t>(random() % 200);
    check_product<T>(kProducts[random() % 3], M, N, K, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Matmul, EqualsTheDefinitionWithPackedRows) { check_packed_rows<float>(11); }
TEST(Matmul, EqualsTheDefinitionWithPackedRowsInDouble) { check_packed_rows<double>(12); }

// Rows of b that lie 16 apart, as those of a panel do, but are longer.
TEST(Matmul, ReadsRowsThatOverlap) {
  constexpr std::int64_t M = 13, K = 40, N = 100, kStep = 16;
  std::mt19937 random(9);
  Matrix<float> a(M, K), numbers(1, (K - 1) * kStep + N), c(M, N);
  a.fill(random);
  numbers.fill(random);
  const View<const float, 2> b{numbers.view.data, {K, N}, {kStep, 1}};
  on_every_isa([&](simd::Isa isa) {
    if (!simd::has_fma(isa)) return;
    Context ctx = Context::serial();
    ops::matmul<float>(ctx, Product::AB, a.read(), b, c.view, {});
    for (std::int64_t m = 0; m < M; ++m) {
      for (std::int64_t n = 0; n < N; ++n) {
        ASSERT_TRUE(same(c.view(m, n), oracle<float>(Product::AB, a.read(), b, m, n, nullptr, nullptr)));
      }
    }
  });
}

// X1: a row alone has the bits it has among 2,048, for every product, packed or not.
TEST(Matmul, RowAloneEqualsItselfInABatch) {
  constexpr std::int64_t M = 2048, N = 45, K = 300;
  std::mt19937 random(4);
  Matrix<float> a(M, K), b(K, N), bt(N, K), batch(M, N), alone(1, N);
  a.fill(random);
  b.fill(random);
  for (std::int64_t k = 0; k < K; ++k) {
    for (std::int64_t n = 0; n < N; ++n) bt.view(n, k) = b.view(k, n);
  }
  on_every_isa([&](simd::Isa) {
    Context ctx = Context::serial();
    const PackedMatrix packed = PackedMatrix::pack<float>(ctx, Product::ABt, bt.view);
    ops::matmul<float>(ctx, Product::AB, a.view, b.view, batch.view);
    for (const std::int64_t m : {0, 1, 11, 12, 777, 2047}) {
      const View<const float, 2> row{a.view.row(m), {1, K}, {K, 1}}, column{a.view.row(m), {K, 1}, {1, 1}};
      const View<const float, 2> expected{batch.view.row(m), {1, N}, {N, 1}};
      ops::matmul<float>(ctx, Product::AB, row, b.view, alone.view);
      EXPECT_EQ(differing<float>(alone.view, expected), 0) << m;
      ops::matmul<float>(ctx, Product::ABt, row, bt.view, alone.view);
      EXPECT_EQ(differing<float>(alone.view, expected), 0) << m;
      ops::matmul<float>(ctx, Product::AtB, column, b.view, alone.view);
      EXPECT_EQ(differing<float>(alone.view, expected), 0) << m;
      ops::matmul<float>(ctx, row, packed, alone.view);
      EXPECT_EQ(differing<float>(alone.view, expected), 0) << m;
    }
  });
}

TEST(Matmul, ThreadsDoNotChangeBits) {
  constexpr std::int64_t M = 700, N = 600, K = 400;
  std::mt19937 random(5);
  Matrix<float> a(M, K), b(N, K), one(M, N), many(M, N);
  a.fill(random);
  b.fill(random);
  Context serial = Context::serial();
  ops::matmul<float>(serial, Product::ABt, a.view, b.view, one.view);
  for (const int threads : {2, 4}) {
    Context ctx = Context::parallel(threads);
    const PackedMatrix packed = PackedMatrix::pack<float>(ctx, Product::ABt, b.view);
    std::fill(many.view.data, many.view.data + M * N, std::numeric_limits<float>::quiet_NaN());
    ops::matmul<float>(ctx, Product::ABt, a.view, b.view, many.view);
    EXPECT_EQ(differing<float>(one.view, many.view), 0) << threads;
    std::fill(many.view.data, many.view.data + M * N, std::numeric_limits<float>::quiet_NaN());
    ops::matmul<float>(ctx, a.view, packed, many.view);
    EXPECT_EQ(differing<float>(one.view, many.view), 0) << threads;
  }
}

// A factor 0 does not hide an infinity or a NaN on the other side, and the columns and rows beside it stay clean.
TEST(Matmul, InfinitiesAndNaNsPropagate) {
  constexpr std::int64_t M = 13, N = 35, K = 40;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(6);
  Matrix<float> a(M, K), b(K, N), c(M, N);
  a.fill(random);
  b.fill(random);
  for (std::int64_t k = 0; k < K; ++k) a.view(5, k) = 0;
  b.view(7, 3) = inf;
  b.view(39, 34) = nan;
  a.view(12, 0) = -inf;
  on_every_isa([&](simd::Isa isa) {
    Context ctx = Context::serial();
    ops::matmul<float>(ctx, Product::AB, a.view, b.view, c.view);
    EXPECT_TRUE(std::isnan(c.view(5, 3)));
    for (std::int64_t m = 0; m < M; ++m) {
      for (std::int64_t n = 0; n < N; ++n) {
        const float expected = oracle<float>(Product::AB, a.view, b.view, m, n, nullptr, nullptr);
        if (simd::has_fma(isa)) {
          EXPECT_TRUE(same(c.view(m, n), expected)) << m << ", " << n;
        } else {
          EXPECT_EQ(std::isfinite(c.view(m, n)), std::isfinite(expected)) << m << ", " << n;
        }
      }
    }
  });
}

TEST(Matmul, PacksIntoPanelsOf16WithZerosBehind) {
  constexpr std::int64_t N = 21, K = 19;
  std::mt19937 random(7);
  Matrix<float> b(N, K);
  b.fill(random);
  on_every_isa([&](simd::Isa) {
    Context ctx = Context::serial();
    const PackedMatrix packed = PackedMatrix::pack<float>(ctx, Product::ABt, b.view);
    ASSERT_EQ(packed.panels().shape(), Shape({2, K, 16}));
    EXPECT_EQ(packed.in(), K);
    EXPECT_EQ(packed.out(), N);
    for (std::int64_t n = 0; n < 32; ++n) {
      for (std::int64_t k = 0; k < K; ++k) {
        const double expected = n < N ? double(b.view(n, k)) : 0.0;
        EXPECT_EQ(packed.panels().at((n / 16 * K + k) * 16 + n % 16), expected) << n << ", " << k;
      }
    }
  });
}

TEST(Matmul, NamesShapesThatDoNotFit) {
  Context ctx = Context::serial();
  Matrix<float> a(2, 3), b(4, 5), c(2, 5);
  try {
    ops::matmul<float>(ctx, Product::AB, a.view, b.view, c.view);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Argument);
    for (const char* part : {"[matmul]", "[2, 3]", "[4, 5]", "[2, 5]"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  const PackedMatrix packed = PackedMatrix::pack<float>(ctx, Product::AB, b.view);
  EXPECT_THROW(ops::matmul<float>(ctx, a.view, packed, c.view), Error);
  EXPECT_THROW(ops::matmul<float>(ctx, a.view, PackedMatrix(), c.view), Error);
  Matrix<double> wide(2, 4), wide_out(2, 5);
  EXPECT_THROW(ops::matmul<double>(ctx, wide.view, packed, wide_out.view), Error);
}

}  // namespace
}  // namespace stepwell
