# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Gated DeltaNet-2, forward and backward, against a plain torch loop: the numbers agree, and what each takes.

    python3 examples/python/gdn2_torch.py [--times T…]
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

from stepwell.torch import chunk_gdn2, fused_recurrent_gdn2

BATCH, HEADS, WIDTH = 1, 4, 64


def loop(q, k, v, g, b, w, initial_state=None, output_final_state=False):
    """The recurrence as the paper writes it (arXiv:2605.22791)."""
    B, _, H, K = q.shape
    S = q.new_zeros(B, H, K, v.shape[-1]) if initial_state is None else initial_state
    outputs = []
    for q_t, k_t, v_t, g_t, b_t, w_t in zip(*(x.unbind(1) for x in (q, k, v, g, b, w))):
        S = g_t.exp().unsqueeze(-1) * S
        u = w_t * v_t - ((b_t * k_t).unsqueeze(-2) @ S).squeeze(-2)
        S = S + k_t.unsqueeze(-1) * u.unsqueeze(-2)
        outputs.append((q_t.unsqueeze(-2) @ S).squeeze(-2))
    return K**-0.5 * torch.stack(outputs, 1), S if output_final_state else None


def inputs(tokens):
    generator = torch.Generator().manual_seed(tokens)

    def draw():
        return torch.randn(BATCH, tokens, HEADS, WIDTH, generator=generator)

    q, k = F.normalize(draw(), dim=-1), F.normalize(draw(), dim=-1)
    tensors = q, k, draw(), F.logsigmoid(draw() + 3), draw().sigmoid(), draw().sigmoid()
    return [t.requires_grad_() for t in tensors]


def seconds(function, repetitions=3):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(function, tensors):
    """→ seconds forward, seconds forward and backward."""
    def forward():
        with torch.no_grad():
            function(*tensors)

    def both():
        torch.autograd.grad(function(*tensors)[0].sum(), tensors)

    return seconds(forward), seconds(both)


def largest_difference(function, tensors):
    """Of outputs, states and gradients from those of the loop, relative to the largest entry of each."""
    results = []
    for f in (function, loop):
        o, state = f(*tensors, output_final_state=True)
        gradients = torch.autograd.grad(o.sin().sum() + state.cos().sum(), tensors)
        results.append((o, state, *gradients))
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(*results))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, nargs="+", default=[64, 256, 1024])
    for tokens in parser.parse_args().times:
        tensors = inputs(tokens)
        of_loop = measure(loop, tensors)
        print(f"\n{BATCH} sequence of {tokens} tokens, {HEADS} heads of {WIDTH} × {WIDTH}")
        print(f"{'':24}{'forward':>10}{'and back':>10}   times as fast      largest difference")
        print(f"{'torch loop':24}{of_loop[0] * 1e3:8.1f}ms{of_loop[1] * 1e3:8.1f}ms")
        for function in (fused_recurrent_gdn2, chunk_gdn2):
            took, difference = measure(function, tensors), largest_difference(function, tensors)
            print(f"{function.__name__:24}{took[0] * 1e3:8.1f}ms{took[1] * 1e3:8.1f}ms"
                  f"{of_loop[0] / took[0]:9.1f}{of_loop[1] / took[1]:7.1f}{difference:18.1e}")


if __name__ == "__main__":
    main()
