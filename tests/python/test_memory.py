# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Memories trained one step at a time, and the tasks they learn from."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import stepwell
from stepwell import memory, tasks

TOKEN, OUT = 3, 2
CELLS = {
    "gated": {},
    "gated biased": {"bias": True},
    "cloned": {},
    "mamba": {"width": 4, "mixer": {"d_state": 3, "init": "active"}},
    "gated_delta_net2": {"width": 4, "mixer": {"num_heads": 2, "head_dim": 3}},
    "mlstm": {"width": 8, "mixer": {"num_heads": 2, "inner_dim": 8, "init": "active"}},
}
RECIPE = {
    "task": {"name": "oscillators", "length": 20},
    "teacher": {"window": 6, "embed_width": 8, "bound": "tanh"},
    "cell": {"type": "gated", "memory_width": 6},
    "train": {"mode": "joint", "steps": 10, "batch": 16},
    "imitation": {"rounds": 2, "steps": 5, "sequences": 8, "validation_sequences": 8},
    "evaluate": {"sequences": 8, "times": [1, 2], "drift_length": 40},
}


def made(case, **more):
    return memory.make_updater(case.split()[0], TOKEN, OUT, **CELLS[case], **more)


def transition(cell, rng, batch=5):
    """(memory, tokens, target, next) of one example each."""
    shapes = [(batch, cell.memory_width), (batch, cell.context, TOKEN), (batch, cell.memory_width), (batch, OUT)]
    return [0.5 * rng.standard_normal(shape).astype(cell.dtype) for shape in shapes]


def same(a, b):
    return list(a) == list(b) and all(a[name].tobytes() == b[name].tobytes() for name in a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CELLS)
def test_a_step_is_the_update_that_training_sees(case, dtype, rng):
    cell = made(case, dtype=dtype)
    m, tokens, _, _ = transition(cell, rng)
    after = cell.step(m, tokens)
    prediction = cell.predict(after)
    assert after.shape == m.shape and prediction.shape == (5, OUT) and after.dtype == prediction.dtype == dtype
    assert cell.step(m, tokens).tobytes() == made(case, dtype=dtype).step(m, tokens).tobytes() == after.tobytes()
    assert cell.step(m[2], tokens[2]).tobytes() == after[2].tobytes()
    # Training compares its update with them, and finds no difference at all.
    before = cell.named_parameters()
    report = cell.train_step(m, tokens, after, prediction, 0)
    assert report == {"memory_loss": 0, "readout_loss": 0, "gradient_norm": 0, "clipped": False, "skipped": False}
    assert same(cell.named_parameters(), before)
    assert cell.initial_memory(4).shape == (4, cell.memory_width)


@pytest.mark.parametrize("case", CELLS)
def test_training_fits_a_transition(case, rng):
    cell = made(case)
    m, tokens, _, following = transition(cell, rng, batch=1)
    target = made(case, seed=1).step(m, tokens)  # within reach
    losses = []
    for _ in range(300):
        report = cell.train_step(m, tokens, target, following, 1e-2)
        losses.append(report["memory_loss"] + report["readout_loss"])
    assert min(losses) * 10 < losses[0] and not report["skipped"]


@pytest.mark.parametrize("case", CELLS)
def test_training_the_memory_leaves_the_readout_alone(case, rng):
    cell = made(case)
    m, tokens, target, following = transition(cell, rng)
    cell.train_step(m, tokens, target, following, 1e-2)
    parameters, moments = cell.named_parameters(), cell.optimizer_state()
    report = cell.train_step_memory(m, tokens, target, 1e-2)
    assert report["readout_loss"] == 0 < report["memory_loss"]
    after, moments_after = cell.named_parameters(), cell.optimizer_state()
    assert after["w_read"].tobytes() == parameters["w_read"].tobytes() and not same(after, parameters)
    assert same({name: moments_after[name] for name in moments}, moments)
    assert all(name.startswith("correction.") for name in set(moments_after) - set(moments))


