# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Every mixer on one task, its losses and its speed in one picture.

    python3 examples/python/compare_mixers.py [--steps N] [--picture FILE]

The task is that of train_mamba.py; the models differ in their mixer alone. Needs matplotlib.
"""

import argparse
import time

import matplotlib
import torch
from train_mamba import Model, train

import stepwell

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OPTIONS = {
    "mamba2": dict(headdim=16, d_state=16),
    "gated_delta_net2": dict(num_heads=2, head_dim=16),
    "kimi_delta_attention": dict(num_heads=2, head_dim=16),
    "gated_delta_net": dict(num_heads=2, head_dim=16),
}
SMOOTH = 20


def smoothed(losses):
    """Means over the last SMOOTH steps."""
    window = min(SMOOTH, len(losses))
    return torch.tensor(losses).unfold(0, window, 1).mean(1).tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--picture", default="mixers.svg")
    arguments = parser.parse_args()
    results = {}
    print(f"{'mixer':24}{'parameters':>12}{'last loss':>12}{'ms a step':>12}")
    for name in stepwell.layers.names():
        torch.manual_seed(0)
        model = Model(name, **OPTIONS.get(name, {}))
        start = time.perf_counter()
        losses = smoothed(train(model, arguments.steps))
        took = (time.perf_counter() - start) / arguments.steps
        results[name] = losses, took
        parameters = sum(p.numel() for p in model.mixer.parameters())
        print(f"{name:24}{parameters:12d}{losses[-1]:12.4f}{took * 1e3:12.1f}")

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5))
    for i, (name, (losses, took)) in enumerate(results.items()):
        colour = plt.get_cmap("tab20")(i)
        left.semilogy(losses, label=name, color=colour)
        right.barh(name, took * 1e3, color=colour)
    left.axhline(0.167, color="grey", linestyle=":", label="always saying 1")
    left.set(xlabel="step", ylabel=f"mean square error, mean of {SMOOTH} steps")
    left.legend(fontsize="small")
    right.set(xlabel="ms a training step (forward, backward, AdamW)")
    right.invert_yaxis()
    figure.tight_layout()
    figure.savefig(arguments.picture)
    print(f"wrote {arguments.picture}")


if __name__ == "__main__":
    main()
