# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of fla.ops against a plain loop: shapes, packing, states, gates in the kernel, odd sizes, errors."""

import inspect
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch_references as reference
from torch_calls import numbers

from stepwell.torch import fla, ops

SIZES = [(2, 7, 2, 2, 3, 4), (1, 1, 1, 1, 1, 1), (2, 0, 1, 2, 2, 3), (1, 67, 2, 4, 5, 3), (1, 130, 1, 1, 17, 2)]


class Inputs:
    """B, T, H, HV, K, V and tensors of every role."""

    def __init__(self, B, T, H, HV, K, V, sequences=None, seed=3):
        n = numbers(seed)
        self.q, self.k, self.v = n(B, T, H, K), n(B, T, H, K), n(B, T, HV, V)
        self.k /= self.k.norm(dim=-1, keepdim=True)  # the delta rule is stable for keys of length 1
        self.g, self.gk = -n(B, T, HV).abs(), -n(B, T, HV, K).abs()
        self.beta, self.raw_beta = torch.sigmoid(n(B, T, HV)), n(B, T, HV)
        self.b, self.w = torch.sigmoid(n(B, T, H, K)), torch.sigmoid(n(B, T, HV, V))
        self.raw, self.raw_k = n(B, T, HV), n(B, T, HV, K)
        self.A_log, self.dt_bias, self.dt_bias_k = n(HV), n(HV), n(HV * K)
        self.state = n(B if sequences is None else sequences, HV, K, V)
        for tensor in vars(self).values():
            tensor.requires_grad_()

    def wide(self, name):
        return getattr(self, name).unsqueeze(-1)


