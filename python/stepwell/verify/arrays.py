# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""NumPy and torch values, and nests of them (tuples, lists, dicts), seen alike."""

import sys

import numpy as np


def is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_numpy(value):
    """An array or tensor as a NumPy array; 16-bit floats widened."""
    if is_torch(value):
        value = value.detach().cpu()
        if value.is_floating_point() and value.element_size() == 2:
            value = value.float()
        return value.numpy()
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name in ("float16", "bfloat16") else array


def is_array(value):
    return is_torch(value) or isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__")


def leaves(nest, path=""):
    """(path, NumPy array) of every array in a nest; what is neither a container nor an array is passed over."""
    if is_array(nest):
        return [(path, to_numpy(nest))]
    if isinstance(nest, (tuple, list)):
        return [leaf for i, item in enumerate(nest) for leaf in leaves(item, f"{path}[{i}]")]
    if hasattr(nest, "items"):
        return [leaf for key, item in nest.items() for leaf in leaves(item, f"{path}[{key!r}]")]
    return []


def mapped(nest, function):
    """The nest with function(array) in place of every array."""
    if is_array(nest):
        return function(nest)
    if isinstance(nest, (tuple, list)):
        return type(nest)(mapped(item, function) for item in nest)
    if isinstance(nest, dict):
        return {key: mapped(item, function) for key, item in nest.items()}
    return nest
