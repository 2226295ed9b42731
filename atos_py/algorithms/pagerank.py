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
float32: at the end they are computed anew, in float64, from the ranks alone, and if need be the rest is done in float64.

*Which vertices have work?* With `find="sweep"`, blocks of vertices are checked one after the other, as the paper's check does:
residues above a limit that grows with the degree are handed on, at once where there are few edges, otherwise by a task of
their own. A launch checks each vertex once; unlike the paper's, which goes on until no vertex is above the limit, the loop of
launches ends when the sum is small enough, which is much earlier. With `find="push"`, the one atomic add that lifts a residue
over a limit, the same for all vertices, pushes its vertex, and one launch goes on until there is none.

*Why no residue is left behind.* Whether a vertex was found does not matter for the error, which is measured. It matters for the
end: while the error is above the goal, some residue is above its limit, and the check at the start of the next launch finds it;
handing on r takes |r| from the sum of the residues and gives at most d|r| back, so that the sum falls until the goal is met. In
a launch of `find="push"`, a vertex is marked while it is queued, so that it is there once at most. Its task clears the mark,
then takes the residue. An add that crosses the limit and then sees the mark came before that, and is taken along.

Source: Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022, Algorithms 3 and 4; over-relaxation:
Young, "Iterative Methods for Solving Partial Difference Equations of Elliptic Type", 1954.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..array import Array, asarray, zeros
from ..errors import InvalidArgumentError, UnsupportedTypeError, VerificationError
from ..graph import Graph
from ..parallel import compiled, num_threads, parallel_map
from ..program import WORKERS
from ..queue import Queue
from ..stats import LaunchStats
from ..task import Task, atomic_add, atomic_exch, task

__all__ = ["PageRankResult", "pagerank", "verify"]

BLOCK = 256  # vertices that a check looks at
SPAN = 4096  # vertices that a sum goes over at once
LIGHT = {"cuda": 16, "cpu": 1 << 62}  # a vertex of at most so many edges is handed on by the thread that checks it


class Step(NamedTuple):
    """What is the same for all tasks of a launch; numbers are of the type of the residues."""

    damping: Any
    omega: Any  # how much of a residue is taken at once: more than 1 is over-relaxation
    limit: Any  # residues below limit + limit_per_edge * degree stay where they are
    limit_per_edge: Any
    light: int
    num_vertices: int
    initial: bool  # hand on the rank and not the residue: makes residues from ranks


def is_above(r, degree, step):  # type: ignore[no-untyped-def]
    """Whether a residue is worth handing on."""
    return step.initial or abs(r) > step.limit + step.limit_per_edge * degree


def take(v, first, degree, graph, rank, residue, step):  # type: ignore[no-untyped-def]
    """Move the residue of v, if it is worth it, to its rank; return what each neighbour gets."""
    if step.initial:
        return step.damping * rank[v] / max(degree, 1)
    if not is_above(residue[v], degree, step):
        return step.damping * 0
    r = atomic_exch(residue, v, 0)
    taken = step.omega * r
    if degree == 1 and graph.indices[first] == v:
        taken = r / (1 - step.damping)  # all of it would come back, again and again
    if taken != r:
        atomic_add(residue, v, r - taken)
    atomic_add(rank, v, taken)
    return step.damping * taken / max(degree, 1)


