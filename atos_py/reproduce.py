"""The measures of Chen et al. 2022 on this machine: tables 1 and 4, figures 1 to 4, and the effect of permuted vertex ids.

Every run is verified. Tables are written as CSV and Markdown, figures as CSV and, where matplotlib is installed, PNG: tables
after each part and figures after each graph, so that what is cut short is not lost.

PageRank is measured twice. By default it sweeps over blocks of vertices, launch after launch, and its tasks are mostly blocks:
that is what run times are about. Where tasks are counted (Table 4, Figures 1 to 3) they have to be vertices, as in the paper,
so there every vertex with work is a task of its own, `find="push"`; the blocks of the beginning are below one per cent.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import generate
from .algorithms import bfs, coloring, pagerank
from .devices import Device
from .errors import LaunchConfigError
from .graph import Graph
from .parallel import num_threads
from .stats import LaunchStats
from .tables import COUNTED, Measured, draw_figures, least_tasks, write_tables, write_throughput

__all__ = ["ALGORITHMS", "VARIANTS", "default_graphs", "permuted", "reproduce"]

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]

# The variants of the paper, all of them through launch options alone.
VARIANTS: dict[str, dict[str, Any]] = {
    "BSP": {"worker": "cta", "persistent": False, "barrier": True},
    "persist-warp": {"worker": "warp", "persistent": True},
    "persist-CTA": {"worker": "cta", "persistent": True},
    "discrete-CTA": {"worker": "cta", "persistent": False},
    "discrete-warp": {"worker": "warp", "persistent": False},
}
PAGERANK_TOLERANCE = 5e-4
HEATMAP_CTAS = (64, 128, 256, 512)
HEATMAP_FETCHES = (1, 8, 32, 64, 128, 256)


def _run_bfs(graph: Graph, **options: Any) -> LaunchStats:
    source = _source(graph)
    result = bfs.bfs(graph, source, **options)
    bfs.verify(graph, source, result.depth)
    return result.stats


@functools.lru_cache(maxsize=1)
def _source(graph: Graph) -> int:
    """Return the vertex of largest degree, unless another of a few reaches more: on a road network it may lie on an island."""
    others = np.random.default_rng(0).integers(graph.num_vertices, size=4)
    candidates = [int(np.argmax(graph.degrees())), *others.tolist()]
    reached = [bfs.bfs(graph, source).num_reached for source in candidates]
    return candidates[int(np.argmax(reached))]


def _run_pagerank(graph: Graph, **options: Any) -> LaunchStats:
    result = pagerank.pagerank(graph, tolerance=PAGERANK_TOLERANCE, **options)
    pagerank.verify(graph, result, tolerance=PAGERANK_TOLERANCE)
    return result.stats


def _run_pagerank_by_vertex(graph: Graph, **options: Any) -> LaunchStats:
    return _run_pagerank(graph, find="push", **options)


def _run_coloring(graph: Graph, **options: Any) -> LaunchStats:
    result = coloring.color(graph, **options)
    coloring.verify(graph, result.colors)
    return result.stats


ALGORITHMS: dict[str, Callable[..., LaunchStats]] = {
    "BFS": _run_bfs,
    "PageRank": _run_pagerank,
    "PageRank by vertex": _run_pagerank_by_vertex,
    "coloring": _run_coloring,
}


def default_graphs(device: Device) -> Iterator[tuple[str, Graph]]:
    """Generate a scale-free and a road-like graph, as large as suits the device."""
    scale, side = (22, 4900) if device.kind == "cuda" else (14, 300)
    yield f"rmat{scale}", generate.rmat(scale, device=device)
    yield f"road{side}", generate.road(side, device=device)


def permuted(graph: Graph, seed: int = 0) -> Graph:
    """Return the graph with its vertices renumbered at random."""
    new_id = np.random.default_rng(seed).permutation(graph.num_vertices).astype(np.uint32)
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    sources = np.repeat(new_id, np.diff(indptr))
    return Graph.from_edges(sources, new_id[indices], num_vertices=graph.num_vertices, device=graph.device)


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
    out.mkdir(parents=True, exist_ok=True)
    measured, files = Measured([], [], [], []), []
    for name, graph in graphs:
        for part in (_measure_variants, _measure_settings, _measure_permuted):
            part(measured, name, graph, repeat, progress)
            files = [*write_tables(out, measured), *write_throughput(out, measured)]
        files += draw_figures(out, measured)
    return files


def _measure_variants(measured: Measured, name: str, graph: Graph, repeat: int, progress: Progress) -> None:
    settings = [(a, v) for a in ALGORITHMS for v in VARIANTS]
    for algorithm, variant in progress(settings, f"{name}: variants", len(settings)):
        stats = _median(ALGORITHMS[algorithm], graph, repeat, **VARIANTS[variant])
        where = {"algorithm": algorithm, "graph": name, "variant": variant}
        measured.runs.append(
            {
                **where,
                "milliseconds": stats.milliseconds,
                "tasks_run": stats.tasks_run,
                "rounds": stats.rounds,
                "device": stats.device,
                "vertices": graph.num_vertices,
                "isolated": int(np.count_nonzero(graph.degrees() == 0)),
            }
        )
        if algorithm in COUNTED:
            sampled = ALGORITHMS[algorithm](graph, trace=max(stats.milliseconds * 1e3 / 400, 1), **VARIANTS[variant])
            measured.traces.append({**where, "trace": sampled.trace})


def _measure_settings(measured: Measured, name: str, graph: Graph, _repeat: int, progress: Progress) -> None:
    rows = _heatmap_rows(graph.device)
    cells = [(a, w, f) for a in ("BFS", "PageRank") for w in rows for f in HEATMAP_FETCHES]
    for algorithm, row, fetch in progress(cells, f"{name}: workers x fetch size", len(cells)):
        cell = _cell(ALGORITHMS[algorithm], graph, rows[row], fetch)
        measured.heat.append({"algorithm": algorithm, "graph": name, "workers": row, "fetch_size": fetch, "milliseconds": cell})


def _measure_permuted(measured: Measured, name: str, graph: Graph, repeat: int, progress: Progress) -> None:
    shuffled = permuted(graph)
    for variant in progress(list(VARIANTS), f"{name}: permuted ids", len(VARIANTS)):
        before = measured.run("coloring", name, variant)
        after = _median(ALGORITHMS["coloring"], shuffled, repeat, **VARIANTS[variant])
        measured.permutation.append(
            {
                "graph": name,
                "variant": variant,
                "ms": before["milliseconds"],
                "ms_permuted": after.milliseconds,
                "workload": before["tasks_run"] / least_tasks(before),
                "workload_permuted": after.tasks_run / least_tasks(before),
            }
        )


def _median(run: Callable[..., LaunchStats], graph: Graph, repeat: int, **options: Any) -> LaunchStats:
    run(graph, **options)
    results = [run(graph, **options) for _ in range(repeat)]
    middle = statistics.median_low([stats.milliseconds for stats in results])
    return next(stats for stats in results if stats.milliseconds == middle)


def _heatmap_rows(device: Device) -> dict[str, dict[str, Any]]:
    """Return the rows of the heat map: sizes of workers; on the CPU, where each is one thread, how many there are."""
    if device.kind == "cpu":
        most = num_threads()
        counts = [*(2**i for i in range(most.bit_length()) if 2**i < most), most]
        return {str(count): {"num_blocks": count} for count in counts}
    warp = {"32 threads": {"worker": "warp", "num_threads": 256}}
    return warp | {f"{size} threads": {"worker": "cta", "num_threads": size} for size in HEATMAP_CTAS}


def _cell(run: Callable[..., LaunchStats], graph: Graph, options: dict[str, Any], fetch: int) -> float:
    """Time one cell of the heat map. NaN where it cannot run."""
    try:
        return _median(run, graph, 2, fetch_size=fetch, **options).milliseconds
    except LaunchConfigError:
        return float("nan")