def cases(i):
    """name → (function, arguments, keywords, what the loop takes) for every published function."""
    beta = dict(b=i.wide("beta"), w=i.wide("beta"))
    gdn = dict(g=i.wide("g"), **beta)
    kda = dict(g=i.gk, **beta)
    gdn2 = dict(g=i.gk, b=i.b, w=i.w)
    raw = torch.sigmoid(i.raw_beta).unsqueeze(-1)
    gamma = -torch.arange(1, i.v.shape[2] + 1, dtype=torch.float64) / 8
    whole = gamma[:, None].expand(*i.v.shape[:3], 1)
    softplus = reference.softplus_gate(i.raw, i.A_log, i.dt_bias).unsqueeze(-1)
    softplus_k = reference.softplus_gate(i.raw_k, i.A_log, i.dt_bias_k)
    bounded_k = reference.bounded_gate(i.raw_k, i.A_log, i.dt_bias_k, -4)
    free_k = reference.bounded_gate(i.raw_k, None, None, -5)
    in_kernel = dict(use_gate_in_kernel=True, A_log=i.A_log, dt_bias=i.dt_bias)
    in_kernel_k = dict(use_gate_in_kernel=True, A_log=i.A_log, dt_bias=i.dt_bias_k)
    sigmoid = dict(use_beta_sigmoid_in_kernel=True)
    doubled = dict(sigmoid, allow_neg_eigval=True)
    return {
        "chunk_gated_delta_rule": (fla.chunk_gated_delta_rule, (i.g, i.beta), {}, gdn),
        "chunk_gated_delta_rule gate": (fla.chunk_gated_delta_rule, (i.raw, i.beta), in_kernel,
                                        dict(g=softplus, **beta)),
        "chunk_gated_delta_rule sigmoid": (fla.chunk_gated_delta_rule, (i.g, i.raw_beta), sigmoid,
                                           dict(g=i.wide("g"), b=raw, w=raw)),
        "fused_recurrent_gated_delta_rule": (fla.fused_recurrent_gated_delta_rule, (), dict(g=i.g, beta=i.beta), gdn),
        "fused_recurrent_gated_delta_rule gk": (fla.fused_recurrent_gated_delta_rule, (),
                                                dict(g=i.g, gk=i.gk, beta=i.raw_beta, **doubled),
                                                dict(g=i.wide("g") + i.gk, b=2 * raw, w=2 * raw)),
        "fused_recurrent_gated_delta_rule gate": (fla.fused_recurrent_gated_delta_rule, (),
                                                  dict(g=i.raw, beta=i.beta, **in_kernel), dict(g=softplus, **beta)),
        "chunk_delta_rule": (fla.chunk_delta_rule, (i.beta,), {}, beta),
        "fused_recurrent_delta_rule": (fla.fused_recurrent_delta_rule, (i.beta,), {}, beta),
        "fused_recurrent_delta_rule ones": (fla.fused_recurrent_delta_rule, (), {},
                                            dict(b=torch.ones_like(raw), w=torch.ones_like(raw))),
        "chunk_kda": (fla.chunk_kda, (i.gk, i.beta), {}, kda),
        "chunk_kda gate": (fla.chunk_kda, (i.raw_k, i.beta), in_kernel_k, dict(g=softplus_k, **beta)),
        "chunk_kda bound": (fla.chunk_kda, (i.raw_k, i.beta), dict(in_kernel_k, safe_gate=True, lower_bound=-4),
                            dict(g=bounded_k, **beta)),
        "chunk_kda free bound": (fla.chunk_kda, (i.raw_k, i.raw_beta),
                                 dict(use_gate_in_kernel=True, lower_bound=-5, **doubled),
                                 dict(g=free_k, b=2 * raw, w=2 * raw)),
        "fused_recurrent_kda": (fla.fused_recurrent_kda, (i.gk, i.beta), {}, kda),
        "fused_recurrent_kda gate": (fla.fused_recurrent_kda, (i.raw_k, i.beta), in_kernel_k,
                                     dict(g=softplus_k, **beta)),
        "chunk_gdn2": (fla.chunk_gdn2, (i.gk, i.b, i.w), {}, gdn2),
        "chunk_gdn2 bound": (fla.chunk_gdn2, (i.raw_k, i.b, i.w), dict(in_kernel_k, lower_bound=-4),
                             dict(gdn2, g=bounded_k)),
        "fused_recurrent_gdn2": (fla.fused_recurrent_gdn2, (i.gk, i.b, i.w), {}, gdn2),
        "fused_recurrent_gdn2 gate": (fla.fused_recurrent_gdn2, (i.raw_k, i.b, i.w), in_kernel_k,
                                      dict(gdn2, g=softplus_k)),
        "chunk_gla": (fla.chunk_gla, (i.gk,), {}, dict(g=i.gk)),
        "fused_recurrent_gla": (fla.fused_recurrent_gla, (i.gk,), {}, dict(g=i.gk)),
        "chunk_simple_gla": (fla.chunk_simple_gla, (i.g,), {}, dict(g=i.wide("g"))),
        "chunk_simple_gla gamma": (fla.chunk_simple_gla, (), dict(g_gamma=gamma), dict(g=whole)),
        "chunk_simple_gla none": (fla.chunk_simple_gla, (), {}, {}),
        "fused_recurrent_simple_gla": (fla.fused_recurrent_simple_gla, (i.g,), {}, dict(g=i.wide("g"))),
    }


NAMES = list(cases(Inputs(*SIZES[0])))
NORMALISED = [name for name in NAMES if "gla" not in name]


def close(got, expected, where):
    scale = expected.abs().max().item() if expected.numel() else 0
    assert got.shape == expected.shape, where
    assert got.numel() == 0 or (got - expected).abs().max().item() <= 1e-12 + 1e-10 * scale, where


def compare(i, name, options=None, loop=None):
    """Results and the gradients of everything that the loop depends on."""
    options, loop = options or {}, loop or {}
    function, arguments, keywords, parts = cases(i)[name]
    o, state = function(i.q, i.k, i.v, *arguments, output_final_state=True, **keywords, **options)
    expected = reference.delta_rule(i.q, i.k, i.v, **parts, **loop)
    close(o, expected[0], "o")
    close(state, expected[1], "state")
    leaves = vars(i)

    def gradients(o, state):
        loss = (o.sin() * torch.arange(1, o.shape[-1] + 1)).sum() + state.cos().sum()
        return torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)

    for leaf, got, wanted in zip(leaves, gradients(o, state), gradients(*expected)):
        assert wanted is None or got is not None or wanted.abs().max() == 0, leaf
        if got is not None and wanted is not None:
            close(got, wanted, f"gradient of {leaf}")


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_equals_the_loop(name, size):
    if "gdn2" in name and size[3] != size[2]:
        pytest.skip("A_log per head of g, checked below")
    compare(Inputs(*size), name)


