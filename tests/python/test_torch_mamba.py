# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The scans of mamba_ssm and the functions of causal_conv1d against plain loops."""

import pytest

torch = pytest.importorskip("torch")

import torch_references as reference
from torch_calls import numbers

from stepwell.torch import (causal_conv1d_fn, causal_conv1d_update, mamba_chunk_scan_combined, selective_scan_fn,
                            selective_state_update)


def close(got, expected):
    scale = expected.abs().max().item() if expected.numel() else 0
    assert got.shape == expected.shape
    assert got.numel() == 0 or (got - expected).abs().max().item() <= 1e-12 + 1e-10 * scale


def compare(got, expected, leaves):
    """Results, and gradients with respect to every leaf."""
    def gradients(results):
        loss = sum((r.sin() * torch.arange(1, r.shape[-1] + 1)).sum() for r in results)
        return torch.autograd.grad(loss, leaves, allow_unused=True)

    for a, b in zip(got, expected):
        close(a, b)
    for leaf, a, b in zip(leaves, gradients(got), gradients(expected)):
        close(*(torch.zeros_like(leaf) if g is None else g for g in (a, b)))


# ------------------------------------------------------------------------------------------------ selective_scan_fn

def scan_inputs(batch=2, dim=6, time=7, states=3, groups=None, constant=(), seed=1):
    n = numbers(seed)

    def matrix(name):
        if name in constant:
            return n(dim, states)
        return n(batch, states, time) if groups is None else n(batch, groups, states, time)

    inputs = dict(u=n(batch, dim, time), delta=n(batch, dim, time), A=-n(dim, states).abs(), B=matrix("B"),
                  C=matrix("C"), D=n(dim), z=n(batch, dim, time), delta_bias=n(dim))
    return {name: t.requires_grad_() for name, t in inputs.items()}


@pytest.mark.parametrize("shape", [{}, dict(time=1), dict(time=0), dict(batch=1, dim=1, states=1), dict(groups=1),
                                   dict(groups=3), dict(groups=6, time=130), dict(constant="BC"), dict(constant="B"),
                                   dict(constant="C", groups=2)], ids=str)
@pytest.mark.parametrize("softplus", [True, False])
def test_selective_scan(shape, softplus):
    inputs = scan_inputs(**shape)
    if not softplus:
        with torch.no_grad():
            inputs["delta"].abs_()
            inputs["delta_bias"].abs_()
    got = selective_scan_fn(**inputs, delta_softplus=softplus, return_last_state=True)
    compare(got, reference.selective_scan(**inputs, delta_softplus=softplus), list(inputs.values()))
    assert got[0].is_contiguous()


@pytest.mark.parametrize("absent", [("D",), ("z",), ("delta_bias",), ("D", "z", "delta_bias")])
def test_selective_scan_without(absent):
    inputs = {name: t for name, t in scan_inputs().items() if name not in absent}
    y = selective_scan_fn(**inputs, delta_softplus=True)
    compare([y], reference.selective_scan(**inputs, delta_softplus=True)[:1], list(inputs.values()))


def test_selective_scan_of_packed_sequences():
    inputs = scan_inputs(batch=1, time=9)
    borders = torch.tensor([0, 3, 3, 8, 9, 9])
    got = selective_scan_fn(**inputs, delta_softplus=True, return_last_state=True, cu_seqlens=borders)
    compare(got, reference.selective_scan(**inputs, delta_softplus=True, borders=(3, 8)), list(inputs.values()))


def test_selective_scan_keeps_channels_last():
    inputs = scan_inputs()
    delta = inputs["delta"].detach().transpose(1, 2).contiguous().transpose(1, 2)
    y = selective_scan_fn(**{**inputs, "delta": delta})
    assert y.stride(1) == 1
    assert torch.equal(y, selective_scan_fn(**inputs))


def test_selective_scan_in_mixed_types():
    inputs = {name: t.detach() for name, t in scan_inputs().items()}
    narrow = {name: t.bfloat16() if name in ("u", "delta", "B", "C", "z") else t.float() for name, t in inputs.items()}
    y, last = selective_scan_fn(**narrow, delta_softplus=True, return_last_state=True)
    expected = selective_scan_fn(**{name: t.float() for name, t in narrow.items()}, delta_softplus=True,
                                 return_last_state=True)
    assert y.dtype == torch.bfloat16 and last.dtype == torch.float32
    assert torch.equal(y, expected[0].bfloat16()) and torch.equal(last, expected[1])


