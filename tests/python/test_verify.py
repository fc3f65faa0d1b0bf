# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The conformance kit passes what is right and finds a planted fault of each kind; the promises and case files run."""

import math
import pathlib

import case_runners
import numpy as np
import pytest

from stepwell import layers, ops, verify

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
B, T, D = 3, 12, 4


class Leaky:
    """A leaky sum, h ← exp(g) h + x, y = h, with its adjoint; each method may be replaced by a faulty one."""

    def step(self, x, g, state):
        state = np.exp(g) * state + x
        return state, state

    def sequence(self, x, g, state):
        outputs = []
        for t in range(x.shape[1]):
            y, state = self.step(x[:, t], g[:, t], state)
            outputs.append(y)
        return np.stack(outputs, axis=1), state

    def backward(self, grad_y, grad_state, x, g, state):
        before = np.concatenate([state[:, None], self.sequence(x, g, state)[0][:, :-1]], axis=1)
        grad_x, grad_g, carried = np.zeros_like(x), np.zeros_like(g), np.array(grad_state)
        for t in reversed(range(x.shape[1])):
            carried = carried + grad_y[:, t]
            grad_x[:, t] = carried
            grad_g[:, t] = carried * before[:, t] * np.exp(g[:, t])
            carried = carried * np.exp(g[:, t])
        return {"x": grad_x, "g": grad_g, "state": carried}


def checked(rule, **more):
    rng = np.random.default_rng(1)
    inputs = {"x": (B, T, D), "g": -np.abs(rng.standard_normal((B, T, D)))}
    settings = dict(state=rng.standard_normal((B, D)), backward_fn=rule.backward,
                    extremes={"g": [0.0, -1e3, -math.inf]}, out=None)
    settings.update(more)
    return verify.check(rule.step, rule.sequence, inputs, **settings)


def outcomes(report):
    return {row["promise"]: row["outcome"] for row in report.rows}


def test_what_is_right_passes():
    report = checked(Leaky())
    assert report.passed and set(outcomes(report).values()) == {"PASS"}, str(report)
    assert all(row["compared"] > 0 and row["figure"] for row in report.rows)
    assert checked(Leaky(), tolerance=0).passed


class DriftingStep(Leaky):
    """Its step rounds the decay: not what the sequence does."""

    def sequence(self, x, g, state):
        return Leaky().sequence(x, g, state)

    def step(self, x, g, state):
        state = np.exp(g).astype(np.float32) * state + x
        return state, state


class SeesTheFuture(Leaky):
    """Normalises by the largest input of the whole sequence."""

    def sequence(self, x, g, state):
        y, state = Leaky().sequence(x, g, state)
        return y / np.abs(x).max(axis=1, keepdims=True), state


class ForgetsTheState(Leaky):
    """Returns the state before the last token."""

    def sequence(self, x, g, state):
        y, _ = Leaky().sequence(x, g, state)
        return y, y[:, -2] if x.shape[1] > 1 else state


class MixesTheBatch(Leaky):
    """Takes out the mean over the batch."""

    def sequence(self, x, g, state):
        return Leaky().sequence(x - x.mean(axis=0, keepdims=True), g, state)


class WritesIntoItsInputs(Leaky):
    """Makes exp(g) in place."""

    def sequence(self, x, g, state):
        y, state = Leaky().sequence(x, g, state)
        np.exp(g, out=g)
        return y, state


class LosesTheStatesGradient(Leaky):
    """Ignores what arrives at the last state."""

    def backward(self, grad_y, grad_state, x, g, state):
        return Leaky().backward(grad_y, grad_state * 0, x, g, state)


class OneEntryWrong(Leaky):
    """A gradient that is wrong in one entry."""

    def backward(self, grad_y, grad_state, x, g, state):
        gradients = Leaky().backward(grad_y, grad_state, x, g, state)
        gradients["g"][1, 5, 2] *= 1.01
        return gradients


class NotFinite(Leaky):
    """Divides by the decay, as a chunk that works with exp(−g) does."""

    def sequence(self, x, g, state):
        with np.errstate(all="ignore"):
            sums = np.cumsum(g, axis=1)
            y = np.exp(sums) * (state[:, None] + np.cumsum(x * np.exp(-sums), axis=1))
        return y, y[:, -1]


@pytest.mark.parametrize("rule, promise", [
    (DriftingStep, "step = sequence"),
    (SeesTheFuture, "causality"),
    (ForgetsTheState, "resume"),
    (MixesTheBatch, "batch independence"),
    (WritesIntoItsInputs, "inputs unchanged"),
    (LosesTheStatesGradient, "gradients"),
    (OneEntryWrong, "gradients"),
    (NotFinite, "extreme gates"),
])
def test_a_planted_fault_is_found(rule, promise):
    report = checked(rule())
    assert outcomes(report)[promise] == "FAIL", str(report)
    assert not report.passed


