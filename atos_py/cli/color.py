"""``python -m atos_py color``: a colour for every vertex."""

from __future__ import annotations

import argparse
from typing import Any

from ..algorithms.coloring import ColoringResult
from . import algorithm

HELP = "colour the vertices of a graph"
DESCRIPTION = """\
Gives every vertex a colour so that no edge joins equal ones (Chen et al. 2022, Algorithm 6), and looks at every edge to prove
it. A graph whose edges have no reverse is taken as undirected. By degree takes the fewest colours."""
EXAMPLES = """\
  python -m atos_py color road:1000:0.62 --out color.npy
  python -m atos_py color rmat:16:16 --order degree"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    algorithm.add_arguments(parser, "color")


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    return algorithm.command(options, "color", _describe, lambda result: {"color": result.colors})


def _describe(result: ColoringResult) -> dict[str, Any]:
    return {"colors": result.num_colors}
