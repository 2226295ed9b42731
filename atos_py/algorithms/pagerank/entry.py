"""Entry of PageRank in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...graph.graph import Graph
from ..registry import Option, register
from .api import METHODS, PageRankResult, pagerank
from .verify import verify_pagerank

_TOLERANCE = 5e-4  # that of the paper's peers
_HIGHEST = 5


def _verify(graph: Graph, result: PageRankResult, options: Mapping[str, Any]) -> dict[str, Any]:
    return {"error": verify_pagerank(graph, result, options["tolerance"], weighted=options.get("weighted", False))}


def _describe(result: PageRankResult) -> dict[str, Any]:
    rank = result.rank.to_numpy()
    highest = np.argsort(-rank, kind="stable")[:_HIGHEST]
    return {"highest ranks": {int(v): float(rank[v]) for v in highest}, "error bound": result.error_bound}


def _list_methods(graph: Graph) -> dict[str, tuple[Any, ...]]:
    return {"find": METHODS if graph.is_symmetric() else tuple(method for method in METHODS if method != "gather")}


register(
    run=pagerank,
    launch_defaults=False,
    verify=_verify,
    describe=_describe,
    arrays=lambda result: {"rank": result.rank},
    help="rank the vertices of a graph",
    description="""\
Finds the PageRank of every vertex with damping 0.85, as networkx defines it. The relative error in the 1-norm is at most the
tolerance. A float64 pass over all edges proves that. The ranks sum to 1.""",
    examples=("soc-Slashdot0902.txt.gz --out rank.npy", "rmat:16:16 --tolerance 1e-6 --dtype float64"),
    options={
        "tolerance": Option(f"relative error that the ranks may have (default: {_TOLERANCE:g})", float),
        "dtype": Option("of the ranks: float32 or float64"),
        "find": Option("how vertices with work are found: sweep, gather or push"),
        "weighted": Option("use the weights of the edges", convert=None),
    },
    weighted=True,
    tunable=_list_methods,
    defaults={"tolerance": _TOLERANCE},
    paper={"PageRank": {}, "PageRank by vertex": {"find": "push"}},
)