def test_what_was_not_run_is_not_a_pass():
    report = checked(Leaky(), backward_fn=None, extremes=None)
    assert outcomes(report)["gradients"] == outcomes(report)["extreme gates"] == "NOT RUN"
    report = verify.check(None, lambda state: (None, None), {"x": (1, 1, 1)}, out=None)
    assert not report.passed


def test_a_function_that_throws_fails():
    def broken(x, state):
        raise RuntimeError("no such thing")

    report = verify.check(None, broken, {"x": (2, 3, 1)}, out=None)
    assert outcomes(report)["causality"] == "FAIL" and "RuntimeError: no such thing" in str(report)


def test_a_nested_state_and_several_outputs():
    def sequence(x, state):
        total = np.cumsum(x, axis=1) + state["sum"][0][:, None]
        return {"sum": total, "twice": (2 * total,)}, {"sum": [total[:, -1]], "note": "anything"}

    def step(x, state):
        y, state = sequence(x[:, None], state)
        return {"sum": y["sum"][:, 0], "twice": (y["twice"][0][:, 0],)}, state

    report = verify.check(step, sequence, {"x": (B, T, D)}, state={"sum": [np.ones((B, D))], "note": ""}, out=None,
                          tolerance=1e-12)
    assert report.passed and outcomes(report)["step = sequence"] == "PASS", str(report)


def test_layers_of_ours_pass_at_zero_tolerance():
    layer = layers.make("gated_delta_net2", 8, num_heads=2, head_dim=4)
    report = verify.check(lambda x, state: layer.step(x, state), lambda x, state: layer(x, state),
                          {"x": np.random.default_rng(0).standard_normal((B, T, 8)).astype(np.float32)},
                          tolerance=0, out=None)
    assert report.passed, str(report)


def test_the_table_is_that_of_the_command(capsys):
    report = verify.layers("short_conv")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["subject", "promise", "result", "worst", "figure"]
    assert len(lines) == len(report.rows) + 2 and "\n".join(lines) == str(report)
    assert report.passed and report.rows[0]["subject"] == "op short_conv"
    with pytest.raises(ValueError, match="no layer or op"):
        verify.layers("long_conv", out=None)


def test_an_exception_of_the_printer_stops_the_run():
    def stop(line):
        if "X1 batch" in line:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        verify.layers("short_conv", out=stop)


def test_cases_find_a_wrong_answer():
    def wrong(case):
        outputs, gradients = case_runners.selective_scan(case)
        return outputs, {**gradients, "u": gradients["u"] * 1.001}

    folder = GOLDEN / "mamba"
    report = verify.cases(folder, {"selective_scan": wrong}, out=None)
    by_subject = {row["subject"]: row for row in report.rows}
    assert by_subject["cases selective_scan"]["outcome"] == "FAIL"
    assert "grad.in.u" in by_subject["cases selective_scan"]["figure"]
    assert by_subject["cases layer mamba"]["outcome"] == "NOT RUN"
    missing = verify.cases(folder, {"selective_scan": lambda case: {"y": case.expected["y"]}}, out=None)
    assert any("there is no output h" in row["reason"] for row in missing.rows)


def test_case_files_are_checked(tmp_path):
    with pytest.raises(FileNotFoundError):
        verify.cases(tmp_path, {}, out=None)
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(ValueError, match="broken.safetensors"):
        verify.cases(tmp_path, {}, out=None)


def test_verify_gated_delta_is_reachable():
    q = np.random.default_rng(0).standard_normal((1, 9, 2, 4))
    assert all(row["relative"] < 1e-11 for row in ops.verify_gated_delta(q, q, q, l2norm=True))


def test_torch_tensors_bring_their_own_gradients():
    torch = pytest.importorskip("torch")

    def step(x, g, state):
        state = torch.exp(g) * state + x
        return state, state

    def sequence(x, g, state):
        outputs = []
        for t in range(x.shape[1]):
            y, state = step(x[:, t], g[:, t], state)
            outputs.append(y)
        return torch.stack(outputs, dim=1), state

    def detached(x, g, state):
        y, state = sequence(x, g, state)
        return y, state.detach()

    generator = torch.Generator().manual_seed(0)
    inputs = {"x": torch.randn(B, T, D, generator=generator), "g": -torch.rand(B, T, D, generator=generator)}
    settings = dict(state=torch.zeros(B, D), extremes={"g": [0, -1e3, -math.inf]}, out=None)
    report = verify.check(step, sequence, inputs, **settings)
    assert report.passed and set(outcomes(report).values()) == {"PASS"}, str(report)
    report = verify.check(step, detached, inputs, **settings)
    assert [row["promise"] for row in report.failures()] == ["gradients"], str(report)
