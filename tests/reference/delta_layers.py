#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the layers delta_net and gated_linear_attention, and of options that no other case has.

Writes cases 30 to 40 of tests/golden/gated-delta, after checking itself against the published implementation's
outputs in cases 20 to 22. The layers are written here once more, from their papers, token by
token in float64 with numpy alone. Gradients are taken by complex steps: for an analytic function f of a real x,
f'(x) = Im f(x + ih)/h without any difference of close numbers, so h = 1e-30 gives every digit. Functions with a kink
(relu, the threshold of softplus, limits) decide by the real part.

    python3 tests/reference/delta_layers.py [FOLDER]
"""

import json
import pathlib
import struct
import sys

import numpy as np

STEP = 1e-30


# ------------------------------------------------------------------------------------------------ functions


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_sigmoid(x):
    return -np.log(1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def relu(x):
    return np.where(x.real > 0, x, 0)


def elu_plus_one(x):
    return np.where(x.real > 0, x + 1, np.exp(np.where(x.real > 0, 0, x)))


def softplus(x):
    return np.where(x.real > 20, x, np.log(1 + np.exp(np.where(x.real > 20, 0, x))))


def l2_normalised(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def rms_normalised(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def convolved(x, weight, bias, window):
    """x [T, D], weight [D, 1, W], window [D, W]: the last W inputs. -> [T, D] and the next window."""
    width = weight.shape[2]
    padded = np.concatenate([window.T, x])
    taps = [padded[1 + j : 1 + j + len(x)] * weight[:, 0, j] for j in range(width)]
    return sum(taps) + (0 if bias is None else bias), padded[-width:].T


def delta_rule(q, k, v, g, b, w, state, scale):
    """q k g b [T, H, K], v w [T, H, V], state [H, K, V]: one token after the other."""
    outputs = []
    for t in range(len(q)):
        decayed = np.exp(g[t])[:, :, None] * state
        erased = np.einsum("hkv,hk->hv", decayed, b[t] * k[t])
        state = decayed + k[t][:, :, None] * (w[t] * v[t] - erased)[:, None, :]
        outputs.append(scale * np.einsum("hkv,hk->hv", state, q[t]))
    return np.array(outputs), state


def broadcast(x, like):
    return x + np.zeros_like(like)


# --------------------------------------------------------------------------------------------------- layers


def qkv(x, p, s, config, activation):
    """Queries, keys, values of one sequence [T, channels], and the windows after it."""
    result, windows = [], {}
    for name in "qkv":
        y = x @ p[f"{name}_proj.weight"].T
        if config["use_short_conv"]:
            y, windows[f"conv_state_{name}"] = convolved(
                y, p[f"{name}_conv1d.weight"], p.get(f"{name}_conv1d.bias"), s[f"conv_state_{name}"]
            )
        result.append(activation[name](y))
    return result, windows


def heads(x, count):
    return x.reshape(len(x), count, -1)


def identity(x):
    return x


def delta_net(x, p, s, config):
    H = config["num_heads"]
    act = {"silu": silu, "relu": relu, "elu": elu_plus_one, "identity": identity}[config["qk_activation"]]
    (q, k, v), last = qkv(x, p, s, config, {"q": act, "k": act, "v": silu})
    q, k, v = heads(q, H), heads(k, H), heads(v, H)
    if config["qk_norm"] == "l2":
        q, k = l2_normalised(q), l2_normalised(k)
    else:
        q, k = q / q.sum(-1, keepdims=True), k / k.sum(-1, keepdims=True)
    beta = sigmoid(x @ p["b_proj.weight"].T) if config["use_beta"] else np.ones((len(x), H))
    beta = (2 if config["allow_neg_eigval"] else 1) * beta[:, :, None]
    scale = q.shape[-1] ** -0.5
    o, state = delta_rule(q, k, v, 0 * k, broadcast(beta, k), broadcast(beta, v), s["recurrent_state"], scale)
    o = rms_normalised(o, p["o_norm.weight"], config["norm_eps"])
    if config["use_gate"]:
        o = o * silu(heads(x @ p["g_proj.weight"].T, H))
    return o.reshape(len(x), -1) @ p["o_proj.weight"].T, last | {"recurrent_state": state}


def gated_linear_attention(x, p, s, config):
    H, shared = config["num_heads"], config["num_heads"] // config["num_kv_heads"]
    act = silu if config["use_short_conv"] else identity
    (q, k, v), last = qkv(x, p, s, config, {"q": act, "k": act, "v": act})
    g = x @ p["gk_proj.0.weight"].T @ p["gk_proj.1.weight"].T + p["gk_proj.1.bias"]
    g = log_sigmoid(g) / config["gate_logit_normalizer"]
    if config["clamp_min"] is not None:
        g = np.where(g.real < config["clamp_min"], config["clamp_min"], g)
    q = heads(q, H)
    k, v, g = (np.repeat(heads(y, config["num_kv_heads"]), shared, axis=1) for y in (k, v, g))
    scale = q.shape[-1] ** -0.5
    o, state = delta_rule(q, k, v, g, 0 * k, 0 * v + 1, s["recurrent_state"], scale)
    name = "g_norm_swish_gate.weight" if config["use_output_gate"] else "g_norm.weight"
    o = rms_normalised(o, p[name], config["norm_eps"])
    if config["use_output_gate"]:
        o = o * silu(heads(x @ p["g_proj.weight"].T, H))
    return o.reshape(len(x), -1) @ p["o_proj.weight"].T, last | {"recurrent_state": state}


def grouped(x, p, s, config, decay, gates):
    """Gated DeltaNet-2, KDA and Gated DeltaNet differ in their gates only."""
    H, HV = config["num_heads"], config["num_v_heads"]
    (q, k, v), last = qkv(x, p, s, config, {"q": silu, "k": silu, "v": silu})
    q, k = (np.repeat(l2_normalised(heads(y, H)), HV // H, axis=1) for y in (q, k))
    v = heads(v, HV)
    rate = np.exp(p["A_log"])[:, None]
    raw = heads(decay + p["dt_bias"], len(p["A_log"]))
    if config.get("safe_gate"):
        g = config["lower_bound"] * sigmoid(rate * raw)
    else:
        g = -rate * softplus(raw)
    b, w = gates
    each = lambda y, like: broadcast(np.repeat(y, HV // y.shape[1], axis=1), like)
    scale = q.shape[-1] ** -0.5
    o, state = delta_rule(q, k, v, each(g, k), each(b, k), each(w, v), s["recurrent_state"], scale)
    o = rms_normalised(o, p["o_norm.weight"], config["norm_eps"])
    if "g_proj.0.weight" in p:
        z = x @ p["g_proj.0.weight"].T @ p["g_proj.1.weight"].T + p["g_proj.1.bias"]
        o = o * {"swish": silu, "sigmoid": sigmoid}[config["output_gate"]](heads(z, HV))
    elif config["use_gate"]:
        o = o * {"swish": silu, "sigmoid": sigmoid}[config["output_gate"]](heads(x @ p["g_proj.weight"].T, HV))
    return o.reshape(len(x), -1) @ p["o_proj.weight"].T, last | {"recurrent_state": state}


def gated_delta_net2(x, p, s, config):
    factor = 2 if config["allow_neg_eigval"] else 1
    b = factor * sigmoid(heads(x @ p["b_proj.weight"].T, config["num_heads"]))
    w = sigmoid(heads(x @ p["w_proj.weight"].T, config["num_v_heads"]))
    return grouped(x, p, s, config, x @ p["f_proj.0.weight"].T @ p["f_proj.1.weight"].T, (b, w))


def kimi_delta_attention(x, p, s, config):
    factor = 2 if config["allow_neg_eigval"] else 1
    beta = factor * sigmoid(x @ p["b_proj.weight"].T)[:, :, None]
    return grouped(x, p, s, config, x @ p["f_proj.0.weight"].T @ p["f_proj.1.weight"].T, (beta, beta))


def gated_delta_net(x, p, s, config):
    factor = 2 if config["allow_neg_eigval"] else 1
    beta = factor * sigmoid(x @ p["b_proj.weight"].T)[:, :, None]
    return grouped(x, p, s, config, x @ p["a_proj.weight"].T, (beta, beta))


LAYERS = {
    f.__name__: f
    for f in (delta_net, gated_linear_attention, gated_delta_net2, kimi_delta_attention, gated_delta_net)
}


# --------------------------------------------------------------------------------------------------- shapes


def shapes_of(config):
    """The parameters and the state (of one sequence) of a layer, by name."""
    d, H, kind = config["hidden_size"], config["num_heads"], config["type"]
    if kind in ("delta_net", "gated_linear_attention"):
        K, V, HV = int(d * config["expand_k"]) // H, int(d * config["expand_v"]) // H, H
    else:
        K, V, HV = config["head_dim"], int(config["head_dim"] * config["expand_v"]), config["num_v_heads"]
    kv = config.get("num_kv_heads", H)
    channels = {"q": H * K, "k": kv * K, "v": (kv if kind == "gated_linear_attention" else HV) * V}
    p, s = {"o_proj.weight": (d, HV * V)}, {}
    for name, width in channels.items():
        p[f"{name}_proj.weight"] = (width, d)
        if config["use_short_conv"]:
            p[f"{name}_conv1d.weight"] = (width, 1, config["conv_size"])
            if config["conv_bias"]:
                p[f"{name}_conv1d.bias"] = (width,)
            s[f"conv_state_{name}"] = (width, config["conv_size"])
    s["recurrent_state"] = (HV, K, V)
    if kind == "gated_linear_attention":
        rank, gated = config["gate_low_rank_dim"], config["use_output_gate"]
        p |= {"gk_proj.0.weight": (rank, d), "gk_proj.1.weight": (kv * K, rank), "gk_proj.1.bias": (kv * K,)}
        p["g_norm_swish_gate.weight" if gated else "g_norm.weight"] = (V,)
        if gated:
            p["g_proj.weight"] = (HV * V, d)
        return p, s
    p["o_norm.weight"] = (V,)
    if kind == "delta_net":
        if config["use_beta"]:
            p["b_proj.weight"] = (H, d)
        if config["use_gate"]:
            p["g_proj.weight"] = (HV * V, d)
        return p, s
    decays = {"gated_delta_net2": (H, K), "kimi_delta_attention": (HV, K), "gated_delta_net": (HV, 1)}[kind]
    p |= {"A_log": decays[:1], "dt_bias": (decays[0] * decays[1],)}
    p["b_proj.weight"] = (H * K if kind == "gated_delta_net2" else HV, d)
    if kind == "gated_delta_net2":
        p["w_proj.weight"] = (HV * V, d)
    if kind == "gated_delta_net":
        p["a_proj.weight"] = (HV, d)
        if config["use_gate"]:
            p["g_proj.weight"] = (HV * V, d)
    else:
        p |= {"f_proj.0.weight": (V, d), "f_proj.1.weight": (decays[0] * K, V)}
        p |= {"g_proj.0.weight": (V, d), "g_proj.1.weight": (HV * V, V), "g_proj.1.bias": (HV * V,)}
    return p, s


# ---------------------------------------------------------------------------------------------------- cases


def run(config, x, p, s):
    """x [B, T, d], states [B, ...] -> outputs by name."""
    rows = [LAYERS[config["type"]](x[b], p, {n: v[b] for n, v in s.items()}, config) for b in range(len(x))]
    return {"y": np.array([y for y, _ in rows])} | {n: np.array([last[n] for _, last in rows]) for n in s}


def make_case(config, batch, time, rng):
    p_shapes, s_shapes = shapes_of(config)
    draw = lambda shape, deviation: rng.normal(0, deviation, shape)
    x = draw((batch, time, config["hidden_size"]), 1)
    p = {}
    for name, shape in p_shapes.items():
        if name.endswith("norm.weight") or name.endswith("swish_gate.weight"):
            p[name] = 1 + draw(shape, 0.2)
        else:
            p[name] = draw(shape, {"A_log": 0.5, "dt_bias": 0.5}.get(name, 0.4))
    s = {name: draw((batch, *shape), 0.5) for name, shape in s_shapes.items()}
    outputs = run(config, x, p, s)
    cot = {name: draw(value.shape, 1) for name, value in outputs.items()}
    tensors = {"in.x": x} | {f"param.{n}": v for n, v in p.items()} | {f"in.{n}": v for n, v in s.items()}
    tensors |= {f"out.{n}": v for n, v in outputs.items()} | {f"cot.{n}": v for n, v in cot.items()}
    inputs = {"in.x": x, **{f"param.{n}": v for n, v in p.items()}, **{f"in.{n}": v for n, v in s.items()}}
    for name, value in inputs.items():
        gradient = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            moved = {n: v.astype(complex) if n == name else v for n, v in inputs.items()}
            moved[name][at] += 1j * STEP
            # Sequences of a batch do not meet: only the one that is moved has to run.
            rows = slice(at[0], at[0] + 1) if name.startswith("in.") else slice(None)
            got = run(
                config,
                moved["in.x"][rows],
                {n: moved[f"param.{n}"] for n in p},
                {n: moved[f"in.{n}"][rows] for n in s},
            )
            gradient[at] = sum((got[n].imag * cot[n][rows]).sum() for n in got) / STEP
        tensors[f"grad.{name}"] = gradient
    return tensors


def write_safetensors(path, tensors, metadata):
    header, offset, parts = {"__metadata__": metadata}, 0, []
    for name in sorted(tensors):
        data = np.ascontiguousarray(tensors[name], dtype="<f8")
        header[name] = {"dtype": "F64", "shape": list(data.shape), "data_offsets": [offset, offset + data.nbytes]}
        offset += data.nbytes
        parts.append(data.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + at for at in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], "<f8").reshape(entry["shape"])
    return tensors, metadata


def check_against(path):
    tensors, metadata = read_safetensors(path)
    config = json.loads(metadata["config"])
    p = {n.removeprefix("param."): v for n, v in tensors.items() if n.startswith("param.")}
    x = tensors["in.x"]
    s = {name: np.zeros((len(x), *shape)) for name, shape in shapes_of(config)[1].items()}
    got = run(config, x, p, s)
    for name in ("y", "recurrent_state"):
        expected = tensors[f"out.{name}"]
        error = abs(got[name] - expected).max() / abs(expected).max()
        print(f"{path.stem} {name}: {error:.1e} of the largest entry")
        if not error < 1e-13:
            sys.exit("differs from the published implementation")


CONV = {"use_short_conv": True, "conv_size": 4, "conv_bias": False, "norm_eps": 1e-5}
PLAIN = CONV | {"use_short_conv": False}
DELTA_NET = {"type": "delta_net", "hidden_size": 8, "num_heads": 2, "expand_k": 1.0, "expand_v": 1.0, "use_beta": True}
DELTA_NET |= {"use_gate": False, "allow_neg_eigval": False, "qk_activation": "silu", "qk_norm": "l2"}
GLA = {"type": "gated_linear_attention", "hidden_size": 8, "num_heads": 2, "num_kv_heads": 2, "expand_k": 0.5}
GLA |= {"expand_v": 1.0, "use_output_gate": True, "gate_logit_normalizer": 16.0, "gate_low_rank_dim": 3}
GLA |= {"clamp_min": None}
GROUPED = {"hidden_size": 8, "num_heads": 1, "num_v_heads": 3, "head_dim": 4, "expand_v": 0.5, "allow_neg_eigval": True}

CASES = {
    "30_layer_delta_net": (DELTA_NET | CONV, 2, 7, "DeltaNet as it is by default"),
    "31_layer_delta_net_elu_sum": (
        DELTA_NET | CONV | {"expand_k": 0.5, "expand_v": 2.0, "num_heads": 1, "conv_size": 3, "conv_bias": True}
        | {"qk_activation": "elu", "qk_norm": "sum", "use_gate": True, "allow_neg_eigval": True},
        1, 6, "1 + elu, keys that sum to 1, gates up to 2, output gate, biases of the convolution",
    ),
    "32_layer_delta_net_plain": (
        DELTA_NET | PLAIN | {"use_beta": False, "qk_activation": "identity"}, 2, 5,
        "no convolution, no activation of queries and keys, gate 1",
    ),
    "33_layer_delta_net_relu": (
        DELTA_NET | CONV | {"qk_activation": "relu", "num_heads": 1, "expand_k": 2.0, "conv_size": 2}, 1, 5, "relu"),
    "34_layer_gla": (GLA | PLAIN, 2, 7, "GLA as it is by default"),
    "35_layer_gla_shared_keys": (
        GLA | CONV | {
            "num_heads": 4, "expand_k": 1.0, "gate_logit_normalizer": 2.0, "clamp_min": -0.4, "conv_bias": True},
        1, 6, "4 heads of queries, 2 of keys and values; bounded decays; convolutions with biases",
    ),
    "36_layer_gla_no_gate": (GLA | PLAIN | {"use_output_gate": False, "num_kv_heads": 1}, 1, 5, "no output gate"),
    "37_layer_gdn2_swish": (
        GROUPED | CONV | {"type": "gated_delta_net2", "output_gate": "swish", "safe_gate": False, "lower_bound": -5.0},
        2, 5, "the authors' output gate; erase gates up to 2; states carried in",
    ),
    "38_layer_gdn2_safe_gate": (
        GROUPED | PLAIN | {
            "type": "gated_delta_net2", "output_gate": "sigmoid", "safe_gate": True, "lower_bound": -3.0},
        1, 6, "decays bounded below, no convolution",
    ),
    "39_layer_kda_safe_gate": (
        GROUPED | CONV
        | {"type": "kimi_delta_attention", "output_gate": "sigmoid", "safe_gate": True, "lower_bound": -5.0},
        1, 6, "decays bounded below, gates up to 2; states carried in",
    ),
    "40_layer_gdn_no_gate": (
        GROUPED | CONV | {"type": "gated_delta_net", "use_gate": False, "output_gate": "swish", "conv_bias": True},
        2, 5, "no output gate, biases of the convolutions, gates up to 2; states carried in",
    ),
}

SOURCE = (
    "tests/reference/delta_layers.py of Stepwell: an independent implementation in numpy (float64, token by token), "
    "gradients by complex steps of 1e-30"
)


def main():
    here = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent / "golden" / "gated-delta"
    for path in sorted((here.parent / "golden" / "gated-delta").glob("2*.safetensors")):
        check_against(path)
    for number, (name, (config, batch, time, note)) in enumerate(CASES.items()):
        metadata = {
            "format": "stepwell-case-1",
            "kind": "layer",
            "name": name,
            "config": json.dumps(config),
            "note": note,
            "source": SOURCE,
            "tol": json.dumps({"f64": 1e-12, "f32": 1e-5, "abs": 0.0}),
        }
        tensors = make_case(config, batch, time, np.random.default_rng(number))
        write_safetensors(folder / f"{name}.safetensors", tensors, metadata)
        print(name, flush=True)


if __name__ == "__main__":
    main()
