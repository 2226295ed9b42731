"""The measures of the thesis on Onyx (L. Vaz, 2021) on this machine: tables 7.2 and 7.4, figures 7.1 to 7.4.

Five algorithms run for a fixed number of iterations with made-up data, as in the thesis, in four modes: with and without
feature-aware mapping (FA, NFA), and driven by changes or not (CD, NCD). The modes of an algorithm are run in turns, and the
claims of `claims_onyx` are tested on these runs. Table 7.4 has FA/CD beside a reference in SciPy. For figures 7.1 and 7.2,
atomic transactions and the efficiency of loads, Nsight Compute counts on a GPU; what it refuses to count is not decided.
"""

from __future__ import annotations

import functools
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays.array import asarray, zeros
from ...compile.atomics import atomic_add
from ...compile.best_links import only_best
from ...errors import DeviceError, InvalidArgumentError, VerificationError
from ...graph.graph import Graph
from ...support.validation import check_int
from ...tools.tables import write_csv
from ..learning.features import Maps
from .claim_report import Reproduction, judge_all, write_report
from .claims import LEAST_PAIRS, Finding, names_of_runs
from .claims_onyx import CLAIMS
from .nsight_compute import command_of_profiler, count
from .onyx_algorithms import ITERATIONS, MODES, Beliefs, Inputs, Measured, algorithms_on, features_of, inputs_of
from .onyx_folds import FOLDS, edge_maps, vertex_maps
from .onyx_references import Reference, references_on
from .subjects import make_directory
from .turns import DEFAULTS, GraphFacts, Options, Progress, Samples, run_in_turns

__all__ = ["profiled_run", "reproduce_onyx"]

Row = dict[str, Any]
_COUNTED = "BP"  # whose functions of edges add by atomics in all modes
_MOST_OF_REFERENCE = 1 << 25  # edges of a graph on which the reference runs, which keeps several numbers of each in memory
_FEATURES = (1, 2, 4, 8, 16, 32, 64, 128)


