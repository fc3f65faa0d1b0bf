# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of flash-linear-attention (fla.ops) for the gated delta family, on CPUs.

Names, arguments, defaults and results are theirs; every function here has gradients with respect to all its tensors,
any sizes, float32 and float64 as well as bfloat16 and float16, and any decay ≤ 0, −inf included. chunk_* takes the form
that is fastest on the CPU, fused_recurrent_* goes token by token: the same bits however a sequence is split.

Shapes, time before head: q, k [B, T, H, K]; v [B, T, HV, V], HV a multiple of H; states [N, HV, K, V], or [N, HV, V, K]
with state_v_first (or its older name transpose_state_layout); cu_seqlens, the borders of N sequences in a batch of 1.
Results: o [B, T, HV, V] in q's type and, if output_final_state, the last state in float32 (float64), or else None.

Arguments that steer a GPU are checked and have no effect on results: cu_seqlens_cpu, chunk_indices, disable_recompute,
safe_gate without a gate in the kernel. What these functions cannot do is a NotImplementedError: intermediate states,
context parallelism, graph capture, decay or write gates per value channel.
"""

import warnings

import torch

from . import ops
from ._function import widest

__all__ = [
    "chunk_delta_rule", "chunk_gated_delta_rule", "chunk_gdn2", "chunk_gla", "chunk_kda", "chunk_simple_gla",
    "fused_recurrent_delta_rule", "fused_recurrent_gated_delta_rule", "fused_recurrent_gdn", "fused_recurrent_gdn2",
    "fused_recurrent_gla", "fused_recurrent_kda", "fused_recurrent_simple_gla",
]

_UNSUPPORTED = {"cp_context": None, "return_intermediate_states": False, "use_graph": False, "graph_mode": None}


class _Call:
    """What all functions share: the keywords beyond their signature, state layout, form, results."""

    def __init__(self, function, form, state_v_first=False, **given):
        self._function = function
        self._form, self._chunk = form, 0
        self.state_v_first = state_v_first
        self._read(given.pop("kwargs", {}))
        for name, value in given.items():
            if name in _UNSUPPORTED and value not in (_UNSUPPORTED[name], "eager"):
                raise NotImplementedError(f"{function}: {name}={value!r}, expected {_UNSUPPORTED[name]!r}")

    def _read(self, kwargs):
        for name, value in kwargs.items():
            if name in ("transpose_state_layout", "state_v_first"):
                if self.state_v_first:
                    raise ValueError(f"{self._function}: state_v_first and transpose_state_layout, expected one")
                if name == "transpose_state_layout":
                    warnings.warn("transpose_state_layout is now state_v_first", DeprecationWarning, stacklevel=4)
                self.state_v_first = bool(value)
            elif name == "head_first":
                if value:
                    raise NotImplementedError(f"{self._function}: head_first, expected [B, T, H, …]")
            elif name == "chunk_size":
                if value < 1:
                    raise ValueError(f"{self._function}: chunk_size={value}, expected at least 1")
                self._form, self._chunk = "chunked", value
            else:
                raise TypeError(f"{self._function}() got an unexpected keyword argument {name!r}")

    def run(self, q, k, v, *, initial_state, output_final_state, cu_seqlens, **arguments):
        if self.state_v_first and initial_state is not None:
            initial_state = initial_state.transpose(-1, -2)
        o, state = ops.gated_delta(q, k, v, initial_state=initial_state, cu_seqlens=cu_seqlens, form=self._form,
                                   chunk=self._chunk, **arguments)
        if not output_final_state:
            return o, None
        return o, state.transpose(-1, -2).contiguous() if self.state_v_first else state


def _chunked(function, **given):
    return _Call(function, "fast", **given)


def _recurrent(function, **given):
    return _Call(function, "recurrent", **given)


def _widened(gate):
    """Gates are computed in at least 32 bits."""
    return gate.to(widest((gate,)))


def _per_head(name, gate, v):
    if gate.dim() != 3:
        raise NotImplementedError(f"{name} is {list(gate.shape)}, expected one per token and head, "
                                  f"{[v.shape[0], v.shape[1], v.shape[2]]}")
    return gate


def _beta_of(beta, v, use_beta_sigmoid, allow_neg_eigval):
    """The gate of the delta rule, 1 if absent."""
    if allow_neg_eigval and not use_beta_sigmoid:
        raise ValueError("allow_neg_eigval without use_beta_sigmoid_in_kernel")
    if beta is None:
        if use_beta_sigmoid:
            raise ValueError("use_beta_sigmoid_in_kernel without beta")
        return v.new_ones(v.shape[:3])
    beta = _per_head("beta", beta, v)
    if use_beta_sigmoid:
        beta = torch.sigmoid(_widened(beta)) * (2 if allow_neg_eigval else 1)
    return beta


def _gate_of(g, use_gate, A_log, dt_bias, lower_bound, safe_gate=False):
    """The arguments of the op for a decay g, given or made in the kernel; A_log and dt_bias are per head of g."""
    if not use_gate:
        return dict(g=g)
    if g is None:
        raise ValueError("use_gate_in_kernel without g")
    if safe_gate and lower_bound is None:
        raise ValueError("safe_gate with use_gate_in_kernel, but no lower_bound")
    if lower_bound is not None and not -5 <= lower_bound < 0:
        raise ValueError(f"lower_bound = {lower_bound}, expected one in [-5, 0)")
    if A_log is None:
        if lower_bound is None:
            raise ValueError("use_gate_in_kernel without A_log and lower_bound")
        A_log = torch.zeros(g.shape[2])
    if dt_bias is None:
        dt_bias = torch.zeros(g.shape[2:].numel())
    bounded = {} if lower_bound is None else dict(lower_bound=float(lower_bound))
    return dict(g=g, gate="bounded" if bounded else "softplus", A_log=A_log.flatten(), dt_bias=dt_bias.flatten(),
                **bounded)


def _without_value_decay(function, gv):
    if gv is not None:
        raise NotImplementedError(f"{function}: gv, a decay per value channel")


# ------------------------------------------------------------------------------------------------ delta rules

def chunk_gated_delta_rule(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False,
                           use_qk_l2norm_in_kernel=False, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False,
                           state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None, chunk_indices=None,
                           cp_context=None, use_graph=False, graph_mode=None, *, use_gate_in_kernel=False, A_log=None,
                           dt_bias=None, **kwargs):
    """Gated DeltaNet: g, beta [B, T, HV]. With use_gate_in_kernel the log decay is −exp(A_log)·softplus(g + dt_bias),
    A_log, dt_bias [HV]."""
    call = _chunked("chunk_gated_delta_rule", state_v_first=state_v_first, cp_context=cp_context, use_graph=use_graph,
                    graph_mode=graph_mode, kwargs=kwargs)
    gate = _gate_of(_per_head("g", g, v), use_gate_in_kernel, A_log, dt_bias, None)
    beta = _beta_of(beta, v, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return call.run(q, k, v, beta=beta, scale=scale, l2norm=use_qk_l2norm_in_kernel, initial_state=initial_state,
                    output_final_state=output_final_state, cu_seqlens=cu_seqlens, **gate)


def fused_recurrent_gated_delta_rule(q, k, v, g=None, gk=None, gv=None, beta=None, scale=None, initial_state=None,
                                     output_final_state=False, use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False,
                                     A_log=None, dt_bias=None, use_beta_sigmoid_in_kernel=False,
                                     allow_neg_eigval=False, state_v_first=False, cu_seqlens=None, **kwargs):
    """Gated DeltaNet token by token: g [B, T, HV] and gk [B, T, HV, K] decay together; beta [B, T, HV], absent: 1."""
    call = _recurrent("fused_recurrent_gated_delta_rule", state_v_first=state_v_first, kwargs=kwargs)
    _without_value_decay("fused_recurrent_gated_delta_rule", gv)
    if use_gate_in_kernel and A_log is None:
        raise ValueError("use_gate_in_kernel without A_log")
    gate = _gate_of(g, use_gate_in_kernel, A_log, dt_bias, None)
    if gk is not None:
        if use_gate_in_kernel:
            raise NotImplementedError("gk with use_gate_in_kernel")
        gate = dict(g=gk if g is None else _widened(gk) + _widened(g).unsqueeze(-1))
    beta = _beta_of(beta, v, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return call.run(q, k, v, beta=beta, scale=scale, l2norm=use_qk_l2norm_in_kernel, initial_state=initial_state,
                    output_final_state=output_final_state, cu_seqlens=cu_seqlens, **gate)


fused_recurrent_gdn = fused_recurrent_gated_delta_rule


def chunk_delta_rule(q, k, v, beta, scale=None, initial_state=None, output_final_state=False,
                     use_qk_l2norm_in_kernel=False, cu_seqlens=None, **kwargs):
    """DeltaNet, without decay: beta [B, T, HV]."""
    return _chunked("chunk_delta_rule", kwargs=kwargs).run(
        q, k, v, beta=_beta_of(beta, v, False, False), scale=scale, l2norm=use_qk_l2norm_in_kernel,
        initial_state=initial_state, output_final_state=output_final_state, cu_seqlens=cu_seqlens)


def fused_recurrent_delta_rule(q, k, v, beta=None, scale=None, initial_state=None, output_final_state=False,
                               use_qk_l2norm_in_kernel=False, cu_seqlens=None, **kwargs):
    """DeltaNet token by token: beta [B, T, HV], absent: 1."""
    return _recurrent("fused_recurrent_delta_rule", kwargs=kwargs).run(
        q, k, v, beta=_beta_of(beta, v, False, False), scale=scale, l2norm=use_qk_l2norm_in_kernel,
        initial_state=initial_state, output_final_state=output_final_state, cu_seqlens=cu_seqlens)


def chunk_kda(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False,
              use_gate_in_kernel=False, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, safe_gate=False,
              lower_bound=None, disable_recompute=False, return_intermediate_states=False, state_v_first=False,
              cu_seqlens=None, cu_seqlens_cpu=None, cp_context=None, use_graph=False, max_num_seqs=None, *, A_log=None,
              dt_bias=None, **kwargs):
    """Kimi Delta Attention: g [B, T, HV, K], beta [B, T, HV]. With use_gate_in_kernel the log decay is −exp(A_log)·
    softplus(g + dt_bias) or, given a lower_bound in [−5, 0), lower_bound·sigmoid(exp(A_log)·(g + dt_bias)), A_log [HV]
    (absent: exp(A_log) is 1), dt_bias [HV·K]."""
    call = _chunked("chunk_kda", state_v_first=state_v_first, cp_context=cp_context, use_graph=use_graph,
                    return_intermediate_states=return_intermediate_states, kwargs=kwargs)
    gate = _gate_of(g, use_gate_in_kernel, A_log, dt_bias, lower_bound, safe_gate)
    beta = _beta_of(beta, v, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return call.run(q, k, v, beta=beta, scale=scale, l2norm=use_qk_l2norm_in_kernel, initial_state=initial_state,
                    output_final_state=output_final_state, cu_seqlens=cu_seqlens, **gate)


def fused_recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None,
                        output_final_state=False, use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False,
                        use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, lower_bound=None,
                        state_v_first=False, cu_seqlens=None, **kwargs):
    """Kimi Delta Attention token by token; arguments as for chunk_kda."""
    call = _recurrent("fused_recurrent_kda", state_v_first=state_v_first, kwargs=kwargs)
    gate = _gate_of(g, use_gate_in_kernel, A_log, dt_bias, lower_bound)
    beta = _beta_of(beta, v, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return call.run(q, k, v, beta=beta, scale=scale, l2norm=use_qk_l2norm_in_kernel, initial_state=initial_state,
                    output_final_state=output_final_state, cu_seqlens=cu_seqlens, **gate)


def chunk_gdn2(q, k, v, g, b, w, scale=None, initial_state=None, output_final_state=False,
               use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, cu_seqlens=None, cu_seqlens_cpu=None,
               safe_gate=False, lower_bound=None, disable_recompute=False, return_intermediate_states=False,
               state_v_first=False, *, A_log=None, dt_bias=None, **kwargs):
    """Gated DeltaNet-2: decay g and erase gate b [B, T, H or HV, K], write gate w [B, T, HV, V]. Gates in the kernel as
    for chunk_kda, A_log per head of g."""
    call = _chunked("chunk_gdn2", state_v_first=state_v_first, return_intermediate_states=return_intermediate_states,
                    kwargs=kwargs)
    gate = _gate_of(g, use_gate_in_kernel, A_log, dt_bias, lower_bound, safe_gate)
    return call.run(q, k, v, b=b, w=w, scale=scale, l2norm=use_qk_l2norm_in_kernel, initial_state=initial_state,
                    output_final_state=output_final_state, cu_seqlens=cu_seqlens, **gate)


def fused_recurrent_gdn2(q, k, v, g, b, w, A_log=None, dt_bias=None, scale=None, initial_state=None,
                         output_final_state=False, use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False,
                         lower_bound=None, cu_seqlens=None, **kwargs):
    """Gated DeltaNet-2 token by token; arguments as for chunk_gdn2."""
    call = _recurrent("fused_recurrent_gdn2", kwargs=kwargs)
    gate = _gate_of(g, use_gate_in_kernel, A_log, dt_bias, lower_bound)
    return call.run(q, k, v, b=b, w=w, scale=scale, l2norm=use_qk_l2norm_in_kernel, initial_state=initial_state,
                    output_final_state=output_final_state, cu_seqlens=cu_seqlens, **gate)


# ------------------------------------------------------------------------------------------------ nothing is erased

def chunk_gla(q, k, v, g, scale=None, initial_state=None, output_final_state=False, state_v_first=False,
              cu_seqlens=None, cu_seqlens_cpu=None, **kwargs):
    """Gated linear attention: log decay g [B, T, H, K]."""
    return _chunked("chunk_gla", state_v_first=state_v_first, kwargs=kwargs).run(
        q, k, v, g=g, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
        cu_seqlens=cu_seqlens)


def fused_recurrent_gla(q, k, v, gk=None, gv=None, scale=None, initial_state=None, output_final_state=False,
                        reverse=False, state_v_first=False, cu_seqlens=None, **kwargs):
    """Gated linear attention token by token, from the last to the first if reverse: log decay gk [B, T, H, K]."""
    call = _recurrent("fused_recurrent_gla", state_v_first=state_v_first, kwargs=kwargs)
    _without_value_decay("fused_recurrent_gla", gv)
    return _in_order(call, reverse, q, k, v, gk, scale=scale, initial_state=initial_state,
                     output_final_state=output_final_state, cu_seqlens=cu_seqlens)


def _head_decay(g, g_gamma, v):
    """The log decay [B, T, H] of simple GLA: per token, g, or fixed per head, g_gamma [H]."""
    if g is not None and g_gamma is not None:
        raise ValueError("g and g_gamma, expected one of them")
    if g_gamma is not None:
        return g_gamma.expand(v.shape[0], v.shape[1], -1)
    return None if g is None else _per_head("g", g, v)


def chunk_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False,
                     state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None, **kwargs):
    """Linear attention with one decay per head: log decay g [B, T, H], or g_gamma [H] for all tokens, or none."""
    return _chunked("chunk_simple_gla", state_v_first=state_v_first, kwargs=kwargs).run(
        q, k, v, g=_head_decay(g, g_gamma, v), scale=scale, initial_state=initial_state,
        output_final_state=output_final_state, cu_seqlens=cu_seqlens)


def fused_recurrent_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False,
                               reverse=False, state_v_first=False, cu_seqlens=None, **kwargs):
    """Linear attention with one decay per head token by token, from the last to the first if reverse."""
    call = _recurrent("fused_recurrent_simple_gla", state_v_first=state_v_first, kwargs=kwargs)
    return _in_order(call, reverse, q, k, v, _head_decay(g, g_gamma, v), scale=scale, initial_state=initial_state,
                     output_final_state=output_final_state, cu_seqlens=cu_seqlens)


def _in_order(call, reverse, q, k, v, g, *, initial_state, cu_seqlens, **arguments):
    """Runs the call, backwards in time if `reverse`: on mirrored tokens, sequences and states."""
    if not reverse:
        return call.run(q, k, v, g=g, initial_state=initial_state, cu_seqlens=cu_seqlens, **arguments)
    q, k, v, g = (None if t is None else t.flip(1) for t in (q, k, v, g))
    if cu_seqlens is not None:
        borders = torch.as_tensor(cu_seqlens)
        cu_seqlens = (borders[-1] - borders).flip(0)
        initial_state = None if initial_state is None else initial_state.flip(0)
    o, state = call.run(q, k, v, g=g, initial_state=initial_state, cu_seqlens=cu_seqlens, **arguments)
    if state is not None and cu_seqlens is not None:
        state = state.flip(0)
    return o.flip(1), state
