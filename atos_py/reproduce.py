"""The measures of Chen et al. 2022 on this machine: tables 1 and 4, figures 1 to 4, and the effect of permuted vertex ids.

Every run is verified. Tables are written as CSV and Markdown, figures as CSV and, where matplotlib is installed, PNG.
"""

from __future__ import annotations

import csv
import functools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import generate
from .algorithms import bfs, coloring, pagerank
from .devices import Device
from .errors import LaunchConfigError
from .graph import Graph
from .stats import LaunchStats

__all__ = ["ALGORITHMS", "VARIANTS", "default_graphs", "permuted", "reproduce"]

# The variants of the paper, all of them through launch options alone.
VARIANTS: dict[str, dict[str, Any]] = {
    "BSP": {"worker": "cta", "persistent": False, "barrier": True},
    "persist-warp": {"worker": "warp", "persistent": True},
    "persist-CTA": {"worker": "cta", "persistent": True},
    "discrete-CTA": {"worker": "cta", "persistent": False},
    "discrete-warp": {"worker": "warp", "persistent": False},
}
PAGERANK_TOLERANCE = 5e-4
HEATMAP_WORKERS = (32, 64, 128, 256, 512)
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
    reached = [np.count_nonzero(bfs.bfs(graph, source).depth.to_numpy() != bfs.UNREACHED) for source in candidates]
    return candidates[int(np.argmax(reached))]


def _run_pagerank(graph: Graph, **options: Any) -> LaunchStats:
    result = pagerank.pagerank(graph, tolerance=PAGERANK_TOLERANCE, **options)
    pagerank.verify(graph, result, tolerance=PAGERANK_TOLERANCE)
    return result.stats


def _run_coloring(graph: Graph, **options: Any) -> LaunchStats:
    result = coloring.color(graph, **options)
    coloring.verify(graph, result.colors)
    return result.stats


ALGORITHMS: dict[str, Callable[..., LaunchStats]] = {"BFS": _run_bfs, "PageRank": _run_pagerank, "coloring": _run_coloring}


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
    progress: Callable[[Iterable[Any], str, int], Iterable[Any]] = lambda steps, _description, _total: steps,
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
    runs: list[dict[str, Any]] = []
    traces: list[dict[str, Any]] = []
    heat: list[dict[str, Any]] = []
    permutation: list[dict[str, Any]] = []
    for name, graph in graphs:
        settings = [(a, v) for a in ALGORITHMS for v in VARIANTS]
        for algorithm, variant in progress(settings, f"{name}: variants", len(settings)):
            stats = _median(ALGORITHMS[algorithm], graph, repeat, **VARIANTS[variant])
            runs.append(
                {
                    "algorithm": algorithm,
                    "graph": name,
                    "variant": variant,
                    "milliseconds": stats.milliseconds,
                    "tasks_run": stats.tasks_run,
                    "rounds": stats.rounds,
                    "vertices": graph.num_vertices,
                }
            )
            sampled = ALGORITHMS[algorithm](graph, trace=max(stats.milliseconds * 1e3 / 400, 1), **VARIANTS[variant])
            traces.append({"algorithm": algorithm, "graph": name, "variant": variant, "trace": sampled.trace})
        cells = [(a, w, f) for a in ("BFS", "PageRank") for w in HEATMAP_WORKERS for f in HEATMAP_FETCHES]
        for algorithm, threads, fetch in progress(cells, f"{name}: worker size x fetch size", len(cells)):
            cell = _cell(ALGORITHMS[algorithm], graph, threads, fetch)
            where = {"algorithm": algorithm, "graph": name, "worker_size": threads, "fetch_size": fetch}
            heat.append({**where, "milliseconds": cell})
        shuffled = permuted(graph)
        for variant in progress(list(VARIANTS), f"{name}: permuted ids", len(VARIANTS)):
            before = next(r for r in runs if (r["algorithm"], r["graph"], r["variant"]) == ("coloring", name, variant))
            after = _median(ALGORITHMS["coloring"], shuffled, repeat, **VARIANTS[variant])
            permutation.append(
                {
                    "graph": name,
                    "variant": variant,
                    "ms": before["milliseconds"],
                    "ms_permuted": after.milliseconds,
                    "workload": before["tasks_run"] / graph.num_vertices,
                    "workload_permuted": after.tasks_run / graph.num_vertices,
                }
            )
        del shuffled
    written = _tables(out, runs, heat, permutation)
    written += _traces(out, runs, traces)
    return written + _figures(out, runs, traces, heat)


def overwork(runs: Sequence[dict[str, Any]], run: dict[str, Any]) -> float:
    """Return tasks run relative to the BSP variant; for colouring to two tasks, assign and check, a vertex (Table 4)."""
    if run["algorithm"] == "coloring":
        return float(run["tasks_run"] / (2 * run["vertices"]))
    return float(run["tasks_run"] / _of(runs, run, "BSP")["tasks_run"])


