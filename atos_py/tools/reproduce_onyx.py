"""The measures of the thesis on Onyx (L. Vaz, 2021) on this machine: table 7.2, figures 7.1 to 7.4, and memory.

Five algorithms run for a fixed number of iterations with made-up data, as in the thesis, in four modes: with and without
feature-aware mapping (FA, NFA), and driven by changes or not (CD, NCD). The column of Onyx in table 7.4 is FA/CD. Figures 7.1
and 7.2, atomic transactions and the efficiency of loads, are counted from the mapping: by the sectors of memory that each warp
touches at once. Run the command under Nsight Compute for the counts of a profiler.
"""

from __future__ import annotations

import csv
import functools
import math
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.manifold_ranking import manifold_ranking, multimodal
from ..arrays.array import asarray, zeros
from ..compile.atomics import atomic_add
from ..compile.random_numbers import random
from ..errors import FileWriteError
from ..features import Maps, propagate_labels, together
from ..graph.graph import Graph
from ..linalg.matrices import solve
from ..linalg.vectors import any_updated, logsumexp
from ..operators.feature_gather import team_size
from ..support.validation import check_int

__all__ = ["MODES", "reproduce_onyx"]

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
MODES = {"NFA/NCD": (False, False), "FA/NCD": (True, False), "NFA/CD": (False, True), "FA/CD": (True, True)}
K, CELLS, ITERATIONS = 4, 16, 10
_EPSILON = 1e-3
_MOST_COUNTED = 1 << 20  # edges whose sectors are counted
_FEATURES = (1, 2, 4, 8, 16, 32, 64, 128)


class _Measured(NamedTuple):
    milliseconds: float
    edge_operations: int


class _Beliefs(NamedTuple):
    prior: Any
    back: Any
    messages: Any
    total: Any
    belief: Any


class _Factors(NamedTuple):
    graph: Any
    x: Any