def test_selective_scan_says_what_it_cannot():
    inputs = scan_inputs()
    with pytest.raises(NotImplementedError, match="A is complex"):
        selective_scan_fn(**{**inputs, "A": inputs["A"].to(torch.complex128)})
    with pytest.raises(ValueError, match="groups that divide 6"):
        selective_scan_fn(**{**inputs, "B": numbers()(2, 4, 3, 7)})
    with pytest.raises(ValueError, match="u is"):
        selective_scan_fn(**{**inputs, "u": numbers()(2, 6)})
    with pytest.raises(ValueError, match="batch of 2"):
        selective_scan_fn(**inputs, cu_seqlens=torch.tensor([0, 7]))


def test_gradcheck_of_selective_scan():
    inputs = scan_inputs(dim=2, time=4, states=2)
    assert torch.autograd.gradcheck(lambda *ts: selective_scan_fn(*ts, delta_softplus=True, return_last_state=True),
                                    tuple(inputs.values()), atol=1e-6)


# -------------------------------------------------------------------------------------------- mamba_chunk_scan_combined

def ssd_inputs(batch=2, time=7, heads=4, width=3, groups=2, states=5, per_channel=False, seed=2):
    n = numbers(seed)
    inputs = dict(x=n(batch, time, heads, width), dt=n(batch, time, heads), A=-n(heads).abs(),
                  B=n(batch, time, groups, states), C=n(batch, time, groups, states),
                  D=n(heads, width) if per_channel else n(heads), z=n(batch, time, heads, width), dt_bias=n(heads),
                  initial_states=n(batch, heads, width, states))
    return {name: t.requires_grad_() for name, t in inputs.items()}


def ssd_reference(inputs, softplus=True, limit=(0.0, float("inf")), **options):
    states = inputs.get("initial_states")
    rest = {name: t for name, t in inputs.items() if name != "initial_states"}
    return reference.ssd(**rest, states=states, softplus=softplus, limit=limit, **options)


@pytest.mark.parametrize("shape", [{}, dict(time=1), dict(time=0), dict(batch=1, heads=1, width=1, groups=1, states=1),
                                   dict(groups=4, per_channel=True), dict(time=131, groups=1)], ids=str)
@pytest.mark.parametrize("softplus", [True, False])
def test_chunk_scan(shape, softplus):
    inputs = ssd_inputs(**shape)
    got = mamba_chunk_scan_combined(**inputs, chunk_size=64, dt_softplus=softplus, return_final_states=True)
    compare(got, ssd_reference(inputs, softplus), list(inputs.values()))


@pytest.mark.parametrize("absent", [("D",), ("z",), ("dt_bias",), ("initial_states",),
                                    ("D", "z", "dt_bias", "initial_states")])
def test_chunk_scan_without(absent):
    inputs = {name: t for name, t in ssd_inputs().items() if name not in absent}
    y = mamba_chunk_scan_combined(**inputs, chunk_size=256, dt_softplus=True)
    compare([y], ssd_reference(inputs)[:1], list(inputs.values()))


def test_chunk_scan_bounds_the_step():
    inputs = ssd_inputs()
    got = mamba_chunk_scan_combined(**inputs, chunk_size=4, dt_softplus=True, dt_limit=(0.5, 1.0),
                                    return_final_states=True)
    compare(got, ssd_reference(inputs, limit=(0.5, 1.0)), list(inputs.values()))


SEQUENCES = torch.tensor([[0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 2, 2, 2, 2]])


def starts_of(seq_idx):
    starts = torch.zeros_like(seq_idx, dtype=torch.bool)
    starts[:, 1:] = seq_idx[:, 1:] != seq_idx[:, :-1]
    return starts


