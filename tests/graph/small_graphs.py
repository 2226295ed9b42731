"""Small graphs for tests of what is derived from graphs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import atos_py as atos

#: Stands in for CuPy: has NumPy's functions, and is not NumPy.
CUPY = SimpleNamespace(**{name: getattr(np, name) for name in dir(np)})


@st.composite
def graphs(draw: st.DrawFn, *, symmetric: bool = False) -> atos.Graph:
    """Graphs of few vertices, with loops and parallel edges, and weights or none; neighbors in any order."""
    n = draw(st.integers(0, 8))
    vertex = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=20 if n else 0))
    tails, heads = np.array(edges, np.int64).reshape(-1, 2).T
    weights = np.arange(len(edges)) * draw(st.sampled_from([1, 1.5, -3])) if draw(st.booleans()) else None
    return atos.Graph.from_edges(tails, heads, weights, n, symmetrize=symmetric, device="cpu")


def sources_of(graph: atos.Graph) -> np.ndarray:
    return np.repeat(np.arange(graph.num_vertices), graph.degrees())


def triples(graph: atos.Graph) -> list[tuple[float, ...]]:
    """List the edges in order, as (source, target) or (source, target, weight)."""
    columns = [sources_of(graph).tolist(), graph.indices.to_numpy().tolist()]
    if graph.weights is not None:
        columns.append(graph.weights.to_numpy().tolist())
    return list(zip(*columns, strict=True))
