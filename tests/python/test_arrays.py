# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of any layout: the same bits as a contiguous copy, or an error that states the rule. Inputs never change."""

import array
import ctypes

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from op_calls import flat, op_calls

import stepwell
from stepwell import ops

NAMES = list(op_calls(np.random.default_rng(0)))


def unaligned(a):
    memory = np.zeros(a.nbytes + 1, np.uint8)
    odd = np.ndarray(a.shape, a.dtype, memory, offset=1)
    odd[...] = a
    assert not odd.flags.aligned
    return odd


def padded(a, axis, skip=1):
    """The array as a slice of one that is larger along `axis`, every `skip`-th of it."""
    shape = list(a.shape)
    shape[axis] = shape[axis] * skip + 3
    larger = np.full(shape, np.nan, a.dtype)
    index = [slice(None)] * a.ndim
    index[axis] = slice(1, 1 + a.shape[axis] * skip, skip)
    larger[tuple(index)] = a
    return larger[tuple(index)]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {
    "fortran order": np.asfortranarray,
    "slice of the last axis": lambda a: padded(a, -1),
    "slice of the first axis": lambda a: padded(a, 0),
    "slice of the second axis": lambda a: padded(a, min(1, a.ndim - 1)),
    "every other of the last axis": lambda a: padded(a, -1, 2),
    "every third of the first axis": lambda a: padded(a, 0, 3),
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "axes 1 and 2 exchanged": lambda a: np.ascontiguousarray(a.swapaxes(1, -1)).swapaxes(1, -1) if a.ndim > 2 else a,
    "negative strides": lambda a: np.flip(np.flip(a).copy()),
    "negative stride of the first axis": lambda a: a[::-1].copy()[::-1],
    "unaligned": unaligned,
    "read-only": read_only,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "buffer": lambda a: memoryview(a),
}


def run(function, arrays, options):
    results, backward = stepwell.vjp(function, **arrays, **options) if function in OPS else _closure(
        function, arrays, options)
    plain = function(**arrays, **options)
    for a, b in zip(flat(results), flat(plain)):
        assert a.tobytes() == b.tobytes()
    return flat(results), backward


def _closure(function, arrays, options):
    return stepwell.vjp(lambda **given: function(**given), **arrays, **options)


OPS = {getattr(ops, name) for name in ops.__all__}


def bits(function, arrays, options, cotangents):
    results, backward = run(function, arrays, options)
    gradients = backward(*cotangents)
    return [a.tobytes() for a in results], {name: None if a is None else a.tobytes() for name, a in gradients.items()}


