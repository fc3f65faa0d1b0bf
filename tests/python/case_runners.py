# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Runners of case files on stepwell.ops and stepwell.layers, for stepwell.verify.cases."""

import numpy as np

import stepwell
from stepwell import ops

# What a case calls "m0".
_FIRST_STABILISERS = {"zero": 0.0, "minus_infinity": -np.inf}


def _with_gradients(case, results, names, backward, rename=None):
    """(outputs, gradients by the file's names) of a vjp whose results are named `names`."""
    outputs = dict(zip(names, results))
    if not case.cotangents:
        return outputs
    gradients = backward(**{(rename or {}).get(name, name): value for name, value in case.cotangents.items()})
    return outputs, gradients


def gated_delta(case, **form):
    options = {key: case.config[key] for key in ("scale", "l2norm", "gate", "lower_bound") if key in case.config}
    if options.get("lower_bound", 0) is None:
        del options["lower_bound"]
    inputs = dict(case.inputs)
    offsets = inputs.pop("cu_seqlens", None)
    results, backward = stepwell.vjp(ops.gated_delta, **inputs, cu_seqlens=offsets, **options, **form)
    return _with_gradients(case, results, ("o", "final_state"), backward)


def ssd(case, **form):
    inputs = dict(case.inputs)
    inputs["initial_state"] = inputs.pop("h0")
    options = {"softplus": case.config["softplus"], "dt_limit": case.config.get("dt_limit")}
    results, backward = stepwell.vjp(ops.ssd, **inputs, **options, **form)
    found = _with_gradients(case, results, ("y", "h"), backward, {"h": "final_state"})
    return _renamed(found, {"initial_state": "h0"})


def selective_scan(case):
    inputs = dict(case.inputs)
    inputs["initial_state"] = inputs.pop("h0")
    results, backward = stepwell.vjp(ops.selective_scan, **inputs, softplus=case.config["softplus"])
    found = _with_gradients(case, results, ("y", "h"), backward, {"h": "final_state"})
    return _renamed(found, {"initial_state": "h0"})


def mlstm(case, **form):
    """Case files have heads before time."""
    config, inputs = case.config, dict(case.inputs)
    start = config.get("m0", "zero")
    given = [inputs.pop(name, None) for name in ("C0", "n0", "m0")]
    tokens = {name: np.swapaxes(array, 1, 2) for name, array in inputs.items()}
    batch, _, heads, width = tokens["q"].shape
    state = None
    if start == "given":
        state = given
    elif start == "minus_infinity":
        columns, dtype = tokens["v"].shape[3], tokens["q"].dtype
        state = (np.zeros((batch, heads, width, columns), dtype), np.zeros((batch, heads, width), dtype),
                 np.full((batch, heads), _FIRST_STABILISERS[start], dtype))
    (h, last), backward = stepwell.vjp(ops.mlstm, **tokens, initial_state=state, input_gate=config["input_gate"],
                                       normalise=config.get("normalize", True), eps=config.get("eps", 1e-6), **form)
    outputs = {"h": np.swapaxes(h, 1, 2), **dict(zip("Cnm", last))}
    if not case.cotangents:
        return outputs
    cotangents = dict(case.cotangents)
    if "h" in cotangents:
        cotangents["h"] = np.swapaxes(cotangents["h"], 1, 2)
    gradients = backward(**cotangents)
    found = {name: np.swapaxes(gradients[name], 1, 2) for name in tokens}
    if start == "given":
        found.update({f"{name}0": gradients[name] for name in "Cnm"})
    return outputs, found


def slstm(case):
    """Case files have the state's four parts before the batch, and heads before time."""
    heads = case.config["num_heads"]
    parameters = case.parameters
    x, state = case.inputs["x"], np.swapaxes(case.inputs["state"], 0, 1)
    (y, last), backward = stepwell.vjp(ops.slstm, x, parameters["_recurrent_kernel_"], parameters.get("_bias_"),
                                       initial_state=state)
    batch, time, width = y.shape
    outputs = {"y": y.reshape(batch, time, heads, width // heads).swapaxes(1, 2), "state": np.swapaxes(last, 0, 1)}
    if not case.cotangents:
        return outputs
    grad_y, grad_state = case.cotangents.get("y"), case.cotangents.get("state")
    gradients = backward(None if grad_y is None else grad_y.swapaxes(1, 2).reshape(batch, time, width),
                         None if grad_state is None else np.swapaxes(grad_state, 0, 1))
    return outputs, {"x": gradients["x"], "state": np.swapaxes(gradients["initial_state"], 0, 1),
                     "param._recurrent_kernel_": gradients["R"], "param._bias_": gradients.get("bias")}


def layer(case, mode="exact"):
    options = {key: value for key, value in case.config.items() if key not in ("type", "d_model")}
    made = stepwell.layers.make(case.config["type"], case.inputs["x"].shape[-1], dtype=case.dtype, **options)
    made.set_named_parameters(case.parameters)
    state = {name: array for name, array in case.inputs.items() if name != "x"} or None
    (y, last), backward = stepwell.vjp(made, case.inputs["x"], state, mode=mode)
    outputs = {"y": y, **last}
    if not case.cotangents:
        return outputs
    cotangents = dict(case.cotangents)
    gradients = backward(cotangents.pop("y", None), cotangents)
    found = {"x": gradients["x"], **gradients.get("state", {})}
    found.update({f"param.{name}": value for name, value in gradients["parameters"].items()})
    return outputs, found


def _renamed(found, names):
    if not isinstance(found, tuple):
        return found
    outputs, gradients = found
    return outputs, {names.get(name, name): value for name, value in gradients.items()}


RUNNERS = {
    "gated_delta": gated_delta,
    "ssd": ssd,
    "selective_scan": selective_scan,
    "mlstm": mlstm,
    "slstm": slstm,
    "layer": layer,
}
