// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/tensor.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace stepwell {
namespace {

// 0, 1, 2, … in row-major order.
Tensor counting(const Shape& shape, DType dtype = DType::F32) {
  Tensor t = Tensor::empty(shape, DType::F64);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = static_cast<double>(i);
  return t.to(dtype);
}
std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  for (std::int64_t i = 0; i < t.numel(); ++i) v.push_back(t.at(i));
  return v;
}

TEST(Shape, KnowsItsSizeRowsAndName) {
  const Shape s = {2, 3, 4};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s.size(), 24);
  EXPECT_EQ(s.rows(), 6);
  EXPECT_EQ(s[-1], 4);
  EXPECT_EQ(s.to_string(), "[2, 3, 4]");
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ(Shape{}.rows(), 1);
  EXPECT_EQ((Shape{0, 5}).size(), 0);
  EXPECT_EQ((Shape{5, 0}).rows(), 5);
  EXPECT_TRUE((Shape{2, 3}) == (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
}

TEST(Shape, RefusesWhatNoTensorHas) {
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW((Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}), Error);
  EXPECT_THROW((Shape{0, std::int64_t{1} << 40, std::int64_t{1} << 40}), Error) << "an extent of 0 hides nothing";
}

TEST(Tensor, MakesZerosFullAndCopies) {
  EXPECT_EQ(values(Tensor::zeros({2, 2}, DType::F64)), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(values(Tensor::full({3}, 1.5)), (std::vector<double>{1.5, 1.5, 1.5}));
  EXPECT_EQ(values(Tensor::full({2}, -3, DType::I64)), (std::vector<double>{-3, -3}));
  const std::vector<float> data = {1, 2, 3, 4, 5, 6};
  const Tensor t = Tensor::from<float>(data, {2, 3});
  EXPECT_EQ(t.at(5), 6);
  EXPECT_THROW(Tensor::from<float>(data, {2, 2}), Error);
  EXPECT_EQ(Tensor::zeros({0, 4}).numel(), 0);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor a = Tensor::zeros({2});
  EXPECT_TRUE(a.is_unique());
  Tensor b = a;
  EXPECT_FALSE(a.is_unique());
  EXPECT_TRUE(a.shares_storage(b));
  b.fill(1);
  EXPECT_EQ(a.at(0), 1);
  const Tensor c = a.clone();
  a.fill(2);
  EXPECT_EQ(c.at(0), 1);
  b = Tensor();
  EXPECT_TRUE(a.is_unique());
  Tensor moved = std::move(a);
  EXPECT_FALSE(a.defined());  // NOLINT: a moved-from tensor is undefined by contract
  EXPECT_EQ(moved.at(1), 2);
  moved = std::as_const(moved);
  EXPECT_EQ(moved.at(1), 2);
}

TEST(Tensor, WrapsForeignMemoryAndKeepsItsOwnerAlive) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const std::weak_ptr<std::vector<float>> watch = owner;
  Tensor t = Tensor::wrap(owner->data(), {3}, DType::F32, owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(t.at(2), 3);
  Tensor part = t.slice(0, 1, 2);
  t = Tensor();
  EXPECT_EQ(part.at(1), 3);
  part = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, WrapsMemoryOfAnyStrides) {
  std::vector<float> numbers = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::int64_t strides[] = {1, -2};
  const Tensor t = Tensor::wrap(numbers.data() + 6, {2, 4}, strides, DType::F32, nullptr);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(values(t), (std::vector<double>{6, 4, 2, 0, 7, 5, 3, 1}));
  EXPECT_EQ(values(t.clone()), values(t));
  EXPECT_FALSE(t.is_unique());  // nobody writes through it
  EXPECT_THROW(Tensor::wrap(numbers.data(), {8}, strides, DType::F32, nullptr), Error);
}

TEST(Tensor, SlicesAnyDimension) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(values(t.slice(0, 1, 1)), (std::vector<double>{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(values(t.slice(1, 2, 1)), (std::vector<double>{8, 9, 10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(values(t.slice(-1, 1, 2)), (std::vector<double>{1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22}));
  EXPECT_EQ(values(t.slice(-1, 1, 2).slice(1, 1, 2).slice(2, 1, 1)), (std::vector<double>{6, 10, 18, 22}));
  EXPECT_EQ(t.slice(0, 2, 0).numel(), 0);
  EXPECT_THROW(t.slice(0, 1, 2), Error);
  EXPECT_THROW(t.slice(0, -1, 1), Error);
  EXPECT_THROW(t.slice(3, 0, 1), Error);
  EXPECT_THROW(t.slice(0, 0, -1), Error);
  constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(t.slice(0, kLargest, kLargest), Error);
}

TEST(Tensor, ReshapesContiguousTensorsFreelyAndSlicesByRows) {
  const Tensor t = counting({2, 3, 8});
  EXPECT_EQ(t.reshape({6, 8}).stride(0), 8);
  EXPECT_EQ(values(t.reshape({48})), values(t));
  EXPECT_THROW(t.reshape({7, 7}), Error);
  const Tensor part = t.slice(-1, 2, 4);
  EXPECT_FALSE(part.is_contiguous());
  const auto rows = part.rows<float>();
  EXPECT_EQ(rows.extent, (std::array<std::int64_t, 2>{6, 4}));
  EXPECT_EQ(rows.stride, (std::array<std::int64_t, 2>{8, 1}));
  EXPECT_EQ(rows(5, 3), 45);
  EXPECT_EQ(values(part.reshape({3, 2, 4})), values(part));
  EXPECT_THROW(part.reshape({6, 2, 2}), Error) << "the last dimension of a slice cannot be split";
  EXPECT_THROW(t.slice(1, 0, 2).rows<float>(), Error) << "rows that are not evenly spaced";
  EXPECT_EQ(t.slice(1, 0, 1).rows<float>().stride[0], 24);
  EXPECT_THROW(counting({}).fold_rows(), Error);
}

TEST(Tensor, ViewsCheckRankAndType) {
  const Tensor t = counting({2, 3});
  EXPECT_EQ((t.view<const float, 2>()(1, 2)), 5);
  EXPECT_THROW((t.view<float, 3>()), Error);
  EXPECT_THROW((t.view<double, 2>()), Error);
  EXPECT_THROW(t.data<double>(), Error);
  EXPECT_THROW(Tensor().data<float>(), Error);
  EXPECT_THROW(t.slice(1, 0, 2).span<float>(), Error);
}

TEST(Tensor, ContiguousCopiesOnlyWhatHasGaps) {
  Context ctx = Context::serial();
  const Tensor t = counting({3, 4}), part = t.slice(1, 1, 2), column = t.slice(1, 3, 1);
  EXPECT_TRUE(t.contiguous(ctx).shares_storage(t));
  EXPECT_FALSE(part.contiguous(ctx).shares_storage(t));
  EXPECT_EQ(values(part.contiguous(ctx)), (std::vector<double>{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(values(column.clone()), (std::vector<double>{3, 7, 11}));
  const Tensor target = Tensor::zeros({3, 4});
  target.slice(1, 0, 2).copy_from(part);
  EXPECT_EQ(values(target), (std::vector<double>{1, 2, 0, 0, 5, 6, 0, 0, 9, 10, 0, 0}));
  target.slice(1, 3, 1).fill(7);
  EXPECT_EQ(target.at(11), 7);
  EXPECT_THROW(target.copy_from(part), Error);
  EXPECT_THROW(target.copy_from(t.to(DType::F64)), Error);
}

TEST(Tensor, SameBitsComparesBytes) {
  const Tensor a = counting({2, 3}), nan = Tensor::full({2}, std::nan(""));
  EXPECT_TRUE(a.same_bits(counting({2, 3})));
  EXPECT_FALSE(a.same_bits(counting({3, 2})));
  EXPECT_FALSE(a.same_bits(counting({2, 3}, DType::F64)));
  EXPECT_TRUE(nan.same_bits(nan.clone()));
  EXPECT_FALSE(Tensor::full({1}, 0.0).same_bits(Tensor::full({1}, -0.0)));
  EXPECT_TRUE(a.slice(1, 1, 2).same_bits(a.slice(1, 1, 2).clone()));
  EXPECT_TRUE(Tensor().same_bits(Tensor()));
  EXPECT_FALSE(Tensor().same_bits(a));
  EXPECT_THROW(Tensor().at(0), Error);
}

// What a 16-bit float means: sign, exponent with a bias, mantissa.
double decoded(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = (bits >> mantissa_bits) & top, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == top) return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

class SixteenBits : public testing::TestWithParam<DType> {
 protected:
  int exponent_bits = GetParam() == DType::BF16 ? 8 : 5;
  int mantissa_bits = 15 - exponent_bits;
  double decode(int bits) const { return decoded(static_cast<std::uint16_t>(bits), exponent_bits, mantissa_bits); }
  std::uint16_t narrowed(double x, DType from) const {
    const Tensor t = Tensor::full({1}, x, from).to(GetParam());
    return *static_cast<const std::uint16_t*>(t.raw());
  }
};
INSTANTIATE_TEST_SUITE_P(Types, SixteenBits, testing::Values(DType::BF16, DType::F16),
                         [](const auto& row) { return std::string(dtype_name(row.param)); });

TEST_P(SixteenBits, EveryPatternWidensExactlyAndComesBack) {
  const Tensor all = Tensor::empty({65536}, GetParam());
  for (int i = 0; i < 65536; ++i) static_cast<std::uint16_t*>(all.raw())[i] = static_cast<std::uint16_t>(i);
  for (const DType wide : {DType::F32, DType::F64}) {
    const Tensor t = all.to(wide), back = t.to(GetParam());
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<const std::uint16_t*>(back.raw())[i];
      const double want = decode(i);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(t.at(i)) && std::isnan(all.at(i)) && std::isnan(decode(bits))) << i;
        ASSERT_EQ(bits & 0x8000, i & 0x8000) << i;
      } else {
        ASSERT_EQ(t.at(i), want) << i;
        ASSERT_EQ(std::signbit(t.at(i)), std::signbit(want)) << i;
        ASSERT_EQ(all.at(i), want) << i;
        ASSERT_EQ(bits, i);
      }
    }
  }
}

TEST_P(SixteenBits, NarrowingRoundsToNearestTiesToEven) {
  const int infinity = 0x7FFF & ~((1 << mantissa_bits) - 1);
  for (int i = 0; i + 1 < infinity; ++i) {
    const double low = decode(i), high = decode(i + 1), middle = (low + high) / 2;
    ASSERT_EQ(narrowed(middle, DType::F64), i % 2 == 0 ? i : i + 1) << middle;
    ASSERT_EQ(narrowed(std::nextafter(middle, low), DType::F64), i) << "rounded twice";
    ASSERT_EQ(narrowed(std::nextafter(middle, high), DType::F64), i + 1) << "rounded twice";
    if (i % 7 == 0) {
      const auto tie = static_cast<float>(middle);
      ASSERT_EQ(narrowed(tie, DType::F32), i % 2 == 0 ? i : i + 1) << middle;
      ASSERT_EQ(narrowed(std::nextafter(tie, 0.f), DType::F32), i);
      ASSERT_EQ(narrowed(-std::nextafter(tie, INFINITY), DType::F32), 0x8000 | (i + 1));
    }
  }
  EXPECT_EQ(narrowed(1e30 * 1e30, DType::F64), infinity);
  EXPECT_EQ(narrowed(-std::numeric_limits<float>::infinity(), DType::F32), 0x8000 | infinity);
}

TEST(Tensor, ConvertsBetweenIntegersWhereTheyFit) {
  const std::vector<std::int64_t> data = {-128, 0, 1, 127};
  const Tensor t = Tensor::from<std::int64_t>(data, {4});
  for (const DType dtype : {DType::I32, DType::I8})
    EXPECT_EQ(values(t.to(dtype)), (std::vector<double>{-128, 0, 1, 127}));
  EXPECT_EQ(values(t.to(DType::Bool)), (std::vector<double>{1, 0, 1, 1}));
  EXPECT_EQ(values(t.slice(0, 1, 3).to(DType::U8)), (std::vector<double>{0, 1, 127}));
  EXPECT_THROW(t.to(DType::U8), Error);
  EXPECT_THROW(t.to(DType::F32), Error);
  EXPECT_THROW(Tensor::zeros({1}).to(DType::I32), Error);
  // Beyond 2^53: no detour through double.
  const std::vector<std::int64_t> large = {std::numeric_limits<std::int64_t>::max()};
  EXPECT_THROW(Tensor::from<std::int64_t>(large, {1}).to(DType::I32), Error);
  EXPECT_THROW(Tensor::zeros({1}, DType::I8).fill(128), Error);
  EXPECT_THROW(Tensor::zeros({1}, DType::I64).fill(std::nan("")), Error);
}

TEST(Tensor, ConvertsSlicesAndKeepsItsOwnType) {
  const Tensor t = counting({3, 4}), part = t.slice(1, 1, 2);
  EXPECT_TRUE(t.to(DType::F32).shares_storage(t));
  const Tensor wide = part.to(DType::F64);
  EXPECT_TRUE(wide.is_contiguous());
  EXPECT_EQ(values(wide), values(part));
  EXPECT_EQ(wide.dtype(), DType::F64);
}

}  // namespace
}  // namespace stepwell