def cotangents_of(function, arrays, options, rng):
    return [rng.standard_normal(a.shape).astype(a.dtype) for a in flat(function(**arrays, **options))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_any_layout_gives_the_bits_of_a_contiguous_copy(name, dtype, rng):
    function, arrays, options = op_calls(rng, dtype)[name]
    cotangents = cotangents_of(function, arrays, options, rng)
    expected = bits(function, arrays, options, cotangents)
    kept = {key: value.copy() for key, value in arrays.items()}
    for layout, make in LAYOUTS.items():
        for key in arrays:
            changed = {**arrays, key: make(arrays[key])}
            assert bits(function, changed, options, cotangents) == expected, (layout, key)
        everything = {key: make(value) for key, value in arrays.items()}
        assert bits(function, everything, options, cotangents) == expected, layout
    for key, value in kept.items():
        assert arrays[key].tobytes() == value.tobytes(), f"{key} was changed"


@pytest.mark.parametrize("name", NAMES)
def test_upstream_gradients_of_any_layout(name, rng):
    function, arrays, options = op_calls(rng)[name]
    cotangents = cotangents_of(function, arrays, options, rng)
    expected = bits(function, arrays, options, cotangents)
    for layout, make in LAYOUTS.items():
        assert bits(function, arrays, options, [make(c) for c in cotangents]) == expected, layout


def test_zero_strides(rng):
    g = -np.abs(rng.standard_normal((1, 1, 2, 3)))
    q, k, v = (rng.standard_normal((2, 7, 2, 3)) for _ in range(3))
    spread = np.broadcast_to(g, (2, 7, 2, 3))
    assert 0 in spread.strides
    o, state = ops.gated_linear_attention(q, k, v, spread)
    o2, state2 = ops.gated_linear_attention(q, k, v, np.array(spread))
    assert o.tobytes() == o2.tobytes() and state.tobytes() == state2.tobytes()


def test_axes_of_size_one_may_have_any_stride(rng):
    arrays = [rng.standard_normal((1, 4, 1, 3)) for _ in range(3)]
    odd = [as_strided(a, a.shape, (8 * 12345, a.strides[1], -7, 8)) for a in arrays]
    assert ops.linear_attention(*odd)[0].tobytes() == ops.linear_attention(*arrays)[0].tobytes()


def test_empty_arrays(rng):
    q = np.zeros((2, 0, 3, 4), np.float32)
    state = rng.standard_normal((2, 3, 4, 4)).astype(np.float32)
    (o, last), backward = stepwell.vjp(ops.linear_attention, q, q, q, initial_state=state)
    assert o.shape == (2, 0, 3, 4) and last.tobytes() == state.tobytes()
    gradients = backward(o, np.ones_like(state))
    assert gradients["q"].shape == q.shape and (gradients["initial_state"] == 1).all()
    none = np.zeros((0, 5, 3, 4), np.float32)
    assert ops.linear_attention(none, none, none)[0].shape == none.shape


def test_half_precision_is_widened(rng):
    a = rng.standard_normal((4, 6)).astype(np.float16)
    y = ops.softmax(a)
    assert y.dtype == np.float32 and y.tobytes() == ops.softmax(a.astype(np.float32)).tobytes()


def test_bfloat16_over_dlpack_is_widened():
    """bfloat16 comes from libraries that NumPy's DLPack does not understand: a capsule by hand."""
    numbers = np.array([[1.0, -2.5, 3.0e38], [0.0, np.inf, 2.0**-120]], np.float32)
    y = ops.elementwise(Bfloat16(numbers), "relu")
    assert y.dtype == np.float32 and y.tobytes() == np.maximum(Bfloat16(numbers).widened(), 0).tobytes()


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Bfloat16:
    """An array of bfloat16 that offers DLPack and nothing else."""

    def __init__(self, numbers):
        self.halves = np.ascontiguousarray((numbers.view(np.uint32) >> 16).astype(np.uint16))
        self.shape = (ctypes.c_int64 * numbers.ndim)(*numbers.shape)
        tensor = DLTensor(self.halves.ctypes.data, 1, 0, numbers.ndim, 4, 16, 1, self.shape, None, 0)
        self.managed = DLManagedTensor(tensor, None, None)

    def widened(self):
        return (self.halves.astype(np.uint32) << 16).view(np.float32)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


class OfOldKind:
    """float32 over DLPack from a library that NumPy's own import does not get along with."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.asked = 0

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        self.asked += 1
        if self.asked == 1:
            raise BufferError("not for you")
        return self.numbers.__dlpack__()


def test_what_numpy_does_not_import_is_copied():
    numbers = np.arange(24.0).reshape(4, 6)[:, ::2]
    for dtype in (np.float32, np.float64):
        array = numbers.astype(dtype)
        assert ops.softmax(OfOldKind(array.T)).tobytes() == ops.softmax(array.T).tobytes()
    with pytest.raises(ValueError, match="x.*items of 64 bits"):
        ops.softmax(OfOldKind(np.arange(3)))


def test_torch_tensors_are_arrays():
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 4, 5)
    assert ops.softmax(x).tobytes() == ops.softmax(x.numpy()).tobytes()
    assert ops.softmax(x.transpose(0, 2)).tobytes() == ops.softmax(x.transpose(0, 2).numpy().copy()).tobytes()
    half = x.to(torch.bfloat16)
    assert ops.softmax(half).tobytes() == ops.softmax(half.float().numpy()).tobytes()
    assert ops.softmax(half.to(torch.float16)).tobytes() == ops.softmax(half.float().numpy()).tobytes()
    with pytest.raises(ValueError, match="x requires a gradient.*expected a detached tensor"):
        ops.softmax(x.requires_grad_())
    with pytest.raises(TypeError, match="x has dtype int64"):
        ops.softmax(torch.arange(3))


class Elsewhere:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("not to be asked")


def test_the_buffer_protocol_is_enough():
    assert ops.softmax(array.array("d", [1, 2, 3])).tobytes() == ops.softmax(np.array([1.0, 2.0, 3.0])).tobytes()


@pytest.mark.parametrize("wrong, words", [
    (np.zeros((2, 3), np.int64), ["x", "int64", "expected float32, float64"]),
    (np.zeros((2, 3), np.complex64), ["x", "complex64"]),
    (np.zeros((2, 3), np.longdouble), ["x", "float128"]),
    (np.zeros((2, 3), bool), ["x", "bool"]),
    (np.zeros((2, 3), object), ["x", "object"]),
    (np.ma.zeros((2, 3)), ["x", "masked"]),
    ([[1.0, 2.0]], ["x", "list", "expected an array"]),
    (1.5, ["x", "float", "expected an array"]),
    ("abc", ["x", "str"]),
    (b"abcd", ["x", "bytes"]),
    (None, ["x", "expected an array"]),
    (object(), ["x", "object", "expected an array"]),
    (Elsewhere(), ["x", "Elsewhere", "device (2, 0)"]),
])
def test_what_is_no_array_of_ours_is_a_type_error(wrong, words):
    with pytest.raises(TypeError) as error:
        ops.softmax(wrong)
    for word in words:
        assert word in str(error.value)


def test_two_dtypes_in_a_call_are_a_type_error(rng):
    with pytest.raises(TypeError, match="weight has dtype float64 and x float32"):
        ops.linear(np.zeros((2, 3), np.float32), np.zeros((4, 3)))
    _, backward = stepwell.vjp(ops.softmax, np.zeros((2, 3), np.float32))
    with pytest.raises(TypeError, match="gradient of y has dtype float64, expected float32"):
        backward(np.zeros((2, 3)))


def test_too_many_dimensions_are_a_value_error():
    with pytest.raises(ValueError, match="7 dimensions"):
        ops.softmax(np.zeros((1,) * 7))


def test_results_may_be_written_and_no_later_gradient_sees_it(rng):
    x = rng.standard_normal((3, 4))
    y, backward = stepwell.vjp(ops.softmax, x)
    first = backward(np.arange(12.0).reshape(3, 4))["x"]
    y[...] = 0
    second = backward(np.arange(12.0).reshape(3, 4))["x"]
    assert first.tobytes() == second.tobytes()
    first[...] = 0
    assert backward(np.arange(12.0).reshape(3, 4))["x"].tobytes() == second.tobytes()
