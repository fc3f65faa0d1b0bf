# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The scans of the package mamba_ssm, on CPUs: any sizes, gradients of everything, last states included."""

import torch

from . import ops
from ._function import check_tensor, turned
from ._segments import Segments, packed, rows_of

__all__ = ["mamba_chunk_scan_combined", "selective_scan_fn", "selective_state_update"]


def _token_matrix(name, value, dim):
    """B or C of selective_scan_fn with time first: [D, N] stays, [B, (G,) N, T] → [B, T, G, N], G = 1 where absent."""
    check_tensor(value, name)
    if value.dim() == 2:
        return value
    if value.dim() == 3:
        value = value.unsqueeze(1)
    if value.dim() != 4 or dim % max(value.shape[1], 1) != 0:
        raise ValueError(f"{name} is {list(value.shape)}, expected [dim, dstate], [batch, dstate, seqlen] or "
                         f"[batch, groups, dstate, seqlen] with groups that divide {dim}")
    return value.permute(0, 3, 1, 2)


def _of_one_shape(B, C, batch, time):
    """B and C with as many groups of channels each; one that is constant in time stands for every token."""
    if B.dim() != C.dim():
        B, C = (m.expand(batch, time, -1, -1) if m.dim() == 2 else m for m in (B, C))
    if B.dim() == 4:
        groups = max(B.shape[2], C.shape[2])
        if groups % min(B.shape[2], C.shape[2]):
            raise NotImplementedError(f"B has {B.shape[2]} groups and C {C.shape[2]}, expected a multiple of the other")
        B, C = (m.repeat_interleave(groups // m.shape[2], 2) if m.shape[2] < groups else m for m in (B, C))
    return B, C


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False,
                      return_last_state=False, cu_seqlens=None):
    """Mamba's selective scan: u, delta, z [B, D, T]; A [D, N], real; B, C [D, N], [B, N, T] or [B, G, N, T]; D,
    delta_bias [D] → [B, D, T], in delta's memory layout.

    return_last_state: also the state after the last token [B, D, N].   cu_seqlens: borders of sequences packed in a
    batch of 1; each starts from zero.
    """
    for name, value in dict(u=u, delta=delta, z=z).items():
        if value is not None and value.dim() != 3:
            raise ValueError(f"{name} is {list(value.shape)}, expected [batch, dim, seqlen]")
    if A.is_complex():
        raise NotImplementedError("A is complex, expected a real one")
    batch, dim, time = u.shape
    B, C = _of_one_shape(_token_matrix("B", B, dim), _token_matrix("C", C, dim), batch, time)
    y, last = ops.selective_scan(u.transpose(1, 2), delta.transpose(1, 2), A, B, C, D,
                                 None if z is None else z.transpose(1, 2), delta_bias, softplus=delta_softplus,
                                 cu_seqlens=cu_seqlens)
    y = y.transpose(1, 2) if delta.stride(1) == 1 else turned(y)
    if not return_last_state:
        return y
    if cu_seqlens is not None:
        filled = [i for i, (a, b) in enumerate(zip(cu_seqlens[:-1], cu_seqlens[1:])) if b > a]
        last = last[filled[-1]:filled[-1] + 1] if filled else last.new_zeros(1, *last.shape[1:])
    return y, last


def mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None,
                              seq_idx=None, cu_seqlens=None, dt_softplus=False, dt_limit=(0.0, float("inf")),
                              return_final_states=False, return_varlen_states=False):
    """Mamba-2's recurrence: x, z [B, T, H, P]; dt [B, T, H]; A, dt_bias [H]; B, C [B, T, G, N]; D [H] or [H, P] → [B,
    T, H, P]. The step is dt + dt_bias, through softplus if dt_softplus, then between the limits.

    chunk_size  ≥ 1, without effect on the results: the form is chosen for the CPU.
    initial_states [B, H, P, N], of the first sequence of each row.
    seq_idx [B, T]: numbers of the sequences in a row; each starts from zero.
    return_final_states: also the state after the last token of each row, [B, H, P, N].
    cu_seqlens  borders of the sequences that seq_idx numbers in a batch of 1; with return_varlen_states also their
                last states, [sequences, H, P, N].
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size = {chunk_size}, expected at least 1")
    if x.dim() != 4:
        raise ValueError(f"x is {list(x.shape)}, expected [batch, seqlen, nheads, headdim]")
    if return_varlen_states and cu_seqlens is None:
        raise ValueError("return_varlen_states without cu_seqlens")
    batch, time, heads, width = x.shape
    tokens, state, borders = (x, dt, B, C, z), initial_states, None
    first, last = slice(None), slice(None)
    if cu_seqlens is not None or seq_idx is not None:
        borders, first, last = _sequences(seq_idx, cu_seqlens, batch, time, initial_states is not None)
        tokens = tuple(packed(t) for t in tokens)
        if initial_states is not None:
            if initial_states.shape[0] != batch:
                raise ValueError(f"initial_states is {list(initial_states.shape)}, expected {batch} states")
            state = initial_states.new_zeros(len(borders) - 1, *initial_states.shape[1:])
            state = state.index_copy(0, first, initial_states)
    x, dt, B, C, z = tokens
    y, states = ops.ssd(x, dt, A, B, C, D, z, dt_bias, softplus=dt_softplus, dt_limit=dt_limit, initial_state=state,
                        cu_seqlens=borders, form="fast")
    results = [y.reshape(batch, time, heads, width)]
    if return_final_states:
        results.append(states[last])
    if return_varlen_states:
        results.append(states)
    return results[0] if len(results) == 1 else tuple(results)


def _sequences(seq_idx, cu_seqlens, batch, time, with_initial):
    """→ borders in the packed rows, and the numbers of each row's first and last sequence."""
    if seq_idx is None:
        raise ValueError("cu_seqlens without seq_idx: the public function then lets states cross its borders in the "
                         "output; pass seq_idx, which restarts them")
    segments = Segments(seq_idx, batch, time)
    if with_initial and time > 0 and bool((seq_idx[:, 0] != 0).any()):
        raise NotImplementedError("initial_states with a row whose seq_idx does not begin with 0")
    if cu_seqlens is None:
        return segments.borders, segments.first_of_rows[:-1], segments.last_of_rows()
    borders = torch.as_tensor(cu_seqlens).long()
    if batch != 1:
        raise ValueError(f"cu_seqlens with a batch of {batch}, expected the sequences packed in a batch of 1")
    filled = torch.nonzero(borders[1:] > borders[:-1]).flatten()
    if time > 0 and not torch.equal(torch.cat([borders[:-1][filled], borders[-1:]]), segments.borders):
        raise ValueError("cu_seqlens and seq_idx disagree on where sequences begin")
    if time == 0:
        filled = torch.zeros(1, dtype=torch.int64)
    return borders, filled[:1], filled[-1:]


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False,
                           state_batch_indices=None):
    """The next token of selective_scan_fn or mamba_chunk_scan_combined, updating `state` in place.

    state [B, D, N]; x, dt, z [B, D]; A [D, N]; B, C [B, N] or [B, G, N]; D, dt_bias [D] → [B, D]. Or with heads: state
    [B, H, P, N]; x, dt, z [B, H, P]; A [H, P, N]; D, dt_bias [H, P] → [B, H, P].
    state_batch_indices [B]: state holds more sequences, and these are the rows of x's.
    """
    if state.dim() not in (3, 4) or x.dim() != state.dim() - 1:
        raise ValueError(f"state is {list(state.shape)} and x {list(x.shape)}, expected [batch, dim, dstate] and "
                         "[batch, dim], or [batch, nheads, headdim, dstate] and [batch, nheads, headdim]")
    at = None if state_batch_indices is None else rows_of("state_batch_indices", state_batch_indices, x, state)
    before = state.detach() if at is None else state.detach()[at]
    B, C = (m if m.dim() == 3 else m.unsqueeze(1) for m in (B, C))

    def token(t):  # [B, 1, channels], of all heads
        return None if t is None else t.reshape(t.shape[0], 1, -1)

    def channels(t):
        return None if t is None else t.reshape(-1)

    y, after = ops.selective_scan(token(x), token(dt), A.reshape(-1, A.shape[-1]), B.unsqueeze(1), C.unsqueeze(1),
                                  channels(D), token(z), channels(dt_bias), softplus=dt_softplus,
                                  initial_state=before.reshape(before.shape[0], -1, before.shape[-1]))
    with torch.no_grad():
        after = after.reshape(before.shape).to(state.dtype)
        if at is None:
            state.copy_(after)
        else:
            state[at] = after
    return y.reshape(x.shape)