@pytest.mark.parametrize("with_initial", [True, False])
def test_chunk_scan_of_several_sequences_in_a_row(with_initial):
    inputs = ssd_inputs()
    if not with_initial:
        del inputs["initial_states"]
    got = mamba_chunk_scan_combined(**inputs, chunk_size=4, dt_softplus=True, seq_idx=SEQUENCES,
                                    return_final_states=True)
    compare(got, ssd_reference(inputs, starts=starts_of(SEQUENCES)), list(inputs.values()))


def test_chunk_scan_gives_the_states_of_packed_sequences():
    inputs = ssd_inputs(batch=1)
    seq_idx, borders = SEQUENCES[:1].int(), torch.tensor([0, 3, 5, 5, 7])
    y, final, varlen = mamba_chunk_scan_combined(**inputs, chunk_size=4, dt_softplus=True, seq_idx=seq_idx,
                                                 cu_seqlens=borders, return_final_states=True,
                                                 return_varlen_states=True)
    compare((y, final), ssd_reference(inputs, starts=starts_of(seq_idx)), list(inputs.values()))
    assert varlen.shape[0] == 4 and torch.equal(varlen[3:], final)
    first = {name: t[:, :3] if t.dim() > 2 and name != "initial_states" else t for name, t in inputs.items()}
    close(varlen[:1], ssd_reference(first)[1])
    assert torch.equal(varlen[2], torch.zeros_like(varlen[2]))
    two = mamba_chunk_scan_combined(**inputs, chunk_size=4, dt_softplus=True, seq_idx=seq_idx, cu_seqlens=borders,
                                    return_varlen_states=True)
    assert len(two) == 2 and torch.equal(two[1], varlen)


def test_chunk_scan_says_what_it_cannot():
    inputs = ssd_inputs(batch=1)
    options = dict(chunk_size=4, dt_softplus=True)
    seq_idx = SEQUENCES[:1]
    with pytest.raises(ValueError, match="without seq_idx"):
        mamba_chunk_scan_combined(**inputs, **options, cu_seqlens=torch.tensor([0, 3, 7]))
    with pytest.raises(ValueError, match="disagree"):
        mamba_chunk_scan_combined(**inputs, **options, seq_idx=seq_idx, cu_seqlens=torch.tensor([0, 2, 7]))
    with pytest.raises(ValueError, match="return_varlen_states without"):
        mamba_chunk_scan_combined(**inputs, **options, return_varlen_states=True)
    with pytest.raises(ValueError, match="chunk_size = 0"):
        mamba_chunk_scan_combined(**inputs, chunk_size=0)
    with pytest.raises(NotImplementedError, match="does not begin with 0"):
        mamba_chunk_scan_combined(**inputs, **options, seq_idx=seq_idx + 1)
    with pytest.raises(NotImplementedError, match="decreases"):
        mamba_chunk_scan_combined(**inputs, **options, seq_idx=seq_idx.flip(1))
    with pytest.raises(ValueError, match=r"expected integers \[1, 7\]"):
        mamba_chunk_scan_combined(**inputs, **options, seq_idx=SEQUENCES)


def test_gradcheck_of_chunk_scan():
    inputs = ssd_inputs(batch=1, time=3, heads=2, width=2, groups=1, states=2)

    def run(*tensors):
        return mamba_chunk_scan_combined(**dict(zip(inputs, tensors)), chunk_size=2, dt_softplus=True,
                                         return_final_states=True)

    assert torch.autograd.gradcheck(run, tuple(inputs.values()), atol=1e-6)


# ------------------------------------------------------------------------------------------- selective_state_update

@pytest.mark.parametrize("groups", [None, 3])
def test_state_updates_continue_the_scan(groups):
    inputs = {name: t.detach() for name, t in scan_inputs(groups=groups).items()}
    whole, last = selective_scan_fn(**inputs, delta_softplus=True, return_last_state=True)
    state = torch.zeros_like(last)
    for t in range(whole.shape[2]):
        u, delta, z, B, C = (inputs[name][..., t] for name in ("u", "delta", "z", "B", "C"))
        y = selective_state_update(state, u, delta, inputs["A"], B, C, inputs["D"], z, inputs["delta_bias"], True)
        assert torch.equal(y, whole[:, :, t])
    assert torch.equal(state, last)


