"""The measures of Chen et al. 2022 on this machine: tables 1 and 4, figures 1 to 4, and the effect of permuted vertex ids.

Every run is verified. Tables are written as CSV and Markdown, figures as CSV and, where matplotlib is installed, PNG: tables
after each part and figures after each graph, so that what is cut short is not lost.

PageRank is measured twice. By default it goes over all vertices, launch after launch, by sweeping or gathering, and its tasks
are mostly blocks of them: that is what run times are about. Where tasks are counted (Table 4, Figures 1 to 3) they have to be
vertices, as in the paper, so there every vertex with work is a task of its own, `find="push"`; the blocks of the beginning are
below one per cent.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.bfs import bfs
from ...algorithms.registry import Algorithm, find_algorithms
from ...compile.best_links import only_best
from ...compile.host_kernels import num_threads
from ...core.devices import Device
from ...errors import FileWriteError, InvalidArgumentError, LaunchConfigError
from ...graph import generate
from ...graph.graph import Graph
from ...runtime.stats import LaunchStats, find_stats
from ...support.validation import check_int
from ...tools.tables import COUNTED, Measured, count_least_tasks, write_tables, write_throughput
from ...tools.workloads import bind_algorithm

__all__ = [
    "VARIANTS",
    "Progress",
    "choose_source",
    "list_runs",
    "make_default_graphs",
    "make_directory",
    "permute_vertices",
    "reproduce",
]

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]

# The variants of the paper, all of them through launch options alone.
VARIANTS: dict[str, dict[str, Any]] = {
    "BSP": {"worker": "cta", "persistent": False, "barrier": True},
    "persist-warp": {"worker": "warp", "persistent": True},
    "persist-CTA": {"worker": "cta", "persistent": True},
    "discrete-CTA": {"worker": "cta", "persistent": False},
    "discrete-warp": {"worker": "warp", "persistent": False},
}
HEATMAP_CTAS = (64, 128, 256, 512)
HEATMAP_FETCHES = (1, 8, 32, 64, 128, 256)


class _Subject(NamedTuple):
    """A graph, its copy on the host, against which results are verified, and where searches of it begin."""

    name: str
    graph: Graph
    host: Graph
    source: int

    @classmethod
    def of(cls, name: str, graph: Graph) -> _Subject:
        if not graph.num_vertices:
            raise InvalidArgumentError(f"graph {name!r} has no vertices: give one with some")
        host = graph.to("cpu")
        return cls(name, graph, host, choose_source(graph, host))

    def run(self, name: str, **options: Any) -> LaunchStats:
        """Run one of `list_runs` and prove its result right."""
        algorithm, its_own = list_runs()[name]
        workload = bind_algorithm(algorithm, self.graph, self.source, self.host)
        result = workload.run(**its_own, **options)
        workload.verify(result, its_own | options)
        return find_stats(result)


def choose_source(graph: Graph, host: Graph) -> int:
    """Return the vertex of largest degree, unless another of a few reaches more: on a road network it may lie on an island."""
    others = np.random.default_rng(0).integers(graph.num_vertices, size=4)
    candidates = [int(np.argmax(host.degrees())), *others.tolist()]
    reached = [bfs(graph, source).num_reached for source in candidates]
    return candidates[int(np.argmax(reached))]


def list_runs() -> dict[str, tuple[Algorithm, dict[str, Any]]]:
    """Return the runs that the registry has for the paper: an algorithm and options of its own, by name in the tables."""
    algorithms = find_algorithms().values()
    return {name: (each, dict(options)) for each in algorithms for name, options in each.paper.items()}


def make_default_graphs(device: Device) -> Iterator[tuple[str, Graph]]:
    """Generate a scale-free and a road-like graph, as large as suits the device."""
    scale, side = (22, 4900) if device.kind == "cuda" else (14, 300)
    yield f"rmat{scale}", generate.rmat(scale, device=device)
    yield f"road{side}", generate.road(side, device=device)


def permute_vertices(graph: Graph, seed: int = 0) -> Graph:
    """Return the graph with its vertices renumbered at random."""
    new_id = np.random.default_rng(seed).permutation(graph.num_vertices).astype(np.uint32)
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    sources = np.repeat(new_id, np.diff(indptr))
    return Graph.from_edges(sources, new_id[indices], num_vertices=graph.num_vertices, device=graph.device)


@only_best()
def reproduce(
    out: Path,
    graphs: Iterable[tuple[str, Graph]],
    *,
    repeat: int = 5,
    progress: Progress = lambda steps, _description, _total: steps,
) -> list[Path]:
    """Measure everything and write it to a directory.

    Parameters
    ----------
    out : Path
        The directory; made if need be.
    graphs : iterable of (name, Graph)
        Taken one at a time, so that they need not be in memory together.
    repeat : int
        Counted runs of each setting, after one that warms up; medians are written.
    progress : callable
        ``progress(steps, description, total)`` wraps the steps of a part, such as `tqdm.tqdm`.

    Returns
    -------
    list of Path
        The files written.
    """
    repeat = check_int("repeat", repeat, 1, 10**6)
    make_directory(out)
    measured, files = Measured([], [], [], []), []
    for name, graph in graphs:
        subject = _Subject.of(name, graph)
        for part in (_measure_variants, _measure_settings, _measure_permuted):
            part(measured, subject, repeat, progress)
            files = [*write_tables(out, measured), *write_throughput(out, measured)]
        with contextlib.suppress(ImportError):  # the tables do not need matplotlib
            from ...tools.figures import draw_figures

            files += draw_figures(out, measured)
    return files


def make_directory(out: Path) -> None:
    """Make the directory of the files, if it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        raise FileWriteError(f"cannot make directory {str(out)!r}: {getattr(error, 'strerror', None) or error}") from error


