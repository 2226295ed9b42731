"""Speculative greedy graph coloring (Gebremedhin and Manne): neighbors are colored at once, and clashes are colored again.

There are two kinds of task in one queue. *Assign* gives a vertex the smallest color that none of its neighbors is seen to
have, tentatively, and pushes its check. *Check* makes the color final, unless a neighbor has the same: then one of the two
loses and takes another color at once, which is checked in turn. A vertex that is final pushes the assignment of the one
`window` places after it in the order, so that so many vertices are in flight and a color is checked soon. With `barrier=True`
the window is the whole graph and the same tasks run in rounds. Where vertices have few neighbors, an item is a range of them.

A vertex loses a clash to a final color, otherwise to a neighbor of larger degree, ties going by a hash of the ids. A check
that wins marks the loser by an atomic operation on the loser's entry, on which the loser's becoming final depends too. With
`patience` a vertex first waits for the neighbors that come before it in the order, for a while: waiting for all of them
without a limit would be the algorithm of Jones and Plassmann, which has no clashes.

`api` has the call, `tasks` and `ranges` what runs on the device, `verify` the proof of a result. Why the result is always a
coloring, and why the tasks come to an end: docs/algorithms/coloring.md.

Sources: Gebremedhin and Manne, "Scalable parallel graph coloring algorithms", Concurrency: Practice and Experience 12 (2000);
Jones and Plassmann, "A parallel graph coloring heuristic", SIAM Journal on Scientific Computing 14 (1993);
Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 5 and 6 and section 6.4.
"""

from . import entry  # noqa: F401 - registers the algorithm
from .api import ORDERS, ColoringResult, color
from .tasks import assign, check
from .verify import verify_coloring

__all__ = ["ORDERS", "ColoringResult", "assign", "check", "color", "verify_coloring"]
