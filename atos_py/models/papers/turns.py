"""Options of a report, facts of a graph, and samples of runs in turns.

In each turn every run of a family runs once, in a random order, so that drift of the machine hits all runs alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...graph.graph import Graph
from ...runtime.stats import COUNTED, LaunchStats
from .claims import Kind, kind_of_graph

__all__ = ["DEFAULTS", "GraphFacts", "Options", "Progress", "Samples", "middle_of", "numbers_of", "run_in_turns"]

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
_T = TypeVar("_T")
_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a paper is reproduced.

    Attributes
    ----------
    repeat : int
        Turns, that is, counted runs of each setting, after one that warms up. With fewer than 10 no claim is decided.
    progress : callable
        ``progress(steps, description, total)`` wraps the steps of a part, such as `tqdm.tqdm`.
    quick : bool
        Only what claims need is run, and no tables and figures are written.
    command : str
        The command line that the report names.
    """

    repeat: int = 20
    progress: Progress = lambda steps, _description, _total: steps
    quick: bool = False
    command: str = "atos reproduce"


DEFAULTS = Options()


class GraphFacts(NamedTuple):
    """What a report says of a graph."""

    name: str
    kind: Kind
    vertices: int
    edges: int

    @classmethod
    def of(cls, name: str, graph: Graph) -> GraphFacts:
        """Return the facts of a graph."""
        degrees = np.asarray(graph.degrees())
        return cls(name, kind_of_graph(degrees), graph.num_vertices, graph.num_edges)


class Samples(NamedTuple):
    """What was measured on a graph: of each run the numbers of its turns, and of each that could not be made, why."""

    graph: GraphFacts
    runs: dict[str, list[dict[str, Any]]]
    refusals: dict[str, str]


def run_in_turns(
    families: Mapping[str, Mapping[str, Callable[[], _T]]], turns: int, progress: Progress, description: str
) -> dict[tuple[str, str], list[_T]]:
    """Make the runs of each family in turns, after one of each that warms up; return the results by family and run."""
    rng = np.random.default_rng(_SEED)
    steps = [
        (family, str(run), turn)
        for family, runs in families.items()
        for turn in range(turns + 1)
        for run in rng.permutation(list(runs))
    ]
    results: dict[tuple[str, str], list[_T]] = {(family, run): [] for family, runs in families.items() for run in runs}
    for family, run, turn in progress(steps, description, len(steps)):
        result = families[family][run]()
        if turn:
            results[family, run].append(result)
    return results


def numbers_of(stats: LaunchStats) -> dict[str, Any]:
    """Return the numbers of a run that claims and tables use; those of a log of rounds only if there is one."""
    numbers: dict[str, Any] = {
        "milliseconds": stats.milliseconds,
        "call_milliseconds": stats.profile.call,
        "tasks_run": stats.tasks_run,
        "rounds": stats.rounds,
        "launches": stats.launches,
        "registers": stats.registers,
        "grown": stats.grown,
        **{name: getattr(stats, name) for name in COUNTED},
    }
    frontiers = getattr(stats, "frontiers", ())
    if frontiers:
        filters, directions = stats.filters, stats.directions  # type: ignore[attr-defined]
        numbers |= {"rounds": len(frontiers), "widest": max(frontiers), "ballots": filters.count("ballot")}
        numbers |= {"sweeps": filters.count("none"), "pulls": directions.count("pull")}
    return numbers


_Stats = TypeVar("_Stats", bound=LaunchStats)


def middle_of(results: Sequence[_Stats]) -> _Stats:
    """Return the run whose time is the median, of an even number the lower of the two."""
    return sorted(results, key=lambda stats: stats.milliseconds)[(len(results) - 1) // 2]
