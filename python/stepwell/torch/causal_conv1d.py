# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of the package causal_conv1d, on CPUs: any width of kernel, gradients of everything."""

import torch

from . import ops
from ._function import turned
from ._segments import Segments, packed, rows_of

__all__ = ["causal_conv1d_fn", "causal_conv1d_update"]


def _activation(activation):
    if activation not in (None, "silu", "swish"):
        raise NotImplementedError(f"activation={activation!r}, expected None, 'silu' or 'swish'")
    return "none" if activation is None else "silu"


def _laid_as(like, y):
    """[B, T, D] as [B, D, T] with the memory layout of `like`, as the public functions have it."""
    return y.transpose(1, 2) if like.stride(1) == 1 else turned(y)


def _window(inputs, width):
    """The last width − 1 inputs [B, D, width − 1] as the op's state [B, D, width]: its oldest column has no effect."""
    return torch.nn.functional.pad(inputs, (1, 0))


def causal_conv1d_fn(x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False,
                     final_states_out=None, activation=None):
    """Causal depthwise convolution: x [B, D, T], weight [D, W], bias [D] → [B, D, T], in x's memory layout.

    seq_idx [B, T]: numbers of the sequences in a row; no tap reaches across. Neither initial_states nor
    return_final_states go with it.
    initial_states [B, D, W − 1]: the inputs before x.   return_final_states: also the last W − 1 inputs, written to
    final_states_out if given.   activation: None, "silu" or "swish".
    """
    if x.dim() != 3:
        raise ValueError(f"x is {list(x.shape)}, expected [batch, dim, seqlen]")
    if seq_idx is not None and (initial_states is not None or return_final_states):
        raise ValueError("seq_idx goes with neither initial_states nor return_final_states")
    if final_states_out is not None and not return_final_states:
        raise ValueError("final_states_out without return_final_states")
    batch, dim, time = x.shape
    width = weight.shape[-1]
    tokens, borders, state = x.transpose(1, 2), None, None
    if seq_idx is not None:
        borders = Segments(seq_idx, batch, time).borders
        tokens = packed(tokens)
    if initial_states is not None:
        if tuple(initial_states.shape) != (batch, dim, width - 1):
            raise ValueError(f"initial_states is {list(initial_states.shape)}, expected {[batch, dim, width - 1]}")
        state = _window(initial_states, width)
    y, last = ops.short_conv(tokens, weight, bias, activation=_activation(activation), initial_state=state,
                             cu_seqlens=borders)
    y = _laid_as(x, y.reshape(batch, time, dim))
    if not return_final_states:
        return y
    last = last[..., 1:].to(x.dtype)
    return y, last if final_states_out is None else final_states_out.copy_(last)


def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, cache_seqlens=None,
                         conv_state_indices=None):
    """The next tokens of a convolution: x [B, D] or [B, D, T] → the same shape; conv_state [B, D, L], L ≥ W − 1, is
    updated in place with x, newest last.

    cache_seqlens [B]: conv_state is a ring, and x goes to entries cache_seqlens % L onwards.
    conv_state_indices [B]: conv_state holds more sequences, and these are the rows of x's.
    """
    tokens = x.unsqueeze(-1) if x.dim() == 2 else x
    batch, dim, time = tokens.shape
    width, length = weight.shape[-1], conv_state.shape[-1]
    at = None if conv_state_indices is None else rows_of("conv_state_indices", conv_state_indices, x, conv_state)
    rows = conv_state if at is None else conv_state[at]
    if tuple(rows.shape) != (batch, dim, length) or length < width - 1:
        raise ValueError(f"conv_state is {list(conv_state.shape)}, expected [{batch}, {dim}, {width - 1} or more]")
    rows = rows.detach()
    newest = tokens.detach().to(rows.dtype)
    if cache_seqlens is None:
        before = rows[..., length - (width - 1):]
        after = torch.cat([rows, newest], -1)[..., time:]
    else:
        if tuple(cache_seqlens.shape) != (batch,):
            raise ValueError(f"cache_seqlens is {list(cache_seqlens.shape)}, expected [{batch}]")
        start = cache_seqlens.long().unsqueeze(1)
        before = rows.gather(2, _ring(start, range(1 - width, 0), length, dim))
        kept = newest[..., max(time - length, 0):]  # what is older has been overwritten
        after = rows.scatter(2, _ring(start, range(time - kept.shape[-1], time), length, dim), kept)
    y, _ = ops.short_conv(tokens.transpose(1, 2), weight, bias, activation=_activation(activation),
                          initial_state=_window(before, width))
    with torch.no_grad():
        if at is None:
            conv_state.copy_(after)
        else:
            conv_state[at] = after
    y = _laid_as(tokens, y)
    return y.squeeze(-1) if x.dim() == 2 else y


def _ring(start, offsets, length, dim):
    """Indices [B, dim, len(offsets)] of the ring's entries at start + offsets."""
    at = (start + torch.tensor(list(offsets), dtype=torch.int64)).remainder(length)
    return at.unsqueeze(1).expand(-1, dim, -1)