def test_state_updates_continue_the_chunk_scan():
    inputs = {name: t.detach() for name, t in ssd_inputs().items()}
    whole, last = mamba_chunk_scan_combined(**inputs, chunk_size=4, dt_softplus=True, return_final_states=True)
    heads, width, states = last.shape[1:]
    state = inputs["initial_states"].clone()

    def of_heads(t):
        return t[..., None].expand(*t.shape, width)

    A = of_heads(inputs["A"])[..., None].expand(heads, width, states)
    for t in range(whole.shape[1]):
        x, dt, z, B, C = (inputs[name][:, t] for name in ("x", "dt", "z", "B", "C"))
        y = selective_state_update(state, x, of_heads(dt), A, B, C, of_heads(inputs["D"]), z,
                                   of_heads(inputs["dt_bias"]), dt_softplus=True)
        close(y, whole[:, t])
    close(state, last)


def test_state_updates_of_chosen_rows():
    n = numbers()
    states, x, dt, A, B = n(5, 6, 3), n(2, 6), n(2, 6), -n(6, 3).abs(), n(2, 3)
    before, rows = states.clone(), torch.tensor([4, 1])
    y = selective_state_update(states, x, dt, A, B, B, dt_softplus=True, state_batch_indices=rows)
    alone = before[rows]
    assert torch.equal(y, selective_state_update(alone, x, dt, A, B, B, dt_softplus=True))
    assert torch.equal(states[rows], alone) and torch.equal(states[[0, 2, 3]], before[[0, 2, 3]])
    with pytest.raises(ValueError, match="state is"):
        selective_state_update(states, x[:, None], dt, A, B, B)
    with pytest.raises(ValueError, match="names a row twice"):
        selective_state_update(states, x, dt, A, B, B, state_batch_indices=torch.tensor([1, 1]))


# ------------------------------------------------------------------------------------------------ causal_conv1d

@pytest.mark.parametrize("width", [1, 2, 4, 5])
@pytest.mark.parametrize("time", [0, 1, 3, 9])
@pytest.mark.parametrize("activation", [None, "silu", "swish"])
@pytest.mark.parametrize("full", [True, False])
def test_conv(width, time, activation, full):
    n = numbers()
    x, weight = n(2, 3, time).requires_grad_(), n(3, width).requires_grad_()
    bias = n(3).requires_grad_() if full else None
    before = n(2, 3, width - 1).requires_grad_() if full else None
    got = causal_conv1d_fn(x, weight, bias, initial_states=before, return_final_states=True, activation=activation)
    leaves = [t for t in (x, weight, bias, before) if t is not None]
    compare(got, reference.conv(x, weight, bias, before, activation), leaves)
    assert torch.equal(causal_conv1d_fn(x, weight, bias, None, before, activation=activation), got[0])


def test_conv_of_several_sequences_in_a_row():
    n = numbers()
    x, weight, bias = n(2, 3, 7).requires_grad_(), n(3, 4).requires_grad_(), n(3).requires_grad_()
    y = causal_conv1d_fn(x, weight, bias, seq_idx=SEQUENCES.int(), activation="silu")
    rows = []
    for row, numbers_of_row in zip(x, SEQUENCES):
        parts = [reference.conv(row[None, :, numbers_of_row == i], weight, bias, None, "silu")[0] for i in range(3)]
        rows.append(torch.cat(parts, -1))
    compare([y], [torch.cat(rows)], [x, weight, bias])


def test_conv_keeps_layout_and_type_and_writes_states():
    n = numbers(dtype=torch.float32)
    x, weight = n(2, 3, 7), n(3, 4)
    y = causal_conv1d_fn(x, weight)
    assert y.is_contiguous()
    last = x.transpose(1, 2).contiguous().transpose(1, 2)
    assert causal_conv1d_fn(last, weight).stride() == last.stride()
    assert torch.equal(causal_conv1d_fn(last, weight), y)
    out = torch.empty(2, 3, 3)
    _, states = causal_conv1d_fn(x, weight, return_final_states=True, final_states_out=out)
    assert states is out and torch.equal(out, x[..., -3:])
    narrow, states = causal_conv1d_fn(x.bfloat16(), weight, return_final_states=True)
    assert narrow.dtype == states.dtype == torch.bfloat16