@pytest.mark.parametrize("case", CELLS)
def test_parameters_and_moments_go_out_and_in(case, rng):
    cell, other = made(case), made(case, seed=9)
    examples = transition(cell, rng)
    assert cell.optimizer_state() == {}
    cell.train_step(*examples, 1e-2)
    other.set_named_parameters(cell.named_parameters())
    other.set_optimizer_state(cell.optimizer_state())
    for value in cell.named_parameters().values():
        value[...] = 0  # a copy
    assert cell.train_step(*examples, 1e-2) == other.train_step(*examples, 1e-2)
    assert same(cell.named_parameters(), other.named_parameters())
    assert same(cell.optimizer_state(), other.optimizer_state())


def test_a_loss_that_is_not_finite_changes_nothing(rng):
    cell = made("gated")
    m, tokens, target, following = transition(cell, rng)
    before = cell.named_parameters()
    assert cell.train_step(m, tokens, target, following * np.float32(np.nan), 1e-2)["skipped"]
    assert same(cell.named_parameters(), before)


def test_the_gated_cell_stays_within_one(rng):
    cell = memory.make_updater("gated", TOKEN, OUT, 8, bias=True)
    cell.set_named_parameters({name: 3 * value for name, value in cell.named_parameters().items()})
    m = cell.initial_memory(4)
    for _ in range(500):
        m = cell.step(m, 1e6 * rng.choice([-1, 1], (4, 1, TOKEN)).astype(np.float32))
        assert np.abs(m).max() <= 1
    assert np.abs(m).max() > 0 and cell.clamp == 0 and made("cloned").clamp == 4


def test_the_contraction_estimate_is_the_jacobians_norm(rng):
    cell = memory.make_updater("gated", TOKEN, OUT, 5, dtype="float64")
    m, tokens, _, _ = transition(cell, rng, batch=1)
    h = 1e-6
    jacobian = np.stack([
        (cell.step(m + h * e, tokens) - cell.step(m - h * e, tokens))[0] / (2 * h) for e in np.eye(5)
    ], axis=1)
    assert cell.contraction_estimate(m, tokens) == pytest.approx(np.linalg.norm(jacobian, 2), rel=1e-6)


def test_one_cell_in_several_threads(rng):
    cell = made("mamba")
    m, tokens, target, following = transition(cell, rng)
    expected = cell.step(m, tokens).tobytes()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cell.step(m, tokens).tobytes(), range(32)))
        assert found == [expected] * 32
        list(pool.map(lambda _: cell.train_step(m, tokens, target, following, 1e-3), range(16)))
    alone = made("mamba")
    for _ in range(16):
        alone.train_step(m, tokens, target, following, 1e-3)
    assert same(cell.named_parameters(), alone.named_parameters())


@pytest.mark.parametrize("recency", [False, True])
def test_a_teacher_encodes_windows(recency, rng):
    teacher = memory.SetEncoderTeacher(TOKEN, OUT, window=6, embed_width=8, memory_width=5, recency=recency)
    assert (teacher.token_width, teacher.output_width, teacher.memory_width, teacher.window) == (TOKEN, OUT, 5, 6)
    x = rng.standard_normal((2, 11, TOKEN)).astype(np.float32)
    along = teacher.encode_trajectory(x)
    assert along.shape == (2, 11, 5) and teacher.predict(along).shape == (2, 11, OUT)
    for t in range(11):
        window = x[:, max(0, t - 5) : t + 1]
        alone = teacher.encode(window)
        assert alone.tobytes() == teacher.encode(window).tobytes() == along[:, t].copy().tobytes()
    again = memory.SetEncoderTeacher(TOKEN, OUT, seed=3, **teacher.config)
    again.set_named_parameters(teacher.named_parameters())
    assert again.config == teacher.config and again.encode_trajectory(x).tobytes() == along.tobytes()
    wide = memory.SetEncoderTeacher(TOKEN, OUT, dtype="float64", **teacher.config)
    np.testing.assert_allclose(wide.encode_trajectory(x.astype(np.float64)), along, atol=1e-6)


