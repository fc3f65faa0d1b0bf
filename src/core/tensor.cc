// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "stepwell/core/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/elements.h"

namespace stepwell {

// ---------------------------------------------------------------------------------------------------------- Shape

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  STEPWELL_CHECK(extents.size() <= kMaxRank, "Shape",
                 std::to_string(extents.size()) + " dimensions, expected at most " + std::to_string(kMaxRank));
  std::int64_t total = 1;
  for (int i = 0; i < rank_; ++i) {
    const std::int64_t e = extents[static_cast<std::size_t>(i)];
    STEPWELL_CHECK(e >= 0, "Shape",
                   "extent " + std::to_string(e) + " of dimension " + std::to_string(i) + ", expected ≥ 0");
    STEPWELL_CHECK(
        !__builtin_mul_overflow(total, std::max<std::int64_t>(e, 1), &total) && total < (std::int64_t{1} << 58),
        "Shape", "more than 2^58 elements");
    extent_[i] = e;
  }
}

std::int64_t Shape::size() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= extent_[i];
  return n;
}

std::int64_t Shape::rows() const {
  std::int64_t n = 1;
  for (int i = 0; i + 1 < rank_; ++i) n *= extent_[i];
  return n;
}

std::string Shape::to_string() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(extent_[i]);
  return s + "]";
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(extent_.begin(), extent_.begin() + rank_, other.extent_.begin());
}

// -------------------------------------------------------------------------------------------------------- Storage

namespace {
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHeader = 64;  // room for the Storage object before its data
}  // namespace

Storage* Storage::on_heap(std::size_t bytes) {
  static_assert(sizeof(Storage) <= kHeader);
  auto* block = static_cast<std::byte*>(::operator new(kHeader + bytes, std::align_val_t{kAlignment}));
  return new (block) Storage(block + kHeader, bytes, Home::Heap);
}

Storage* Storage::in_arena(Arena& arena, std::size_t bytes) {
  auto* block = static_cast<std::byte*>(arena.allocate(kHeader + bytes));
  return new (block) Storage(block + kHeader, bytes, Home::Arena);
}

Storage* Storage::wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner) {
  auto* block = static_cast<std::byte*>(::operator new(kHeader, std::align_val_t{kAlignment}));
  auto* storage = new (block) Storage(data, bytes, Home::Wrapped);
  storage->owner_ = std::move(owner);
  return storage;
}

void Storage::release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Home home = home_;
  this->~Storage();
  if (home != Home::Arena) ::operator delete(static_cast<void*>(this), std::align_val_t{kAlignment});
}

// --------------------------------------------------------------------------------------------------------- Tensor

Tensor::Tensor(const Tensor& other)
    : storage_(other.storage_), data_(other.data_), shape_(other.shape_), stride_(other.stride_), dtype_(other.dtype_) {
  if (storage_) storage_->retain();
}

Tensor::Tensor(Tensor&& other) noexcept
    : storage_(other.storage_), data_(other.data_), shape_(other.shape_), stride_(other.stride_), dtype_(other.dtype_) {
  other.storage_ = nullptr;
  other.data_ = nullptr;
  other.shape_ = Shape();
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) {
    Tensor copy(other);
    *this = std::move(copy);
  }
  return *this;
}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this != &other) {
    reset();
    storage_ = other.storage_;
    data_ = other.data_;
    shape_ = other.shape_;
    stride_ = other.stride_;
    dtype_ = other.dtype_;
    other.storage_ = nullptr;
    other.data_ = nullptr;
    other.shape_ = Shape();
  }
  return *this;
}

void Tensor::reset() {
  if (storage_) storage_->release();
  storage_ = nullptr;
  data_ = nullptr;
}

Tensor::Tensor(Storage* storage, void* data, const Shape& shape, DType dtype)
    : storage_(storage), data_(data), shape_(shape), dtype_(dtype) {
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    stride_[i] = step;
    step *= shape[i];
  }
}

Tensor Tensor::make(Storage* storage, const Shape& shape, DType dtype) {
  return Tensor(storage, storage->data(), shape, dtype);
}

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  const auto bytes = static_cast<std::size_t>(shape.size() * dtype_size(dtype));
  Tensor t = make(Storage::on_heap(bytes), shape, dtype);
#ifndef NDEBUG
  std::memset(t.data_, 0xFF, bytes);
#endif
  return t;
}