def _of(runs: Sequence[dict[str, Any]], like: dict[str, Any], variant: str) -> dict[str, Any]:
    return next(r for r in runs if (r["algorithm"], r["graph"], r["variant"]) == (like["algorithm"], like["graph"], variant))


def _median(run: Callable[..., LaunchStats], graph: Graph, repeat: int, **options: Any) -> LaunchStats:
    run(graph, **options)
    results = [run(graph, **options) for _ in range(repeat)]
    middle = statistics.median_low([stats.milliseconds for stats in results])
    return next(stats for stats in results if stats.milliseconds == middle)


def _cell(run: Callable[..., LaunchStats], graph: Graph, threads: int, fetch: int) -> float:
    """Time one cell of the heat map: a worker of 32 threads is a warp, a larger one a CTA. NaN where it cannot run."""
    options = {"worker": "warp", "num_threads": 256} if threads == 32 else {"worker": "cta", "num_threads": threads}
    try:
        return _median(run, graph, 2, fetch_size=fetch, **options).milliseconds
    except LaunchConfigError:
        return float("nan")


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def _markdown(path: Path, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    lines = [f"# {title}", "", "| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _tables(out: Path, runs: list[dict[str, Any]], heat: list[dict[str, Any]], permutation: list[dict[str, Any]]) -> list[Path]:
    pairs = list(dict.fromkeys((r["algorithm"], r["graph"]) for r in runs))
    chosen = {(r["algorithm"], r["graph"], r["variant"]): r for r in runs}
    times, ratios = [], []
    for algorithm, graph in pairs:
        base = chosen[algorithm, graph, "BSP"]["milliseconds"]
        cells = [chosen[algorithm, graph, variant] for variant in VARIANTS]
        times.append([algorithm, graph, *(f"{c['milliseconds']:.3g} (x{base / c['milliseconds']:.2f})" for c in cells)])
        ratios.append([algorithm, graph, *(f"{overwork(runs, c):.2f}" for c in cells)])
    table1 = "Run time in ms, and speed-up over BSP (Table 1)"
    table4 = "Tasks run, relative to BSP; for colouring to two tasks a vertex (Table 4)"
    moved = [
        [p["graph"], p["variant"], *(f"{p[key]:.3g} → {p[key + '_permuted']:.3g}" for key in ("ms", "workload"))]
        for p in permutation
    ]
    header = ["graph", "variant", "ms, ids as they are → permuted", "tasks a vertex"]
    return [
        _write(out / "runs.csv", runs),
        _write(out / "heatmap.csv", heat),
        _write(out / "permutation.csv", permutation),
        _markdown(out / "table1.md", table1, ["algorithm", "graph", *VARIANTS], times),
        _markdown(out / "table4.md", table4, ["algorithm", "graph", *VARIANTS], ratios),
        _markdown(out / "permutation.md", "Colouring with permuted vertex ids (Section 6.4)", header, moved),
    ]


def throughput(trace: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middles of about 100 equal spans of time, in ms, and the tasks run in each, in millions a second."""
    end = float(trace["milliseconds"][-1]) if len(trace) else 0.0
    if end <= 0:
        return np.zeros(0), np.zeros(0)
    edges = np.linspace(0, end, min(100, len(trace)) + 1)
    done = np.interp(edges, trace["milliseconds"], trace["tasks_run"])
    return (edges[:-1] + edges[1:]) / 2, np.diff(done) / np.diff(edges) / 1e3


def _traces(out: Path, runs: list[dict[str, Any]], traces: list[dict[str, Any]]) -> list[Path]:
    rows = []
    for entry in traces:
        factor = overwork(runs, _of(runs, entry, entry["variant"]))
        for ms, rate in zip(*throughput(entry["trace"]), strict=True):
            rows.append(
                {
                    "algorithm": entry["algorithm"],
                    "graph": entry["graph"],
                    "variant": entry["variant"],
                    "ms": round(float(ms), 5),
                    "mtasks_per_s": round(float(rate), 3),
                    "normalised": round(float(rate / factor), 3),
                }
            )
    return [_write(out / "throughput.csv", rows)] if rows else []


def _figures(out: Path, runs: list[dict[str, Any]], traces: list[dict[str, Any]], heat: list[dict[str, Any]]) -> list[Path]:
    try:
        from . import figures
    except ImportError:  # the tables do not need matplotlib
        return []
    written = []
    for number, algorithm in enumerate(ALGORITHMS, start=1):
        curves = []
        for entry in traces:
            if entry["algorithm"] == algorithm:
                factor = overwork(runs, _of(runs, entry, entry["variant"]))
                curves.append(figures.Curve(entry["graph"], entry["variant"], *throughput(entry["trace"]), factor))
        written.append(figures.draw_throughput(out / f"figure{number}_{algorithm}.png", algorithm, curves))
    written.append(figures.draw_heatmaps(out / "figure4_heatmap.png", heat))
    return written

