#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The mLSTM layer against the published Python package, live.

Where the package `xlstm` (with torch) is installed: builds its mLSTM layer, gives every parameter a random value (gate
weights too), runs it in float64 on T = 1 … 12, 64, 100 and 257 tokens with autograd, writes what came out as case files
(docs/case-files.md) and has `stepwell verify --cases` compare values and gradients of every parameter and of the
input, in float64 and float32. Where a query is almost orthogonal to its keys, rounding in h is magnified by the size of
h's terms over h and once more on the way back into q; float32 gradients are allowed that much, 2⁻²⁴ times the two
factors, where it is more than 1e-4. Where it is not installed the script says so and ends with status 77 (skipped).

    python3 tests/reference/mlstm_equivalence.py [STEPWELL] [FOLDER]

STEPWELL is the program (default: stepwell), FOLDER where the cases go (default: a temporary one).
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

LENGTHS = [*range(1, 13), 64, 100, 257]
WIDTH, HEADS, BATCH = 16, 4, 2
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


def watch_condition(torch, layer):
    """Has the layer's cell keep what the condition of a case is computed from."""
    seen, cell = {}, layer.mlstm_cell.backend_fn

    def watched(queries, keys, values, igate_preact, fgate_preact, **rest):
        kept = torch.nn.functional.logsigmoid(fgate_preact)[..., 0].cumsum(-1)
        past = torch.ones(queries.shape[2], queries.shape[2], dtype=torch.bool).tril()
        gates = kept[..., :, None] - kept[..., None, :] + igate_preact[..., 0][..., None, :]
        gates = gates.masked_fill(~past, -float("inf"))
        m = gates.max(-1, keepdim=True).values
        weights = torch.exp(gates - m) * queries.shape[-1] ** -0.5
        a = (weights * (queries @ keys.transpose(-1, -2))).sum(-1, keepdim=True)
        h = cell(queries, keys, values, igate_preact, fgate_preact, **rest)
        for tensor in (queries, h):
            tensor.retain_grad()
        sizes = keys.norm(dim=-1)[..., None, :] * values.norm(dim=-1)[..., None, :]
        seen.update(q=queries, h=h, terms=(weights / torch.maximum(a.abs(), torch.exp(-m)) * sizes).sum(-1))
        return h

    layer.mlstm_cell.backend_fn = watched
    return seen


def magnification(seen):
    """How much larger than h its terms are, times the same for the gradient of q."""
    q, h, terms = (seen[name] for name in ("q", "h", "terms"))
    forwards = (terms * q.norm(dim=-1) / h.norm(dim=-1)).max()
    backwards = (terms * h.grad.norm(dim=-1)).max() / q.grad.abs().max()
    return float(forwards * backwards)


def case_of(torch, layer_class, config_class, time):
    torch.manual_seed(time)
    layer = layer_class(
        config_class(embedding_dim=WIDTH, num_heads=HEADS, bias=True, dropout=0.0, context_length=time)
    ).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x = torch.randn(BATCH, time, WIDTH, dtype=torch.float64, requires_grad=True)
    cotangent = torch.randn_like(x)
    seen = watch_condition(torch, layer)
    y = layer(x)
    (y * cotangent).sum().backward()
    tensors = {"in.x": x, "out.y": y, "cot.y": cotangent, "grad.in.x": x.grad}
    for name, parameter in layer.named_parameters():
        tensors["param." + name] = parameter
        tensors["grad.param." + name] = parameter.grad
    config = {
        "type": "mlstm",
        "embedding_dim": WIDTH,
        "num_heads": HEADS,
        "bias": True,
        "m0": "minus_infinity",
    }
    gradient = max(1e-4, 2**-24 * magnification(seen))
    # The gradient of the input gate's bias is a small difference of large terms, that of the forget gate at T = 1 is 0
    # but for eps: both are judged absolutely.
    scale = float(cotangent.abs().max())
    small = {"f64": 1e-10, "f32": gradient, "abs": 1e-12 * scale, "abs_f32": 1e-5 * scale}
    tolerance = {
        "f64": 1e-12,
        "f32": 2e-5,
        "abs": 0.0,
        "tensors": {
            "grad.": {"f64": 1e-10, "f32": gradient},
            "grad.param.mlstm_cell.igate.": small,
            "grad.param.mlstm_cell.fgate.": small,
        },
    }
    metadata = {
        "format": "stepwell-case-1",
        "kind": "layer",
        "name": f"live_mlstm_T{time:03d}",
        "config": json.dumps(config),
        "note": "mLSTM layer, every parameter random",
        "source": f"package xlstm, torch {torch.__version__}, float64",
        "tol": json.dumps(tolerance),
    }
    return {name: t.detach().numpy() for name, t in tensors.items()}, metadata


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "stepwell"
    try:
        import torch
        from xlstm.blocks.mlstm.layer import mLSTMLayer, mLSTMLayerConfig
    except ImportError as error:
        print(f"NOT RUN: {error}; the packages torch and xlstm are needed", file=sys.stderr)
        return SKIPPED
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for time in LENGTHS:
            tensors, metadata = case_of(torch, mLSTMLayer, mLSTMLayerConfig, time)
            write_case(folder / (metadata["name"] + ".safetensors"), tensors, metadata)
        return subprocess.run([program, "verify", "--layer", "mlstm", "--cases", str(folder)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