def test_a_teacher_learns(rng):
    teacher = memory.SetEncoderTeacher(TOKEN, bound="tanh", window=4)
    other = memory.SetEncoderTeacher(TOKEN, bound="tanh", window=4, seed=5)
    windows = rng.standard_normal((4, 4, TOKEN)).astype(np.float32)
    following = rng.standard_normal((4, TOKEN)).astype(np.float32)
    losses = [teacher.train_step(windows, following, 1e-2)["readout_loss"] for _ in range(300)]
    assert losses[-1] * 5 < losses[0]
    other.set_named_parameters(teacher.named_parameters())
    other.set_optimizer_state(teacher.optimizer_state())
    assert teacher.train_step(windows, following, 1e-2) == other.train_step(windows, following, 1e-2)
    assert same(teacher.named_parameters(), other.named_parameters())


@pytest.mark.parametrize("name", tasks.names())
def test_tasks_are_the_same_every_time(name):
    task = tasks.make(name)
    batch = task.sample(1, "train", 3, 4, 16)
    assert [(a.shape, str(a.dtype)) for a in batch.values()] == [
        ((4, 16, task.input_width), "float32"), ((4, 16, task.output_width), "float32"), ((4, 16), "bool"),
        ((4,), "int64")]
    assert same(tasks.make(name, **task.config).sample(1, "train", 3, 4, 16), batch)
    assert same(task.sample(1, "train", 5, 1, 16), {key: value[2:3] for key, value in batch.items()})
    assert not same(task.sample(1, "held-out", 3, 4, 16), batch) and not same(task.sample(2, "train", 3, 4, 16), batch)
    best, none = (1, 0) if task.answer == "sign" else (0, np.mean(batch["target"].astype(np.float64) ** 2))
    assert task.score(batch, batch["target"]) == best
    assert task.score(batch, 0 * batch["target"]) == pytest.approx(none)
    baselines = task.baselines(batch)
    assert baselines == ({"chance": 0.5} if task.answer == "sign" else baselines)
    if task.answer == "value":
        assert set(baselines) == {"persistence", "best_exponential_average", "bayes_filter"}
        assert task.score(batch, batch["x"]) == pytest.approx(baselines["persistence"])


def test_distillation(tmp_path):
    report = memory.distill(RECIPE, tmp_path / "run")
    assert report == json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["format"] == "stepwell-distillation-1" and report["steps"] == 20
    assert memory.distill(report["recipe"], str(tmp_path / "again")) == report
    assert memory.distill(None, tmp_path / "run", resume=True) == report
    cell, teacher = memory.load(tmp_path / "run")
    assert (cell.type, cell.memory_width, teacher.window) == ("gated", 6, 6)
    assert same(memory.load(tmp_path / "again")[0].named_parameters(), cell.named_parameters())
    # What the report shows of one held-out sequence is what the cell does.
    shown = report["trajectories"]
    np.testing.assert_allclose(cell.predict(np.float32(shown["student"])), shown["student_prediction"], rtol=1e-5,
                               atol=1e-6)
    with pytest.raises(stepwell.Error, match="run"):
        memory.distill(RECIPE, tmp_path / "run")


