# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The library's ops on arrays.

Arrays are NumPy arrays or anything with DLPack (on the CPU) or the buffer protocol, float32 or float64, all of one
dtype in a call; bfloat16 and float16 are widened to float32. Inputs are never changed; results are new NumPy arrays.

Token arrays are [B, T, …], batch before time before head. Packed sequences are a batch of 1 with `cu_seqlens`, integers
0 = c[0] ≤ c[1] ≤ … ≤ c[N] = T, the borders between N sequences; there is one state per sequence, so N = B without them.
States go in as `initial_state` (absent: zero) and come out after the last token: cutting a sequence in two and handing
the state over gives the same bits (in form "recurrent"). A step is a call with T = 1.

Gradients of any op: stepwell.vjp(op, …).

`form` of the ops with matrix-valued states:
  "recurrent"  token by token; the same bits however a sequence is split, batched or threaded (the default)
  "chunked"    matrix products inside chunks of `chunk` tokens (0: what is fastest); equal up to rounding
  "fast"       whichever is faster for these shapes
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays, _core
from ._arrays import Array, Borders
from ._calls import call_op, vjp

__all__ = [
    "gated_delta", "gated_delta_net2", "kimi_delta_attention", "gated_delta_net", "delta_net",
    "gated_linear_attention", "simple_gla", "linear_attention", "ssd", "mlstm", "slstm", "selective_scan",
    "short_conv", "matmul", "linear", "headwise_linear", "rms_norm", "layer_norm", "softmax", "elementwise",
    "verify_gated_delta", "vjp",
]


