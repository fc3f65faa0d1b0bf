# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Threads, signals, forks, memory, import."""

import os
import resource
import signal
import subprocess
import sys
import threading
from time import perf_counter

import numpy as np
import pytest
from op_calls import flat, op_calls

import stepwell
from stepwell import layers, ops


@pytest.fixture
def one_thread():
    before = stepwell.get_num_threads()
    stepwell.set_num_threads(1)
    yield
    stepwell.set_num_threads(before)


def test_threads_do_not_change_bits(rng):
    calls = op_calls(rng)
    before = stepwell.get_num_threads()
    found = []
    for threads in (1, 2, 3):
        stepwell.set_num_threads(threads)
        assert stepwell.get_num_threads() == threads == stepwell.info()["threads"]
        bits = []
        for function, arrays, options in calls.values():
            results, backward = stepwell.vjp(function, **arrays, **options)
            bits += [a.tobytes() for a in flat(results)] + [a.tobytes() for a in backward(*flat(results)).values()]
        found.append(bits)
    stepwell.set_num_threads(before)
    assert found[0] == found[1] == found[2]
    for wrong in (-1, 100000):
        with pytest.raises(ValueError, match="threads"):
            stepwell.set_num_threads(wrong)


def test_python_threads_compute_at_once(one_thread):
    """While one thread computes, the others run Python and compute themselves: the lock is not held."""
    call = matrix_memory(40000)
    expected = call()[0].tobytes()
    done, ticks, results = threading.Event(), [], []

    def compute():
        results.append(call()[0].tobytes())
        done.set()

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    while not done.is_set():
        ticks.append(ops.softmax(np.ones(3)).sum())
    for thread in threads:
        thread.join()
    assert results == [expected] * 2
    assert len(ticks) > 2


def test_a_layer_is_shared_by_threads():
    layer = layers.make("mamba", 16)
    x = np.random.default_rng(0).standard_normal((2, 64, 16)).astype(np.float32)
    other = {name: value * 0.5 for name, value in layer.named_parameters().items()}
    own, lent = layer(x)[0].tobytes(), layer(x, parameters=other)[0].tobytes()
    wrong = []

    def work(parameters, expected):
        for _ in range(50):
            if layer(x, parameters=parameters)[0].tobytes() != expected:
                wrong.append(expected)

    threads = [threading.Thread(target=work, args=job) for job in ((None, own), (other, lent), (None, own))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert own != lent and not wrong


class Stopped(Exception):
    pass


def interrupted(function):
    """Whether a timer's handler, raising at its third call, ends function() from inside."""
    calls, inside = [], [True]

    def handler(*_):
        calls.append(None)
        if len(calls) == 3 and inside:
            raise Stopped

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.055, 0.055)
    try:
        function()
        inside.clear()
    except Stopped:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# Calls by name, as functions that make one over so many tokens.
def matrix_memory(time, **form):
    q = numbers(1, time, 1, 128)
    return lambda: ops.linear_attention(q, q, q, **form)


def mlstm(time):
    q, gate = numbers(1, time, 1, 128), numbers(1, time, 1)
    return lambda: ops.mlstm(q, q, q, gate, gate)


def slstm(time):
    x, R = numbers(1, time, 256), numbers(1, 256, 64)
    return lambda: ops.slstm(x, R)


def scan(time):
    u, A, B = numbers(1, time, 16), -np.abs(numbers(16, 32)), numbers(1, time, 32)
    return lambda: ops.selective_scan(u, u, A, B, B)


def backward(time):
    q = numbers(1, time, 1, 128)
    back = stepwell.vjp(ops.linear_attention, q, q, q)[1]
    return lambda: back(q)


def layer(time):
    x, made = numbers(1, time, 32), layers.make("mamba2", 32, headdim=8, d_state=16)
    return lambda: made(x)


LONG_CALLS = {
    "recurrent": matrix_memory,
    "chunked": lambda time: matrix_memory(time, form="chunked"),
    "mlstm": mlstm,
    "slstm": slstm,
    "selective_scan": scan,
    "backward": backward,
    "layer": layer,
}


def stops(make):
    """Whether the call is ended from inside, over as many tokens as it takes for a handler to be called three times."""
    time = 5000
    while True:
        call, start = make(time), perf_counter()
        if interrupted(call):
            return True
        if perf_counter() - start > 3:
            return False
        time *= 2


@pytest.mark.parametrize("name, threads", [*((name, 1) for name in LONG_CALLS), ("recurrent", 2), ("backward", 2)])
def test_signals_stop_a_long_call(name, threads):
    before = stepwell.get_num_threads()
    stepwell.set_num_threads(threads)
    assert stops(LONG_CALLS[name])
    stepwell.set_num_threads(before)
    assert ops.softmax(np.ones((2, 3), np.float32)).sum() == pytest.approx(2)


def test_signals_stop_the_promises():
    assert interrupted(lambda: stepwell.verify.layers(out=None))


def test_control_c_is_a_keyboard_interrupt():
    program = """
import os, signal, threading
import numpy as np
from stepwell import ops
x = np.ones((1, 150000, 1, 384), np.float32)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    ops.linear_attention(x, x, x)
    print("ran to its end")
except KeyboardInterrupt:
    print("stopped", ops.softmax(np.zeros(2)))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "stopped [0.5 0.5]\n", found.stderr


def test_a_handler_sees_subnormal_numbers():
    """Handlers run while kernels flush subnormal numbers; they must not notice."""
    tiny, seen = 5e-324, []

    def handler(*_):
        seen.append(tiny * 1.0 + 0.0)

    call = matrix_memory(40000)
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.03)
    while len(seen) < 5:
        call()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    assert set(seen) == {tiny}
    assert tiny * 1.0 == tiny


def test_a_forked_child_computes():
    x = np.random.default_rng(0).standard_normal((4, 300, 8, 16)).astype(np.float32)
    expected = ops.linear_attention(x, x, x)[0].tobytes()
    child = os.fork()
    if child == 0:
        same = ops.linear_attention(x, x, x)[0].tobytes() == expected and stepwell.get_num_threads() == 1
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ops.linear_attention(x, x, x)[0].tobytes() == expected


def test_ten_thousand_calls_leave_no_memory_behind():
    rng = np.random.default_rng(0)
    function, arrays, options = op_calls(rng)["gated_delta"]
    arrays = {key: np.repeat(value, 8, axis=0) for key, value in arrays.items()}
    layer = layers.make("mamba", 16)
    x = rng.standard_normal((2, 16, 16)).astype(np.float32)
    bad = x[..., :3]

    def calls(count):
        for _ in range(count):
            results, backward = stepwell.vjp(function, **arrays, **options)
            backward(*results)
            layer(x)
            with pytest.raises(ValueError):
                layer(bad)

    calls(1000)
    before = resident()
    calls(10000)
    grown = resident() - before
    assert grown < 4 << 20, f"{grown} bytes more after 10,000 calls"


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_import_needs_nothing_but_numpy():
    program = "import sys, stepwell; print(sorted({n.split('.')[0] for n in sys.modules} & {'torch', 'scipy', 'jax'}))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_info():
    info = stepwell.info()
    assert info["version"] == stepwell.__version__
    assert info["instruction set"] in info["offered here"]
    assert info["processors"] >= 1
