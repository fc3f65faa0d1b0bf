# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""A small call of every op: name → (function, arrays by argument's name, options)."""

import numpy as np

from stepwell import ops

B, T, H, K, V, D, N = 2, 5, 2, 3, 4, 6, 3


def _numbers(rng, dtype):
    return lambda *shape: rng.standard_normal(shape).astype(dtype)


def _delta(n, rng):
    def gate(*shape):
        return (1 / (1 + np.exp(-n(*shape)))).astype(n().dtype)

    return dict(q=n(B, T, H, K), k=n(B, T, H, K), v=n(B, T, 2 * H, V), g=-np.abs(n(B, T, H, K)), b=gate(B, T, H, K),
                w=gate(B, T, 2 * H, V), initial_state=n(B, 2 * H, K, V))


def op_calls(rng, dtype=np.float32):
    n = _numbers(rng, dtype)
    delta = _delta(n, rng)
    per_head = {"g": -np.abs(n(B, T, 2 * H)), "beta": delta["w"][..., 0].copy()}
    without = {key: delta[key] for key in ("q", "k", "v", "initial_state")}
    gates = dict(A_log=n(H), dt_bias=n(H * K))
    scan = dict(u=n(B, T, D), dt=n(B, T, D), A=-np.abs(n(D, N)), B=n(B, T, 2, N), C=n(B, T, 2, N), D=n(D),
                z=n(B, T, D), dt_bias=n(D), initial_state=n(B, D, N))
    state = ("C", "n", "m")
    mlstm = dict(q=n(B, T, H, K), k=n(B, T, H, K), v=n(B, T, H, V), i=n(B, T, H), f=n(B, T, H), C=n(B, H, K, V),
                 n=n(B, H, K), m=n(B, H))

    def run_mlstm(C, n, m, **arrays):
        return ops.mlstm(**arrays, initial_state=(C, n, m))

    assert set(state) < set(mlstm)
    return {
        "gated_delta": (ops.gated_delta, delta, dict(l2norm=True)),
        "gated_delta chunked": (ops.gated_delta, delta, dict(form="chunked", chunk=2)),
        "gated_delta fast": (ops.gated_delta, {**without, **per_head}, dict(form="fast")),
        "gated_delta softplus gate": (ops.gated_delta, {**delta, **gates}, dict(gate="softplus", scale=0.5)),
        "gated_delta bounded gate": (ops.gated_delta, {**delta, **gates}, dict(gate="bounded", lower_bound=-3)),
        "gated_delta_net": (ops.gated_delta_net, {**without, **per_head}, {}),
        "delta_net": (ops.delta_net, {**without, "beta": per_head["beta"]}, {}),
        "simple_gla": (ops.simple_gla, {**without, "g": per_head["g"]}, {}),
        "ssd": (ops.ssd, dict(x=n(B, T, 4, V), dt=n(B, T, 4), A=-np.abs(n(4)), B=n(B, T, 2, N), C=n(B, T, 2, N),
                              D=n(4, V), z=n(B, T, 4, V), dt_bias=n(4), initial_state=n(B, 4, V, N)),
                dict(dt_limit=(0.01, 2.0))),
        "mlstm": (run_mlstm, mlstm, {}),
        "slstm": (ops.slstm, dict(x=n(B, T, 4 * D), R=n(2, 4 * 3, 3), bias=n(4 * D), initial_state=_slstm_state(n)),
                  {}),
        "selective_scan": (ops.selective_scan, scan, {}),
        "selective_scan constant": (ops.selective_scan, {**scan, "B": n(D, N), "C": n(D, N)},
                                    dict(discretisation="zero_order")),
        "short_conv": (ops.short_conv, dict(x=n(B, T, D), weight=n(D, 3), bias=n(D), initial_state=n(B, D, 3)), {}),
        "matmul": (ops.matmul, dict(a=n(5, 4), b=n(3, 4)), dict(product="ABt")),
        "linear": (ops.linear, dict(x=n(B, T, D), weight=n(4, D), bias=n(4)), {}),
        "headwise_linear": (ops.headwise_linear, dict(x=n(B, T, D), weight=n(2, 5, 3), bias=n(10)), {}),
        "rms_norm": (ops.rms_norm, dict(x=n(B, T, D), weight=n(D), z=n(B, T, D)), dict(group=3, gate="after")),
        "layer_norm": (ops.layer_norm, dict(x=n(B, T, D), weight=n(D), bias=n(D)), dict(group=2, one_plus_weight=True)),
        "softmax": (ops.softmax, dict(x=n(B, T, D)), {}),
        "elementwise": (ops.elementwise, dict(x=n(B, T, D)), dict(function="gelu")),
    }


def _slstm_state(n):
    state = n(B, 4, D)
    state[:, 2] = np.abs(state[:, 2]) + 0.5
    return state


def flat(results):
    """The arrays of an op's results, whether one, a tuple, or nested."""
    if isinstance(results, np.ndarray):
        return [results]
    return [array for part in results for array in flat(part)]
