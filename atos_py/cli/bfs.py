"""``python -m atos_py bfs``: the depth of every vertex."""

from __future__ import annotations

import argparse
from typing import Any

from ..algorithms.bfs import BFSResult
from ..arrays.array import Array
from . import algorithm

HELP = "search a graph breadth first"
DESCRIPTION = """\
Finds how many edges each vertex is from a source, or from the nearest of several, and proves the depths right by a certificate
over all edges: by speculative breadth-first search (Chen et al. 2022, Algorithm 2), or, where a graph is large, undirected and
has many edges, by one that switches direction. A vertex that cannot be reached has the largest value of uint32."""
EXAMPLES = """\
  python -m atos_py bfs rmat:16:16 --source 0 --parents --out tree.npz
  python -m atos_py bfs roads.gr.gz --out depth.npy
  python -m atos_py bfs road:1000:0.62 --worker warp --fetch-size 32 --plot run.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    algorithm.add_arguments(parser, "bfs")
    text = "where to begin, one vertex or several (default: a vertex of largest degree, a grid's middle)"
    parser.add_argument("--source", type=int, nargs="+", metavar="V", help=text)
    parser.add_argument("--parents", action="store_true", help="find the vertex before each on a shortest path too")


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    return algorithm.command(options, "bfs", _describe, _arrays, _least_tasks, parents=options.parents)


def _describe(result: BFSResult) -> dict[str, Any]:
    return {"reached": result.num_reached, "levels": result.num_levels}


def _least_tasks(result: BFSResult) -> int | None:
    alone = result.parent is None and result.stats.task == "visit"  # otherwise there are tasks of other kinds too
    return result.num_reached if alone else None


def _arrays(result: BFSResult) -> dict[str, Array]:
    return {"depth": result.depth} | ({} if result.parent is None else {"parent": result.parent})