def test_conv_says_what_it_cannot():
    n = numbers()
    x, weight = n(2, 3, 7), n(3, 4)
    with pytest.raises(NotImplementedError, match="activation='gelu'"):
        causal_conv1d_fn(x, weight, activation="gelu")
    with pytest.raises(ValueError, match="seq_idx goes with neither"):
        causal_conv1d_fn(x, weight, seq_idx=SEQUENCES, return_final_states=True)
    with pytest.raises(ValueError, match="initial_states is"):
        causal_conv1d_fn(x, weight, initial_states=n(2, 3, 4))
    with pytest.raises(ValueError, match="x is"):
        causal_conv1d_fn(x[0], weight)
    with pytest.raises(ValueError, match="final_states_out without"):
        causal_conv1d_fn(x, weight, final_states_out=n(2, 3, 3))


@pytest.mark.parametrize("length", [3, 5])
def test_update_continues_the_sequence(length):
    n = numbers()
    x, weight, bias = n(2, 3, 11), n(3, 4), n(3)
    whole, _ = reference.conv(x, weight, bias, None, "silu")
    state = torch.zeros(2, 3, length, dtype=torch.float64)
    parts = [causal_conv1d_update(x[..., 0], state, weight, bias, "silu")[..., None]]
    parts += [causal_conv1d_update(part, state, weight, bias, "silu") for part in x[..., 1:].split([1, 2, 6, 1], -1)]
    close(torch.cat(parts, -1), whole)
    assert torch.equal(state, x[..., -length:])


@pytest.mark.parametrize("length", [3, 5, 8])
def test_update_of_a_ring(length):
    n = numbers()
    x, weight = n(2, 3, 12), n(3, 4)
    whole, _ = reference.conv(x, weight)
    ring = torch.zeros(2, 3, length, dtype=torch.float64)
    filled = torch.tensor([0, 0], dtype=torch.int32)
    parts = []
    for part in (x[..., :1], x[..., 1:3], x[..., 3:4], x[..., 4:]):  # the last longer than the ring, or as long
        parts.append(causal_conv1d_update(part, ring, weight, cache_seqlens=filled))
        filled = filled + part.shape[-1]
    seen = int(filled[0])
    close(torch.cat(parts, -1), whole)
    for t in range(seen - length, seen):
        assert torch.equal(ring[..., t % length], x[..., t])


def test_update_of_rings_at_different_places():
    n = numbers()
    x, weight, ring = n(2, 3, 2), n(3, 4), n(2, 3, 4)
    places = torch.tensor([1, 7])
    before = torch.stack([torch.stack([ring[i, :, (p + j) % 4] for j in (-3, -2, -1)], -1)
                          for i, p in enumerate(places.tolist())])
    y = causal_conv1d_update(x, ring, weight, cache_seqlens=places)
    close(y, reference.conv(x, weight, None, before)[0])
    assert torch.equal(ring[0, :, 1:3], x[0]) and torch.equal(ring[1][:, [3, 0]], x[1])


def test_update_of_chosen_rows():
    n = numbers()
    x, weight, states = n(2, 3), n(3, 4), n(5, 3, 3)
    before = states.clone()
    y = causal_conv1d_update(x, states, weight, conv_state_indices=torch.tensor([4, 1], dtype=torch.int32))
    expected = before[[4, 1]].clone()
    assert torch.equal(y, causal_conv1d_update(x, expected, weight))
    assert torch.equal(states[[4, 1]], expected) and torch.equal(states[[0, 2, 3]], before[[0, 2, 3]])
    with pytest.raises(NotImplementedError, match="no padding slot"):
        causal_conv1d_update(x, states, weight, conv_state_indices=torch.tensor([-1, 1]))
    with pytest.raises(ValueError, match="twice"):
        causal_conv1d_update(x, states, weight, conv_state_indices=torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="conv_state is"):
        causal_conv1d_update(x, states, weight)


def test_gradcheck_of_conv():
    n = numbers()
    leaves = tuple(t.requires_grad_() for t in (n(2, 2, 3), n(2, 3), n(2), n(2, 2, 2)))

    def run(x, weight, bias, before):
        return causal_conv1d_fn(x, weight, bias, None, before, True, None, "silu")

    assert torch.autograd.gradcheck(run, leaves, atol=1e-6)
