# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""torch.compile and torch.export see every op as one node (torch 2.4 and later)."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not hasattr(getattr(torch, "library", None), "custom_op"):
    pytest.skip("torch defines no custom operators", allow_module_level=True)

import op_calls
from torch_calls import flat, numbers, torch_op_calls

from torch import library

import stepwell.torch
from stepwell.torch import _library
from stepwell.torch._table import OPS

NAMES = sorted(op_calls.op_calls(np.random.default_rng(5)))


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()


@pytest.mark.parametrize("name", NAMES)
def test_compiled_calls_have_the_same_bits(name):
    function, tensors, options = torch_op_calls(np.float32)[name]

    def loss(arguments):
        results = flat(function(**arguments, **options))
        return [r * 2 for r in results]

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    results = []
    for run in (loss, compiled):
        leaves = {key: t.clone().requires_grad_() for key, t in tensors.items()}
        values = run(leaves)
        gradients = torch.autograd.grad(sum(v.sin().sum() for v in values), list(leaves.values()), allow_unused=True)
        results.append((values, gradients))
    for eager, of_graph in zip(*results):
        for a, b in zip(eager, of_graph):
            assert (a is None or not a.any()) if b is None else torch.equal(torch.zeros_like(b) if a is None else a, b)


def test_a_call_is_one_node():
    n = numbers(dtype=torch.float32)

    class Layer(torch.nn.Module):
        def forward(self, q, k, v, g, beta, borders):
            o, state = stepwell.torch.chunk_kda(q, k, v, g, beta, cu_seqlens=borders, output_final_state=True,
                                                use_qk_l2norm_in_kernel=True)
            return o + 1, state

    arguments = (n(1, 6, 2, 3), n(1, 6, 2, 3), n(1, 6, 2, 4), -n(1, 6, 2, 3).abs(), n(1, 6, 2), torch.tensor([0, 2, 6]))
    for strict in (True, False):
        program = torch.export.export(Layer(), arguments, strict=strict)
        targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
        assert targets.count(torch.ops.stepwell.gated_delta.default) == 1
        assert all("stepwell" in str(t) or "add" in str(t) or "getitem" in str(t) for t in targets)
        for a, b in zip(program.module()(*arguments), Layer()(*arguments)):
            assert torch.equal(a, b)


@pytest.mark.parametrize("op", ["gated_delta", "ssd", "rms_norm", "short_conv"])
def test_operators_pass_torchs_own_checks(op):
    n = numbers(dtype=torch.float32)
    tensors = {
        "gated_delta": dict(q=n(1, 3, 2, 3), k=n(1, 3, 2, 3), v=n(1, 3, 2, 4), g=-n(1, 3, 2).abs(), beta=n(1, 3, 2)),
        "ssd": dict(x=n(1, 3, 2, 4), dt=n(1, 3, 2), A=-n(2).abs(), B=n(1, 3, 1, 5), C=n(1, 3, 1, 5)),
        "rms_norm": dict(x=n(3, 4), weight=n(4)),
        "short_conv": dict(x=n(1, 3, 4), weight=n(4, 2)),
    }[op]
    options = {
        "gated_delta": (None, True, "given", -5.0, "recurrent", 0),
        "ssd": (True, [0.0, 1.0], "recurrent", 0),
        "rms_norm": (1e-5, 0, "before", "silu"),
        "short_conv": ("silu",),
    }[op]
    arrays = [tensors[name].requires_grad_() if name in tensors else None for name in OPS[op].arrays]
    library.opcheck(_library._OPERATORS[op], (*arrays, *options, None))


def test_other_devices_are_refused_while_compiling():
    compiled = torch.compile(stepwell.torch.ops.softmax, backend="aot_eager")
    with pytest.raises(Exception, match="expected cpu"):
        compiled(torch.zeros(2, 3, device="meta"))
