# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""stepwell.torch.layers: names of parameters, training, states, types, copies. Values: test_torch_golden.py."""

import copy
import pathlib
import pickle

import pytest

torch = pytest.importorskip("torch")

import torch.nn.utils.parametrize
import torch.nn.utils.stateless

from torch_calls import numbers

import stepwell
import stepwell.torch
from stepwell.torch import layers

WIDTH = 16
OPTIONS = {
    "mamba": {},
    "mamba2": dict(headdim=8, d_state=4),
    "gated_delta_net2": dict(num_heads=2, head_dim=4),
    "kimi_delta_attention": dict(num_heads=2, num_v_heads=4, head_dim=4),
    "gated_delta_net": dict(num_heads=2, head_dim=4),
    "delta_net": dict(num_heads=2),
    "gated_linear_attention": dict(num_heads=2),
    "linear_attention": dict(num_heads=2),
    "mlstm": dict(num_heads=2),
    "slstm": dict(num_heads=2),
    "mlstm_large": dict(num_heads=2),
}


def made(name, dtype=torch.float32, **options):
    return layers.make(name, WIDTH, seed=3, dtype=dtype, **OPTIONS[name], **options)


def test_every_mixer_is_here():
    assert set(OPTIONS) == set(stepwell.layers.names())
    for name in stepwell.layers.names():
        kind = "".join(part.capitalize() for part in name.split("_"))
        assert getattr(layers, kind).__doc__ == getattr(stepwell.layers, kind).__doc__
        module = getattr(layers, kind)(WIDTH, seed=3, **OPTIONS[name])
        assert module.name == name and isinstance(module, torch.nn.Module)


@pytest.mark.parametrize("name", OPTIONS)
def test_published_names_and_the_values_of_the_seed(name):
    module = made(name)
    expected = stepwell.layers.make(name, WIDTH, seed=3, **OPTIONS[name]).named_parameters()
    state = module.state_dict()
    assert list(state) == [n for n, _ in module.named_parameters()]
    assert set(state) == set(expected)
    assert all((state[key].numpy() == value).all() for key, value in expected.items())


@pytest.mark.parametrize("name", OPTIONS)
def test_same_bits_as_on_arrays(name):
    module, layer = made(name), stepwell.layers.make(name, WIDTH, seed=3, **OPTIONS[name])
    x = numbers(dtype=torch.float32)(2, 5, WIDTH)
    y, state = module(x)
    expected, last = layer(x.numpy())
    assert (y.detach().numpy() == expected).all()
    assert all((state[field].detach().numpy() == last[field]).all() for field in last)