def send_message(team, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Send the message of an edge, by what has changed."""
    row = team.scratch(np.float32, K)
    for x in team.split(K):
        total = np.float32(0)
        for y in range(K):
            total += math.exp(d.belief[u, y] - d.messages[edge, y]) * np.float32(1.0 if x == y else 0.5)
        row[x] = math.log(total)
    norm = logsumexp(team, row, K)
    back = d.back[edge]
    for x in team.split(K):
        atomic_add(d.total, (v, x), row[x] - norm - d.messages[back, x])
        d.messages[back, x] = row[x] - norm


def believe(team, v, d):  # type: ignore[no-untyped-def]
    """Normalise a belief, and compare it with the one before."""
    new, old = team.scratch(np.float32, K), team.scratch(np.float32, K)
    for x in team.split(K):
        new[x], old[x] = d.prior[v, x] + d.total[v, x], d.belief[v, x]
    norm = logsumexp(team, new, K)
    for x in team.split(K):
        new[x] -= norm
        d.belief[v, x] = new[x]
    return any_updated(team, new, old, K, _EPSILON)


def solve_vertex(team, v, d):  # type: ignore[no-untyped-def]
    """Find the factors of a vertex from those of its neighbours, all ratings being 1."""
    matrix, vector, old = team.scratch(np.float32, CELLS), team.scratch(np.float32, K), team.scratch(np.float32, K)
    for cell in team.split(CELLS):
        matrix[cell] = np.float32(0.1 if cell // K == cell % K else 0)
        for edge in range(d.graph.indptr[v], d.graph.indptr[v + 1]):
            u = d.graph.indices[edge]
            matrix[cell] += d.x[u, cell // K] * d.x[u, cell % K]
    for f in team.split(K):
        vector[f], old[f] = np.float32(0), d.x[v, f]
        for edge in range(d.graph.indptr[v], d.graph.indptr[v + 1]):
            vector[f] += d.x[d.graph.indices[edge], f]
    solve(team, matrix, vector, K)
    for f in team.split(K):
        d.x[v, f] = vector[f]
    return any_updated(team, vector, old, K, _EPSILON)


def touch(f, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Activate the neighbours of what has changed."""
    return True


def add_feature(f, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Add a feature of the source to that of the target."""
    atomic_add(d.total, (v, f), d.prior[u, f])


def _start(n: int, k: int, device: Any) -> Any:
    return asarray(random(0, np.arange(n)[:, None], np.arange(k)).astype(np.float32), device=device)


def _sum_of(runs: Any) -> float:
    return sum(stats.milliseconds for stats in runs)


def _of_fixed_point(call: Callable[..., Any], *args: Any, **options: Any) -> Callable[..., _Measured]:
    def run(feature_aware: bool, change_driven: bool) -> _Measured:
        modes = {"feature_aware": feature_aware, "change_driven": change_driven, "max_iterations": ITERATIONS}
        found = call(*args, **modes, tolerance=_EPSILON, **options)
        return _Measured(_sum_of(found.runs), found.edge_operations)

    return run


def _beliefs_of(graph: Graph) -> _Beliefs:
    n, m, device = graph.num_vertices, graph.num_edges, graph.device
    shapes = (m, K), (n, K), (n, K)
    arrays = (zeros(shape, device=device) for shape in shapes)
    return _Beliefs(_start(n, K, device), asarray(graph.reverse_edges(), readonly=True), *arrays)


def _run_beliefs(graph: Graph, feature_aware: bool, change_driven: bool) -> _Measured:
    maps = Maps(graph, K, _beliefs_of(graph), feature_aware=feature_aware)
    active, operations = maps.vertex_map(together(believe)), 0
    for _ in range(ITERATIONS):
        operations += active.num_edges if change_driven else graph.num_edges
        maps.edge_map(together(send_message), active=active if change_driven else None)
        active = maps.vertex_map(together(believe))
    return _Measured(_sum_of(maps.runs), operations)


def _run_factors(graph: Graph, feature_aware: bool, change_driven: bool) -> _Measured:
    maps = Maps(graph, K, _Factors(graph, _start(graph.num_vertices, K, graph.device)), feature_aware=feature_aware)
    active, operations = maps.all(), 0
    for _ in range(ITERATIONS):
        operations += active.num_edges if change_driven else graph.num_edges
        moved = maps.vertex_map(together(solve_vertex), active=active if change_driven else None)
        if change_driven:
            active = maps.edge_map(touch, active=moved)
    return _Measured(_sum_of(maps.runs), operations)


def _algorithms(graph: Graph) -> dict[str, Callable[..., _Measured]]:
    n, device = graph.num_vertices, graph.device
    start = (random(1, np.arange(n)[:, None], np.arange(K)) < 0.01).astype(np.float32)
    weights = random(2, np.arange(graph.num_edges)[:, None], np.arange(K)).astype(np.float32)
    return {
        "LP": _of_fixed_point(propagate_labels, graph, _start(n, K, device)),
        "ALS": lambda *modes: _run_factors(graph, *modes),
        "BP": lambda *modes: _run_beliefs(graph, *modes),
        "MMR": _of_fixed_point(manifold_ranking, graph, weights, start),
        "MML": _of_fixed_point(multimodal, graph, weights, start, alpha=[0.2] * K),
    }


def _features_of_edges(graph: Graph, k: int, feature_aware: bool) -> float:
    n, device = graph.num_vertices, graph.device
    data = _Beliefs(_start(n, k, device), 0, 0, zeros((n, k), device=device), 0)
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
    maps = Maps(graph, K, _beliefs_of(graph))
    functions = together(believe), together(believe)
    if folded:
        maps.vertex_map(*functions)
    else:
        maps.vertex_map(functions[1], active=maps.vertex_map(functions[0]))
    return _sum_of(maps.runs)


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


def _median(repeat: int, call: Callable[[], float]) -> float:
    call()  # to warm up
    return statistics.median_low([call() for _ in range(repeat)])


def reproduce_onyx(
    out: Path,
    graphs: Iterable[tuple[str, Graph]],
    *,
    repeat: int = 5,
    progress: Progress = lambda steps, _description, _total: steps,
) -> list[Path]:
    """Measure everything and write it to a directory; parameters and result are those of `reproduce.reproduce`."""
    repeat = check_int("repeat", repeat, 1, 10**6)
    table: list[dict[str, Any]] = []
    sweep: list[dict[str, Any]] = []
    sectors: list[dict[str, Any]] = []
    folds: list[dict[str, Any]] = []
    memory: list[dict[str, Any]] = []
    for name, graph in graphs:
        algorithms = _algorithms(graph)
        settings = [(algorithm, mode) for algorithm in algorithms for mode in MODES]
        for algorithm, mode in progress(settings, f"{name}: modes", len(settings)):
            run = functools.partial(algorithms[algorithm], *MODES[mode])
            row = {"algorithm": algorithm, "graph": name, "mode": mode, "edge_operations": run().edge_operations}
            table.append(row | {"milliseconds": _median(repeat, lambda run=run: run().milliseconds)})  # type: ignore[misc]
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
    figures = {"figures-7.1-7.2.csv": sectors, "figure-7.3.csv": sweep, "figure-7.4.csv": folds}
    tables = {"table-7.2.csv": table, **figures, "memory.csv": memory}
    return [_write(out / name, rows) for name, rows in tables.items() if rows]


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