@pytest.mark.parametrize("name", NAMES)
def test_initial_state_and_scale(name):
    i = Inputs(*SIZES[0])
    compare(i, name, dict(initial_state=i.state, scale=0.3), dict(initial_state=i.state, scale=0.3))


@pytest.mark.parametrize("name", NAMES)
def test_packed_sequences(name):
    borders = torch.tensor([0, 1, 4, 4, 9])
    i = Inputs(1, 9, 2, 2, 3, 4, sequences=4)
    compare(i, name, dict(initial_state=i.state, cu_seqlens=borders),
            dict(initial_state=i.state, cu_seqlens=borders.tolist()))


@pytest.mark.parametrize("name", NORMALISED)
def test_normalised_in_the_kernel(name):
    compare(Inputs(*SIZES[0]), name, dict(use_qk_l2norm_in_kernel=True), dict(l2norm=True))


@pytest.mark.parametrize("function", [fla.fused_recurrent_gla, fla.fused_recurrent_simple_gla])
@pytest.mark.parametrize("borders", [None, [0, 2, 2, 7]])
def test_reverse(function, borders):
    i = Inputs(1, 7, 2, 2, 3, 4, sequences=1 if borders is None else 3)
    gate = i.gk if function is fla.fused_recurrent_gla else i.g
    o, state = function(i.q, i.k, i.v, gate, initial_state=i.state, output_final_state=True, reverse=True,
                        cu_seqlens=None if borders is None else torch.tensor(borders))
    for n, (start, end) in enumerate(zip(borders[:-1], borders[1:]) if borders else [(0, 7)]):
        q, k, v, g = (t[:, start:end].flip(1) for t in (i.q, i.k, i.v, gate))
        expected, last = reference.delta_rule(q, k, v, g if g.dim() == 4 else g[..., None],
                                              initial_state=i.state[n:n + 1])
        close(o[:, start:end], expected.flip(1), "o")
        close(state[n:n + 1], last, "state")


