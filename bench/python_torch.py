#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""stepwell.torch against torch references written from the formulas: a loop over tokens and, where there is a simple
one, a form in chunks of 64 tokens. Prints the table of docs/python.md.

    bench/python_torch.py [--tokens T] [--threads N] [--repetitions N] [--rows NAME…]

Times are medians, taken in turns in one process; ratios are the reference's time over Stepwell's. Both have as many
threads; with one, the processor's time is taken, which other work on the machine hardly changes. Memory is the growth
of the resident set's peak during one forward and backward pass, each in a process of its own, over that of the inputs.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import time

CHUNK = 64


# ------------------------------------------------------------------------------------------------ references

def delta_loop(q, k, v, g, b=None, w=None, scale=None):
    """S ← exp(g) S; u = w v − Sᵀ(b k); S ← S + k uᵀ; o = scale Sᵀ q. g [B, T, H, 1 or K]."""
    import torch

    scale = q.shape[-1]**-0.5 if scale is None else scale
    S = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    u = v if w is None else w * v
    e = None if b is None else (b * k).unbind(1)
    outputs = []
    for t, (q_t, k_t, u_t, g_t) in enumerate(zip(*(x.unbind(1) for x in (q, k, u, g)))):
        S = g_t.exp().unsqueeze(-1) * S
        if e is not None:
            u_t = u_t - (e[t].unsqueeze(-2) @ S).squeeze(-2)
        S = S + k_t.unsqueeze(-1) * u_t.unsqueeze(-2)
        outputs.append((q_t.unsqueeze(-2) @ S).squeeze(-2))
    return scale * torch.stack(outputs, 1)


def delta_chunks(q, k, v, g, b=None, w=None, scale=None):
    """The same as matrix products in chunks, exact for every decay: only differences of sums of log decays, ≤ 0, are
    raised."""
    import torch

    scale = q.shape[-1]**-0.5 if scale is None else scale
    S = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    z = v if w is None else w * v
    e = None if b is None else b * k
    outputs = []
    for start in range(0, q.shape[1], CHUNK):
        q_c, k_c, z_c, g_c, e_c = (None if x is None else x[:, start:start + CHUNK].transpose(1, 2)
                                   for x in (q, k, z, g, e))
        G = g_c.cumsum(-2)
        size = G.shape[-2]
        above = torch.ones(size, size, dtype=torch.bool).triu(1).unsqueeze(-1)
        decay = (G.unsqueeze(-2) - G.unsqueeze(-3)).masked_fill(above, -float("inf")).exp()

        def pairs(x, decay=decay, k_c=k_c):
            """Σ_d x_i k_j exp(G_i − G_j) for j ≤ i."""
            if decay.shape[-1] == 1:
                return (x @ k_c.transpose(-1, -2)) * decay.squeeze(-1)
            return (x.unsqueeze(-2) * k_c.unsqueeze(-3) * decay).sum(-1)

        u = z_c
        if e_c is not None:
            system = pairs(e_c).tril(-1) + torch.eye(size)
            u = torch.linalg.solve_triangular(system, z_c - (e_c * G.exp()) @ S, upper=False, unitriangular=True)
        outputs.append((q_c * G.exp()) @ S + pairs(q_c) @ u)
        last = G[..., -1:, :]
        S = last.exp().transpose(-1, -2) * S + (k_c * (last - G).exp()).transpose(-1, -2) @ u
    return scale * torch.cat(outputs, -2).transpose(1, 2)


def ssd_as_delta(form):
    """Mamba-2's recurrence in terms of the rule above: q = C, k = B, v = Δ x, g = Δ A."""
    def run(x, dt, A, B, C, D):
        import torch.nn.functional as F

        dt = F.softplus(dt).unsqueeze(-1)
        B, C = (m.expand(-1, -1, x.shape[2], -1) for m in (B, C))
        return form(C, B, dt * x, dt * A.unsqueeze(-1), scale=1) + D.unsqueeze(-1) * x

    return run