def test_distillation_through_time_from_a_file(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[task]\nname = "copy"\nlength = 4\n[train]\nmode = "bptt"\nsteps = 3\nbatch = 4\n')
    assert memory.distill(recipe, tmp_path / "run")["steps"] == 3
    assert memory.load(tmp_path / "run")[1] is None


def test_a_signal_stops_a_distillation_at_a_step(tmp_path):
    lines = tmp_path / "run" / "metrics.jsonl"

    class Stopped(Exception):
        pass

    def handler(*_):
        if lines.exists() and lines.stat().st_size > 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Stopped

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        with pytest.raises(Stopped):
            memory.distill({**RECIPE, "train": {**RECIPE["train"], "steps": 10**6}}, tmp_path / "run")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    steps = len(lines.read_text().splitlines())
    assert [p.name for p in (tmp_path / "run" / "checkpoints").iterdir()][-1] == f"step-{steps:08d}"
    cell, _ = memory.load(tmp_path / "run")
    assert cell.memory_width == 6


def test_errors_say_what_is_wrong(rng, tmp_path):
    cell = memory.make_updater("gated", TOKEN, OUT, 4)
    teacher = memory.SetEncoderTeacher(TOKEN, window=4)
    m, tokens, target, following = transition(cell, rng)
    before = cell.named_parameters()
    with pytest.raises(stepwell.Error, match=r"memory is \[5, 3\], expected F32 \[5, 4\]"):
        cell.step(m[:, :3], tokens)
    with pytest.raises(stepwell.Error, match=r"tokens is \[5, 1, 2\]"):
        cell.step(m, tokens[..., :2])
    with pytest.raises(TypeError, match="memory has dtype float64, expected float32, that of the parameters"):
        cell.step(m.astype(np.float64), tokens)
    with pytest.raises(TypeError, match="tokens is a list"):
        cell.step(m, [[1.0]])
    with pytest.raises(stepwell.Error, match=r"target is \[4, 4\], expected \[5, 4\]"):
        cell.train_step(m, tokens, target[:4], following, 1e-2)
    with pytest.raises(stepwell.Error, match=r"target is \[5, 1\], expected \[5, 2\]"):
        cell.train_step(m, tokens, target, following[:, :1], 1e-2)
    with pytest.raises(stepwell.Error, match="learning rate"):
        cell.train_step_memory(m, tokens, target, -1)
    with pytest.raises(stepwell.Error, match="2 faults"):
        cell.set_named_parameters({name: value[:1] if name != "w_c" else value for name, value in before.items()})
    with pytest.raises(stepwell.Error, match="unknown tensor adam"):
        cell.set_optimizer_state({"adam": m})
    assert same(cell.named_parameters(), before)
    with pytest.raises(stepwell.Error, match="a window of 5 tokens, expected at most 4"):
        teacher.encode(np.zeros((1, 5, TOKEN), np.float32))
    with pytest.raises(stepwell.Error, match="expected .batch, time, token."):
        teacher.encode_trajectory(m)
    with pytest.raises(stepwell.Error, match="did you mean window"):
        memory.SetEncoderTeacher(TOKEN, windw=4)
    with pytest.raises(stepwell.Error, match="unknown cell gate"):
        memory.make_updater("gate", TOKEN, OUT)
    with pytest.raises(ValueError, match="expected float32 or float64"):
        memory.make_updater("gated", TOKEN, OUT, dtype="float16")
    with pytest.raises(stepwell.Error, match="no task nedle, did you mean needle"):
        tasks.make("nedle")
    with pytest.raises(stepwell.Error, match="expected a length of at least 1"):
        tasks.make("needle").sample(0, "train", 0, 1, 0)
    batch = tasks.make("needle").sample(0, "train", 0, 2, 8)
    with pytest.raises(ValueError, match="the batch has no event"):
        tasks.make("needle").baselines({key: value for key, value in batch.items() if key != "event"})
    for key, value in batch.items():
        with pytest.raises(stepwell.Error, match=rf"\[{key}\]"):
            tasks.make("needle").baselines({**batch, key: value[:1] if key != "x" else value[..., :1]})
    with pytest.raises(ValueError, match="recipe is None"):
        memory.distill(None, tmp_path / "run")
    with pytest.raises(ValueError, match="takes None for a recipe"):
        memory.distill(RECIPE, tmp_path / "run", resume=True)
    with pytest.raises(stepwell.Error, match="did you mean steps"):
        memory.distill({**RECIPE, "train": {"stepps": 3}}, tmp_path / "run")
    with pytest.raises(stepwell.Error):
        memory.load(tmp_path / "run")