@pytest.mark.parametrize("name", ["chunk_kda", "fused_recurrent_kda", "chunk_gla", "fused_recurrent_gated_delta_rule"])
def test_states_with_values_first(name):
    i = Inputs(*SIZES[0])
    function, arguments, keywords, _ = cases(i)[name]
    o, state = function(i.q, i.k, i.v, *arguments, initial_state=i.state, output_final_state=True, **keywords)
    for option in (dict(state_v_first=True), dict(transpose_state_layout=True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            turned = function(i.q, i.k, i.v, *arguments, initial_state=i.state.transpose(-1, -2),
                              output_final_state=True, **keywords, **option)
        assert torch.equal(turned[0], o) and torch.equal(turned[1], state.transpose(-1, -2))
        assert turned[1].is_contiguous()


def test_grouped_heads_of_gdn2_with_gates_of_key_heads():
    n = numbers()
    i = Inputs(2, 5, 2, 4, 3, 4)
    raw, A_log, dt_bias = n(2, 5, 2, 3), n(2), n(6)
    o, state = fla.chunk_gdn2(i.q, i.k, i.v, raw, i.b, i.w, use_gate_in_kernel=True, A_log=A_log, dt_bias=dt_bias,
                              output_final_state=True)
    expected = reference.delta_rule(i.q, i.k, i.v, reference.softplus_gate(raw, A_log, dt_bias), i.b, i.w)
    close(o, expected[0], "o")
    close(state, expected[1], "state")


@pytest.mark.parametrize("name", NAMES)
def test_gates_of_minus_infinity(name):
    i = Inputs(1, 70, 1, 1, 3, 2)
    with torch.no_grad():
        for gate in (i.g, i.gk, i.raw, i.raw_k):
            gate[:, 33] = -float("inf")
    if "gate" in name or "bound" in name:
        pytest.skip("there −inf is not a decay but what a gate is made of")
    compare(i, name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("name", NAMES)
def test_types_of_results(name, dtype):
    i = Inputs(*SIZES[0])
    function, arguments, keywords, _ = cases(i)[name]

    def narrow(value):
        return value.detach().to(dtype) if isinstance(value, torch.Tensor) else value

    tensors = [narrow(t) for t in (i.q, i.k, i.v, *arguments)]
    o, state = function(*tensors, output_final_state=True, **{key: narrow(t) for key, t in keywords.items()})
    assert o.dtype == dtype and state.dtype == torch.float32
    wide = function(*(t.float() for t in tensors), output_final_state=True,
                    **{key: t.float() if isinstance(t, torch.Tensor) else t for key, t in
                       ((key, narrow(t)) for key, t in keywords.items())})
    assert torch.equal(o, wide[0].to(dtype)) and torch.equal(state, wide[1])


@pytest.mark.parametrize("name", NAMES)
def test_no_state_unless_asked(name):
    i = Inputs(*SIZES[0])
    function, arguments, keywords, _ = cases(i)[name]
    o, state = function(i.q, i.k, i.v, *arguments, **keywords)
    assert state is None and o.shape == i.v.shape


def test_chunk_size_is_heeded():
    i = Inputs(1, 67, 1, 1, 3, 2)
    compare(i, "chunk_kda", dict(chunk_size=32))
    o, _ = fla.chunk_kda(i.q, i.k, i.v, i.gk, i.beta, chunk_size=32)
    assert torch.equal(o, ops.gated_delta(i.q, i.k, i.v, i.gk, beta=i.beta, form="chunked", chunk=32)[0])
    with pytest.raises(ValueError, match="chunk_size=0"):
        fla.chunk_kda(i.q, i.k, i.v, i.gk, i.beta, chunk_size=0)


def test_what_cannot_be_done_says_so():
    i = Inputs(*SIZES[0])
    q, k, v = i.q, i.k, i.v
    for options in (dict(return_intermediate_states=True), dict(cp_context=object()), dict(use_graph=True)):
        with pytest.raises(NotImplementedError, match=next(iter(options))):
            fla.chunk_kda(q, k, v, i.gk, i.beta, **options)
    with pytest.raises(NotImplementedError, match="graph_mode"):
        fla.chunk_gated_delta_rule(q, k, v, i.g, i.beta, graph_mode="force_graph")
    with pytest.raises(NotImplementedError, match="gv"):
        fla.fused_recurrent_gla(q, k, v, i.gk, i.w)
    with pytest.raises(NotImplementedError, match="beta is"):
        fla.chunk_delta_rule(q, k, v, i.w)
    with pytest.raises(NotImplementedError, match="head_first"):
        fla.chunk_gated_delta_rule(q, k, v, i.g, i.beta, head_first=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        fla.chunk_gla(q, k, v, i.gk, colour=1)
    with pytest.raises(ValueError, match="A_log"):
        fla.fused_recurrent_gated_delta_rule(q, k, v, i.g, beta=i.beta, use_gate_in_kernel=True)
    with pytest.raises(ValueError, match="lower_bound = -6"):
        fla.chunk_kda(q, k, v, i.raw_k, i.beta, use_gate_in_kernel=True, A_log=i.A_log, lower_bound=-6)
    with pytest.raises(ValueError, match="no lower_bound"):
        fla.chunk_kda(q, k, v, i.raw_k, i.beta, use_gate_in_kernel=True, A_log=i.A_log, safe_gate=True)
    with pytest.raises(ValueError, match="allow_neg_eigval"):
        fla.chunk_kda(q, k, v, i.gk, i.beta, allow_neg_eigval=True)
    with pytest.raises(ValueError, match="g and g_gamma"):
        fla.chunk_simple_gla(q, k, v, i.g, i.A_log)
    with pytest.raises(ValueError, match="batch of 2"):
        fla.chunk_gla(q, k, v, i.gk, cu_seqlens=torch.tensor([0, 7]))
    with pytest.raises(ValueError, match="initial_state"):
        fla.chunk_gla(q[:1], k[:1], v[:1], i.gk[:1], initial_state=i.state, cu_seqlens=torch.tensor([0, 7]))
    with pytest.raises(ValueError, match="expected one"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fla.chunk_gla(q, k, v, i.gk, state_v_first=True, transpose_state_layout=True)


def test_arguments_stand_where_they_are_published():
    def order(function):
        return [name for name, p in inspect.signature(function).parameters.items()
                if p.kind is p.POSITIONAL_OR_KEYWORD]

    common = ["scale", "initial_state", "output_final_state"]
    assert order(fla.chunk_gated_delta_rule)[:9] == ["q", "k", "v", "g", "beta", *common, "use_qk_l2norm_in_kernel"]
    assert order(fla.fused_recurrent_gated_delta_rule)[:11] == ["q", "k", "v", "g", "gk", "gv", "beta", *common,
                                                                "use_qk_l2norm_in_kernel"]
    assert order(fla.chunk_delta_rule) == ["q", "k", "v", "beta", *common, "use_qk_l2norm_in_kernel", "cu_seqlens"]
    assert order(fla.fused_recurrent_delta_rule) == order(fla.chunk_delta_rule)
    assert order(fla.chunk_kda)[:10] == ["q", "k", "v", "g", "beta", *common, "use_qk_l2norm_in_kernel",
                                         "use_gate_in_kernel"]
    assert order(fla.fused_recurrent_kda)[:10] == ["q", "k", "v", "g", "beta", "A_log", "dt_bias", *common]
    assert order(fla.chunk_gdn2)[:12] == ["q", "k", "v", "g", "b", "w", *common, "use_qk_l2norm_in_kernel",
                                          "use_gate_in_kernel", "cu_seqlens"]
    assert order(fla.chunk_gla)[:9] == ["q", "k", "v", "g", *common, "state_v_first", "cu_seqlens"]
    assert order(fla.fused_recurrent_gla) == ["q", "k", "v", "gk", "gv", *common, "reverse", "state_v_first",
                                              "cu_seqlens"]
    assert order(fla.chunk_simple_gla)[:10] == ["q", "k", "v", "g", "g_gamma", *common, "state_v_first", "cu_seqlens"]
    assert order(fla.fused_recurrent_simple_gla) == ["q", "k", "v", "g", "g_gamma", *common, "reverse",
                                                     "state_v_first", "cu_seqlens"]


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name):
    i = Inputs(1, 4, 1, 2 if "gdn2" not in name else 1, 2, 2)
    function, arguments, keywords, _ = cases(i)[name]
    given = dict(q=i.q, k=i.k, v=i.v, initial_state=i.state,
                 **{f"argument {n}": value for n, value in enumerate(arguments)}, **keywords)
    leaves = {key: value for key, value in given.items() if torch.is_tensor(value) and value.requires_grad}

    def run(*tensors):
        values = {**given, **dict(zip(leaves, tensors))}
        positional = [values.pop(f"argument {n}") for n in range(len(arguments))]
        return function(values.pop("q"), values.pop("k"), values.pop("v"), *positional, output_final_state=True,
                        **values)

    assert torch.autograd.gradcheck(run, tuple(leaves.values()), atol=1e-6)


def test_gradcheck_through_a_drop_in():
    i = Inputs(1, 4, 1, 2, 2, 2)
    leaves = (i.q, i.k, i.v, i.raw_k, i.raw_beta, i.A_log, i.dt_bias_k, i.state)

    def run(q, k, v, g, beta, A_log, dt_bias, state):
        return fla.chunk_kda(q, k, v, g, beta, initial_state=state, output_final_state=True,
                             use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
                             A_log=A_log, dt_bias=dt_bias)

    assert torch.autograd.gradcheck(run, leaves, atol=1e-6)