def scan_loop(u, delta, A, B, C, D, z):
    """h ← exp(dt A) h + dt u B; y = Σ C h + D u, times silu(z), on [B, D, T]."""
    import torch
    import torch.nn.functional as F

    dt = F.softplus(delta)
    h = u.new_zeros(u.shape[0], u.shape[1], A.shape[1])
    outputs = []
    for dt_t, x_t, B_t, C_t in zip(dt.unbind(-1), (dt * u).unbind(-1), B.unbind(-1), C.unbind(-1)):
        h = torch.exp(dt_t.unsqueeze(-1) * A) * h + x_t.unsqueeze(-1) * B_t.unsqueeze(1)
        outputs.append((h * C_t.unsqueeze(1)).sum(-1))
    return (torch.stack(outputs, -1) + D.unsqueeze(-1) * u) * F.silu(z)


def conv_of_torch(x, weight, bias):
    import torch.nn.functional as F

    width = weight.shape[1]
    return F.silu(F.conv1d(x, weight.unsqueeze(1), bias, padding=width - 1, groups=x.shape[1])[..., :x.shape[-1]])


# ------------------------------------------------------------------------------------------------ rows

def draw_tensors(*shapes, seed=0):
    import torch

    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


def delta_inputs(T, heads, width, decay, erase, write):
    """q, k, v, g and the gates; `decay`, `erase`, `write`: per "channel", per "head", or None."""
    import torch.nn.functional as F

    def gate(kind):
        (x,) = draw_tensors((1, T, heads, 1 if kind == "head" else width), seed=len(kind) + T)
        return x

    q, k, v = draw_tensors(*[(1, T, heads, width)] * 3)
    given = [F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, F.logsigmoid(gate(decay) + 3)]
    return given + [gate(kind).sigmoid() for kind in (erase, write) if kind]


class Row:
    def __init__(self, name, shape, inputs, stepwell, **references):
        self.name, self.shape, self.inputs, self.stepwell, self.references = name, shape, inputs, stepwell, references

    def implementations(self):
        return {"stepwell": self.stepwell, **self.references}


def gdn2(*tensors):
    from stepwell.torch import chunk_gdn2

    return chunk_gdn2(*tensors)[0]


def gdn(q, k, v, g, b, w):
    from stepwell.torch import chunk_gated_delta_rule

    return chunk_gated_delta_rule(q, k, v, g.squeeze(-1), b.squeeze(-1))[0]


def gdn_with(form):
    return lambda q, k, v, g, b, w: form(q, k, v, g, b, b)


def gla(q, k, v, g):
    from stepwell.torch import chunk_gla

    return chunk_gla(q, k, v, g)[0]


def ssd(x, dt, A, B, C, D):
    from stepwell.torch import mamba_chunk_scan_combined

    return mamba_chunk_scan_combined(x, dt, A, B, C, 64, D, dt_softplus=True)


def scan(u, delta, A, B, C, D, z):
    from stepwell.torch import selective_scan_fn

    return selective_scan_fn(u, delta, A, B, C, D, z, delta_softplus=True)


def conv(x, weight, bias):
    from stepwell.torch import causal_conv1d_fn

    return causal_conv1d_fn(x, weight, bias, activation="silu")


def ssd_inputs(T):
    x, dt, A, B, C, D = draw_tensors((1, T, 8, 64), (1, T, 8), (8,), (1, T, 1, 64), (1, T, 1, 64), (8,))
    return [x, dt - 2, -A.abs() - 0.1, B, C, D]


def scan_inputs(T):
    u, delta, A, B, C, D, z = draw_tensors((1, 512, T), (1, 512, T), (512, 16), (1, 16, T), (1, 16, T), (512,),
                                           (1, 512, T))
    return [u, delta - 2, -A.abs(), B, C, D, z]


ROWS = [
    Row("chunk_gdn2", "4 heads, 64 × 64", lambda T: delta_inputs(T, 4, 64, "channel", "channel", "channel"), gdn2,
        loop=delta_loop, chunks=delta_chunks),
    Row("chunk_gated_delta_rule", "4 heads, 64 × 64", lambda T: delta_inputs(T, 4, 64, "head", "head", "head"), gdn,
        loop=gdn_with(delta_loop), chunks=gdn_with(delta_chunks)),
    Row("chunk_gla", "4 heads, 64 × 64", lambda T: delta_inputs(T, 4, 64, "channel", None, None), gla,
        loop=delta_loop, chunks=delta_chunks),
    Row("mamba_chunk_scan_combined", "8 heads of 64, state 64", ssd_inputs, ssd, loop=ssd_as_delta(delta_loop),
        chunks=ssd_as_delta(delta_chunks)),
    Row("selective_scan_fn", "512 channels, state 16", scan_inputs, scan, loop=scan_loop),
    Row("causal_conv1d_fn", "512 channels, width 4", lambda T: draw_tensors((1, 512, T), (512, 4), (512,)), conv,
        chunks=conv_of_torch),
]


