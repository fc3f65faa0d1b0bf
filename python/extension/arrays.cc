// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#include "python/extension/arrays.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

namespace stepwell::python {

namespace {

// A buffer that is given back under the interpreter's lock, whoever lets go of it last.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) throw nb::python_error();
  }
  ~Buffer() {
    const nb::gil_scoped_acquire lock;
    PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
};

std::optional<DType> dtype_of_format(std::string_view format, std::int64_t size) {
  if (format == "f") return DType::F32;
  if (format == "d") return DType::F64;
  if ((format == "l" || format == "q") && size == 8) return DType::I64;
  if (format == "?") return DType::Bool;
  if (format == "B") return DType::U8;
  return {};
}

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype) {
  const auto is = [&](nb::dlpack::dtype_code code) { return dtype.code == static_cast<std::uint8_t>(code); };
  if (dtype.lanes != 1) return {};
  if (is(nb::dlpack::dtype_code::Bfloat) && dtype.bits == 16) return DType::BF16;
  if (!is(nb::dlpack::dtype_code::Float)) return {};
  if (dtype.bits == 16) return DType::F16;
  if (dtype.bits == 32) return DType::F32;
  if (dtype.bits == 64) return DType::F64;
  return {};
}

}  // namespace

Tensor tensor_of(nb::handle object, const std::string& name) {
  const auto buffer = std::make_shared<const Buffer>(object);
  const Py_buffer& view = buffer->view();
  const std::optional<DType> dtype = dtype_of_format(view.format ? view.format : "B", view.itemsize);
  STEPWELL_CHECK(dtype.has_value(), name,
                 std::string("items of format ") + view.format + ", which is no dtype of ours");
  STEPWELL_CHECK(view.ndim <= Shape::kMaxRank, name,
                 std::to_string(view.ndim) + " dimensions, expected at most " + std::to_string(Shape::kMaxRank));
  std::array<std::int64_t, Shape::kMaxRank> extents{}, strides{};
  for (int i = 0; i < view.ndim; ++i) {
    const auto at = static_cast<std::size_t>(i);
    extents[at] = view.shape[i];
    strides[at] = view.strides[i] / view.itemsize;
  }
  const auto rank = static_cast<std::size_t>(view.ndim);
  return Tensor::wrap(view.buf, Shape(std::span(extents).first(rank)), std::span(strides).first(rank), *dtype, buffer);
}

nb::object array_of(Tensor tensor) {
  if (!tensor.defined()) return nb::none();
  auto* held = new Tensor(tensor.is_unique() && tensor.is_contiguous() ? std::move(tensor) : tensor.clone());
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  std::array<std::size_t, Shape::kMaxRank> extents{};
  for (int i = 0; i < held->rank(); ++i) extents[static_cast<std::size_t>(i)] = static_cast<std::size_t>(held->size(i));
  const auto array = [&]<class T>(T) {
    return nb::cast(nb::ndarray<nb::numpy, T>(static_cast<T*>(held->raw()), static_cast<std::size_t>(held->rank()),
                                              extents.data(), owner),
                    nb::rv_policy::reference);
  };
  switch (held->dtype()) {
    case DType::F64: return array(double{});
    case DType::I64: return array(std::int64_t{});
    case DType::Bool: return array(bool{});
    default: held->data<float>(); return array(float{});
  }
}

nb::object copy_of(nb::handle object, const std::string& name) {
  const auto array = nb::cast<nb::ndarray<nb::ro, nb::device::cpu>>(object);
  const std::optional<DType> dtype = dtype_of_dlpack(array.dtype());
  STEPWELL_CHECK(dtype.has_value(), name,
                 "items of " + std::to_string(array.dtype().bits) +
                     " bits of another dtype, expected float32, float64, bfloat16 or float16");
  STEPWELL_CHECK(array.ndim() <= Shape::kMaxRank, name,
                 std::to_string(array.ndim()) + " dimensions, expected at most " + std::to_string(Shape::kMaxRank));
  std::array<std::int64_t, Shape::kMaxRank> extents{}, strides{};
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    extents[i] = static_cast<std::int64_t>(array.shape(i));
    strides[i] = array.stride(i);
  }
  const Tensor lent = Tensor::wrap(const_cast<void*>(array.data()), Shape(std::span(extents).first(array.ndim())),
                                   std::span(strides).first(array.ndim()), *dtype, nullptr);
  return array_of(dtype_size(*dtype) == 2 ? lent.to(DType::F32) : lent.clone());
}

std::vector<std::int64_t> integers_of(nb::handle object, const std::string& name) {
  if (object.is_none()) return {};
  const Tensor tensor = tensor_of(object, name);
  STEPWELL_CHECK(tensor.rank() == 1 && tensor.dtype() == DType::I64, name, "expected one dimension of integers");
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values.push_back(tensor.data<std::int64_t>()[i * tensor.stride(0)]);
  return values;
}

layers::NamedTensors named_tensors_of(const nb::dict& arrays) {
  layers::NamedTensors tensors;
  for (const auto& [key, array] : arrays) {
    std::string name = nb::cast<std::string>(key);
    Tensor tensor = tensor_of(array, name);
    tensors.emplace_back(std::move(name), std::move(tensor));
  }
  return tensors;
}

nb::dict named_arrays_of(layers::NamedTensors tensors) {
  nb::dict arrays;
  for (auto& [name, tensor] : tensors) arrays[name.c_str()] = array_of(std::move(tensor));
  return arrays;
}

}  // namespace stepwell::python
