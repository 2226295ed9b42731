"""Strongly connected components by smallest keys, propagated along the edges from both ends, in rounds of one launch.

Vertices have keys, no two the same. Every vertex learns the smallest key of those that reach it, and the smallest one of those
that it reaches. Where both are the same, they are that of the component. Vertices that differ in either of the two are in
different components, so edges between them are left out from then on, and the vertices that are left begin again. Each time at
least the component of the smallest key that is left is found, or a vertex that no edge leaves.

An edge needs no transposed row for that: its source takes a minimum from the target, and gives one to it. What a vertex has
learned is also looked up at the vertex that has the key, which shortens paths.

Where there are many edges, the key of the vertex of largest degree is 0. It is likely to be in the largest component, which the
first pass finds then, and a vertex that reaches it has nothing more to take. Otherwise keys are the numbers of vertices, which
often follow the graph, and each range of vertices is gone through several times in a round.

`api` has the call, `tasks` what runs on the device, `verify` the proof of a result.

Sources: Alabandi, Sands, Biros and Burtscher, "A high-performance strongly connected components algorithm for GPUs", SC 2023
(ECL-SCC); Orzan, "On distributed verification and verified distribution", Vrije Universiteit Amsterdam, 2004 (colouring).
"""

from ..registry import register
from .api import strongly_connected_components
from .entry import ENTRY
from .verify import verify_strongly_connected_components

__all__ = ["strongly_connected_components", "verify_strongly_connected_components"]

register(ENTRY)
