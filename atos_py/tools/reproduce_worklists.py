"""The measures of Nasre, Burtscher and Pingali 2013 on this machine, as far as their programs are here: figures 5 to 8, 11, 14.

`program_measures` says how measures run programs (`acc.programs`), and what is written. Figures 5 and 6 are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..acc import programs
from ..algorithms.bfs import bfs, verify_bfs
from ..algorithms.connected_components import verify_connected_components
from ..graph.graph import Graph
from ..runtime.stats import LaunchStats
from ..runtime.trace import format_digits
from .program_measures import Measure, Paper, Row, Run, Subject, run_bfs_by_minimum, run_measures, run_sssp
from .reproduce import Progress

__all__ = ["MEASURES", "PROGRAMS", "reproduce_worklists"]


def _run_components(on: Subject, options: dict[str, Any]) -> LaunchStats:
    label, stats = programs.connected_components(on.graph, **options)
    verify_connected_components(on.host, label)
    return stats


def _run_growing_bfs(on: Subject, options: dict[str, Any]) -> LaunchStats:
    room = max(int(options["room"] * on.graph.num_vertices), 64)
    found = bfs(on.graph, on.source, direction="push", capacity=room)
    verify_bfs(on.host, on.source, found.depth)
    return found.stats


PROGRAMS: dict[str, Run] = {
    "BFS": run_bfs_by_minimum,  # since topology-driven rounds have no levels
    "SSSP": run_sssp,
    "components": _run_components,
    "BFS, growing": _run_growing_bfs,
}
_ALL = ("BFS", "SSSP", "components")
_POLICIES: dict[str, dict[str, Any]] = {"data": {"policy": "data"}, "topology": {"policy": "topology"}}
MEASURES = {
    "figure5": Measure(
        "Data-driven against topology-driven (Figures 5 and 6)", _ALL, _POLICIES,
        "The paper finds BFS, SSSP and spanning trees faster topology-driven, since plain stores take the place of atomics. On "
        "GPUs of today atomics run in the L2 cache. Topology-driven rounds pull here, so that each vertex is stored once.",
    ),
    "figure7": Measure(
        "Active vertices by round (Figure 7)", ("SSSP",), _POLICIES,
        "The paper counts relaxed edges: data-driven rounds never relax more than a tenth of them. A topology-driven round "
        "looks along all edges; what is counted of it are the vertices that it changes.",
    ),
    "figure8": Measure(
        "Worklists of SSSP (Figure 8)", ("SSSP",),
        {
            "rounds": {"filter": "online"},
            "scan": {"filter": "ballot"},
            "relaxed": {"barrier": False},
            "ordered": {"delta": "auto"},
        },
        "Rounds: a hierarchical worklist, of push buffers in shared memory. Scan: the list is made without atomics on it, by "
        "looking at all vertices. Relaxed: without barriers, so that workers run what they have pushed, which is the effect of "
        "unrolling. Ordered: by buckets of distance, which the paper does not have.",
    ),
    "figure11": Measure(
        "Temporal hybrid by its threshold (Figure 11)", ("BFS", "SSSP"),
        {f"{share:.0%}": {"policy": ("hybrid", share)} for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2)},
        "Topology-driven rounds while more than this share of the vertices is listed, with duplicates. The paper finds 40 to "
        "70 % better than either policy for SSSP on the road network. Where no round lists so many, the run is data-driven.",
    ),
    "figure14": Measure(
        "Growth of the queue (Figure 14)", ("BFS, growing",),
        {f"{room:g} n": {"room": room} for room in (1.0, 0.2, 0.05, 0.01)},
        "Room for so many items for each vertex at first. The paper stops the kernel, doubles the lists and runs the iteration "
        "again. Here the queue grows while workers run, and no task runs twice.",
    ),
}  # fmt: skip


def reproduce_worklists(
    out: Path,
    graphs: Iterable[tuple[str, Graph]],
    *,
    repeat: int = 5,
    progress: Progress = lambda steps, _description, _total: steps,
) -> list[Path]:
    """Measure everything and write it to a directory; parameters are those of `reproduce`."""
    paper = Paper(MEASURES, PROGRAMS, "figure7", units=_UNITS, format_cell=_format_cell)
    return run_measures(paper, out, graphs, repeat, progress)


_UNITS = {"figure7": "ms: rounds, of which topology-driven", "figure11": "ms: topology-driven rounds"}


def _format_cell(measure: str, row: Row, first: Row) -> str:
    text = format_digits(row["milliseconds"])
    if measure == "figure7":
        return f"{text}: {row['rounds']}, {row['sweeps']}"
    return f"{text}: {row['sweeps']}" if measure == "figure11" else text
