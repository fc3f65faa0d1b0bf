#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The mLSTM layer against the published Python package, live.

Where the package `xlstm` (with torch) is installed: builds its mLSTM layer, gives every parameter a random value (gate
weights too), runs it in float64 on T = 1 … 12, 64, 100 and 257 tokens with autograd, writes what came out as case files
(docs/case-files.md) and has `stepwell verify --cases` compare values and gradients of every parameter and of the
input, in float64 and float32. A float32 gradient may be off by 1e-4 of its tensor's largest; where the package's own
step, taken over the sequence in float32, is further off on the same draw, by twice what that is. Where the package is
not installed the script says so and ends with status 77 (skipped).

    python3 tests/reference/mlstm_equivalence.py [STEPWELL] [FOLDER]

STEPWELL is the program (default: stepwell), FOLDER where the cases go (default: a temporary one).
"""

import copy
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

LENGTHS = [*range(1, 13), 64, 100, 257]
WIDTH, HEADS, BATCH = 16, 4, 2
STRICT, OWN_ERRORS = 1e-4, 2  # of a float32 gradient: over the largest, in errors of the package's own step
SKIPPED = 77


def write_case(path, tensors, metadata):
    """A safetensors file of float64 arrays."""
    header, data = {"__metadata__": metadata}, b""
    for name, array in sorted(tensors.items()):
        raw = array.astype("<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def stepping(torch, step):
    """The package's step as a cell for whole sequences: token by token from C = n = 0, m = −∞."""

    def cell(queries, keys, values, igate_preact, fgate_preact, **rest):
        batch, heads, time, width = queries.shape
        state = (
            queries.new_zeros(batch, heads, width, width),
            queries.new_zeros(batch, heads, width, 1),
            queries.new_full((batch, heads, 1, 1), -float("inf")),
        )
        outputs = []
        for t in range(time):
            token = (x[:, :, t : t + 1] for x in (queries, keys, values, igate_preact, fgate_preact))
            h, state = step(*state, *token)
            outputs.append(h)
        return torch.cat(outputs, dim=2)

    return cell


def run(layer, x, cotangent):
    """Values and gradients of a layer under the names of a case file."""
    x = x.requires_grad_()
    y = layer(x)
    (y * cotangent).sum().backward()
    tensors = {"in.x": x, "out.y": y, "cot.y": cotangent, "grad.in.x": x.grad}
    for name, parameter in layer.named_parameters():
        tensors["param." + name] = parameter
        tensors["grad.param." + name] = parameter.grad
    return {name: tensor.detach().double().numpy() for name, tensor in tensors.items()}


def bounds(expected, own):
    """What a float32 gradient may be off by, over its tensor's largest; `own` is the package's float32 run."""
    found = {}
    for name in (name for name in expected if name.startswith("grad.")):
        error, largest = abs(own[name] - expected[name]).max(), abs(expected[name]).max()
        found[name] = max(STRICT, OWN_ERRORS * error / largest) if largest > 0 else STRICT
    return found


def case_of(torch, layer_class, config_class, step, time):
    torch.manual_seed(time)
    layer = layer_class(
        config_class(embedding_dim=WIDTH, num_heads=HEADS, bias=True, dropout=0.0, context_length=time)
    ).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x = torch.randn(BATCH, time, WIDTH, dtype=torch.float64)
    cotangent = torch.randn_like(x)
    single = copy.deepcopy(layer).float()
    single.mlstm_cell.backend_fn = stepping(torch, step)
    tensors = run(layer, x, cotangent)
    gradients = bounds(tensors, run(single, x.detach().float(), cotangent.float()))
    config = {
        "type": "mlstm",
        "embedding_dim": WIDTH,
        "num_heads": HEADS,
        "bias": True,
        "m0": "minus_infinity",
    }
    # The gradient of the input gate's bias is a small difference of large terms, that of the forget gate at T = 1 is 0
    # but for eps: both are judged absolutely as well.
    scale = float(abs(tensors["cot.y"]).max())
    absolute = {"abs": 1e-12 * scale, "abs_f32": 1e-6 * scale}
    tolerance = {"f64": 1e-12, "f32": 2e-5, "abs": 0.0, "tensors": {}}
    for name, bound in gradients.items():
        gate = name.startswith(("grad.param.mlstm_cell.igate.", "grad.param.mlstm_cell.fgate."))
        tolerance["tensors"][name] = {"f64": 1e-10, "f32": bound, **(absolute if gate else {})}
    metadata = {
        "format": "stepwell-case-1",
        "kind": "layer",
        "name": f"live_mlstm_T{time:03d}",
        "config": json.dumps(config),
        "note": "mLSTM layer, every parameter random",
        "source": f"package xlstm, torch {torch.__version__}, float64",
        "tol": json.dumps(tolerance),
    }
    return tensors, metadata


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "stepwell"
    try:
        import torch
        from xlstm.blocks.mlstm.backends import recurrent_step_stabilized_simple
        from xlstm.blocks.mlstm.layer import mLSTMLayer, mLSTMLayerConfig
    except ImportError as error:
        print(f"NOT RUN: {error}; the packages torch and xlstm are needed", file=sys.stderr)
        return SKIPPED
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for time in LENGTHS:
            tensors, metadata = case_of(torch, mLSTMLayer, mLSTMLayerConfig, recurrent_step_stabilized_simple, time)
            write_case(folder / (metadata["name"] + ".safetensors"), tensors, metadata)
        return subprocess.run([program, "verify", "--layer", "mlstm", "--cases", str(folder)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
