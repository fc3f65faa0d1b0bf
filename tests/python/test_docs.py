# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Every Python block of README and docs runs: those of a page one after the other, as a reader would."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        if "torch" in block[1]:
            pytest.importorskip("torch")
        # Line numbers of the page, for messages.
        exec(compile("\n" * line + block[1], str(page), "exec"), names)


def test_there_are_blocks():
    assert {page.name for page in PAGES} >= {"README.md", "python.md"}
