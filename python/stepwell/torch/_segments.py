# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""What the public libraries say with integers: which tokens of a row belong together, which states are meant."""

import torch


class Segments:
    """The sequences in the rows of seq_idx [B, T], as borders in the B·T tokens of all rows behind each other."""

    def __init__(self, seq_idx, batch, time):
        if seq_idx.dtype not in (torch.int32, torch.int64) or tuple(seq_idx.shape) != (batch, time):
            raise ValueError(f"seq_idx is {seq_idx.dtype} {list(seq_idx.shape)}, expected integers [{batch}, {time}]")
        if seq_idx.device.type != "cpu":
            raise ValueError(f"seq_idx is on device {seq_idx.device}, expected cpu: Stepwell computes on CPUs")
        steps = seq_idx[:, 1:] - seq_idx[:, :-1]
        if bool((steps < 0).any()) or bool((seq_idx < 0).any()):
            raise NotImplementedError("seq_idx decreases within a row or is negative, expected the numbers of "
                                      "sequences that lie behind each other, from 0")
        starts = torch.ones(batch, time, dtype=torch.bool)
        starts[:, 1:] = steps != 0
        first = starts.flatten().nonzero().flatten() if time else torch.zeros(batch, dtype=torch.int64)
        self.borders = torch.cat([first, torch.tensor([batch * time])])
        self.first_of_rows = torch.cat([torch.zeros(1, dtype=torch.int64), starts.sum(1).clamp(min=1).cumsum(0)])

    def last_of_rows(self):
        """For every row the number of its last sequence."""
        return self.first_of_rows[1:] - 1


def packed(tensor):
    """[B, T, …] as [1, B·T, …]; None stays None."""
    return None if tensor is None else tensor.reshape(1, tensor.shape[0] * tensor.shape[1], *tensor.shape[2:])


def rows_of(name, indices, x, states):
    """`indices` [batch of x] as rows of `states`."""
    batch, count = x.shape[0], states.shape[0]
    if tuple(indices.shape) != (batch,):
        raise ValueError(f"{name} is {list(indices.shape)}, expected [{batch}]")
    if bool((indices < 0).any()) or bool((indices >= count).any()):
        raise NotImplementedError(f"{name} outside [0, {count}): there is no padding slot")
    if indices.unique().numel() != batch:
        raise ValueError(f"{name} names a row twice")
    return indices.long()
