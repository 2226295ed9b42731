"""Entry of breadth-first search in the registry."""

from __future__ import annotations

from typing import Any

from ...graph.graph import Graph
from ..registry import Option, pick_options, register
from .api import DIRECTIONS, BFSResult, bfs
from .pushed_levels import try_first
from .tasks import visit
from .verify import verify_bfs

__all__ = ["CUTOFF", "SOURCES", "SOURCES_OR_COUNT", "TARGET"]


def _number_of(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def _vertices_of(word: str) -> int | list[int]:
    return [int(vertex) for vertex in word.split(",")] if "," in word else int(word)


#: Options of several searches.
TARGET = Option("a vertex that is all that is wanted: the search ends soon after", int, "any")
_TEXT = "vertices to start from, separated by commas; of betweenness also how many, as one number"
SOURCES = Option(_TEXT, _vertices_of, "any")
SOURCES_OR_COUNT = Option(_TEXT, _vertices_of, "lists")
CUTOFF = Option("the largest distance that is wanted, inclusive", _number_of)


def _count_least_tasks(result: BFSResult) -> int | None:
    alone = result.stats.task in (visit.name, try_first.name)  # otherwise there are tasks of other kinds too
    return result.num_reached if alone and result.parent is None else None


def _list_directions(graph: Graph) -> dict[str, tuple[Any, ...]]:
    return {"direction": DIRECTIONS} if graph.is_symmetric() else {}


register(
    run=bfs,
    verify=lambda graph, result, options: verify_bfs(
        graph, options["source"], result.depth, result.parent, **pick_options(options, "target", "cutoff")
    ),
    describe=lambda result: {"reached": result.num_reached, "levels": result.num_levels},
    arrays=lambda result: {"depth": result.depth, "parent": result.parent},
    help="search a graph breadth first",
    description="""\
Finds how many edges each vertex is from a source, or from the nearest of several sources. A certificate over all edges proves
the depths right. The search is speculative (Chen et al. 2022, Algorithm 2). On a large graph with many edges it goes level by
level, and switches direction if the graph is undirected. An unreached vertex has the largest value of uint32.""",
    examples=(
        "rmat:16:16 --source 0 --parents --out tree.npz",
        "roads.gr.gz --out depth.npy",
        "road:1000:0.62 --worker warp --fetch-size 32 --plot run.png",
    ),
    options={
        "target": TARGET,
        "cutoff": CUTOFF,
        "direction": Option(
            "push, or auto: unreached vertices look for reached ones where that saves work (undirected graphs)"
        ),
        "parents": Option("find the vertex before each on a shortest path too", convert=None),
    },
    has_source=True,
    tunable=_list_directions,
    least_tasks=_count_least_tasks,
    paper={"BFS": {}},
)