def edges_or_block(item, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Return the edges of a vertex, where they begin and what they carry; or the vertices of a block and the first of them."""
    if item >= step.num_vertices:
        first = (item - step.num_vertices) * BLOCK
        return min(BLOCK, step.num_vertices - first), first, step.damping * 0
    if queued is not None:
        atomic_exch(queued, item, 0)  # before the residue: what comes after it was taken pushes the vertex again
    first = graph.indptr[item]
    degree = graph.indptr[item + 1] - first
    share = take(item, first, degree, graph, rank, residue, step)
    return degree if share != 0 else 0, first, share


@task(workload=edges_or_block)
def sweep(worker, item, i, first, share, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Hand on along edge i of a vertex; or hand on vertex i of a block, or push it if it has many edges."""
    if item < step.num_vertices:
        atomic_add(residue, graph.indices[first + i], share)
        return
    v = first + i
    begin = graph.indptr[v]
    end = graph.indptr[v + 1]
    if end - begin > step.light:
        if is_above(residue[v], end - begin, step):
            worker.push(v)
    else:
        share = take(v, begin, end - begin, graph, rank, residue, step)
        if share != 0:
            for edge in range(begin, end):
                atomic_add(residue, graph.indices[edge], share)


@task(workload=edges_or_block)
def push(worker, item, i, first, share, graph, rank, residue, queued, step):  # type: ignore[no-untyped-def]
    """Hand on along edge i of a vertex, and push the neighbour if that made the difference; or check vertex i of a block."""
    v = first + i
    if item < step.num_vertices:
        v = graph.indices[first + i]
        old = atomic_add(residue, v, share)
        found = abs(old) <= step.limit and abs(old + share) > step.limit
    else:
        found = abs(residue[v]) > step.limit
    if found and atomic_exch(queued, v, 1) == 0:
        worker.push(v)


def is_returned(v, graph):  # type: ignore[no-untyped-def]
    """Whether the first edge of v has a counterpart: 1 or 0; -1 if v has no edge or its neighbour too many."""
    if graph.indptr[v] == graph.indptr[v + 1]:
        return -1
    w = graph.indices[graph.indptr[v]]
    begin = graph.indptr[w]
    end = graph.indptr[w + 1]
    if end - begin > 64:
        return -1
    for edge in range(begin, end):
        if graph.indices[edge] == v:
            return 1
    return 0


@task
def prepare(worker, span, graph, start, per_vertex, per_edge, teleport, kept, rank, residue, totals):  # type: ignore[no-untyped-def]
    """Set ranks to `per_vertex * start + per_edge * degree`, and residues to the part of theirs that needs no edges.

    Sums the teleport distribution over vertices without edges, and counts edges without a counterpart in a sample.
    """
    dangling = 0.0
    single = 0.0
    for v in worker.split(range(span * SPAN, min(span * SPAN + SPAN, rank.size))):
        degree = graph.indptr[v + 1] - graph.indptr[v]
        rank[v] = per_vertex * start[min(v, start.size - 1)] + per_edge * degree
        residue[v] = kept * teleport[min(v, teleport.size - 1)] - rank[v]
        if degree == 0:
            dangling += teleport[min(v, teleport.size - 1)]
        if v & 255 == 0 and is_returned(v, graph) == 0:
            single += 1
    dangling = worker.sum(dangling)
    single = worker.sum(single)
    if worker.rank == 0:
        atomic_add(totals, 0, dangling)
        atomic_add(totals, 1, single)


@task
def measure(worker, span, rank, residue, teleport, shift, totals):  # type: ignore[no-untyped-def]
    """Take `shift` times the teleport distribution from the residues; sum ranks, residues, and these without their signs."""
    p = 0.0
    r = 0.0
    size = 0.0
    for v in worker.split(range(span * SPAN, min(span * SPAN + SPAN, rank.size))):
        if shift != 0:
            residue[v] -= shift * teleport[min(v, teleport.size - 1)]
        p += rank[v]
        r += residue[v]
        size += abs(residue[v])
    p = worker.sum(p)
    r = worker.sum(r)
    size = worker.sum(size)
    if worker.rank == 0:
        atomic_add(totals, 0, p)
        atomic_add(totals, 1, r)
        atomic_add(totals, 2, size)


@task
def finish(worker, span, rank, residue, teleport, shift, factor, result):  # type: ignore[no-untyped-def]
    """Add the residues, less `shift` times the teleport distribution, to the ranks, and normalise."""
    for v in worker.split(range(span * SPAN, min(span * SPAN + SPAN, rank.size))):
        result[v] = factor * (rank[v] + residue[v] - shift * teleport[min(v, teleport.size - 1)])


class PageRankResult(NamedTuple):
    """What `pagerank` returns.

    Attributes
    ----------
    rank : Array
        The rank of each vertex; they sum to 1.
    stats : LaunchStats
        Of all launches together.
    error_bound : float
        What the relative error in the 1-norm is at most.
    """

    rank: Array
    stats: LaunchStats
    error_bound: float


def pagerank(
    graph: Graph,
    damping: float = 0.85,
    tolerance: float = 1e-4,
    *,
    dtype: DTypeLike = np.float32,
    personalization: ArrayLike | Array | None = None,
    start: ArrayLike | Array | None = None,
    find: str = "sweep",
    worker: str = "cta",
    capacity: int | None = None,
    **launch_options: Any,
) -> PageRankResult:
    """Return the PageRank of every vertex, as networkx defines it; weights are not looked at.

    Parallel edges count as often as they are there, and so do loops. A vertex without out-edges is taken to have an edge to
    every vertex, or with `personalization` to those that it names, in its proportions.

    Parameters
    ----------
    graph : Graph
        Its out-edges are followed; the computation runs on its device.
    damping : float
        The probability of following an edge rather than jumping: at least 0 and less than 1.
    tolerance : float
        What the error is at most: the sum of the absolute differences to the exact ranks, where both sum to 1.
    dtype : dtype
        Of the ranks, float32 or float64. With float32 the tolerance must be more than (1 + damping) / (1 - damping) / 2**24,
        with float64 more than a thousandth of a millionth of that; and memory for float64 is needed in either case.
    personalization : array_like, optional
        Where jumps lead: a non-negative number for each vertex, in any scale. By default every vertex is as likely.
    start : array_like, optional
        Ranks to start from, in any scale: those of a similar graph, say. By default a vertex starts with its share of the
        jumps and a part in proportion to its out-edges, which is near the answer if the graph is undirected.
    find : {"sweep", "push"}
        How vertices with work are found: by checking all of them again and again, or by the atomic operation that gives
        them work. With `barrier=True`, "push" is the bulk-synchronous algorithm.
    worker : str
        "thread", "warp" or "cta".
    capacity : int, optional
        Of the queue; by default enough in any case.
    **launch_options
        As for `Queue.launch_cta`: `persistent`, `barrier`, `fetch_size`, `num_blocks`, `num_threads`, ...

    Returns
    -------
    PageRankResult

    Raises
    ------
    InvalidArgumentError
        If an argument is out of range or of the wrong length, or the tolerance is finer than the dtype allows.
    QueueFullError
        If `capacity` is given and too small.
    """
    if worker not in WORKERS:
        raise InvalidArgumentError(f"worker must be one of {', '.join(WORKERS)} (got {worker!r})")
    if find not in ("sweep", "push"):
        raise InvalidArgumentError(f"find must be 'sweep' or 'push' (got {find!r})")
    if not 0 <= damping < 1:
        raise InvalidArgumentError(f"damping must be at least 0 and less than 1 (got {damping})")
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise UnsupportedTypeError(f"ranks are float32 or float64 (got {kind})")
    rounding = (1 + damping) / (1 - damping) * (2.0**-24 if kind == np.float32 else 2.0**-53 * 1e3)
    if not rounding < tolerance < math.inf:
        raise InvalidArgumentError(f"tolerance must be more than {rounding:.1e}, the rounding of {kind} (got {tolerance})")
    n = graph.num_vertices
    teleport = _teleport(personalization, n)
    if start is not None:
        if isinstance(start, Array) and start.device != graph.device:
            raise InvalidArgumentError(
                f"start is on {start.device}, the graph on {graph.device}; copy it with atos.asarray(...)"
            )
        start = asarray(start, device=graph.device, readonly=True)
        if start.shape != (n,):
            raise InvalidArgumentError(f"start must have one number for each of {n} vertices (got shape {start.shape})")
    solver = _Solver(graph, damping, teleport, find, worker, capacity, launch_options)
    rank, bound = solver.solve(start, kind, tolerance - rounding)
    return PageRankResult(rank, solver.stats(), bound + rounding)


class _Solver:
    """The launches of one call, on one queue."""

    def __init__(
        self,
        graph: Graph,
        damping: float,
        teleport: NDArray[np.float64],
        find: str,
        worker: str,
        capacity: int | None,
        options: dict[str, Any],
    ) -> None:
        self.graph, self.damping, self.find, self.options = graph, damping, find, options
        self.n = graph.num_vertices
        self.blocks = self.n + np.arange(-(-self.n // BLOCK))
        self.spans = np.arange(-(-self.n // SPAN))
        self.device = graph.device
        self.teleport = asarray(teleport, device=self.device, readonly=True)
        self.totals = zeros(3, dtype=np.float64, device=self.device)
        self.queued = zeros(self.n, dtype=np.int32, device=self.device) if find == "push" else None
        most = self.n + len(self.blocks)
        self.queue = Queue(capacity or most + 1, dtype=np.uint32 if most < 2**32 else np.int64, device=self.device)
        self.runs: list[LaunchStats] = []
        self.run = getattr(self.queue, f"launch_{worker}")

    def solve(self, start: Array | None, dtype: np.dtype[Any], goal: float) -> tuple[Array, float]:
        """Return ranks and what their error is at most, which is no more than `goal`."""
        rank, residue = (zeros(self.n, dtype=dtype, device=self.device) for _ in range(2))
        dangling, single = self.prepare(self.teleport if start is None else start, 1, 0, rank, residue)
        self.undirected = single == 0
        # In an undirected graph ranks are nearly in proportion to degrees; but not so in each of its small components.
        if start is None and self.undirected and goal > 1e-5:
            per_edge = self.damping * (1 - dangling) / max(self.graph.num_edges, 1)
            self.prepare(self.teleport, 1 - self.damping, per_edge, rank, residue)
        self.nested(sweep, rank, residue, initial=True)
        last = math.inf
        while True:
            self.converge(rank, residue, 0.95 * goal)
            exact = zeros(self.n, dtype=np.float64, device=self.device)
            self.prepare(rank, 1, 0, rank, exact)
            self.nested(sweep, rank, exact, initial=True)
            error, total, rest = self.error(rank, exact)
            if error <= goal:
                break
            if error > last / 2:
                raise InvalidArgumentError(
                    f"the tolerance is too fine: rounding in float64 leaves an error of up to {error:.1e}"
                )
            last = error if rank.dtype == np.float64 else last
            # What float32 could do is done.
            rank, residue, narrow = zeros(self.n, dtype=np.float64, device=self.device), exact, rank
            self.prepare(narrow, 1, 0, rank, zeros(self.n, dtype=np.float32, device=self.device))
        result = zeros(self.n, dtype=dtype, device=self.device)
        self.flat(finish, rank, exact, self.teleport, rest, 1 / total if total else 0.0, result)
        return result, error

    def converge(self, rank: Array, residue: Array, goal: float) -> None:
        """Hand residues on until they promise an error of at most `goal`."""
        error, total, _ = self.error(rank, residue)
        omega, slack, rates = 1.0, 2.0, list[float]()
        while error > goal:
            # If no residue were above its limit, their sum would be small enough.
            limit = 0.8 * goal * (1 - self.damping) / self.damping * total
            if self.find == "push":
                self.nested(push, rank, residue, limit=slack * limit / self.n)
            else:
                per_edge = limit / 2 / max(self.graph.num_edges, 1)
                self.nested(sweep, rank, residue, omega=omega, limit=limit / 2 / self.n, limit_per_edge=per_edge)
            before, (error, total, _) = error, self.error(rank, residue)
            rates.append(max(error / before, 1e-6))
            slack *= min(0.5, 0.7 * goal / max(error, goal))
            omega = self.next_omega(omega, rates)

    def next_omega(self, omega: float, rates: list[float]) -> float:
        """Return how much of a residue a sweep should take at once, given by what factor each sweep changed the error.

        In an undirected graph, Young's theory of over-relaxation tells the best omega from the rate of any other. Sweeps of
        many vertices at once are not what it is about: where it does harm, it is given up, since with 1 the error always falls.
        """
        if not self.undirected or len(rates) < 2:
            return 1.0
        if omega > 1 and rates[-1] > 1 - (1 - self.damping) / 4:
            self.undirected = False
            return 1.0
        if omega > 1 and rates[-1] < omega - 0.85:
            return omega
        square = min((rates[-1] + omega - 1) ** 2 / (rates[-1] * omega**2), self.damping**2)
        return max(omega, 2 / (1 + math.sqrt(1 - square)))

    def error(self, rank: Array, residue: Array) -> tuple[float, float, float]:
        """Return what the error of the ranks plus residues is at most, the sum of the ranks, and that of the residues."""
        total, rest, size = self.flat(measure, rank, residue, self.teleport, 0.0, self.totals)
        if abs(rest) > 0.1 * size:
            total, rest, size = self.flat(measure, rank, residue, self.teleport, rest, self.totals)
        error = self.damping / (1 - self.damping) * (size + abs(rest)) / total if self.n and total > 0 else 0.0
        if self.n and not (total > 0 and error < math.inf):
            raise InvalidArgumentError("start must hold finite numbers, not negative, with a positive sum")
        return error, total, rest

    def prepare(self, start: Array, per_vertex: float, per_edge: float, rank: Array, residue: Array) -> list[float]:
        factors = float(per_vertex), float(per_edge), self.teleport, 1 - self.damping
        return self.flat(prepare, self.graph, start, *factors, rank, residue, self.totals)[:2]

    def nested(self, which: Task, rank: Array, residue: Array, **given: Any) -> None:
        number = residue.dtype.type
        step = Step(
            damping=number(self.damping),
            omega=number(given.get("omega", 1)),
            limit=number(given.get("limit", 0)),
            limit_per_edge=number(given.get("limit_per_edge", 0)),
            light=LIGHT[self.device.kind],
            num_vertices=self.n,
            initial=given.get("initial", False),
        )
        self.launch(self.blocks, which, self.graph, rank, residue, self.queued if which is push else None, step)

    def flat(self, which: Task, *args: Any) -> list[float]:
        self.totals[:] = 0
        self.launch(self.spans, which, *args)
        return list(map(float, self.totals.to_numpy()))

    def launch(self, items: NDArray[Any], which: Task, *args: Any) -> None:
        self.queue.push(items)
        self.runs.append(self.run(which, *args, **self.options))

    def stats(self) -> LaunchStats:
        """Return the statistics of all launches in one."""
        summed = ("tasks_run", "tasks_pushed", "milliseconds", "rounds")
        sums = {name: sum(getattr(run, name) for run in self.runs) for name in summed}
        traces, ms, tasks = [], 0.0, 0
        for run in self.runs:
            if run.trace is not None:
                traces.append(run.trace.copy())
                traces[-1]["milliseconds"] += ms
                traces[-1]["tasks_run"] += tasks
            ms, tasks = ms + run.milliseconds, tasks + run.tasks_run
        return replace(self.runs[-1], task=self.find, trace=np.concatenate(traces) if traces else None, **sums)


def _teleport(personalization: Any, n: int) -> NDArray[np.float64]:
    """Return the distribution of jumps, with sum 1; one number if it is the same for all vertices."""
    if personalization is None:
        return np.full(min(n, 1), 1 / max(n, 1))
    given = np.asarray(personalization)
    if given.shape != (n,) or given.dtype.kind not in "iufb":
        got = f"got shape {given.shape} of {given.dtype}"
        raise InvalidArgumentError(f"personalization must have one number for each of {n} vertices ({got})")
    given = given.astype(np.float64)
    if n and not (given.min() >= 0 and 0 < given.sum() < math.inf):
        raise InvalidArgumentError("personalization must hold finite numbers, not negative, with a positive sum")
    return given / given.sum() if n else given


def _scatter_kernel(
    indptr: Any, indices: Any, rank: Any, first: int, end: int, result: Any
) -> None:  # pragma: no cover - compiled
    """Add what vertices `first` to `end` hand on to `result`."""
    for u in range(first, end):
        degree = indptr[u + 1] - indptr[u]
        for edge in range(indptr[u], indptr[u + 1]):
            result[indices[edge]] += rank[u] / degree


def verify(
    graph: Any, result: Any, tolerance: float = 1e-4, *, damping: float = 0.85, personalization: ArrayLike | Array | None = None
) -> float:
    """Prove that the error of ranks is at most `tolerance`, from the ranks alone.

    With Q the chain that follows edges, and from vertices without any jumps as the teleport distribution v says, the exact
    ranks are the fixed point of y = dQ'y + (1 - d) v. This is a contraction by d in the 1-norm, so ranks y are at most
    |dQ'y + (1 - d) v - y| / (1 - d) away from it. That is computed, in float64, over all edges.

    Parameters
    ----------
    graph : Graph or CSR
    result : PageRankResult or array
        The ranks, with sum 1.
    tolerance : float
        What the error may be.
    damping, personalization
        As given to `pagerank`.

    Returns
    -------
    float
        What the error is at most.

    Raises
    ------
    VerificationError
        The error may be larger than `tolerance`, or the ranks do not sum to 1 as far as that.
    """
    indptr, indices = np.asarray(graph.indptr), np.asarray(graph.indices)
    n = indptr.size - 1
    rank = np.asarray(result.rank if isinstance(result, PageRankResult) else result).astype(np.float64)
    if rank.shape != (n,):
        raise InvalidArgumentError(f"there must be one rank for each of {n} vertices (got shape {rank.shape})")
    if n == 0:
        return 0.0
    if not abs(rank.sum() - 1) <= tolerance:
        raise VerificationError(f"the ranks sum to {rank.sum()}, and not to 1")
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], min(num_threads(), 4) + 1)[1:-1])
    edges = [0, *cuts.tolist(), n]

    def scatter(piece: int) -> NDArray[np.float64]:
        received = np.zeros(n)
        compiled(_scatter_kernel)(indptr, indices, rank, edges[piece], edges[piece + 1], received)
        return received

    received = sum(parallel_map(scatter, range(len(edges) - 1)), np.zeros(n))
    jumps = 1 - damping + damping * rank[np.diff(indptr) == 0].sum()
    expected = damping * received + jumps * _teleport(personalization, n)
    difference = np.abs(expected - rank)
    bound = float(difference.sum() / (1 - damping))
    if not bound <= tolerance:
        worst = int(np.argmax(difference))
        raise VerificationError(
            f"the error may be {bound:.3e}, more than {tolerance:.3e}: rank[{worst}] is {rank[worst]:.6e}, but what comes in"
            f" along its edges and by jumps is {expected[worst]:.6e}"
        )
    return bound
