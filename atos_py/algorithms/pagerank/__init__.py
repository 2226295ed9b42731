"""PageRank, by pushing residues: every vertex hands on, in any order, what it has not handed on yet.

A vertex has a rank p and a residue r, which is what came in and was not passed on. A task takes the residue out, adds it to
the rank, and adds damping x residue / degree to the residue of every neighbour. At any time, and in any order of tasks,

    r = (1 - d) v + dP'p - p        (d: damping; P: a step along a random edge; v: the teleport distribution, of sum 1)

so nothing is lost by taking residues that still grow, and residues tell how wrong the ranks are. They may be negative, so that
ranks may start anywhere.

*Vertices without out-edges* pass nothing on here, while the PageRank of networkx sends their rank back to v. Both have the
same solution but for its scale: if y = d (P'y + mv) + (1 - d) v, where m is the rank of those vertices, then y = dP'y +
(1 - d + dm) v, a multiple of the x in x = dP'x + (1 - d) v. So ranks are scaled to sum 1 at the end, and no such vertex ever
sends anything to everybody. For the same reason v may have any factor: residues r and r - cv belong to the same scaled ranks.

*The error.* Let Q be the chain with those vertices redirected to v, y = p / sum(p), and f = dQ'y + (1 - d) v - y. By the
formula above f = (r - sum(r) v) / sum(p). As y* - y = (I - dQ')^-1 f, the error |y - y*| is at most |f| / (1 - d) in the
1-norm, and that of y + f, whose own f is dQ'f, at most d|f| / (1 - d). The driver measures |f| between launches, goes on until
that is small enough, and returns y + f. Rounding could make residues wrong, as when a million equal numbers are added up in
float32: at the end they are computed anew, in float64, from the ranks alone, and if need be sweeps do the rest in float64. The
check runs the same code as those sweeps, so that whether rounding makes them necessary decides nothing about what is compiled.

*Which vertices have work?* There are four ways to find them, `find`:

- "sweep": blocks of vertices are checked one after the other. Residues above a limit that grows with the degree are handed on,
  at once where there are few edges, otherwise by a task of their own. A launch checks each vertex once, and the driver launches
  until the sum of the residues is small enough, which is much earlier than when no vertex is above the limit.
- "gather": all of them, round after round: nothing is pushed, but a vertex gathers from its neighbours, and Chebyshev's
  acceleration takes a third of the rounds (`gather`). That is for undirected graphs, and the default for them. If the graph is
  not undirected, sweeps do the rest.
- "push": the one atomic add that lifts a residue over a limit, the same for all vertices, pushes its vertex.
- "idle": the paper's check. Workers without work look at some vertices each and push those above the limit. With
  `barrier=True` they look at all of them between two rounds, which is the paper's Algorithm 3.

In a launch with "push" or "idle" every task but some at the beginning is a vertex, and it goes on until no residue is above the
limit. A vertex is marked while it is queued, so that it is there once at most.

*Why no residue is left behind.* Whether a vertex was found does not matter for the error, which is measured. It matters for
the end: while the error is above the goal, some residue is above its limit, or will be once the driver lowers that, and the
next launch finds it; handing on r takes |r| from the sum of the residues and gives at most d|r| back, so that the sum falls
until the goal is met. Within a launch: with "push", a task clears the mark of its vertex, then takes the residue, so an add
that crosses the limit and then sees the mark came before that, and is taken along. With "idle", a worker that finds nothing
goes on until the cursor that all share has passed every vertex since it began; and a launch ends when every worker has found
nothing after all was done.

`tasks`, `passes` and `gather` have what runs on the device, `solver` (and `gather` for its rounds) what launches it, `driver`
the function to call, and `verifier` the proof of a result.

Source: Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 3 and 4; over-relaxation:
Young, "Iterative Methods for Solving Partial Difference Equations of Elliptic Type", 1954.
"""

from .driver import PageRankResult, pagerank
from .verifier import verify

__all__ = ["PageRankResult", "pagerank", "verify"]
