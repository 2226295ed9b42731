"""Core numbers and k-cores by networkx's names and parameters."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from ...algorithms.core_number import core_number as find_cores
from .graphs import AtosGraph

__all__ = ["core_number", "k_core"]


def core_number(G: AtosGraph) -> dict[Any, int]:  # noqa: N803
    """Return the core number of each node."""
    if G.has_loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return dict(zip(G.nodes, np.asarray(find_cores(G.both).core).tolist(), strict=True))


def k_core(G: AtosGraph, k: float | None = None, core_number: dict[Any, int] | None = None) -> nx.Graph[Any]:  # noqa: N803
    """Return the k-core with its attributes, or without `k` that of the largest core number."""
    core = _core_number(G) if core_number is None else core_number
    least = max(core.values()) if k is None else k
    return G.to_networkx().subgraph(node for node in core if core[node] >= least).copy()


_core_number = core_number  # as a parameter of `k_core` has its name
