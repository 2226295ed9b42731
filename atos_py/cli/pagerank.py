"""``python -m atos_py pagerank``: the rank of every vertex."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..algorithms.pagerank import PageRankResult
from . import algorithm

HELP = "rank the vertices of a graph"
DESCRIPTION = """\
Finds the PageRank of every vertex with damping 0.85, as networkx defines it, to a relative error in the 1-norm that is at most
the tolerance, and proves that by a float64 pass over all edges. Ranks sum to 1."""
EXAMPLES = """\
  python -m atos_py pagerank soc-Slashdot0902.txt.gz --out rank.npy
  python -m atos_py pagerank rmat:16:16 --tolerance 1e-6 --dtype float64"""

_HIGHEST = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    algorithm.add_arguments(parser, "pagerank")


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    return algorithm.command(options, "pagerank", _describe, lambda result: {"rank": result.rank})


def _describe(result: PageRankResult) -> dict[str, Any]:
    rank = result.rank.to_numpy()
    highest = np.argsort(-rank, kind="stable")[:_HIGHEST]
    return {"highest ranks": {int(v): float(rank[v]) for v in highest}, "error bound": result.error_bound}
