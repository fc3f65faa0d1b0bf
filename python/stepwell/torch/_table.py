# SPDX-FileCopyrightText: 2026 The Stepwell authors
# SPDX-License-Identifier: Apache-2.0
"""The ops of the library as torch sees them: arguments, results and the shapes of results."""

from types import SimpleNamespace


class Op:
    """A row: `arrays` in order, "?" behind those that may be absent; `options` as in a torch schema; `results`;
    shapes(a, n, o) → shapes of the results from the arrays a, the number of sequences n and the options o."""

    def __init__(self, arrays, options, results, shapes):
        self.optional = [name.endswith("?") for name in arrays.split()]
        self.arrays = tuple(name.rstrip("?") for name in arrays.split())
        self.schemas = tuple(option.strip() for option in options.split(",") if option.strip())
        self.options = tuple(schema.split()[-1] for schema in self.schemas)
        self.results = tuple(results.split())
        self._shapes = shapes

    def result_shapes(self, arrays, options, sequences):
        first = arrays[self.arrays[0]]
        n = sequences if sequences is not None else first.shape[0]
        return self._shapes(SimpleNamespace(**{name: None if t is None else tuple(t.shape)
                                               for name, t in arrays.items()}), n, options)


def _matmul_shape(a, n, options):
    rows = a.a[1] if options["product"] == "AtB" else a.a[0]
    return [(rows, a.b[0] if options["product"] == "ABt" else a.b[1])]


def _same_shape(a, n, options):
    return [a.x]


_FORM = "str form, int chunk"

OPS = {
    "gated_delta": Op("q k v g? b? w? beta? A_log? dt_bias? initial_state?",
                      f"float? scale, bool l2norm, str gate, float lower_bound, {_FORM}", "o final_state",
                      lambda a, n, o: [a.v, (n, a.v[2], a.q[3], a.v[3])]),
    "ssd": Op("x dt A B C D? z? dt_bias? initial_state?", f"bool softplus, float[]? dt_limit, {_FORM}", "y final_state",
              lambda a, n, o: [a.x, (n, a.x[2], a.x[3], a.B[3])]),
    "mlstm": Op("q k v i f C? n? m?", f"float? scale, str input_gate, bool normalise, float eps, {_FORM}", "h C n m",
                lambda a, n, o: [a.v, (n, a.q[2], a.q[3], a.v[3]), (n, a.q[2], a.q[3]), (n, a.q[2])]),
    "slstm": Op("x R bias? initial_state?", "", "y final_state",
                lambda a, n, o: [(a.x[0], a.x[1], a.x[2] // 4), (n, 4, a.x[2] // 4)]),
    "selective_scan": Op("u dt A B C D? z? dt_bias? initial_state?", "bool softplus, str discretisation",
                         "y final_state", lambda a, n, o: [a.u, (n, a.u[2], a.A[1])]),
    "short_conv": Op("x weight bias? initial_state?", "str activation", "y final_state",
                     lambda a, n, o: [a.x, (n, a.x[2], a.weight[-1])]),
    "matmul": Op("a b", "str product", "c", _matmul_shape),
    "linear": Op("x weight bias?", "", "y", lambda a, n, o: [(*a.x[:-1], a.weight[0])]),
    "headwise_linear": Op("x weight bias?", "", "y", lambda a, n, o: [(*a.x[:-1], a.weight[0] * a.weight[1])]),
    "rms_norm": Op("x weight? z?", "float eps, int group, str gate, str activation", "y", _same_shape),
    "layer_norm": Op("x weight? bias?", "float eps, int group, bool one_plus_weight", "y", _same_shape),
    "softmax": Op("x", "", "y", _same_shape),
    "elementwise": Op("x", "str function", "y", _same_shape),
}
