"""Minimum spanning forest by Boruvka's algorithm, in rounds of one launch.

In each step, every tree finds the lightest edge that leaves it, and is hooked to the tree at its other end. Edges are ordered
by weight, then by their smaller and by their larger end. That is one order for both directions of an edge, and edges between
different pairs of vertices are never equal in it. So the only cycles are those of two trees with the same edge, of which one is
hooked.

A tree finds its edge in two rounds of minima: the least weight of its vertices' candidates, and of those of that weight the
least pair of ends. So weights of any type do, of 64 bits too. The candidate of a vertex is the lightest of its edges that leave
the tree. It stays that until both of its ends are in one tree, and only then is the row looked at again. Vertices whose
neighbors are all in their tree are done, and so are ranges of such vertices.

Which edges are found depends neither on the order of tasks nor on the device.

`api` has the call, `tasks` what runs on the device, `verify` the proof of a result.

Sources: Boruvka (1926); Fallin, Gonzalez, Seo and Burtscher, "A high-performance MST implementation for GPUs", SC 2023.
"""

from . import entry  # noqa: F401 - registers the algorithm
from .api import SpanningForestResult, minimum_spanning_forest
from .verify import verify_minimum_spanning_forest

__all__ = ["SpanningForestResult", "minimum_spanning_forest", "verify_minimum_spanning_forest"]
