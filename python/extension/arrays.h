// SPDX-FileCopyrightText: 2026 The Stepwell authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "stepwell/core/tensor.h"
#include "stepwell/layers/module.h"

// Between Python's arrays and tensors. stepwell/_arrays.py has made every array that comes in native, aligned and of a
// dtype we know; what is written here is for those alone.
namespace stepwell::python {

namespace nb = nanobind;

// The array behind `object` (NumPy's buffer protocol) as a tensor that shares its memory and is never written through.
// Dimensions keep their strides where the last is contiguous; `object` stays alive as long as the tensor does.
Tensor tensor_of(nb::handle object, const std::string& name);

// The tensor as a NumPy array: its own memory if nobody else holds it, or else a copy.
nb::object array_of(Tensor tensor);

// Any DLPack array on the CPU as a NumPy array of its own: float32 and float64 as they are, bfloat16 and float16 as
// float32, exactly.
nb::object copy_of(nb::handle object, const std::string& name);

std::vector<std::int64_t> integers_of(nb::handle object, const std::string& name);

// A dict of arrays by name as tensors, each as tensor_of() gives it, and back, each as array_of() gives it.
layers::NamedTensors named_tensors_of(const nb::dict& arrays);
nb::dict named_arrays_of(layers::NamedTensors tensors);

}  // namespace stepwell::python
