"""PageRank over several devices: Chebyshev iteration on undirected graphs, gathering from mirrors.

Each device gathers for its own vertices. What these gather from, the contributions of all vertices, has a copy on each device,
so that an edge never crosses a link: a vertex is written once a round to each device, and read along all its edges at home.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...algorithms.pagerank.api import Numbers, PageRankResult, check_numbers, pagerank
from ...algorithms.pagerank.chebyshev_pull import (
    AT,
    Iteration,
    IterationState,
    choose_step,
    contribution,
    extrapolate,
    find_dangling,
    first_state,
    no_contribution,
    run_to_end,
    scale_by_degree,
    sides_of_round,
)
from ...arrays.array import Array, asarray
from ...arrays.mirrored import MirroredArray
from ...arrays.ownership import Ownership
from ...arrays.partitioned import PartitionedArray
from ...arrays.private import PrivateArray, arrays_together
from ...arrays.record import read_record, record_size
from ...arrays.shared import common_zeros
from ...compile.task import task
from ...errors import InvalidArgumentError
from ...graph.gather_ranges import make_notes, plan_ranges
from ...graph.graph_arrays import GraphArrays
from ...graph.kept import kept
from ...graph.partition import Partition
from ...graph.symmetry import is_symmetric
from ...operators.edge_map import range_gather, row_sum
from ...operators.gather_rounds import GatherRanges, bounds_of, range_takers, take_range
from ...operators.long_rows import LongRows, gather_pieces
from ...operators.vertex_map import vertex_map
from ...runtime.launch_options import LaunchOptions
from ..forms import form
from ..over_devices import by_owner, first_of_ranges, launches_over, refuse_over

__all__ = ["chebyshev_over", "numbers_of", "pagerank_over"]


def next_value(v, degree, received, current, previous, base, damping, omega):  # type: ignore[no-untyped-def]
    """Replace the previous contribution of v by the next one; see `chebyshev_pull.next_value`."""
    rank = damping * received + base
    edges = np.float64(max(degree, 1))
    old_rank = current[v] * edges
    previous[v] = extrapolate(previous[v], rank / edges, omega)
    return rank, abs(rank - old_rank), old_rank


accumulate = row_sum(contribution, no_contribution)
gather_range = range_gather(accumulate, next_value, 0.0, count=3, together=True)
gather_piece, settle_long_rows = gather_pieces(accumulate, next_value, 0.0, count=3)


class Counts(NamedTuple):
    """Sums and counters of all devices, a row for each."""

    totals: Array
    taken: Array


def gather_all(worker, begins, thread_max_degree, indptr, indices, base, run, current, previous):  # type: ignore[no-untyped-def]
    """Gather for ranges of the device until all are taken in this round."""
    numbers = base, run.damping, run.state[AT.omega]
    long_rows, totals = run.long_rows, run.totals
    while True:
        k = take_range(worker, run)
        if k < 0:
            break
        if k < long_rows.first_piece:
            limits = *bounds_of(begins, k), thread_max_degree, long_rows.longest
            gather_range(worker, *limits, indptr, indices, totals, current, previous, *numbers)
        else:
            gather_piece(worker, k, long_rows, run.long_sums, indptr, indices, current, previous, *numbers)


@task
def chebyshev_over(worker, v, begins, thread_max_degree, indptr, indices, base, counts, run):  # type: ignore[no-untyped-def]
    """Gather for ranges of the device, and push the item again for the next round."""
    if worker.rank == 0:
        worker.push(v)
    # The loop is there twice: with arrays that are chosen when it runs, where their copies are would take registers in it.
    if worker.round & 1 == 1:
        gather_all(worker, begins, thread_max_degree, indptr, indices, base, run, run.others, run.values)
    else:
        gather_all(worker, begins, thread_max_degree, indptr, indices, base, run, run.values, run.others)


def end_of_round(worker, begins, thread_max_degree, indptr, indices, base, counts, run):  # type: ignore[no-untyped-def]
    """Add up the sums of all devices, choose the next step as on one, and let all devices take their ranges anew."""
    # Each by a thread of its own, since what lies on another device takes a microsecond.
    for place in worker.split(3):
        total = 0.0
        for k in range(counts.totals.shape[0]):
            total += counts.totals[k, place]
            counts.totals[k, place] = 0
        run.totals[place] = total
    for k in worker.split(counts.taken.shape[0]):
        counts.taken[k, 0] = 0
    worker.sync()
    numbers = base, run.damping, run.state[AT.omega]
    sides = sides_of_round(worker.round, run)
    choose_step(worker, run, settle_long_rows(worker, run.long_rows, run.long_sums, *sides, *numbers))


@by_owner
@vertex_map
def set_contributions(v, indptr, per_vertex, per_edge, values):  # type: ignore[no-untyped-def]
    """Set the contribution of a vertex to that of a rank of ``per_vertex + per_edge * degree``."""
    degree = indptr[v + 1] - indptr[v]
    values[v] = (per_vertex + per_edge * degree) / np.float64(max(degree, 1))


_find_dangling, _scale_by_degree = by_owner(find_dangling), by_owner(scale_by_degree)


def ranges_of_devices(
    ownership: Ownership, ranges: GatherRanges, long_rows: LongRows
) -> tuple[PrivateArray, PrivateArray, NDArray[np.uint32]]:
    """Return the begins of all ranges, those of each device in their order, and the items that take them: ids of its vertices.

    A range is of the device that owns its first vertex. The same of pieces of long rows, whose numbers follow those of ranges.
    """
    begins, order = ranges.begins.to_numpy(), ranges.order.to_numpy()
    first = np.concatenate([begins[:-1], long_rows.vertices.to_numpy()[long_rows.rows.to_numpy()]])
    owner = first[order] // ownership.chunk
    parts = [order[owner == k] for k in range(len(ownership.devices))]
    longest = max(map(len, parts), default=0)
    shown, known = (PrivateArray(size, np.int64, ownership.others(size)) for size in (longest, len(begins)))
    items = []
    for k in ownership.here:
        shown.copies[k][:] = np.concatenate([parts[k].astype(np.int64), np.full(longest - len(parts[k]), -1)])
        known.copies[k][:] = begins
    for k, part in enumerate(parts):
        takers = range_takers(len(part), ownership.devices[k])[: min(len(part), ownership.chunk)]
        items.append(np.array(takers, np.uint32) + np.uint32(k * ownership.chunk))
    numbers = np.concatenate(items)
    return known, shown, numbers if ownership.ids is None else ownership.ids[numbers]


def numbers_of(parts: Any, given: Any, what_of: str = "devices") -> Numbers:
    """Return the checked numbers of a call over devices or hosts, the tolerance without what is for rounding."""
    numbers = check_numbers(parts, given.damping, given.tolerance, given.dtype, given.weighted, given.dangling, given.find)
    refused = {name: getattr(given, name) is not None for name in ("personalization", "dangling", "start", "capacity")}
    others = {"weighted": numbers.weighted, "find": given.find not in (None, "gather")}
    refuse_over("pagerank", {**refused, **others}, what_of)
    return numbers._replace(tolerance=numbers.tolerance - numbers.rounding)


@form(pagerank, Partition)
def pagerank_over(parts: Partition, given: Any, options: Any) -> PageRankResult:
    """Return the ranks of an undirected graph, the statistics, and a bound of the error; see `pagerank`."""
    damping, tolerance, _, dtype, rounding = numbers_of(parts, given)
    refuse_over("pagerank", {"barrier=False": not options.get("barrier", True)})
    if not is_symmetric(parts.indptr, parts.indices):
        raise InvalidArgumentError(
            "pagerank over several devices is for graphs in which every edge has its reverse, and here some edge has none: "
            "partition graph.to_symmetric(), or use the graph on one device"
        )
    n, ownership = parts.num_vertices, parts.ownership
    launches = launches_over("pagerank", parts, np.uint32, None, given.worker, options)
    rows = GraphArrays(parts.indptr, parts.indices, parts.weights)
    # The graph itself, or its parts over other devices, may have the same arrays.
    known, name = kept(rows), f"ranges over {', '.join(map(str, parts.devices))}"
    if name not in known:
        teleport = asarray(np.full(min(n, 1), 1 / max(n, 1)), device=parts.ownership.local, readonly=True)
        everyone = first_of_ranges(parts)
        sums = common_zeros(1, np.float64, ownership)
        notes = make_notes(rows, len(parts.devices), lambda size, dtype: common_zeros(size, dtype, ownership))
        launches.launch(everyone, _find_dangling, n, sums, parts.indptr, teleport, notes)
        ranges, long = plan_ranges(rows, notes, len(parts.devices))
        known[name] = teleport, everyone, float(sums[0]), ranges, long, *ranges_of_devices(ownership, ranges, long)
    teleport, everyone, dangling, ranges, long_rows, begins, order, items = known[name]
    _, thread_max_degree, _, kind = ranges
    long_sums = common_zeros(max(long_rows.vertices.size, 1), np.float64, ownership)
    # Ranks are nearly in proportion to degrees; but not so in each of the small components.
    near, mean = tolerance > 1e-5, 1 / max(n, 1)
    start = ((1 - damping) * mean, damping * (1 - dangling) / max(parts.num_edges, 1)) if near else (mean, 0.0)
    rounds: LaunchOptions = {"barrier": True, "each_round": end_of_round}

    # In float32 rounding may let the error fall no further than to a little more than the tolerance.
    for each in dict.fromkeys((dtype, np.dtype(np.float64))):
        sides = arrays_together(ownership, *[(MirroredArray, n, each)] * 2)  # contributions of this round, and the one before

        def run_rounds(side: int, sides: list[MirroredArray] = sides) -> tuple[IterationState, int]:
            """Run rounds that begin with a side; return what they come to, and how many there were."""
            state = common_zeros(record_size(IterationState), np.float64, ownership)
            # Of each device: atomic additions of system scope to one address are slow.
            totals, taken = arrays_together(ownership, (PrivateArray, 3, np.float64), (PrivateArray, 1, np.uint32))
            state[:] = first_state(damping)
            both, pieces = (sides[side], sides[1 - side]), (long_rows, long_sums)
            counts = Counts(totals.rows, taken.rows)
            run = Iteration(*both, teleport, totals, state, 1 - damping, damping, tolerance, 0, order, taken, *pieces)
            arguments = begins, thread_max_degree, parts.indptr, parts.indices, (1 - damping) * mean, counts, run
            launches.launch(items, chebyshev_over, *arguments, worker=kind, defaults={"fetch_size": 1}, overrides=rounds)
            launches.queue.clear()
            return read_record(IterationState, state), launches.runs[-1].rounds

        launches.launch(everyone, set_contributions, n, parts.indptr, *start, sides[0])
        found, last = run_to_end(run_rounds, goes_on=True)
        if found.is_met or n == 0:
            rank = PartitionedArray(n, dtype, ownership)
            launches.launch(everyone, _scale_by_degree, n, parts.indptr, sides[last], 1 / (found.total or 1.0), rank)
            stats, error = launches.total(task="gather", like=launches.runs[-2]), found.error if n else 0.0
            return PageRankResult(rank, stats, error + rounding)  # type: ignore[arg-type]
    raise InvalidArgumentError(
        f"the tolerance is too fine: rounding in float64 leaves an error of up to {found.error:.1e}, not {tolerance:.1e}"
    )