Tensor Tensor::empty(Context& ctx, const Shape& shape, DType dtype) {
  if (Arena* arena = ctx.tensor_arena()) {
    return make(Storage::in_arena(*arena, static_cast<std::size_t>(shape.size() * dtype_size(dtype))), shape, dtype);
  }
  return empty(shape, dtype);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor t = empty(shape, dtype);
  std::memset(t.data_, 0, t.storage_->bytes());
  return t;
}

Tensor Tensor::zeros(Context& ctx, const Shape& shape, DType dtype) {
  Tensor t = empty(ctx, shape, dtype);
  std::memset(t.data_, 0, t.storage_->bytes());
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor t = empty(shape, dtype);
  t.fill(value);
  return t;
}

Tensor Tensor::wrap(void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner) {
  const auto bytes = static_cast<std::size_t>(shape.size() * dtype_size(dtype));
  return make(Storage::wrap(data, bytes, std::move(owner)), shape, dtype);
}

Tensor Tensor::wrap(void* data, const Shape& shape, std::span<const std::int64_t> strides, DType dtype,
                    std::shared_ptr<const void> owner) {
  STEPWELL_CHECK(strides.size() == static_cast<std::size_t>(shape.rank()), "Tensor::wrap",
                 std::to_string(strides.size()) + " strides for shape " + shape.to_string());
  Tensor t = wrap(data, shape, dtype, std::move(owner));
  std::copy(strides.begin(), strides.end(), t.stride_.begin());
  return t;
}

