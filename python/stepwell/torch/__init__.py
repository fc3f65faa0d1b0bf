# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""Stepwell for PyTorch, with whatever torch is installed; nothing is linked, tensors and arrays share their memory.

stepwell.torch.ops     every op of stepwell.ops on tensors, differentiable, states too
stepwell.torch.layers  every mixer of stepwell.layers as an nn.Module under its published parameter names
and under the names, arguments, defaults and results of the public GPU libraries:
stepwell.torch.fla            chunk_* and fused_recurrent_* of fla.ops
stepwell.torch.mamba_ssm      selective_scan_fn, mamba_chunk_scan_combined, selective_state_update
stepwell.torch.causal_conv1d  causal_conv1d_fn, causal_conv1d_update

Everything computes on the CPU: tensors on other devices are a ValueError. float32 and float64 are computed in, bfloat16
and float16 are widened to float32, mixed types to the widest; the first result has the type of the first argument,
states are float32 or float64.
"""

from . import causal_conv1d, fla, layers, mamba_ssm, ops
from .causal_conv1d import *  # noqa: F403
from .fla import *  # noqa: F403
from .mamba_ssm import *  # noqa: F403

__all__ = ["causal_conv1d", "fla", "layers", "mamba_ssm", "ops",
           *causal_conv1d.__all__, *fla.__all__, *mamba_ssm.__all__]
