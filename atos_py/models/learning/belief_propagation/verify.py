"""Proof that messages are a fixed point of belief propagation, and that marginals follow from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compile.host_kernels import compile_kernel, even_rows, parallel_map
from ....errors import VerificationError
from ....graph.graph import Graph
from ....graph.graph_arrays import check_graph
from ....support.host_memory import host_memory_for
from ....support.validation import check_float
from ..linear_certificate import host_features
from .api import read_potentials

__all__ = ["verify_belief_propagation"]


def _message_kernel(
    indptr: Any, back: Any, unary: Any, pairwise: Any, messages: Any, marginals: Any, worst: Any, first: int, end: int
) -> None:  # pragma: no cover - compiled
    """Find the largest errors of messages and marginals of vertices `first` to `end`."""
    k = unary.shape[1]
    belief, new = np.zeros(k), np.zeros(k)
    for v in range(first, end):
        for x in range(k):
            belief[x] = unary[v, x]
            for edge in range(indptr[v], indptr[v + 1]):
                belief[x] += messages[edge, x]
        top = belief.max()
        whole = np.exp(belief - top).sum()
        for x in range(k):
            error = abs(np.exp(belief[x] - top) / whole - marginals[v, x])
            if not error <= worst[1]:
                worst[1] = error
        for edge in range(indptr[v], indptr[v + 1]):
            row = min(edge, pairwise.shape[0] - 1)
            for x in range(k):
                top, total = -np.inf, 0.0  # of each sum its own, since potentials may differ by any number
                for y in range(k):
                    top = max(top, belief[y] - messages[edge, y] + pairwise[row, y, x])
                for y in range(k):
                    total += np.exp(belief[y] - messages[edge, y] + pairwise[row, y, x] - top)
                new[x] = top + np.log(total)
            top = new.max()
            whole = np.log(np.exp(new - top).sum()) + top
            for x in range(k):
                error = abs(new[x] - whole - messages[back[edge], x])
                if not error <= worst[0]:
                    worst[0] = error


@host_memory_for("atos.verify_belief_propagation")
def verify_belief_propagation(
    graph: Graph, unary: Any, pairwise: Any, messages: Any, marginals: Any, *, tolerance: float = 1e-4
) -> None:
    """Prove that messages are a fixed point of belief propagation, and that they give the marginals.

    All messages are computed from each other in float64. Their logarithms may change by `tolerance`, and the marginals may be
    that far from the product of the potentials and messages that come in. On a tree there is one fixed point only.

    Parameters
    ----------
    graph, unary, pairwise
        As for `belief_propagation`.
    messages, marginals : array
    tolerance : float

    Raises
    ------
    VerificationError
        The message says how far off they are.

    Examples
    --------
    >>> pair = atos.Graph.from_edges([0], [1], symmetrize=True)
    >>> field = np.log([[3.0, 1.0], [1.0, 1.0]]), np.log([[2.0, 1.0], [1.0, 2.0]])
    >>> found = atos.belief_propagation(pair, *field)
    >>> atos.verify_belief_propagation(pair, *field, found.messages, found.marginals)
    >>> atos.verify_belief_propagation(pair, *field, found.messages, np.full((2, 2), 0.5))
    Traceback (most recent call last):
    atos_py.errors.VerificationError: marginals are 0.25 from those of the messages, which is more than 0.0001
    """
    check_graph(graph)
    limit = check_float("tolerance", tolerance)
    of_vertices, of_edges = (np.ascontiguousarray(each, np.float64) for each in read_potentials(graph, unary, pairwise))
    rows = host_features("messages", messages, (graph.num_edges, of_vertices.shape[1]))
    found = host_features("marginals", marginals, of_vertices.shape)
    indptr, back = np.asarray(graph.indptr), np.asarray(graph.reverse_edges())
    kernel = compile_kernel(_message_kernel)

    def measure(piece: tuple[int, int]) -> Any:
        worst = np.zeros(2)
        kernel(indptr, back, of_vertices, of_edges, rows, found, worst, *piece)
        return worst

    pieces = np.array([measure((0, 0)), *parallel_map(measure, even_rows(indptr, 1 << 18))])
    for name, error in zip(("messages change by", "marginals are"), pieces.max(axis=0), strict=True):
        if not error <= limit:
            what = " from those of the messages" if name == "marginals are" else " in another sweep"
            raise VerificationError(f"{name} {error:.3g}{what}, which is more than {limit:.3g}")
