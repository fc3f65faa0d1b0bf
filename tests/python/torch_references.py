# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Plain torch loops written from the formulas: what the drop-in functions are compared with."""

import torch
import torch.nn.functional as F


def delta_rule(q, k, v, g=None, b=None, w=None, scale=None, initial_state=None, cu_seqlens=None, l2norm=False):
    """S ← exp(g) ⊙ S; u = w ⊙ v − Sᵀ(b ⊙ k); S ← S + k uᵀ; o = scale · Sᵀ q, on [B, T, heads, width] tensors.

    q, k [.., H, K]; v, w [.., HV, V]; g, b [.., H or HV, K or 1]; value head j reads head ⌊j / (HV/H)⌋.
    """
    if cu_seqlens is not None:
        pieces = []
        for i, (start, end) in enumerate(zip(cu_seqlens[:-1], cu_seqlens[1:])):
            cut = (None if t is None else t[:, start:end] for t in (q, k, v, g, b, w))
            state = None if initial_state is None else initial_state[i:i + 1]
            pieces.append(delta_rule(*cut, scale=scale, initial_state=state, l2norm=l2norm))
        return torch.cat([o for o, _ in pieces], 1), torch.cat([s for _, s in pieces])
    if l2norm:
        q, k = (t * torch.rsqrt((t * t).sum(-1, keepdim=True) + 1e-6) for t in (q, k))
    B, T, H, K = q.shape
    HV, V = v.shape[2:]
    q, k, g, b = (t if t is None or t.shape[2] == HV else t.repeat_interleave(HV // H, 2) for t in (q, k, g, b))
    scale = K**-0.5 if scale is None else scale
    S = v.new_zeros(B, HV, K, V) if initial_state is None else initial_state
    outputs = []
    for t in range(T):
        if g is not None:
            S = torch.exp(g[:, t]).unsqueeze(-1) * S
        u = v[:, t] if w is None else w[:, t] * v[:, t]
        if b is not None:
            u = u - torch.einsum("bhkv,bhk->bhv", S, b[:, t] * k[:, t])
        S = S + k[:, t].unsqueeze(-1) * u.unsqueeze(-2)
        outputs.append(scale * torch.einsum("bhkv,bhk->bhv", S, q[:, t]))
    return (torch.stack(outputs, 1) if outputs else v), S


def softplus_gate(g, A_log, dt_bias):
    """−exp(A_log) · softplus(g + dt_bias); A_log per head, dt_bias per head and channel of g [B, T, heads(, width)]."""
    rate = torch.exp(A_log).view(-1, *[1] * (g.dim() - 3))
    return -rate * F.softplus(g + (0 if dt_bias is None else dt_bias.view(g.shape[2:])))


def bounded_gate(g, A_log, dt_bias, lower_bound):
    rate = 1 if A_log is None else torch.exp(A_log).view(-1, *[1] * (g.dim() - 3))
    return lower_bound * torch.sigmoid(rate * (g + (0 if dt_bias is None else dt_bias.view(g.shape[2:]))))


def selective_scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, borders=()):
    """h ← exp(dt·A) h + dt·u·B; y = Σ C h + D u, times silu(z), on [B, D, T] tensors; h is 0 at the borders."""
    batch, dim, time = u.shape
    dt = delta if delta_bias is None else delta + delta_bias[:, None]
    dt = F.softplus(dt) if delta_softplus else dt

    def of_channel(m, t):  # [B, D, N] at token t
        if m.dim() == 2:
            return m
        m = m.unsqueeze(1) if m.dim() == 3 else m
        return m[..., t].repeat_interleave(dim // m.shape[1], 1)

    h = u.new_zeros(batch, dim, A.shape[1])
    outputs = []
    for t in range(time):
        h = torch.zeros_like(h) if t in borders else h
        h = torch.exp(dt[:, :, t, None] * A) * h + (dt[:, :, t] * u[:, :, t])[..., None] * of_channel(B, t)
        y = (h * of_channel(C, t)).sum(-1)
        outputs.append(y if D is None else y + D * u[:, :, t])
    y = torch.stack(outputs, 2) if outputs else u
    return y if z is None else y * F.silu(z), h


def ssd(x, dt, A, B, C, D=None, z=None, dt_bias=None, softplus=False, limit=(0.0, float("inf")), states=None,
        starts=None):
    """S ← exp(Δ·A) S + Δ x Bᵀ; y = S C + D ⊙ x, times silu(z). starts [B, T]: tokens at which a row's state is 0."""
    batch, time, heads, width = x.shape
    dt = dt if dt_bias is None else dt + dt_bias
    dt = (F.softplus(dt) if softplus else dt).clamp(*limit)
    B, C = (m.repeat_interleave(heads // m.shape[2], 2) for m in (B, C))
    S = x.new_zeros(batch, heads, width, B.shape[-1]) if states is None else states
    outputs = []
    for t in range(time):
        if starts is not None:
            S = torch.where(starts[:, t, None, None, None], torch.zeros_like(S), S)
        S = torch.exp(dt[:, t] * A)[..., None, None] * S
        S = S + (dt[:, t, :, None] * x[:, t])[..., None] * B[:, t].unsqueeze(2)
        outputs.append((S * C[:, t].unsqueeze(2)).sum(-1))
    y = torch.stack(outputs, 1) if outputs else x
    if D is not None:
        y = y + (D if D.dim() == 2 else D[:, None]) * x
    return y if z is None else y * F.silu(z), S


def conv(x, weight, bias=None, before=None, activation=None):
    """y[t] = bias + Σ_j weight[j] x[t − (W−1) + j] on [B, D, T], the inputs before x in `before` [B, D, W − 1]."""
    width = weight.shape[1]
    before = x.new_zeros(*x.shape[:2], width - 1) if before is None else before
    padded = torch.cat([before, x], -1)
    outputs = [(weight * padded[..., t:t + width]).sum(-1) + (0 if bias is None else bias)
               for t in range(x.shape[-1])]
    y = torch.stack(outputs, -1) if outputs else x
    return (y if activation is None else F.silu(y)), padded[..., padded.shape[-1] - (width - 1):]
