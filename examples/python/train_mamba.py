# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""A Mamba block inside a PyTorch training loop.

    python3 examples/python/train_mamba.py [--steps N] [--mixer NAME]

The task: of a sequence of numbers two are marked; say the sum of these two at the end. The block keeps what it needs
in a state of fixed size; everything around it is plain torch. Afterwards it reads a sequence number by number, as a
service would, and gives the bits of the whole sequence.
"""

import argparse

import torch
from torch import nn

import stepwell.torch

WIDTH, TIME = 32, 20


def adding_problem(batch, generator):
    """Numbers in [0, 1) beside marks [batch, TIME, 2], and the sums of the marked ones [batch]."""
    numbers = torch.rand(batch, TIME, generator=generator)
    marked = torch.rand(batch, TIME, generator=generator).topk(2).indices
    marks = torch.zeros(batch, TIME).scatter(1, marked, 1)
    return torch.stack([numbers, marks], -1), (numbers * marks).sum(1)


class Model(nn.Module):
    """x [B, T, 2] → what it believes the sum to be after every number, [B, T]."""

    def __init__(self, mixer, **options):
        super().__init__()
        self.embed = nn.Linear(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.mixer = stepwell.torch.layers.make(mixer, WIDTH, **options)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x, state=None):
        h = self.embed(x)
        y, state = self.mixer(self.norm(h), state, mode="fast" if self.training else "exact")
        return self.head(h + y).squeeze(-1), state


def train(model, steps, seed=0, batch=32):
    """→ the losses."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    model.train()
    for _ in range(steps):
        x, target = adding_problem(batch, generator)
        optimizer.zero_grad()
        loss = (model(x)[0][:, -1] - target).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--mixer", default="mamba", choices=stepwell.layers.names())
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = Model(arguments.mixer)
    print(f"{arguments.mixer}, {sum(p.numel() for p in model.parameters())} parameters in all")
    losses = train(model, arguments.steps)
    for step in range(0, arguments.steps, max(1, arguments.steps // 10)):
        print(f"step {step:4d}   loss {losses[step]:.4f}")
    print(f"the last ten: {sum(losses[-10:]) / len(losses[-10:]):.4f}; always saying 1: 0.167")

    model.eval()
    x, target = adding_problem(1, torch.Generator().manual_seed(1))
    with torch.no_grad():
        h = model.embed(x)
        whole, _ = model.mixer(model.norm(h))
        state, steps = None, []
        for t in range(TIME):
            y, state = model.mixer.step(model.norm(h)[:, t], state)
            steps.append(y)
            believed = model.head(h[:, t] + y)
    assert torch.equal(torch.stack(steps, 1), whole)
    print(f"read number by number: {believed.item():.3f}, the sum: {target.item():.3f}")


if __name__ == "__main__":
    main()
