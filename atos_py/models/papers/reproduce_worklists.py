"""The measures of Nasre, Burtscher and Pingali 2013 on this machine: figures 5 to 14, of programs that are here.

`program_measures` says how measures run programs (`acc.programs`), and what is written; `claims_worklists` has the claims.
Figures 5 and 6 are one. Programs for Figures 12 and 13 alone are in `worklist_hybrids`, that for a variant of Figure 8 in
`worklist_scan`. The measure of streams is not of that paper, but of a constant of Atos.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...algorithms.bfs import UNREACHED, bfs, verify_bfs
from ...algorithms.connected_components import verify_connected_components
from ...algorithms.sssp import verify_sssp
from ...compile.best_links import only_best
from ...graph.graph import Graph
from ...runtime.experiment import Experiment
from ...runtime.stats import COUNTED, LaunchStats
from ...runtime.trace import format_digits
from ..acc import programs
from .claim_report import Reproduction
from .claims_worklists import CLAIMS
from .program_measures import Measure, Paper, Row, Run, Subject, run_bfs_by_minimum, run_measures, run_sssp
from .turns import DEFAULTS, Options
from .worklist_hybrids import TOPOLOGY, search_by_partitions, sum_up_tree, verify_tree
from .worklist_scan import search_by_prefix_sums

__all__ = ["MEASURES", "PROGRAMS", "reproduce_worklists"]


def _run_components(on: Subject, options: dict[str, Any]) -> LaunchStats:
    label, stats = programs.connected_components(on.graph, **options)
    verify_connected_components(on.host, label)
    return stats


def _run_reordered_sssp(on: Subject, options: dict[str, Any]) -> LaunchStats:
    how = dict(options)
    order = how.pop("order", None)
    graph, vertices = (on.weighted, np.arange(on.graph.num_vertices)) if order is None else on.weighted.reorder(order)
    ids = np.asarray(vertices[:])
    reordered, stats = programs.sssp(graph, int(np.flatnonzero(ids == on.source)[0]), **how)
    distance = np.empty(len(ids), np.float32)
    distance[ids] = reordered[:]
    verify_sssp(on.weighted_host, on.source, distance)
    return stats


def _run_worklist_sssp(on: Subject, options: dict[str, Any]) -> LaunchStats:
    how = dict(options)
    if how.pop("prefix_sums", False):
        distance, stats = search_by_prefix_sums(on.weighted, on.source)
        verify_sssp(on.weighted_host, on.source, distance)
        return stats
    if how.pop("fixed_blocks", False):
        device = on.graph.device
        how["num_blocks"] = device.processors * (2 if device.kind == "cuda" else 1)
    return run_sssp(on, how)


def _run_growing_bfs(on: Subject, options: dict[str, Any]) -> LaunchStats:
    room = max(int(options["room"] * on.graph.num_vertices), 64)
    found = bfs(on.graph, on.source, direction="push", capacity=room)
    verify_bfs(on.host, on.source, found.depth)
    return found.stats


def _run_spatial_bfs(on: Subject, options: dict[str, Any]) -> LaunchStats:
    depth, stats = search_by_partitions(on.graph, on.source, **options)
    verify_bfs(on.host, on.source, np.where(np.isinf(depth), np.uint32(UNREACHED), depth).astype(np.uint32))
    return stats


def _run_spatial_sssp(on: Subject, options: dict[str, Any]) -> LaunchStats:
    distance, stats = search_by_partitions(on.weighted, on.source, **options)
    verify_sssp(on.weighted_host, on.source, distance)
    return stats


def _run_tree(on: Subject, options: dict[str, Any]) -> LaunchStats:
    total, stats = sum_up_tree(on.graph.num_vertices, on.graph.device, **options)
    verify_tree(on.graph.num_vertices, total)
    return stats


PROGRAMS: dict[str, Run] = {
    "BFS": run_bfs_by_minimum,  # since topology-driven rounds have no levels
    "SSSP": run_sssp,
    "SSSP, worklists": _run_worklist_sssp,
    "SSSP, reordered": _run_reordered_sssp,
    "components": _run_components,
    "BFS, spatial": _run_spatial_bfs,
    "SSSP, spatial": _run_spatial_sssp,
    "tree": _run_tree,
    "BFS, growing": _run_growing_bfs,
}
_ALL = ("BFS", "SSSP", "components")
_POLICIES: dict[str, dict[str, Any]] = {"data": {"policy": "data"}, "topology": {"policy": "topology"}}
MEASURES = {
    "figure5": Measure(
        "Data-driven against topology-driven (Figures 5 and 6)", _ALL, _POLICIES,
        "In the paper topology-driven rounds push by plain stores. Here they pull, so that each vertex is stored once.",
    ),
    "figure7": Measure(
        "Active vertices by round (Figure 7)", ("SSSP",), _POLICIES,
        "The paper counts relaxed edges. A topology-driven round looks along all edges; what is counted of it are the vertices "
        "that it changes.",
    ),
    "figure8": Measure(
        "Worklists of SSSP (Figure 8)", ("SSSP, worklists",),
        {
            "rounds": {"filter": "online"},
            "no buffer": {"filter": "online", "experiment": Experiment(push_buffer=0)},
            "no sharing": {"filter": "online", "experiment": Experiment(work_sharing=False)},
            "scan": {"filter": "ballot"},
            "prefix sums": {"prefix_sums": True},
            "discrete": {"filter": "online", "persistent": False},
            "fixed blocks": {"filter": "online", "persistent": False, "fixed_blocks": True},
            "unique": {"filter": "online", "unique": True},
            "unrolled": {"filter": "online", "unroll": 3},
            "relaxed": {"barrier": False},
            "nothing kept": {"barrier": False, "experiment": Experiment(local_items=False)},
            "nothing shared": {"barrier": False, "experiment": Experiment(work_sharing=False)},
            "ordered": {"delta": "auto"},
        },
        "Rounds: a hierarchical worklist, of push buffers in shared memory, each of which goes to the queue by one atomic. No "
        "buffer: each push goes there by itself. No sharing: long rows are not split. Scan: the list is made without atomics "
        "on it, by looking at all vertices. Prefix sums: without any but those of distances; whoever shortens one marks the "
        "vertex, and prefix sums of the marks say where it is in the list; the time is that of three launches for each round. "
        "Discrete: a launch for each round, of as many blocks as it has items for; fixed blocks: always as many. Unique: a "
        "vertex is listed once in a round. Unrolled: threads follow their changes for three levels. Relaxed: without barriers, "
        "so that workers run what they have pushed. Nothing kept: all that goes through the queue. Nothing shared: no work "
        "is given away, neither of parts of long rows nor of what a worker keeps. Ordered: by buckets of distance, which "
        "the paper does not have.",
    ),
    "figure9": Measure(
        "Topology-driven SSSP (Figure 9)", ("SSSP, reordered",),
        {
            "pull": {"policy": "topology"},
            **{f"{order} order": {"order": order, "policy": "topology"} for order in ("bfs", "degree", "random")},
            "stores": {"policy": "topology", "monotone_stores": True},
            **{
                f"unrolled, {levels}": {"policy": "topology", "monotone_stores": True, "unroll": levels} for levels in (2, 4, 6)
            },
        },
        "Pull: each vertex looks along its in-edges; in other orders neighbors in the graph are more or less often neighbors "
        "in memory. Stores: each vertex changes its out-neighbors, without atomics, as in "
        "the paper; unrolled for so many levels, depth first, where the paper has a list in shared memory.",
    ),
    "figure10": Measure(
        "Work donation (Figure 10)", ("BFS", "SSSP"),
        {
            "rounds": {"experiment": Experiment(counters=True)},
            "relaxed": {"barrier": False, "experiment": Experiment(counters=True)},
            "ordered": {"delta": "auto", "experiment": Experiment(counters=True)},
        },
        "The paper donates within a block. Here idle workers get chunks of long rows, and some of the items that others would "
        "keep. Counted over the whole run, whose time counting makes longer. Threads of the CPU keep items in the order of "
        "priorities only, and split none.",
    ),
    "figure11": Measure(
        "Temporal hybrid by its threshold (Figure 11)", ("BFS", "SSSP"),
        {f"{share:.0%}": {"policy": ("hybrid", share)} for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2)},
        "Topology-driven rounds while more than this share of the vertices is listed, with duplicates. Where no round lists so "
        "many, the run is data-driven.",
    ),
    "figure12": Measure(
        "Spatial hybrid by the size of partitions (Figure 12)", ("BFS, spatial", "SSSP, spatial"),
        {f"r = {size}": {"size": size} for size in (1, 2, 4, 6, 8, 10)},
        "Items are partitions of r vertices with neighboring numbers; all edges of one are relaxed.",
    ),
    "figure13": Measure(
        "Sums of an octree by pre-passes (Figure 13)", ("tree",),
        {
            "topology": {"passes": TOPOLOGY, "is_combined": False},
            "0": {"passes": 0, "is_combined": False},
            **{f"{passes}": {"passes": passes, "is_combined": False} for passes in (1, 2, 5)},
            **{f"{passes} combined": {"passes": passes, "is_combined": True} for passes in (1, 2, 5)},
        },
        "Random bodies, as many as vertices, a million at most. In the paper threads wait for children. Here the last child "
        "of a cell pushes it, so that nobody waits.",
    ),
    "figure14": Measure(
        "Growth of the queue (Figure 14)", ("BFS, growing",),
        {f"{room:g} n": {"room": room} for room in (1.0, 0.2, 0.05, 0.01)},
        "Room for so many items for each vertex at first. The paper stops the kernel, doubles the lists and runs the iteration "
        "again. Here the queue grows while workers run, and no task runs twice.",
    ),
    "streams": Measure(
        "Discrete launches by the number of streams", ("SSSP",),
        {str(count): {"barrier": False, "persistent": False, "streams": count} for count in (1, 2, 4, 8, 16, 32)},
        "Kernels without barriers between them, so many side by side at most. Atos has up to 32. On the CPU there are no "
        "streams, and all of these are the same launch.",
    ),
}  # fmt: skip


@only_best()
def reproduce_worklists(out: Path, graphs: Iterable[tuple[str, Graph]], options: Options = DEFAULTS) -> Reproduction:
    """Measure everything, test the claims, and write it to a directory."""
    title = "The claims of data- and topology-driven worklists, tested"
    paper = Paper("worklists", title, MEASURES, PROGRAMS, "figure7", CLAIMS, units=_UNITS, format_cell=_format_cell)
    return run_measures(paper, out, graphs, options)


_UNITS = {
    "figure7": "ms: rounds, of which topology-driven",
    "figure10": "ms: items kept, donated, split, chunks run by others",
    "figure11": "ms: topology-driven rounds",
    "figure12": "ms: partitions run",
}


def _format_cell(measure: str, row: Row, first: Row) -> str:
    text = format_digits(row["milliseconds"])
    if measure == "figure7":
        return f"{text}: {row['rounds']}, {row['sweeps']}"
    if measure == "figure10":
        return f"{text}: {', '.join(f'{row[name]:,}' for name in COUNTED)}"
    if measure == "figure12":
        return f"{text}: {row['tasks_run']}"
    return f"{text}: {row['sweeps']}" if measure == "figure11" else text
