"""The measures of the thesis on Onyx (L. Vaz, 2021) on this machine: tables 7.2 and 7.4, figures 7.1 to 7.4, and memory.

Five algorithms run for a fixed number of iterations with made-up data, as in the thesis, in four modes: with and without
feature-aware mapping (FA, NFA), and driven by changes or not (CD, NCD). Table 7.4 has FA/CD beside a reference in SciPy. For
figures 7.1 and 7.2, atomic transactions and the efficiency of loads, Nsight Compute counts them where it is installed; and they
are counted from the mapping, by the sectors of memory that each warp touches at once.
"""

from __future__ import annotations

import csv
import functools
import importlib.util
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays.array import asarray, zeros
from ...compile.atomics import atomic_add
from ...compile.best_links import only_best
from ...errors import DeviceError, FileWriteError
from ...graph.graph import Graph
from ...support.validation import check_int
from ..learning.feature_gather import team_size
from ..learning.features import Maps, together
from .nsight_compute import command_of_profiler, count
from .onyx_algorithms import (
    ITERATIONS,
    MODES,
    Beliefs,
    Inputs,
    K,
    algorithms_on,
    beliefs_on,
    believe,
    features_of,
    inputs_of,
    total_of,
)
from .onyx_references import Reference, references_on

__all__ = ["profiled_run", "reproduce_onyx"]

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
_MOST_COUNTED = 1 << 20  # edges whose sectors are counted
_MOST_OF_REFERENCE = 1 << 25  # edges of a graph on which the reference runs, which keeps several numbers of each in memory
_FEATURES = (1, 2, 4, 8, 16, 32, 64, 128)


def add_feature(f, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Add a feature of the source to that of the target."""
    atomic_add(d.total, (v, f), d.prior[u, f])


def _features_of_edges(graph: Graph, k: int, feature_aware: bool) -> float:
    n, device = graph.num_vertices, graph.device
    features = asarray(features_of(graph, k), device=device)
    data = Beliefs(features, 0, 0, zeros((n, k), device=device), 0)
    maps = Maps(graph, k, data, feature_aware=feature_aware)
    maps.edge_map(add_feature)
    return maps.runs[-1].milliseconds


def _sectors_of_edge(targets: Any, k: int, feature_aware: bool) -> float:
    """Return the sectors of 32 bytes that warps touch for an edge, with float32 features of its target: the least is k / 8."""
    threads = team_size(k) if feature_aware else 1
    of_warps = targets[: targets.size // 32 * 32].reshape(-1, 32 // threads, 1).astype(np.int64)
    touched = 0
    for first in range(0, k, threads):  # what each thread does one after the other
        sectors = (of_warps * k + np.arange(first, min(first + threads, k))) // 8
        ordered = np.sort(sectors.reshape(len(sectors), math.prod(sectors.shape[1:])))
        touched += ordered[:, 0].size + np.count_nonzero(np.diff(ordered))
    return touched / max(of_warps.size, 1)


def _folded(graph: Graph, folded: bool) -> float:
    maps = Maps(graph, K, beliefs_on(graph))
    functions = together(believe), together(believe)
    if folded:
        maps.vertex_map(*functions)
    else:
        maps.vertex_map(functions[1], active=maps.vertex_map(functions[0]))
    return total_of(maps.runs)


def _bytes_of(graph: Graph, algorithm: str, k: int) -> int:
    """Return the bytes of the graph and of all features in memory at once, float32."""
    n, m = graph.num_vertices, graph.num_edges
    numbers = {
        "LP": 4 * n * k,
        "ALS": n * k,
        "BP": m + (m + 3 * n) * k,
        "MMR": (m + 5 * n) * k + m,
        "MML": m * k + m + 5 * n * k,
    }
    return 4 * (n + 1 + m + numbers[algorithm])


def _table_of_systems(name: str, graph: Graph, inputs: Inputs, times: dict[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Return the rows of table 7.4: `times` of ours, and those of the reference; and what one more iteration would change."""
    table: list[dict[str, Any]] = []
    has_reference = graph.num_edges <= _MOST_OF_REFERENCE and importlib.util.find_spec("scipy") is not None
    references: dict[str, Callable[[], Reference]] = references_on(graph, inputs) if has_reference else {}
    for algorithm, run in algorithms_on(graph, inputs).items():
        ours: dict[str, Any] = {"algorithm": algorithm, "graph": name, "system": "atos_py, FA/CD"}
        ours |= {"milliseconds": times[algorithm, "FA/CD"], "residual": ""}
        table.append(ours)
        if algorithm not in references:
            continue
        reference = references[algorithm]()
        ours["residual"] = reference.residual(np.asarray(run(*MODES["FA/CD"]).result).astype(np.float64))
        state, began = reference.start, time.perf_counter()
        for _ in range(ITERATIONS):
            state = reference.step(state)
        took = (time.perf_counter() - began) * 1e3
        table.append(ours | {"system": "SciPy, CPU", "milliseconds": took, "residual": reference.residual(state)})
    return table


def profiled_run(path: str, device: str, algorithm: str, mode: str) -> None:
    """Run an algorithm once, for a profiler, on a graph that was saved."""
    graph = Graph.load(path, device=device)
    algorithms_on(graph, inputs_of(graph))[algorithm](*MODES[mode])


def _profile(name: str, graph: Graph, progress: Progress) -> list[dict[str, Any]]:
    program = f"import sys; from {__name__} import profiled_run; profiled_run(*sys.argv[1:])"
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "graph.npz")
        graph.save(path)
        settings = [(algorithm, mode) for algorithm in algorithms_on(graph, inputs_of(graph)) for mode in MODES]
        for algorithm, mode in progress(settings, f"{name}: Nsight Compute", len(settings)):
            counts = count(program, path, str(graph.device), algorithm, mode)
            rows.append({"algorithm": algorithm, "graph": name, "mode": mode, **counts._asdict()})
    return rows


