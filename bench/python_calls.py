# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""What the Python package adds to the arithmetic, measured: import, a call, a step; and how far threads overlap."""

import subprocess
import sys
import threading
import time

import numpy as np

import stepwell
from stepwell import layers, ops

IMPORT = """
import time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import stepwell
print(time.perf_counter() - start, middle - start)
"""


def best(function, times=5):
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def microseconds(function, calls=500):
    def run():
        for _ in range(calls):
            function()

    return best(run) / calls * 1e6


def import_times():
    runs = [subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(5)]
    return min((float(both), float(numpy)) for both, numpy in runs)


def together(function):
    threads = [threading.Thread(target=function) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    rng = np.random.default_rng(0)

    def n(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    both, numpy = import_times()
    print(f"import stepwell                            {both:.3f} s, {numpy:.3f} s of it for NumPy {np.__version__}")
    stepwell.set_num_threads(1)
    x = n(1, 8)
    print(f"softmax of 8 numbers                       {microseconds(lambda: ops.softmax(x)):.1f} µs")
    q, state = n(1, 1, 1, 16), n(1, 1, 16, 16)
    step = microseconds(lambda: ops.linear_attention(q, q, q, initial_state=state))
    print(f"linear attention, one token, 16 × 16       {step:.1f} µs")
    layer, token = layers.make("mamba", 64).prepare(), n(1, 64)
    carried = layer.step(token)[1]
    print(f"Mamba layer of width 64, one token         {microseconds(lambda: layer.step(token, carried)):.1f} µs")
    long = [n(1, 8192, 4, 128) for _ in range(3)]

    def call():
        ops.linear_attention(*long)

    one, two = best(call), best(lambda: together(call))
    print(f"two calls in two threads, one thread each  {2 * one / two:.2f} times as fast as one after the other")


main()