def add_feature(f, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Add a feature of the source to that of the target."""
    atomic_add(d.total, (v, f), d.prior[u, f])


@only_best()
def reproduce_onyx(out: Path, graphs: Iterable[tuple[str, Graph]], options: Options = DEFAULTS) -> Reproduction:
    """Measure everything, test the claims, and write it to a directory."""
    repeat = check_int("repeat", options.repeat, 1, 10**6)
    make_directory(out)
    rows: dict[str, list[Row]] = {"table-7.2": [], "figure-7.3": [], "figure-7.4": [], "table-7.4": [], "figures-7.1-7.2": []}
    measured: list[Samples] = []
    files: list[Path] = []
    findings: list[Finding] = []
    for name, graph in graphs:
        if not graph.num_vertices:
            raise InvalidArgumentError(f"graph {name!r} has no vertices: give one with some")
        inputs, kind = inputs_of(graph), graph.device.kind
        references = _references(graph, inputs)
        chosen = names_of_runs(CLAIMS, kind) if options.quick else None
        families = _families(graph, inputs, references)
        if chosen is not None:
            families = {family: {run: call for run, call in runs.items() if run in chosen} for family, runs in families.items()}
        results = {run: turns for (_, run), turns in run_in_turns(families, repeat, options.progress, name).items()}
        refusals: dict[str, str] = {}
        if kind == "cuda":
            turns = min(repeat, LEAST_PAIRS)  # since each count is a process of its own
            results |= _count_in_turns(graph, turns, options.progress, name, refusals)
        measured.append(Samples(GraphFacts.of(name, graph), results, refusals))
        findings = judge_all(CLAIMS, kind, measured)
        title = "The claims of Onyx, tested"
        files = write_report(out, "onyx", title, options.command, graph.device, measured, findings)
        if not options.quick:
            _tabulate(rows, name, results)
            if references:
                rows["table-7.4"] += _table_of_systems(name, graph, inputs, references, results)
            files += [write_csv(out / f"{table}.csv", lines) for table, lines in rows.items() if lines]
    return Reproduction(files, findings)


def _families(graph: Graph, inputs: Inputs, references: dict[str, Reference]) -> dict[str, dict[str, Callable[[], Row]]]:
    """Return the runs by name, in families that are run in turns."""
    families: dict[str, dict[str, Callable[[], Row]]] = {}
    for algorithm, run in algorithms_on(graph, inputs).items():
        calls = {f"{algorithm} {mode}": functools.partial(_run_mode, run, mode, references.get(algorithm)) for mode in MODES}
        families[algorithm] = dict(calls)
    for k in _FEATURES:
        aware = {"NFA": False, "FA": True}
        families[f"k={k}"] = {f"edges k={k} {mode}": functools.partial(_run_edges, graph, k, aware[mode]) for mode in aware}
    for what, maps in (("LP vertices", vertex_maps), ("BP edges", edge_maps)):
        families[what] = {f"{what} {fold}": functools.partial(_run_fold, maps, graph, fold) for fold in FOLDS}
    return families


def _run_mode(run: Callable[..., Measured], mode: str, reference: Reference | None) -> Row:
    """Run an algorithm in a mode; its result has to be nearer to one that no longer changes than the beginning is."""
    measured = run(*MODES[mode])
    if reference is not None:
        found = reference.residual(np.asarray(measured.result).astype(np.float64))
        if not found < reference.residual(reference.start):
            raise VerificationError(f"the result in the mode {mode} changes by {found}, as much as the beginning")
    return {"milliseconds": measured.milliseconds, "edge_operations": measured.edge_operations}


def _run_edges(graph: Graph, k: int, feature_aware: bool) -> Row:
    """Add up features over edges, and prove the sums."""
    n, device = graph.num_vertices, graph.device
    features = features_of(graph, k)
    data = Beliefs(asarray(features, device=device), 0, 0, zeros((n, k), device=device), 0)
    maps = Maps(graph, k, data, feature_aware=feature_aware)
    maps.edge_map(add_feature)
    added = np.asarray(data.total).sum(dtype=np.float64)
    expected = np.diff(np.asarray(graph.indptr)) @ features.sum(axis=1, dtype=np.float64)
    if not np.isclose(added, expected, rtol=1e-4):
        raise VerificationError(f"the sums over edges of {k} features add up to {added}, not to {expected}")
    return {"milliseconds": maps.runs[-1].milliseconds}


def _run_fold(maps: Callable[[Graph, str], float], graph: Graph, fold: str) -> Row:
    return {"milliseconds": maps(graph, fold)}


def _references(graph: Graph, inputs: Inputs) -> dict[str, Reference]:
    if graph.num_edges > _MOST_OF_REFERENCE or importlib.util.find_spec("scipy") is None:
        return {}
    return {name: make() for name, make in references_on(graph, inputs).items()}


def _table_of_systems(
    name: str, graph: Graph, inputs: Inputs, references: dict[str, Reference], results: Mapping[str, list[Row]]
) -> list[Row]:
    """Return the rows of table 7.4: times of FA/CD and of the reference; and what one more iteration would change."""
    table: list[Row] = []
    for algorithm, run in algorithms_on(graph, inputs).items():
        reference = references[algorithm]
        ours = {"algorithm": algorithm, "graph": name, "system": "atos_py, FA/CD"}
        residual = reference.residual(np.asarray(run(*MODES["FA/CD"]).result).astype(np.float64))
        table.append(ours | _times(results[f"{algorithm} FA/CD"]) | {"residual": residual})
        seconds = []
        for _ in results[f"{algorithm} FA/CD"]:
            state, began = reference.start, time.perf_counter()
            for _ in range(ITERATIONS):
                state = reference.step(state)
            seconds.append({"milliseconds": (time.perf_counter() - began) * 1e3})
        table.append(ours | {"system": "SciPy, CPU"} | _times(seconds) | {"residual": reference.residual(state)})
    return table


def _times(turns: list[Row]) -> Row:
    """Return the median and the quartiles of times, in milliseconds."""
    low, middle, high = np.percentile([turn["milliseconds"] for turn in turns], (25, 50, 75))
    return {"milliseconds": float(middle), "milliseconds_low": float(low), "milliseconds_high": float(high)}


def _tabulate(rows: dict[str, list[Row]], name: str, results: Mapping[str, list[Row]]) -> None:
    """Add the rows of a graph to the tables: a row for each run."""
    for run, turns in results.items():
        row = {"graph": name, "run": run, "runs": len(turns)}
        if run.startswith("counted"):
            rows["figures-7.1-7.2"].append(row | {key: float(np.median([turn[key] for turn in turns])) for key in turns[0]})
            continue
        row |= _times(turns)
        if "edge_operations" in turns[0]:
            rows["table-7.2"].append(row | {"edge_operations": int(np.median([turn["edge_operations"] for turn in turns]))})
        else:
            rows["figure-7.3" if run.startswith("edges k") else "figure-7.4"].append(row)


def profiled_run(path: str, device: str, algorithm: str, mode: str) -> None:
    """Run an algorithm once, for a profiler, on a graph that was saved."""
    graph = Graph.load(path, device=device)
    algorithms_on(graph, inputs_of(graph))[algorithm](*MODES[mode])


def _count_in_turns(graph: Graph, repeat: int, progress: Progress, name: str, refusals: dict[str, str]) -> dict[str, list[Row]]:
    """Count the transactions of a GPU in each mode, each count in a process of its own; note why, if they cannot be counted."""
    runs = {f"counted {_COUNTED} {mode}": mode for mode in MODES}
    if command_of_profiler() is None:
        refusals |= dict.fromkeys(runs, "Nsight Compute, the command `ncu`, is not installed.")
        return {}
    program = f"import sys; from {__name__} import profiled_run; profiled_run(*sys.argv[1:])"
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "graph.npz")
        graph.save(path)

        def count_once(mode: str) -> Row:
            return count(program, path, str(graph.device), _COUNTED, mode)._asdict()

        families = {"counts": {run: functools.partial(count_once, mode) for run, mode in runs.items()}}
        try:
            counted = run_in_turns(families, repeat, progress, f"{name}: Nsight Compute")
        except DeviceError as error:
            refusals |= dict.fromkeys(runs, f"The counters were refused: {' '.join(str(error).split())[:300]}")
            return {}
    return {run: turns for (_, run), turns in counted.items()}