def _median(repeat: int, call: Callable[[], float]) -> float:
    call()  # to warm up
    return statistics.median_low([call() for _ in range(repeat)])


@only_best()
def reproduce_onyx(
    out: Path,
    graphs: Iterable[tuple[str, Graph]],
    *,
    repeat: int = 5,
    progress: Progress = lambda steps, _description, _total: steps,
) -> list[Path]:
    """Measure everything and write it to a directory; parameters and result are those of `reproduce.reproduce`."""
    repeat = check_int("repeat", repeat, 1, 10**6)
    modes: list[dict[str, Any]] = []
    systems: list[dict[str, Any]] = []
    profiles: list[dict[str, Any]] = []
    sweep: list[dict[str, Any]] = []
    sectors: list[dict[str, Any]] = []
    folds: list[dict[str, Any]] = []
    memory: list[dict[str, Any]] = []
    complaints: list[str] = []
    for name, graph in graphs:
        inputs = inputs_of(graph)
        algorithms = algorithms_on(graph, inputs)
        settings = [(algorithm, mode) for algorithm in algorithms for mode in MODES]
        times: dict[tuple[str, str], float] = {}
        for algorithm, mode in progress(settings, f"{name}: modes", len(settings)):
            run = functools.partial(algorithms[algorithm], *MODES[mode])
            row = {"algorithm": algorithm, "graph": name, "mode": mode, "edge_operations": run().edge_operations}
            times[algorithm, mode] = _median(repeat, lambda run=run: run().milliseconds)  # type: ignore[misc]
            modes.append(row | {"milliseconds": times[algorithm, mode]})
        systems += _table_of_systems(name, graph, inputs, times)
        if graph.device.kind == "cuda" and command_of_profiler():
            try:
                profiles += _profile(name, graph, progress)
            except DeviceError as error:
                complaints.append(f"{name}: {error}")
        for k in progress(_FEATURES, f"{name}: features", len(_FEATURES)):
            for feature_aware in (False, True):
                took = _median(repeat, functools.partial(_features_of_edges, graph, k, feature_aware))
                mode = "FA" if feature_aware else "NFA"
                sweep.append({"graph": name, "k": k, "mode": mode, "milliseconds": took})
                touched = _sectors_of_edge(np.asarray(graph.indices)[:_MOST_COUNTED], k, feature_aware)
                efficiency = k / 8 / touched if touched else 1.0
                sectors.append({"graph": name, "k": k, "mode": mode, "sectors": touched, "load_efficiency": efficiency})
        for folded in (False, True):
            took = _median(repeat, functools.partial(_folded, graph, folded))
            folds.append({"graph": name, "folded": folded, "milliseconds": took})
        for algorithm in algorithms:
            memory += [{"algorithm": algorithm, "graph": name, "k": k, "bytes": _bytes_of(graph, algorithm, k)} for k in (4, 8)]
    figures = {"figures-7.1-7.2.csv": profiles, "mapping.csv": sectors, "figure-7.3.csv": sweep, "figure-7.4.csv": folds}
    tables = {"table-7.2.csv": modes, "table-7.4.csv": systems, **figures, "memory.csv": memory}
    written = [_write(out / name, rows) for name, rows in tables.items() if rows]
    if complaints:
        written.append(_write(out / "nsight-compute.csv", [{"message": complaint} for complaint in complaints]))
    return written


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    except (OSError, ValueError) as error:
        raise FileWriteError(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}") from error
    return path
