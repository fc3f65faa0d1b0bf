// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/ops/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stepwell/core/tensor.h"

namespace stepwell {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Entry i is a value of its own.
Tensor numbered(const Shape& shape, DType dtype) {
  Tensor t = Tensor::empty(shape, DType::F64);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = static_cast<double>(i * 37 % 1009) - 500.0;
  return t.to(dtype);
}

template <class T>
class Rows : public testing::Test {
 protected:
  static constexpr DType kType = dtype_of<T>();
  Context ctx = Context::serial();
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Rows, Types);

TYPED_TEST(Rows, CopyTakesAndFillsSlices) {
  using T = TypeParam;
  const Tensor x = numbered({5, 7}, this->kType), out = Tensor::full({5, 11}, kNaN, this->kType);
  ops::copy_rows<T>(this->ctx, x.slice(1, 2, 3).template view<const T, 2>(), out.slice(1, 4, 3).template view<T, 2>());
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 11; ++j) {
      const double v = out.at(i * 11 + j);
      if (j >= 4 && j < 7) {
        EXPECT_EQ(v, x.at(i * 7 + j - 2));
      } else {
        EXPECT_TRUE(std::isnan(v));
      }
    }
  }
}

TYPED_TEST(Rows, GatherPlaceAndAddAgreeWithTheirDefinitions) {
  using T = TypeParam;
  for (const std::int64_t width : {0, 1, 7, 130, 300}) {
    const Tensor x = numbered({6, width}, this->kType);
    const std::vector<std::int64_t> some = {4, 0, 5}, repeated = {2, 0, 2, 2, 3, 0};
    const Tensor gathered = Tensor::full({3, width}, kNaN, this->kType);
    ops::gather_rows<T>(this->ctx, x.view<const T, 2>(), some.data(), gathered.view<T, 2>());
    const Tensor placed = Tensor::full({6, width}, kNaN, this->kType);
    ops::place_rows<T>(this->ctx, gathered.view<const T, 2>(), some.data(), placed.view<T, 2>());
    const Tensor added = Tensor::full({4, width}, kNaN, this->kType);
    ops::add_rows<T>(this->ctx, x.view<const T, 2>(), repeated.data(), added.view<T, 2>());
    for (std::int64_t j = 0; j < width; ++j) {
      const auto at = [&](std::int64_t i) { return x.at(i * width + j); };
      for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(gathered.at(i * width + j), at(some[static_cast<std::size_t>(i)]));
      for (std::int64_t i : {1, 2, 3}) EXPECT_EQ(placed.at(i * width + j), 0);
      for (std::int64_t i : {0, 4, 5}) EXPECT_EQ(placed.at(i * width + j), at(i));
      EXPECT_EQ(added.at(0 * width + j), at(1) + at(5));
      EXPECT_EQ(added.at(1 * width + j), 0);
      EXPECT_EQ(added.at(2 * width + j), at(0) + at(2) + at(3));
      EXPECT_EQ(added.at(3 * width + j), at(4));
    }
  }
}

TYPED_TEST(Rows, SumsRowsInBlocksOf256) {
  using T = TypeParam;
  for (const std::int64_t rows : {0, 1, 2, 255, 256, 257, 1031}) {
    for (const std::int64_t width : {0, 1, 13}) {
      Tensor x = numbered({rows, width}, this->kType);
      for (T& v : x.span<T>()) v /= T(7);
      std::vector<T> sums(static_cast<std::size_t>(width), T(kNaN));
      ops::sum_rows<T>(this->ctx, x.view<const T, 2>(), sums.data());
      for (std::int64_t j = 0; j < width; ++j) {
        T total = 0;
        for (std::int64_t block = 0; block < rows; block += 256) {
          T sum = 0;
          for (std::int64_t i = block; i < std::min(rows, block + 256); ++i) sum += x.view<T, 2>()(i, j);
          total += sum;
        }
        EXPECT_EQ(sums[static_cast<std::size_t>(j)], total) << rows << " rows, column " << j;
      }
    }
  }
}

TYPED_TEST(Rows, Transposes) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 1, 1}, Shape{3, 67, 31}, Shape{2, 0, 4}, Shape{0, 3, 4}}) {
    const Tensor x = numbered(shape, this->kType), y = Tensor::full({shape[0], shape[2], shape[1]}, kNaN, this->kType);
    ops::transpose<T>(this->ctx, x.view<const T, 3>(), y.view<T, 3>());
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t m = 0; m < shape[1]; ++m) {
        for (std::int64_t n = 0; n < shape[2]; ++n) EXPECT_EQ((y.view<T, 3>()(b, n, m)), (x.view<T, 3>()(b, m, n)));
      }
    }
  }
}

TYPED_TEST(Rows, GiveTheSameBitsForEveryNumberOfThreads) {
  using T = TypeParam;
  const std::int64_t rows = 2000, width = 261;
  Tensor x = numbered({rows, width}, this->kType);
  for (T& v : x.span<T>()) v /= T(3);
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < rows; ++i) index.push_back(i * 7 % 31);
  const auto run = [&](Context ctx) {
    const Tensor sums = Tensor::empty({width}, this->kType), added = Tensor::empty({31, width}, this->kType);
    ops::sum_rows<T>(ctx, x.view<const T, 2>(), sums.data<T>());
    ops::add_rows<T>(ctx, x.view<const T, 2>(), index.data(), added.view<T, 2>());
    return std::pair(sums, added);
  };
  const auto [sums, added] = run(Context::serial());
  for (const int threads : {1, 2, 4}) {
    const auto [s, a] = run(Context::parallel(threads));
    EXPECT_TRUE(s.same_bits(sums)) << threads;
    EXPECT_TRUE(a.same_bits(added)) << threads;
  }
}

}  // namespace
}  // namespace stepwell
