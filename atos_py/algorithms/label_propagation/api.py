"""The call of label propagation, its tasks, its verifier and its entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...arrays.any_array import AnyArray
from ...arrays.array import Array, empty, filled_array
from ...arrays.record import new_record, places, read_record
from ...compile.atomics import atomic_add
from ...compile.host_kernels import compile_kernel, even_rows, parallel_map
from ...compile.task import task
from ...errors import VerificationError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...operators.ranges import range_items, split_range
from ...operators.vertex_map import vertex_map
from ...runtime.launch_options import LaunchOptions, Unpack
from ...runtime.queue import Queue
from ...runtime.stats import LaunchStats
from ...support.shown import ShownFields
from ...support.splitmix64 import splitmix64
from ...support.validation import check_int
from ..arguments import first_of, hash_of_seed, per_vertex, rows_on_host
from ..frame import algorithm, verifier
from ..kept_launches import take_queue
from ..launch_sequence import LaunchSequence
from ..registry import SEED, Option, register
from .most_frequent import find_by_table, find_by_thread
from .smallest_vertex import find_smallest, rename

__all__ = ["LabelResult", "end_step", "label_propagation", "propagate", "verify_label_propagation"]

_VERTICES_PER_ITEM = 128
_FAST_STEPS = 8  # in which neighbors may change at once
_THREAD_MAX_DEGREE = 16
_SCRATCH_BYTES = {"thread": 512, "warp": 4096, "cta": 32768}


class StepsState(NamedTuple):
    """Words of the state of a launch (`arrays.record`)."""

    wanting: int = 1  # vertices that want another label
    converged: int = 1
    steps: int = 1


AT = places(StepsState)
DONE = 1  # the mode in which items do nothing


class Labels(NamedTuple):
    """Arrays and numbers that all tasks of a launch share."""

    label: Array
    wanted: Array  # the label that a vertex wants
    wants: Array  # whether it does
    active: Array  # whether it has to look again
    state: Array
    base: np.uint64  # of the hashes
    max_steps: int
    thread_max_degree: int  # edges of a vertex up to which one thread compares labels


def store_choice(v, chosen, p):  # type: ignore[no-untyped-def]
    """Write down what v wants; return 1 if that is another label than it has, otherwise 0."""
    wants = 1 if chosen != p.label[v] else 0
    p.wanted[v] = chosen
    p.wants[v] = p.active[v] = wants
    return wants


def is_its_turn(v, edge, end, step, graph, p, number):  # type: ignore[no-untyped-def]
    """Whether v may change in a round: by chance at first, later if it comes before its neighbors by every `step`-th edge."""
    turn = splitmix64(p.base + np.uint64(number))
    own = splitmix64(turn + np.uint64(v))
    if number < 2 * _FAST_STEPS:
        return own & np.uint64(1) == 0
    while edge < end:
        u = graph.indices[edge]
        if u != v and p.wants[u] == 1 and splitmix64(turn + np.uint64(u)) < own:
            return False
        edge += step
    return True


def take_label(v, edge, end, step, graph, p):  # type: ignore[no-untyped-def]
    """Give v the label that it wants, and wake its neighbors by every `step`-th edge."""
    if edge == graph.indptr[v]:
        p.label[v] = p.wanted[v]
    while edge < end:
        u = graph.indices[edge]
        if p.active[u] == 0:
            p.active[u] = 1  # race: nothing but 1 is stored here
        edge += step


def is_due(v, number, p):  # type: ignore[no-untyped-def]
    """Whether there is something to do for v: in even rounds it may have to choose a label, in odd ones to change it."""
    return p.active[v] == 1 if number & 1 == 0 else p.wants[v] == 1


@task(max_registers={"cta": (64, None)})
def propagate(worker, item, graph, p):  # type: ignore[no-untyped-def]
    """Choose or change the labels of a range of vertices, one thread each if it has few edges, all together otherwise."""
    if worker.mode == DONE:
        return
    n, number = p.label.size, worker.round
    first = item * _VERTICES_PER_ITEM
    wanting, any_high = 0, False
    for v in split_range(worker, item, n, _VERTICES_PER_ITEM):
        begin, end = np.int64(graph.indptr[v]), np.int64(graph.indptr[v + 1])
        if is_due(v, number, p):
            if end - begin > p.thread_max_degree:
                any_high = True
            elif number & 1 == 0:
                wanting += store_choice(v, find_by_thread(v, graph, p.label, p.base), p)
            elif is_its_turn(v, begin, end, np.int64(1), graph, p, number):
                take_label(v, begin, end, np.int64(1), graph, p)
    if worker.any(any_high):
        for v in range(first, min(first + _VERTICES_PER_ITEM, n)):
            begin, end = np.int64(graph.indptr[v]), np.int64(graph.indptr[v + 1])
            if end - begin > p.thread_max_degree and worker.any(is_due(v, number, p)):
                if number & 1 == 0:
                    chosen = find_by_table(worker, v, graph, p.label, p.base)
                    if worker.rank == 0:
                        wanting += store_choice(v, chosen, p)
                elif worker.all(is_its_turn(v, begin + worker.rank, end, np.int64(worker.size), graph, p, number)):
                    take_label(v, begin + worker.rank, end, np.int64(worker.size), graph, p)
    wanting = worker.sum(wanting)
    if worker.rank == 0:
        if wanting > 0:
            atomic_add(p.state, AT.wanting, wanting)
        worker.push(item)


def end_step(worker, graph, p):  # type: ignore[no-untyped-def]
    """Between rounds: end the launch if no vertex wants another label, or all steps are done."""
    wanting, steps = p.state[AT.wanting], worker.round >> 1
    worker.sync()  # all threads have read it
    if worker.mode != DONE and worker.round & 1 == 0:
        if wanting == 0 or steps == p.max_steps:
            worker.set_mode(DONE)
        if worker.rank == 0:
            p.state[AT.wanting], p.state[AT.steps], p.state[AT.converged] = 0, steps, wanting == 0


@vertex_map
def begin_alone(v, indptr, p):  # type: ignore[no-untyped-def]
    """Give a vertex a label of its own."""
    p.label[v] = v
    p.active[v] = 1 if indptr[v + 1] > indptr[v] else 0


@dataclass(frozen=True, eq=False)
class LabelResult(ShownFields):
    """Result of `label_propagation`.

    Attributes
    ----------
    label : Array, or an array of the library that the graph's arrays came from
        The community of each vertex, by its smallest vertex, uint32.
    num_communities : int
    converged : bool
        Whether each vertex has a label that is most frequent among its neighbors.
    steps : int
        How often vertices changed their labels.
    stats : LaunchStats

    Examples
    --------
    >>> result = atos.label_propagation(atos.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 0, 4, 3]))
    >>> print(result.label[:], result.num_communities, result.converged)
    [0 0 0 3 3] 2 True
    """

    label: AnyArray
    num_communities: int
    converged: bool
    steps: int
    stats: LaunchStats


@algorithm(rounds=True)
def label_propagation(
    graph: Graph, *, max_steps: int = 1000, seed: int = 0, worker: str | None = None, **launch_options: Unpack[LaunchOptions]
) -> LabelResult:
    """Find communities by label propagation: each vertex takes the label that is most frequent among its neighbors.

    Parameters
    ----------
    graph : Graph
        Taken as undirected, as `Graph.to_symmetric` makes it. Loops are ignored, and parallel edges count each. Weights are
        not looked at.
    max_steps : int
        Steps after which the search ends, converged or not. It converges in any case if there are enough.
    seed : int
        Of 64 bits. Decides between labels that are equally frequent, and who changes first. The result is the same for a seed
        on every device, with every worker and schedule.
    {launch_options}
        `shared_memory`, at least 512 bytes, is for a table of the labels of neighbors; with less, vertices of many edges take
        more passes.

    Raises
    ------
    InvalidArgumentError
        If `max_steps`, the seed or `shared_memory` is out of its range.

    References
    ----------
    Raghavan, Albert and Kumara, "Near linear time algorithm to detect community structures in large-scale networks", Physical
    Review E 76 (2007).

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 0, 4, 3])
    >>> atos.label_propagation(graph).label.to_numpy()
    array([0, 0, 0, 3, 3], dtype=uint32)
    """
    limit = check_int("max_steps", max_steps, 0, 2**31)
    base = hash_of_seed(seed)
    check_int("shared_memory", launch_options.get("shared_memory", 512), 512, 1 << 20)
    graph = graph.to_symmetric()
    n, device = graph.num_vertices, graph.device
    label, wanted = (empty(n, dtype=np.uint32, device=device) for _ in range(2))
    wants, active = (empty(n, dtype=np.uint8, device=device) for _ in range(2))
    state = new_record(StepsState, device)
    p = Labels(label, wanted, wants, active, state, base, limit, _THREAD_MAX_DEGREE)
    smallest = filled_array(n, np.uint32(0xFFFF_FFFF), device)
    items = range_items(n, _VERTICES_PER_ITEM)
    room = 2 * len(items) + 1
    queue = take_queue(graph, lambda: Queue(room, device=device), launch_options, "label_propagation", worker)
    launches = LaunchSequence("label_propagation", queue, launch_options, worker)
    scratch: LaunchOptions = {"shared_memory": _SCRATCH_BYTES[(worker or "cta") if device.kind == "cuda" else "cta"]}
    if worker == "thread" and device.kind == "cuda":
        scratch["num_threads"] = 64  # with a table each, more do not fit the shared memory of small GPUs

    def launch_all(launches: LaunchSequence) -> int:
        launches.over_vertices(begin_alone, n, graph.indptr, p)
        rounds: LaunchOptions = {"barrier": True, "each_round": end_step}
        launches.launch(items, propagate, graph._replace(weights=None), p, defaults=scratch, overrides=rounds)
        launches.over_vertices(find_smallest, n, label, smallest)
        launches.over_vertices(rename, n, launches.zeroed_totals(), label, smallest)
        return int(launches.totals[0])

    num_communities = launches.launch_planned(graph.indptr.dtype, launch_all)
    found = read_record(StepsState, state)
    stats = launches.total(propagate.name, like=launches.runs[1])
    return LabelResult(label, num_communities, bool(found.converged), found.steps, stats)  # type: ignore[arg-type]


def _frequency_kernel(
    indptr: Any, indices: Any, label: Any, counts: Any, first: int, end: int
) -> int:  # pragma: no cover - compiled
    """Return the first of vertices `first` to `end` whose label is not most frequent among its neighbors, or -1."""
    for v in range(first, end):
        most = 0
        for edge in range(indptr[v], indptr[v + 1]):
            if indices[edge] != v:
                counts[label[indices[edge]]] += 1
                most = max(most, counts[label[indices[edge]]])
        kept = counts[label[v]]
        for edge in range(indptr[v], indptr[v + 1]):
            counts[label[indices[edge]]] = 0
        if kept < most:
            return v
    return -1


@verifier
def verify_label_propagation(graph: Graph, label: Any) -> None:
    """Prove that no vertex has a label that is less frequent among its neighbors than another one.

    That is the condition with which Raghavan et al. end label propagation. Also, each label has to be the smallest vertex that
    has it.

    Parameters
    ----------
    graph : Graph
        Taken as undirected. Loops are ignored, and parallel edges count each.
    label : array
        Of any integer type; one for each vertex.

    Examples
    --------
    >>> graph = atos.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 0, 4, 3])
    >>> atos.verify_label_propagation(graph, [0, 0, 0, 3, 3])
    >>> atos.verify_label_propagation(graph, [0, 1, 1, 3, 3])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    check_graph(graph)
    indptr, indices = rows_on_host(graph.to_symmetric())
    n = indptr.size - 1
    found = per_vertex("label", label, n).astype(np.int64)
    wrong = (found < 0) | (found > np.arange(n))
    wrong[~wrong] = found[found[~wrong]] != found[~wrong]  # so a label has itself, and nobody before it has it
    if (v := first_of(wrong)) >= 0:
        raise VerificationError(f"label[{v}] is {found[v]}, which is not the smallest vertex with that label")
    kernel, pieces = compile_kernel(_frequency_kernel), even_rows(indptr, 1 << 22)
    for v in parallel_map(lambda piece: int(kernel(indptr, indices, found, np.zeros(n, np.int64), *piece)), pieces):
        if v >= 0:
            raise VerificationError(f"label[{v}] is {found[v]}, but another label is more frequent among the neighbors of {v}")


register(
    run=label_propagation,
    verify=lambda graph, result, _: verify_label_propagation(graph, result.label),
    describe=lambda result: {"communities": result.num_communities},
    arrays=lambda result: {"label": result.label},
    help="find communities by label propagation",
    description="""\
Gives each vertex a label that is most frequent among its neighbors (Raghavan et al. 2007), in one launch with rounds. A pass
over all edges proves that. The result depends on the seed alone. An edge without its reverse is taken as undirected.""",
    examples=("rmat:16:16 --out label.npy", "road:1000:0.62 --seed 7"),
    options={"seed": SEED, "max_steps": Option("steps at most", int)},
)
