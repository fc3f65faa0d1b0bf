// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "stepwell/core/context.h"
#include "stepwell/core/dtype.h"
#include "stepwell/core/view.h"

namespace stepwell {

// Up to six extents, held inline.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);  // throws for more than kMaxRank or a negative extent

  int rank() const { return rank_; }
  // Extent i; negative i counts from the end.
  std::int64_t operator[](int i) const { return extent_[i < 0 ? i + rank_ : i]; }
  std::int64_t& operator[](int i) { return extent_[i < 0 ? i + rank_ : i]; }
  std::int64_t size() const;  // product of the extents; 1 for rank 0
  // Product of all extents but the last: how many rows a tensor has.
  std::int64_t rows() const;
  std::span<const std::int64_t> extents() const { return {extent_.data(), static_cast<std::size_t>(rank_)}; }
  std::string to_string() const;  // "[2, 16, 4]"
  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMaxRank> extent_{};
  int rank_ = 0;
};

// Reference-counted memory behind tensors: heap, arena, or somebody else's (a mapped file).
class Storage {
 public:
  static Storage* on_heap(std::size_t bytes);
  static Storage* in_arena(Arena& arena, std::size_t bytes);
  // Wraps `data`, kept alive by `owner`.
  static Storage* wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner);

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();
  // One reference, and the memory is ours to write.
  bool unique() const { return home_ != Home::Wrapped && references_.load(std::memory_order_acquire) == 1; }

 private:
  enum class Home : std::uint8_t { Heap, Arena, Wrapped };
  Storage(void* data, std::size_t bytes, Home home) : data_(data), bytes_(bytes), home_(home) {}
  ~Storage() = default;
  std::atomic<std::int64_t> references_{1};
  void* data_;
  std::size_t bytes_;
  Home home_;
  std::shared_ptr<const void> owner_;
};

// An array with dtype and shape known at run time. Copying shares the storage. Dimensions are row-major; strides may
// skip (a slice of the last dimension), everything made by the library's constructors is contiguous.
class Tensor {
 public:
  Tensor() = default;
  ~Tensor() { reset(); }
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;

  // Uninitialised (NaN bytes in debug builds). With a context the memory may come from its arena (TensorScope).
  static Tensor empty(const Shape& shape, DType dtype = DType::F32);
  static Tensor empty(Context& ctx, const Shape& shape, DType dtype);
  static Tensor zeros(const Shape& shape, DType dtype = DType::F32);
  static Tensor zeros(Context& ctx, const Shape& shape, DType dtype);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::F32);
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  // Shares memory that `owner` keeps alive; never written through by the library.
  static Tensor wrap(void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner);
  // The same with strides of its own, in elements, one for each extent.
  static Tensor wrap(void* data, const Shape& shape, std::span<const std::int64_t> strides, DType dtype,
                     std::shared_ptr<const void> owner);

  bool defined() const { return storage_ != nullptr; }
  explicit operator bool() const { return defined(); }
  const Shape& shape() const { return shape_; }
  std::int64_t size(int dimension) const { return shape_[dimension]; }
  std::int64_t stride(int dimension) const { return stride_[dimension < 0 ? dimension + shape_.rank() : dimension]; }
  int rank() const { return shape_.rank(); }
  std::int64_t numel() const { return shape_.size(); }
  DType dtype() const { return dtype_; }
  bool is_contiguous() const;
  // No other tensor shares the memory, and it is not a part or a foreign mapping: the holder may write in place.
  bool is_unique() const { return storage_ && storage_->unique(); }
  bool shares_storage(const Tensor& other) const { return storage_ && storage_ == other.storage_; }

  void* raw() const { return data_; }
  // Typed pointer to the first element; throws if T is not the dtype.
  template <class T>
  T* data() const {
    check_dtype(dtype_of<T>());
    return static_cast<T*>(data_);
  }
  template <class T>
  std::span<T> span() const {  // contiguous tensors only
    check_contiguous();
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  // A view of rank R; throws if the rank or dtype differs.
  template <class T, int R>
  View<T, R> view() const {
    check_rank(R);
    View<T, R> v;
    v.data = data<std::remove_const_t<T>>();
    for (int i = 0; i < R; ++i) {
      v.extent[i] = shape_[i];
      v.stride[i] = stride_[i];
    }
    return v;
  }
  // The tensor as rows [rows, last]: all leading dimensions folded into one. Throws if they cannot be folded.
  template <class T>
  View<T, 2> rows() const {
    const Tensor folded = fold_rows();
    return folded.template view<T, 2>();
  }

  // Same storage, other shape. Needs a contiguous tensor, or one whose leading dimensions
  // are split or folded only.
  Tensor reshape(const Shape& shape) const;
  // Elements start … start+length−1 of `dimension`; shares the storage.
  Tensor slice(int dimension, std::int64_t start, std::int64_t length) const;
  // Folds all leading dimensions: [rows, last]. Shares the storage.
  Tensor fold_rows() const;

  // A contiguous copy (or the tensor itself if it is contiguous already).
  Tensor contiguous(Context& ctx) const;
  // A contiguous copy with storage of its own.
  Tensor clone() const;
  Tensor clone(Context& ctx) const;
  // Converted between float types and between integer types; 16-bit floats widen exactly, narrowing rounds to
  // nearest, an integer that does not fit is an Error.
  Tensor to(DType dtype) const;
  // Copies the values of `source` (same shape and dtype) into this tensor's memory.
  void copy_from(const Tensor& source) const;
  void fill(double value) const;

  // Element by flat row-major index as double, for tests and messages.
  double at(std::int64_t flat) const;

  // Equal shape, dtype and bytes.
  bool same_bits(const Tensor& other) const;

 private:
  Tensor(Storage* storage, void* data, const Shape& shape, DType dtype);
  static Tensor make(Storage* storage, const Shape& shape, DType dtype);
  void reset();
  void check_dtype(DType wanted) const;
  void check_rank(int rank) const;
  void check_contiguous() const;
  std::int64_t offset_of(std::int64_t flat) const;

  Storage* storage_ = nullptr;
  void* data_ = nullptr;
  Shape shape_;
  std::array<std::int64_t, Shape::kMaxRank> stride_{};
  DType dtype_ = DType::F32;
};

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  Tensor t = empty(shape, dtype_of<T>());
  STEPWELL_CHECK(static_cast<std::int64_t>(values.size()) == shape.size(), "Tensor::from",
                 std::to_string(values.size()) + " values for shape " + shape.to_string());
  std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}

}  // namespace stepwell