bool Tensor::is_contiguous() const {
  std::int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && stride_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

void Tensor::check_dtype(DType wanted) const {
  STEPWELL_CHECK(defined(), "Tensor", "is not defined, expected " + std::string(dtype_name(wanted)));
  STEPWELL_CHECK(dtype_ == wanted, "Tensor",
                 "dtype " + std::string(dtype_name(dtype_)) + ", expected " + std::string(dtype_name(wanted)));
}
void Tensor::check_rank(int wanted) const {
  STEPWELL_CHECK(rank() == wanted, "Tensor",
                 "shape " + shape_.to_string() + ", expected " + std::to_string(wanted) + " dimensions");
}
void Tensor::check_contiguous() const {
  STEPWELL_CHECK(is_contiguous(), "Tensor", "shape " + shape_.to_string() + " with gaps, expected a contiguous tensor");
}

Tensor Tensor::reshape(const Shape& wanted) const {
  STEPWELL_CHECK(wanted.size() == numel(), "reshape",
                 "shape " + shape_.to_string() + " to " + wanted.to_string() + ", expected as many elements");
  Tensor t = *this;
  t.shape_ = wanted;
  if (is_contiguous() || numel() == 0) {
    std::int64_t step = 1;
    for (int i = wanted.rank() - 1; i >= 0; --i) {
      t.stride_[i] = step;
      step *= wanted[i];
    }
    return t;
  }
  // A slice: equal last dimensions, and leading dimensions that fold into evenly spaced rows.
  const bool same_last = wanted.rank() > 0 && rank() > 0 && wanted[-1] == shape_[-1];
  STEPWELL_CHECK(
      same_last, "reshape",
      "shape " + shape_.to_string() + " with gaps to " + wanted.to_string() + ", expected a contiguous tensor");
  std::int64_t row_step = 0, expected = -1;
  for (int i = rank() - 2; i >= 0; --i) {
    if (shape_[i] == 1) continue;
    if (expected < 0) row_step = stride_[i];
    STEPWELL_CHECK(expected < 0 || stride_[i] == expected, "reshape",
                   "shape " + shape_.to_string() + ": rows are not evenly spaced, expected a contiguous tensor");
    expected = stride_[i] * shape_[i];
  }
  if (expected < 0) row_step = shape_[-1];
  t.stride_[wanted.rank() - 1] = stride_[rank() - 1];
  std::int64_t step = row_step;
  for (int i = wanted.rank() - 2; i >= 0; --i) {
    t.stride_[i] = step;
    step *= wanted[i];
  }
  return t;
}

Tensor Tensor::slice(int dimension, std::int64_t start, std::int64_t length) const {
  const int d = dimension < 0 ? dimension + rank() : dimension;
  STEPWELL_CHECK(
      d >= 0 && d < rank() && start >= 0 && length >= 0 && length <= shape_[d] && start <= shape_[d] - length, "slice",
      std::to_string(length) + " elements from " + std::to_string(start) + " of dimension " +
          std::to_string(dimension) + " of " + shape_.to_string());
  Tensor t = *this;
  t.shape_[d] = length;
  t.data_ = static_cast<std::byte*>(data_) + start * stride_[d] * dtype_size(dtype_);
  return t;
}

Tensor Tensor::fold_rows() const {
  STEPWELL_CHECK(rank() >= 1, "Tensor", "a scalar has no rows");
  return reshape({shape_.rows(), shape_[-1]});
}

std::int64_t Tensor::offset_of(std::int64_t flat) const {
  std::int64_t offset = 0;
  for (int i = rank() - 1; i >= 0; --i) {
    offset += flat % shape_[i] * stride_[i];
    flat /= shape_[i];
  }
  return offset;
}

namespace {

// Copies `count` runs of `run` contiguous elements between possibly strided tensors.
void copy_elements(const Tensor& source, const Tensor& target) {
  const std::int64_t size = dtype_size(source.dtype());
  const std::int64_t n = source.numel();
  if (n == 0) return;
  if (source.is_contiguous() && target.is_contiguous()) {
    std::memcpy(target.raw(), source.raw(), static_cast<std::size_t>(n * size));
    return;
  }
  const int rank = source.rank();
  const bool rows = source.stride(-1) == 1 && target.stride(-1) == 1;
  const std::int64_t run = rows ? source.shape()[-1] : 1;
  std::array<std::int64_t, Shape::kMaxRank> at{};
  const auto* from = static_cast<const std::byte*>(source.raw());
  auto* to = static_cast<std::byte*>(target.raw());
  for (std::int64_t done = 0; done < n; done += run) {
    std::int64_t a = 0, b = 0;
    for (int i = 0; i < rank; ++i) {
      a += at[i] * source.stride(i);
      b += at[i] * target.stride(i);
    }
    std::memcpy(to + b * size, from + a * size, static_cast<std::size_t>(run * size));
    int i = rank - 1;
    if (rows) --i;
    for (; i >= 0; --i) {
      if (++at[i] < source.shape()[i]) break;
      at[i] = 0;
    }
  }
}

}  // namespace

Tensor Tensor::contiguous(Context& ctx) const { return is_contiguous() ? *this : clone(ctx); }

Tensor Tensor::clone() const {
  Tensor t = empty(shape_, dtype_);
  copy_elements(*this, t);
  return t;
}

Tensor Tensor::clone(Context& ctx) const {
  Tensor t = empty(ctx, shape_, dtype_);
  copy_elements(*this, t);
  return t;
}

void Tensor::copy_from(const Tensor& source) const {
  STEPWELL_CHECK(source.shape() == shape_ && source.dtype() == dtype_, "copy_from",
                 std::string(dtype_name(source.dtype())) + " " + source.shape().to_string() + " into " +
                     std::string(dtype_name(dtype_)) + " " + shape_.to_string());
  copy_elements(source, *this);
}

Tensor Tensor::to(DType wanted) const {
  STEPWELL_CHECK(defined(), "Tensor::to", "the tensor is not defined");
  if (wanted == dtype_) return *this;
  STEPWELL_CHECK(is_floating(wanted) == is_floating(dtype_), "Tensor::to",
                 std::string(dtype_name(dtype_)) + " to " + std::string(dtype_name(wanted)) +
                     ", expected both floating point or both integer");
  if (!is_contiguous()) return clone().to(wanted);
  Tensor t = empty(shape_, wanted);
  convert_elements(data_, dtype_, t.data_, wanted, numel());
  return t;
}

void Tensor::fill(double value) const {
  const bool gaps = !is_contiguous();
  for (std::int64_t i = 0, n = numel(); i < n; ++i) write_element(data_, dtype_, gaps ? offset_of(i) : i, value);
}

double Tensor::at(std::int64_t flat) const {
  STEPWELL_CHECK(defined() && flat >= 0 && flat < numel(), "Tensor::at",
                 "element " + std::to_string(flat) + " of " + (defined() ? shape_.to_string() : "an undefined tensor"));
  return read_element(data_, dtype_, offset_of(flat));
}

bool Tensor::same_bits(const Tensor& other) const {
  if (dtype_ != other.dtype_ || !(shape_ == other.shape_) || defined() != other.defined()) return false;
  if (!defined() || numel() == 0) return true;
  if (!is_contiguous()) return clone().same_bits(other);
  if (!other.is_contiguous()) return same_bits(other.clone());
  return std::memcmp(data_, other.data_, static_cast<std::size_t>(numel() * dtype_size(dtype_))) == 0;
}

}  // namespace stepwell