@pytest.mark.parametrize("name", OPTIONS)
def test_gradcheck(name):
    module = made(name, torch.float64)
    n = numbers()
    x = n(1, 3, WIDTH).requires_grad_()
    with torch.no_grad():
        _, state = module(n(1, 2, WIDTH))
    state = {field: t.requires_grad_() for field, t in state.items()}
    names = [p for p, _ in module.named_parameters()]

    def run(x, *rest):
        y, last = module(x, dict(zip(state, rest)))
        return y, *last.values()

    assert torch.autograd.gradcheck(run, (x, *state.values()), atol=1e-5, fast_mode=True)
    y, last = module(x, state)
    (y.sin().sum() + sum(t.sum() for t in last.values())).backward()
    assert names and all(p.grad is not None and torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_of_parameters(name):
    """By finite differences along a random direction."""
    module = made(name, torch.float64)
    n = numbers(2)
    x = n(2, 4, WIDTH)
    directions = [n(*p.shape) for p in module.parameters()]

    def loss(step):
        moved = copy.deepcopy(module)
        with torch.no_grad():
            for p, d in zip(moved.parameters(), directions):
                p.add_(d, alpha=step)
        return moved(x)[0].sin().sum()

    loss_here = module(x)[0].sin().sum()
    loss_here.backward()
    slope = sum((p.grad * d).sum() for p, d in zip(module.parameters(), directions))
    with torch.no_grad():
        measured = (loss(1e-6) - loss(-1e-6)) / 2e-6
    assert abs(slope - measured) <= 1e-6 * max(1.0, abs(measured.item()))


@pytest.mark.parametrize("name", OPTIONS)
def test_steps_and_resumed_sequences_have_the_bits_of_the_whole(name):
    module = made(name)
    x = numbers(dtype=torch.float32)(2, 6, WIDTH)
    with torch.no_grad():
        y, last = module(x)
        first, state = module(x[:, :4])
        second, end = module(x[:, 4:], state)
        assert torch.equal(torch.cat([first, second], 1), y)
        assert all(torch.equal(end[field], last[field]) for field in last)
        state = module.initial_state(2)
        for t in range(6):
            token, state = module.step(x[:, t], state)
            assert torch.equal(token, y[:, t])
        assert all(torch.equal(state[field], last[field]) for field in last)


def test_gradients_pass_through_states():
    module = made("gated_delta_net2", torch.float64)
    x = numbers()(1, 6, WIDTH)
    whole, _ = module(x)
    expected = torch.autograd.grad(whole.sin().sum(), list(module.parameters()))
    first, state = module(x[:, :2])
    second, _ = module(x[:, 2:], state)
    found = torch.autograd.grad(first.sin().sum() + second.sin().sum(), list(module.parameters()))
    assert all(torch.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in zip(found, expected))


def test_masks_and_packed_sequences():
    module = made("mamba")
    x = numbers(dtype=torch.float32)(1, 5, WIDTH)
    mask = torch.tensor([[0, 0, 1, 1, 1]], dtype=torch.bool)
    with torch.no_grad():
        padded, _ = module(x, mask=mask)
        alone, _ = module(x[:, 2:])
        packed, state = module(x, cu_seqlens=torch.tensor([0, 2, 5]))
    assert torch.equal(padded[:, 2:], alone) and not padded[:, :2].any()
    assert torch.equal(packed[:, 2:], alone) and state["ssm_state"].shape[0] == 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_module_to(dtype):
    module = made("gated_delta_net").to(dtype)
    assert all(p.dtype == dtype for p in module.parameters())
    x = numbers()(1, 3, WIDTH).to(dtype)
    y, state = module(x)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert y.dtype == dtype and all(t.dtype == wide for t in state.values())
    expected, _ = copy.deepcopy(module).to(wide)(x.to(wide))
    assert torch.equal(y, expected.to(dtype))
    y.sum().backward()
    assert all(p.grad.dtype == dtype for p in module.parameters())


def test_copies_and_files(tmp_path):
    module = made("mlstm")
    x = numbers(dtype=torch.float32)(1, 3, WIDTH)
    y, _ = module(x)
    assert torch.equal(copy.deepcopy(module)(x)[0], y)
    assert torch.equal(pickle.loads(pickle.dumps(module))(x)[0], y)
    torch.save(module.state_dict(), tmp_path / "mlstm.pt")
    other = layers.Mlstm(WIDTH, seed=4, **OPTIONS["mlstm"])
    assert not torch.equal(other(x)[0], y)
    other.load_state_dict(torch.load(tmp_path / "mlstm.pt"))
    assert torch.equal(other(x)[0], y)


def test_seeds():
    torch.manual_seed(1)
    first, second = layers.Mamba(WIDTH), layers.Mamba(WIDTH)
    torch.manual_seed(1)
    again = layers.Mamba(WIDTH)
    assert torch.equal(first.in_proj.weight, again.in_proj.weight)
    assert not torch.equal(first.in_proj.weight, second.in_proj.weight)


def test_a_learned_first_state_learns():
    module = layers.Mamba2(WIDTH, seed=1, headdim=8, learnable_init_states=True)
    module(numbers(dtype=torch.float32)(2, 3, WIDTH))[0].sum().backward()
    assert module.init_states.grad.abs().sum() > 0


def test_training_lowers_the_loss():
    torch.manual_seed(0)
    teacher, pupil = made("mamba"), layers.Mamba(WIDTH, seed=9)
    x = numbers(dtype=torch.float32)(4, 16, WIDTH)
    target = teacher(x)[0].detach()
    optimizer = torch.optim.Adam(pupil.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (pupil(x)[0] - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


class Doubled(torch.nn.Module):
    def forward(self, weight):
        return 2 * weight


def test_parametrizations_have_effect():
    module, x = made("mamba"), numbers(dtype=torch.float32)(2, 5, WIDTH)
    y, _ = module(x)
    torch.nn.utils.parametrize.register_parametrization(module.out_proj, "weight", Doubled())
    twice, _ = module(x)
    assert torch.equal(twice, 2 * y)
    twice.sum().backward()
    assert module.out_proj.parametrizations.weight.original.grad.abs().sum() > 0


def test_functional_calls_have_effect():
    call = torch.func.functional_call if hasattr(torch, "func") else torch.nn.utils.stateless.functional_call
    module, other = made("mamba"), layers.Mamba(WIDTH, seed=4)
    x = numbers(dtype=torch.float32)(2, 5, WIDTH)
    lent = {name: value.detach().requires_grad_() for name, value in other.named_parameters()}
    y, _ = call(module, lent, (x,))
    assert torch.equal(y, other(x)[0])
    y.sum().backward()
    assert all(value.grad is not None for value in lent.values())
    assert all(value.grad is None for value in module.parameters())


def test_one_parameter_under_two_names():
    module, x = made("gated_delta_net"), numbers(dtype=torch.float32)(2, 5, WIDTH)
    module.k_proj.weight = module.q_proj.weight
    module(x)[0].sum().backward()
    assert module.q_proj.weight.grad.abs().sum() > 0


def test_errors_say_what_is_wrong():
    module = made("mamba")
    x = numbers(dtype=torch.float32)(1, 3, WIDTH)
    with pytest.raises(ValueError, match="expected"):
        module(x[..., :5])
    with pytest.raises(ValueError, match="the state has the fields"):
        module(x, {"h": x})
    with pytest.raises(ValueError, match="x is on device meta"):
        module(x.to("meta"))
    with pytest.raises(ValueError, match="unknown|expected|no option"):
        layers.Mamba(WIDTH, colour=1)
    with pytest.raises(ValueError, match="expected \"exact\" or \"fast\""):
        module(x, mode="slow")


def test_a_published_checkpoint_loads():
    from stepwell import _core

    path = pathlib.Path(__file__).parents[1] / "golden" / "gated-delta" / "20_layer_gdn2.safetensors"
    file = _core.CaseFile(str(path))
    tensors = file.tensors()
    published = {name[6:]: torch.from_numpy(a) for name, a in tensors.items() if name.startswith("param.")}
    options = {key: value for key, value in stepwell.verify.Case(file, "float64").config.items()
               if key not in ("type", "d_model")}
    module = layers.GatedDeltaNet2(tensors["in.x"].shape[-1], dtype=torch.float64, **options)
    module.load_state_dict(published)  # strict: every name, nothing else
    y, _ = module(torch.from_numpy(tensors["in.x"]))
    assert torch.allclose(y, torch.from_numpy(tensors["out.y"]), rtol=1e-9, atol=1e-12)
