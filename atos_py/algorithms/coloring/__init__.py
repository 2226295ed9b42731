"""Graph colouring, speculatively: neighbours are coloured at the same time, and those that clash are coloured again.

There are two kinds of task in one queue. *Assign* gives a vertex the smallest colour that none of its neighbours is seen to
have, for the time being, and pushes its check. *Check* makes the colour final, unless a neighbour has the same: then one of the
two loses and takes another colour at once, which is checked in turn. A vertex that is final pushes the assignment of the one
`window` places behind it in the order, so that so many vertices are under way and a colour is checked soon. With `barrier=True`
the window is the whole graph and the same tasks run in rounds.

Who loses a clash: whoever meets a final colour, otherwise the one of smaller degree, ties going by a hash of the ids. A check
that wins marks the loser, with an atomic operation on the loser's own entry, on which the loser's becoming final depends too.
A vertex is in one place at a time (the queue, or one worker), so nobody else changes its colour.

*Never wrong*: suppose neighbours u and v end with the same colour. Each stored it, pushed a check, and passed that. The store
is done, for all to see, before its check looks at a neighbour: loads can overtake a store, but on a GPU this one is an atomic
exchange whose result is waited for before the push, and on the CPU the push adds to the counter of the queue, which puts the
two in an order. So the check of whichever stored last, say v, saw the colour of u. It was not final, for v would have lost,
nor did u outrank v. So v marked u, or found it marked, or found it final just then and lost; and what is marked does not pass.

*Always ends*: a vertex loses only to a final neighbour, once to each, since final colours are seen from then on and avoided; to
a neighbour of higher rank that changed since it was looked at; or by a mark, of which each check of a neighbour of higher rank
sets one at most. So a vertex is recoloured at most degree + 2 x (colours stored by neighbours of higher rank) times, a finite
number by induction from the highest rank down, whatever the order in which tasks run.

*Blocks*: where vertices have few neighbours, an item is a block of them, of which each thread takes some. The same holds: a
block's check is pushed when the colours of all its vertices are stored, and pushed again until all are final.

`tasks` and `blocks` have what runs on the device, `driver` what launches it, `verifier` the proof of a result.

Sources: Gebremedhin and Manne, "Scalable parallel graph coloring algorithms", Concurrency: Practice and Experience 12 (2000);
Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 5 and 6 and section 6.4.
"""

from .driver import ORDERS, ColoringResult, color
from .tasks import assign_or_check
from .verifier import verify

__all__ = ["ORDERS", "ColoringResult", "assign_or_check", "color", "verify"]