def gated_delta(
    q: Array, k: Array, v: Array, g: Array | None = None, b: Array | None = None, w: Array | None = None, *,
    beta: Array | None = None, scale: float | None = None, l2norm: bool = False, gate: str = "given",
    A_log: Array | None = None, dt_bias: Array | None = None, lower_bound: float = -5.0,
    initial_state: Array | None = None, cu_seqlens: Borders | None = None, form: str = "recurrent", chunk: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The gated delta rule, per value head with a state S [K, V]:

        S ← exp(g) ⊙ S (rows);  u = w ⊙ v − Sᵀ(b ⊙ k);  S ← S + k uᵀ;  o = scale · Sᵀ q

    q, k [B, T, H, K]; v [B, T, HV, V], HV a multiple of H: value head j reads head ⌊j / (HV/H)⌋ of what has H heads.
    g    natural-log decay ≤ 0, −inf allowed, [B, T, H or HV] or [B, T, H or HV, K]; absent: no decay.
    b    erase gate, in [0, 2] for a stable rule, shapes as g; absent: nothing is erased.
    w    write gate, [B, T, HV] or [B, T, HV, V]; absent: 1.
    beta [B, T, HV] instead of b and w: both are it.
    scale  of the output; None: K ** -0.5.
    l2norm q, k ← x / sqrt(Σx² + 1e-6) per head first.
    gate   what g is: "given" the log decay; "softplus": the decay is −exp(A_log) · softplus(g + dt_bias); "bounded":
           lower_bound · sigmoid(exp(A_log) · (g + dt_bias)). A_log [heads of g], dt_bias [heads of g × width of g].
    initial_state [N, HV, K, V].

    → o [B, T, HV, V], final_state [N, HV, K, V].
    Source: Gated DeltaNet-2, arXiv:2605.22791.
    """
    arrays = dict(q=q, k=k, v=v)
    optional = dict(g=g, b=b, w=w, beta=beta, A_log=A_log, dt_bias=dt_bias, initial_state=initial_state)
    options = dict(scale=scale, l2norm=l2norm, gate=gate, lower_bound=lower_bound, form=form, chunk=chunk)
    if beta is not None and (b is not None or w is not None):
        raise TypeError("beta beside b or w, expected beta alone: it stands for both")
    return call_op("gated_delta", arrays, ("o", "final_state"), optional, options, cu_seqlens)


def gated_delta_net2(
    q: Array, k: Array, v: Array, g: Array, b: Array, w: Array, **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Gated DeltaNet-2: decay g and erase gate b per key channel, write gate w per value channel (arXiv:2605.22791).

    q, k [B, T, H, K]; v, w [B, T, HV, V]; g, b [B, T, H or HV, K]. Options and results: gated_delta.
    """
    return gated_delta(q, k, v, g, b, w, **options)


def kimi_delta_attention(
    q: Array, k: Array, v: Array, g: Array, beta: Array, **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """KDA: decay per key channel (arXiv:2510.26692).

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, H or HV, K]; beta [B, T, HV]. Options and results: gated_delta.
    """
    return gated_delta(q, k, v, g, beta=beta, **options)


def gated_delta_net(
    q: Array, k: Array, v: Array, g: Array, beta: Array, **options: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Gated DeltaNet: decay per head (arXiv:2412.06464).

    q, k [B, T, H, K]; v [B, T, HV, V]; g, beta [B, T, HV]. Options and results: gated_delta.
    """
    return gated_delta(q, k, v, g, beta=beta, **options)


def delta_net(q: Array, k: Array, v: Array, beta: Array, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """DeltaNet: the delta rule without decay (arXiv:2406.06484).

    q, k [B, T, H, K]; v [B, T, HV, V]; beta [B, T, HV]. Options and results: gated_delta.
    """
    return gated_delta(q, k, v, beta=beta, **options)


def gated_linear_attention(q: Array, k: Array, v: Array, g: Array, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """GLA: linear attention with decay per key channel (arXiv:2312.06635).

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, H or HV, K]. Options and results: gated_delta.
    """
    return gated_delta(q, k, v, g, **options)


def simple_gla(q: Array, k: Array, v: Array, g: Array, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Linear attention with one decay per head: RetNet, Mamba-2's recurrence, Lightning Attention.

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV]. Options and results: gated_delta.
    """
    return gated_delta(q, k, v, g, **options)


def linear_attention(q: Array, k: Array, v: Array, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Linear attention: S ← S + k vᵀ; o = scale · Sᵀ q (arXiv:2006.16236). Options and results: gated_delta."""
    return gated_delta(q, k, v, **options)


def ssd(
    x: Array, dt: Array, A: Array, B: Array, C: Array, D: Array | None = None, z: Array | None = None,
    dt_bias: Array | None = None, *, softplus: bool = True, dt_limit: tuple[float | None, float | None] | None = None,
    initial_state: Array | None = None, cu_seqlens: Borders | None = None, form: str = "recurrent", chunk: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Mamba-2's recurrence (SSD), per head with a state S [P, N]:

        Δ = dt + dt_bias, through softplus, between the limits;  S ← exp(Δ·A) S + Δ x Bᵀ;  y = S C + D ⊙ x
        with z: y ← y · silu(z)

    x [B, T, H, P]; dt [B, T, H]; A [H], negative; B, C [B, T, G, N], head h uses group ⌊h / (H/G)⌋; D [H] or [H, P];
    z [B, T, H, P]; dt_bias [H]; dt_limit (low, high), None for no bound; initial_state [N, H, P, N].

    → y [B, T, H, P], final_state [N, H, P, N].
    Source: arXiv:2405.21060.
    """
    arrays = dict(x=x, dt=dt, A=A, B=B, C=C)
    optional = dict(D=D, z=z, dt_bias=dt_bias, initial_state=initial_state)
    options = dict(softplus=softplus, dt_limit=dt_limit, form=form, chunk=chunk)
    return call_op("ssd", arrays, ("y", "final_state"), optional, options, cu_seqlens)


def mlstm(
    q: Array, k: Array, v: Array, i: Array, f: Array, *, initial_state: tuple[Array, Array, Array] | None = None,
    scale: float | None = None, input_gate: str = "exp", normalise: bool = True, eps: float = 1e-06,
    cu_seqlens: Borders | None = None, form: str = "recurrent", chunk: int = 0,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The mLSTM cell of xLSTM, per head:

        m' = max(log σ(f) + m, i);  F = exp(log σ(f) + m − m');  I = exp(i − m')
        C ← F C + I k vᵀ;  n ← F n + I k;  h = scale · Cᵀq / (max(|scale · n·q|, exp(−m')) + eps)

    q, k [B, T, H, K]; v [B, T, H, V]; i, f [B, T, H] before activation, any finite number, f = −inf forgets.
    scale  on q; None: K ** -0.5.   input_gate "exp" or "sigmoid" (F = σ(f), I = σ(i), the floor exp(−m') is 1).
    normalise=False  with the sigmoid gate only: h = scale · Cᵀq.
    initial_state  (C [N, H, K, V], n [N, H, K], m [N, H]), stored stabilised: the true memory is C·exp(m).

    → h [B, T, H, V], (C, n, m). vjp names the parts of the state "C", "n" and "m".
    Source: arXiv:2405.04517, §2.3.
    """
    C, n, m = initial_state if initial_state is not None else (None, None, None)
    arrays = dict(q=q, k=k, v=v, i=i, f=f)
    options = dict(scale=scale, input_gate=input_gate, normalise=normalise, eps=eps, form=form, chunk=chunk)
    h, C, n, m = call_op("mlstm", arrays, ("h", "C", "n", "m"), dict(C=C, n=n, m=m), options, cu_seqlens)
    return h, (C, n, m)


def slstm(
    x: Array, R: Array, bias: Array | None = None, *, initial_state: Array | None = None,
    cu_seqlens: Borders | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The sLSTM cell of xLSTM, per unit, with [i f z o] = x + R y + bias:

        m' = max(log σ(f) + m, i), or i where n = 0;  F = exp(log σ(f) + m − m');  I = exp(i − m')
        c ← F c + I tanh(z);  n ← F n + I;  y = σ(o) · c / n

    x [B, T, 4·H·D], gates i, f, z, o, each head after head; R [H, 4·D, D]; bias [4·H·D];
    initial_state [N, 4, H·D]: y, c, n, m.

    → y [B, T, H·D], final_state [N, 4, H·D].
    Source: arXiv:2405.04517, §2.2.
    """
    optional = dict(bias=bias, initial_state=initial_state)
    return call_op("slstm", dict(x=x, R=R), ("y", "final_state"), optional, cu_seqlens=cu_seqlens)


def selective_scan(
    u: Array, dt: Array, A: Array, B: Array, C: Array, D: Array | None = None, z: Array | None = None,
    dt_bias: Array | None = None, *, softplus: bool = True, discretisation: str = "euler",
    initial_state: Array | None = None, cu_seqlens: Borders | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mamba's selective scan:

        dt' = softplus(dt + dt_bias);  h ← exp(dt'·A) h + dt'·u·B;  y = (Σ_n C[n] h[n] + D u) · silu(z)

    u, dt, z [B, T, D]; A [D, N] ≤ 0 (−exp(A_log)); B, C [B, T, N], or [B, T, G, N]: channel d uses group ⌊d / (D/G)⌋,
    or [D, N]: constant in time; D, dt_bias [D]; initial_state [N, D, N].
    softplus=False: dt is the step itself.   discretisation "euler" (every published checkpoint) or "zero_order".

    → y [B, T, D], final_state [N, D, N].
    Source: arXiv:2312.00752, algorithm 2.
    """
    arrays = dict(u=u, dt=dt, A=A, B=B, C=C)
    optional = dict(D=D, z=z, dt_bias=dt_bias, initial_state=initial_state)
    options = dict(softplus=softplus, discretisation=discretisation)
    return call_op("selective_scan", arrays, ("y", "final_state"), optional, options, cu_seqlens)


def short_conv(
    x: Array, weight: Array, bias: Array | None = None, *, activation: str = "silu",
    initial_state: Array | None = None, cu_seqlens: Borders | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Causal depthwise convolution with carried state:

        v[t][d] = bias[d] + Σ_j weight[d][j] · x[t − (K−1) + j][d];  y = activation(v)

    x [B, T, D]; weight [D, K] or [D, 1, K], K ≥ 1; bias [D]; activation "silu" or "none";
    initial_state [N, D, K]: the last K inputs of each sequence, newest last (the oldest matters only if T = 0).

    → y [B, T, D], final_state [N, D, K].
    Source: arXiv:2312.00752, §3.4.
    """
    arrays, optional = dict(x=x, weight=weight), dict(bias=bias, initial_state=initial_state)
    return call_op("short_conv", arrays, ("y", "final_state"), optional, dict(activation=activation), cu_seqlens)


def matmul(a: Array, b: Array, *, product: str = "AB") -> np.ndarray:
    """Matrix product of a and b: "AB" [M, K] [K, N], "ABt" [M, K] [N, K], "AtB" [K, M] [K, N] → [M, N].

    One row alone and the same row among thousands have the same bits.
    """
    return call_op("matmul", dict(a=a, b=b), ("c",), options=dict(product=product))


def linear(x: Array, weight: Array, bias: Array | None = None) -> np.ndarray:
    """x [..., in], weight [out, in], bias [out] → [..., out]."""
    return call_op("linear", dict(x=x, weight=weight), ("y",), dict(bias=bias))


def headwise_linear(x: Array, weight: Array, bias: Array | None = None) -> np.ndarray:
    """A linear layer of G blocks along the diagonal.

    x [..., G·in], weight [G, out, in], bias [G·out] → [..., G·out].
    """
    return call_op("headwise_linear", dict(x=x, weight=weight), ("y",), dict(bias=bias))


def rms_norm(
    x: Array, weight: Array | None = None, z: Array | None = None, *, eps: float = 1e-05, group: int = 0,
    gate: str = "before", activation: str = "silu",
) -> np.ndarray:
    """x / sqrt(mean(x²) + eps) · weight over groups of `group` entries of the last dimension (0: all of it).

    x [..., width]; weight [width]; a gate z of x's shape through "silu" or "sigmoid": "before": rms_norm(x · a(z));
    "after": rms_norm(x) · a(z). Source: arXiv:1910.07467.
    """
    options = dict(eps=eps, group=group, gate=gate, activation=activation)
    return call_op("rms_norm", dict(x=x), ("y",), dict(weight=weight, z=z), options)


def layer_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float = 1e-05, group: int = 0,
    one_plus_weight: bool = False,
) -> np.ndarray:
    """(x − mean) / sqrt(variance + eps) · weight + bias over groups of `group` entries of the last dimension (0: all).

    x [..., width]; weight, bias [width]; one_plus_weight: scaled by 1 + weight. Source: arXiv:1607.06450.
    """
    options = dict(eps=eps, group=group, one_plus_weight=one_plus_weight)
    return call_op("layer_norm", dict(x=x), ("y",), dict(weight=weight, bias=bias), options)


def softmax(x: Array) -> np.ndarray:
    """exp(x − max x) / Σ exp(x − max x) along the last dimension; −inf gives 0."""
    return call_op("softmax", dict(x=x), ("y",))


def elementwise(x: Array, function: str) -> np.ndarray:
    """One of the library's functions of one number, the same bits on every instruction set with FMA: "exp", "tanh",
    "sigmoid", "log_sigmoid", "silu", "softplus" (x above 20), "relu", "elu_plus_one", "gelu", "gelu_tanh",
    "decay_rate" (−exp(x))."""
    return call_op("elementwise", dict(x=x), ("y",), options=dict(function=function))


def verify_gated_delta(
    q: Array, k: Array, v: Array, g: Array | None = None, b: Array | None = None, w: Array | None = None, *,
    beta: Array | None = None, scale: float | None = None, l2norm: bool = False, gate: str = "given",
    A_log: Array | None = None, dt_bias: Array | None = None, lower_bound: float = -5.0,
    initial_state: Array | None = None, cu_seqlens: Borders | None = None, chunk: int = 64,
) -> list[dict]:
    """Every form of gated_delta on these arrays against the token-by-token reference in double precision.

    Arguments as for gated_delta; `chunk` ≥ 1 is the chunk of the chunked form. → a list of dicts, one per form and
    result: form, output, largest (|Δ|), scale (largest expected), relative, worst (the index), got and expected there.
    """
    optional = dict(g=g, b=b, w=w, beta=beta, A_log=A_log, dt_bias=dt_bias, initial_state=initial_state)
    arrays = _arrays.float_arrays(dict(q=q, k=k, v=v), optional)
    options = dict(scale=scale, l2norm=l2norm, gate=gate, lower_bound=lower_bound, chunk=chunk)
    options = {name: value for name, value in options.items() if value is not None}
    return _core.verify_gated_delta(arrays, options, _arrays.integer_array(cu_seqlens, "cu_seqlens"))
