"""Entry of shortest paths in the registry."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.graph import Graph
from ..bfs.entry import CUTOFF, TARGET
from ..registry import Option, pick_options, register
from .api import SSSPResult, sssp
from .distances import suit_delta, unreached_of
from .verify import verify_sssp


def _delta_of(word: str) -> float | str:
    return word if word == "auto" else float(word)


def _describe(result: SSSPResult) -> dict[str, Any]:
    distance = np.asarray(result.distance)
    reached = distance[distance != unreached_of(distance.dtype)]
    return {"reached": reached.size, "farthest": reached.max(initial=0).item()}


def _list_widths(graph: Graph) -> dict[str, tuple[Any, ...]]:
    width = "auto" if graph.weights is None else suit_delta(graph, "auto")
    return {} if width == "auto" else {"delta": ("auto", width / 4, width * 4)}


register(
    run=sssp,
    verify=lambda graph, result, options: verify_sssp(
        graph, options["source"], result.distance, result.predecessor, **pick_options(options, "target", "cutoff")
    ),
    describe=_describe,
    arrays=lambda result: {"distance": result.distance, "predecessor": result.predecessor},
    help="find shortest paths along weighted edges",
    description="""\
Finds how far each vertex is from a source, or from the nearest of several sources, along edges with weights of at least 0. In a
graph without weights each edge has the length 1. Near vertices go first (delta-stepping without rounds). The triangle
inequality over all edges and a tight edge into each vertex prove the distances right.""",
    examples=(
        "roads.gr.gz --source 0 --predecessors --out tree.npz",
        "roads.gr.gz --source 0 --target 70000",
        "rmat:16:16 --cutoff 3",
    ),
    options={
        "target": TARGET,
        "cutoff": CUTOFF,
        "predecessors": Option("find the vertex before each on a shortest path too", convert=None),
        "delta": Option("width of the buckets of distances, or auto", _delta_of),
    },
    has_source=True,
    weighted=True,
    tunable=_list_widths,
)
