# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The promises, measured: for the built-in layers, for reference values in files, and for anybody's functions.

layers()  what the command `stepwell verify` runs
check()   step = sequence, causality, resume, batch independence, gradients and extreme gates of two Python functions
cases()   case files (docs/case-files.md) against any implementation

All print the same table and return a Report.
"""

from .cases import Case, cases
from .conformance import check
from .report import Report, layers

__all__ = ["Case", "Report", "cases", "check", "layers"]
