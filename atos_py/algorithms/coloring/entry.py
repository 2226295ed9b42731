"""Entry of graph colouring in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...graph.graph import Graph
from ..registry import Algorithm, Option
from .api import ColoringResult, color
from .verify import verify_coloring

__all__ = ["ENTRY"]


def _verify(graph: Graph, result: ColoringResult, _options: Mapping[str, Any]) -> dict[str, Any]:
    verify_coloring(graph, result.colors)
    return _describe(result)


def _describe(result: ColoringResult) -> dict[str, Any]:
    return {"colors": result.num_colors}


ENTRY = Algorithm(
    name="color",
    run=color,
    verify=_verify,
    describe=_describe,
    arrays=lambda result: {"color": result.colors},
    help="colour the vertices of a graph",
    description="""\
Gives every vertex a colour so that no edge joins equal colours (Chen et al. 2022, Algorithm 6). A pass over every edge proves
that. An edge without its reverse is taken as undirected. The order by degree takes the fewest colours.""",
    examples=("road:1000:0.62 --out color.npy", "rmat:16:16 --order degree"),
    options={
        "order": Option("which vertices come first: natural, random or degree"),
        "window": Option("vertices in flight: begun and not final", int),
        "patience": Option("how often a vertex waits for another", int),
    },
    paper={"coloring": {}},
)