def _measure_variants(measured: Measured, subject: _Subject, repeat: int, progress: Progress) -> None:
    settings = [(a, v) for a in list_runs() for v in VARIANTS]
    isolated = int(np.count_nonzero(subject.host.degrees() == 0))
    for algorithm, variant in progress(settings, f"{subject.name}: variants", len(settings)):
        stats = _run_median(subject, algorithm, repeat, **VARIANTS[variant])
        where = {"algorithm": algorithm, "graph": subject.name, "variant": variant}
        measured.runs.append(
            {
                **where,
                "milliseconds": stats.milliseconds,
                "tasks_run": stats.tasks_run,
                "rounds": stats.rounds,
                "device": stats.device,
                "vertices": subject.graph.num_vertices,
                "isolated": isolated,
            }
        )
        if algorithm in COUNTED:
            sampled = subject.run(algorithm, trace=max(stats.milliseconds * 1e3 / 400, 1), **VARIANTS[variant])
            measured.traces.append({**where, "trace": sampled.trace})


def _measure_settings(measured: Measured, subject: _Subject, _repeat: int, progress: Progress) -> None:
    rows = _list_heatmap_rows(subject.graph.device)
    cells = [(a, w, f) for a in ("BFS", "PageRank") for w in rows for f in HEATMAP_FETCHES]
    for algorithm, row, fetch in progress(cells, f"{subject.name}: workers x fetch size", len(cells)):
        where = {"algorithm": algorithm, "graph": subject.name, "workers": row, "fetch_size": fetch}
        measured.heat.append({**where, "milliseconds": _time_cell(subject, algorithm, rows[row], fetch)})


def _measure_permuted(measured: Measured, subject: _Subject, repeat: int, progress: Progress) -> None:
    shuffled = _Subject.of(subject.name, permute_vertices(subject.graph))
    for variant in progress(list(VARIANTS), f"{subject.name}: permuted ids", len(VARIANTS)):
        before = measured.run("coloring", subject.name, variant)
        after = _run_median(shuffled, "coloring", repeat, **VARIANTS[variant])
        measured.permutation.append(
            {
                "graph": subject.name,
                "variant": variant,
                "ms": before["milliseconds"],
                "ms_permuted": after.milliseconds,
                "workload": before["tasks_run"] / count_least_tasks(before),
                "workload_permuted": after.tasks_run / count_least_tasks(before),
            }
        )


def _run_median(subject: _Subject, algorithm: str, repeat: int, **options: Any) -> LaunchStats:
    subject.run(algorithm, **options)
    results = [subject.run(algorithm, **options) for _ in range(repeat)]
    middle = statistics.median_low([stats.milliseconds for stats in results])
    return next(stats for stats in results if stats.milliseconds == middle)


def _list_heatmap_rows(device: Device) -> dict[str, dict[str, Any]]:
    """Return the rows of the heat map: sizes of workers; on the CPU, where each is one thread, how many there are."""
    if device.kind == "cpu":
        most = num_threads()
        counts = [*(2**i for i in range(most.bit_length()) if 2**i < most), most]
        return {str(count): {"num_blocks": count} for count in counts}
    warp = {"32 threads": {"worker": "warp", "num_threads": 256}}
    return warp | {f"{size} threads": {"worker": "cta", "num_threads": size} for size in HEATMAP_CTAS}


def _time_cell(subject: _Subject, algorithm: str, options: dict[str, Any], fetch: int) -> float:
    """Time one cell of the heat map. NaN where it cannot run."""
    try:
        return _run_median(subject, algorithm, 2, fetch_size=fetch, **options).milliseconds
    except LaunchConfigError:
        return float("nan")