# ------------------------------------------------------------------------------------------------ measurements

def set_threads(threads):
    import torch

    import stepwell

    torch.set_num_threads(threads)
    stepwell.set_num_threads(threads)


def leaves_of(row, tokens):
    return [t.requires_grad_() for t in row.inputs(tokens)]


def both_passes(function, leaves):
    import torch

    y = function(*leaves)
    return y, torch.autograd.grad(y.square().sum(), leaves, allow_unused=True)


def largest_difference(row, tokens):
    """Of any result or gradient from Stepwell's, relative to its largest entry."""
    leaves = leaves_of(row, tokens)
    y, gradients = both_passes(row.stepwell, leaves)
    largest = 0.0
    for function in row.references.values():
        expected, of_reference = both_passes(function, leaves)
        for a, b in zip((y, *gradients), (expected, *of_reference)):
            if a is not None and b is not None:
                largest = max(largest, ((a - b).abs().max() / b.abs().max()).item())
    return largest


def times(row, tokens, repetitions, clock):
    """→ {implementation: (seconds forward, seconds forward and backward)}."""
    import torch

    leaves, taken = leaves_of(row, tokens), {}
    for repetition in range(repetitions + 1):  # the first is not counted
        for name, function in row.implementations().items():
            start = clock()
            with torch.no_grad():
                function(*leaves)
            middle = clock()
            both_passes(function, leaves)
            if repetition:
                taken.setdefault(name, []).append((middle - start, clock() - middle))
    return {name: tuple(map(statistics.median, zip(*pairs))) for name, pairs in taken.items()}


def peak_growth(row, implementation, tokens):
    """MiB that the peak of the resident set grows by in one forward and backward pass."""
    def peak():
        status = pathlib.Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    function = row.implementations()[implementation]
    both_passes(function, leaves_of(row, CHUNK))  # loads what there is to load
    leaves = leaves_of(row, tokens)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident
    before = peak()
    results = both_passes(function, leaves)
    growth = peak() - before
    del results
    return growth


def measured_growth(row, implementation, tokens):
    command = [sys.executable, __file__, "--tokens", str(tokens), "--peak", row.name, implementation]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_table(rows, tokens, repetitions, clock):
    print(f"| {tokens} tokens, float32 | × loop: forward | with backward | × chunks: forward | with backward "
          "| MiB | of loop | of chunks |\n|---|---|---|---|---|---|---|---|")
    for row in rows:
        taken = times(row, tokens, repetitions, clock)
        memory = {name: measured_growth(row, name, tokens) for name in row.implementations()}
        cells = []
        for reference in ("loop", "chunks"):
            if reference in taken:
                cells += [f"{a / b:.1f}" for a, b in zip(taken[reference], taken["stepwell"])]
            else:
                cells += ["", ""]
        cells += [f"{memory[name]:.0f}" if name in memory else "" for name in ("stepwell", "loop", "chunks")]
        print(f"| `{row.name}`, {row.shape} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rows", nargs="+", default=[row.name for row in ROWS], choices=[row.name for row in ROWS])
    parser.add_argument("--peak", nargs=2, metavar=("ROW", "IMPLEMENTATION"), help="measure this memory alone")
    arguments = parser.parse_args()
    rows = {row.name: row for row in ROWS}
    set_threads(arguments.threads)
    if arguments.peak:
        print(peak_growth(rows[arguments.peak[0]], arguments.peak[1], arguments.tokens))
    else:
        clock = time.process_time if arguments.threads == 1 else time.perf_counter
        print_table([rows[name] for name in arguments.rows], arguments.tokens, arguments.repetitions, clock)


if __name__ == "__main__":
    main()
