"""Coloring by networkx's name and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...algorithms.coloring import color
from .graphs import AtosGraph

__all__ = ["greedy_color"]


def greedy_color(G: AtosGraph, strategy: Any = "largest_first", interchange: bool = False) -> dict[Any, int]:  # noqa: N803
    """Return the color of each node; only the strategy "random_sequential" comes here."""
    if not len(G):
        return {}
    return dict(zip(G.nodes, np.asarray(color(G.forward, "random").colors).tolist(), strict=True))
