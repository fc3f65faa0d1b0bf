#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fuzz/corpus: small safetensors and JSON files, whole ones (valid_*) and broken ones (broken_*)."""
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"


def save(kind, name, content):
    folder = CORPUS / kind
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def tensors_file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors():
    one = {"w": entry("F32", [2], 0, 8)}
    two = {"a": entry("F64", [1], 0, 8), "b": entry("U8", [3], 8, 11)}
    eight, eleven = bytes(8), bytes(11)
    sizes = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I8": 1, "U8": 1, "BOOL": 1}
    every, at = {}, 0
    for dtype, size in sizes.items():
        every[dtype] = entry(dtype, [2, 1], at, at + 2 * size)
        at += 2 * size
    valid = {
        "one": tensors_file(one, eight),
        "two": tensors_file(two, eleven),
        "every_dtype": tensors_file(every, bytes(at)),
        "no_tensors": tensors_file({}),
        "scalar_and_empty": tensors_file({"e": entry("F32", [3, 0], 8, 8), "s": entry("I64", [], 0, 8)}, eight),
        "metadata": tensors_file({"__metadata__": {"format": "pt", "": "\u20ac\ud83d\ude00"}, **one}, eight),
        "escapes": tensors_file(rb'{"\u0077\n\ud83d\ude00":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"),
        "spaces": tensors_file(b'{ "w" : { "data_offsets" : [ 0 , 8 ] ,\n"shape":[2],\t"dtype":"F32"} }    ', eight),
        "unaligned": tensors_file({"a": entry("U8", [3], 0, 3), "b": entry("F64", [1], 3, 11)}, eleven),
        "six_dimensions": tensors_file({"w": entry("U8", [1, 2, 1, 2, 1, 2], 0, 8)}, eight),
    }
    broken = {
        "empty": b"",
        "seven_bytes": bytes(7),
        "length_2_63": tensors_file(one, eight, 1 << 63),
        "length_beyond_end": tensors_file(one, eight, 1000),
        "length_0": tensors_file(one, eight, 0),
        "array": tensors_file(b"[{}]"),
        "deep": tensors_file(b'{"w":' + b"[" * 200),
        "not_utf8": tensors_file(b'{"\xff":{}}'),
        "lone_surrogate": tensors_file(rb'{"\ud800":{}}'),
        "duplicate": tensors_file(b'{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
                                  b'"\\u0077":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
        "offsets_1": tensors_file({"w": {"dtype": "F32", "shape": [2], "data_offsets": [8]}}, eight),
        "offsets_3": tensors_file({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 8]}}, eight),
        "offsets_reversed": tensors_file({"w": entry("F32", [2], 8, 0)}, eight),
        "offsets_negative": tensors_file({"w": entry("F32", [2], -8, 0)}, eight),
        "offsets_1e30": tensors_file({"w": entry("F32", [2], 0, 1e30)}, eight),
        "beyond_end": tensors_file({"w": entry("F32", [3], 0, 12)}, eight),
        "shape_overflow": tensors_file({"w": entry("F32", [1 << 62, 4], 0, 8)}, eight),
        "shape_negative": tensors_file({"w": entry("F32", [-1], 0, 8)}, eight),
        "size_mismatch": tensors_file({"w": entry("F64", [2], 0, 8)}, eight),
        "unknown_dtype": tensors_file({"w": entry("F8_E4M3", [8], 0, 8)}, eight),
        "overlap": tensors_file({"a": entry("U8", [5], 0, 5), "b": entry("U8", [4], 4, 8)}, eight),
        "hole": tensors_file({"a": entry("U8", [3], 0, 3), "b": entry("U8", [4], 4, 8)}, eight),
        "tail": tensors_file(one, eleven),
        "metadata_number": tensors_file({"__metadata__": {"k": 1}}),
    }
    for name, content in valid.items():
        save("safetensors", f"valid_{name}", content)
    for name, content in broken.items():
        save("safetensors", f"broken_{name}", content)


def jsons():
    valid = {
        "kinds": b'{"a": [null, true, false, 1, -2.5e-3, "t"], "o": {"": {}}, "e": []}',
        "numbers": b"[0, -0, 1e5, 1E+5, 0.1, 9223372036854775807, 9223372036854775808, 5e-324]",
        "escapes": rb'"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00"',
        "float_tag": b'{"time_step_limit": [0.0, {"__float__": "Infinity"}]}',
        "scalar": b" 1 ",
    }
    broken = {
        "empty": b"",
        "infinity": b'{"time_step_limit": [0.0, Infinity, -Infinity, NaN], "name": "Infinity-7B"}',
        "trailing_comma": b"[1,]",
        "comment": b"[1] // one",
        "duplicate": b'{"a": 1, "a": 2}',
        "deep": b"[" * 300,
        "leading_zero": b"01",
        "huge_number": b"1e999",
        "not_utf8": b'"\xc0\x80"',
        "lone_surrogate": rb'"\udc00"',
        "unfinished": b'{"a": "b',
    }
    for name, content in valid.items():
        save("json", f"valid_{name}", content)
    for name, content in broken.items():
        save("json", f"broken_{name}", content)


safetensors()
jsons()
