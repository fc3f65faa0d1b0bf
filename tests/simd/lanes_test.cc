// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
// Tails: load_tail and store_tail, and with them every vector function, touch nothing outside an array and give the
// bits that full vectors give. SSE4 included: these are promises about memory and lanes, not about rounding.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stepwell/core/flush_to_zero.h"

#include "tests/simd/every_isa.h"
#include "tests/simd/vector_functions.h"

namespace stepwell::simd {
namespace {

// Memory whose last byte lies right before a page that must not be touched.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* p = mmap(nullptr, 3 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(p);
    mprotect(base_, size_, PROT_NONE);
    mprotect(base_ + 2 * size_, size_, PROT_NONE);
  }
  ~GuardedPage() { munmap(base_, 3 * size_); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;

  template <class T>
  T* first() const {  // the first element of the page, after another forbidden one
    return reinterpret_cast<T*>(base_ + size_);
  }
  template <class T>
  T* last(std::int64_t n) const {  // n elements up to its end
    return reinterpret_cast<T*>(base_ + 2 * size_) - n;
  }

 private:
  std::size_t size_;
  std::byte* base_;
};

template <class T>
std::vector<T> arguments(std::int64_t n) {
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(static_cast<T>(std::sin(static_cast<double>(i)) * 30 + 0.01));
  return x;
}

template <class T>
bool same_bits(const T* a, const T* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(T)) == 0;
}

constexpr std::int64_t kLongest = 70;

template <class T>
class Lanes : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Lanes, Types);

TYPED_TEST(Lanes, TailsGiveTheBitsOfFullVectors) {
  using T = TypeParam;
  FlushToZero mode;
  const auto x = arguments<T>(kLongest + 64);
  for_every_isa([&](Isa isa) {
    for (int f = 0; f < kFunctions; ++f) {
      const auto function = static_cast<Function>(f);
      std::vector<T> whole(x.size());
      apply(function, x.data(), whole.data(), kLongest + 58);  // a whole number of vectors on every target
      for (std::int64_t n = 0; n <= kLongest; ++n) {
        std::vector<T> y(x.size(), T{-77});
        apply(function, x.data(), y.data(), n);
        ASSERT_TRUE(same_bits(y.data(), whole.data(), n)) << function_name(function) << n << isa_name(isa);
        for (std::int64_t i = n; i < kLongest + 64; ++i)
          ASSERT_EQ(y[static_cast<std::size_t>(i)], -77) << "written beyond " << n;
      }
    }
  });
}

TYPED_TEST(Lanes, NothingOutsideAnArrayIsTouched) {
  using T = TypeParam;
  FlushToZero mode;
  const GuardedPage in, other, out;
  const auto x = arguments<T>(kLongest);
  for_every_isa([&](Isa isa) {
    for (std::int64_t n = 1; n <= kLongest; ++n) {
      for (const bool at_end : {true, false}) {
        T *from = at_end ? in.last<T>(n) : in.first<T>(), *to = at_end ? out.last<T>(n) : out.first<T>();
        T* second = at_end ? other.last<T>(n) : other.first<T>();
        std::copy_n(x.data(), n, from);
        std::copy_n(x.data(), n, second);
        std::fill_n(to, n, std::numeric_limits<T>::quiet_NaN());
        apply(Function::Silu, from, to, n);
        for (std::int64_t i = 0; i < n; ++i) ASSERT_FALSE(std::isnan(to[i])) << n << isa_name(isa);
        ASSERT_FALSE(std::isnan(sum_of(from, n) + dot_of(from, second, n)));
      }
    }
  });
}

}  // namespace
}  // namespace stepwell::simd
