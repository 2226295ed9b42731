"""The measures of Chen et al. 2022 on this machine: tables 1 and 4, figures 1 to 4, and the effect of permuted vertex ids.

Every run is verified. The variants of an algorithm are run in turns, and the claims of `claims_atos` are tested on these runs.
Tables are written as CSV and Markdown, figures as CSV and, where matplotlib is installed, PNG: tables after each part and
figures after each graph, so that what is cut short is not lost.

PageRank is measured twice. By default it goes over all vertices, launch after launch, by sweeping or gathering, and its tasks
are mostly blocks of them: that is what run times are about. Where tasks are counted (Table 4, Figures 1 to 3) they have to be
vertices, as in the paper, so there every vertex with work is a task of its own, `find="push"`; the blocks of the beginning are
below one per cent.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...algorithms.registry import Algorithm, find_algorithms
from ...compile.best_links import only_best
from ...compile.host_kernels import num_threads
from ...core.devices import Device
from ...errors import InvalidArgumentError, LaunchConfigError
from ...graph.graph import Graph
from ...runtime.stats import LaunchStats, find_stats
from ...support.validation import check_int
from ...tools.tables import COUNTED, Measured, count_least_tasks, write_tables, write_throughput
from ...tools.workloads import bind_algorithm
from .claim_report import Reproduction, judge_all, write_report
from .claims import Finding, names_of_runs
from .claims_atos import CLAIMS
from .subjects import choose_source, make_directory
from .turns import DEFAULTS, GraphFacts, Options, Progress, Samples, middle_of, numbers_of, run_in_turns

__all__ = ["VARIANTS", "list_runs", "permute_vertices", "reproduce"]

_PERMUTED = "coloring permuted"  # the name of coloring with vertex ids in random order

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


def list_runs() -> dict[str, tuple[Algorithm, dict[str, Any]]]:
    """Return the runs that the registry has for the paper: an algorithm and options of its own, by name in the tables."""
    algorithms = find_algorithms().values()
    return {name: (each, dict(options)) for each in algorithms for name, options in each.paper.items()}


def permute_vertices(graph: Graph, seed: int = 0) -> Graph:
    """Return the graph with its vertices renumbered at random."""
    new_id = np.random.default_rng(seed).permutation(graph.num_vertices).astype(np.uint32)
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    sources = np.repeat(new_id, np.diff(indptr))
    return Graph.from_edges(sources, new_id[indices], num_vertices=graph.num_vertices, device=graph.device)


@only_best()
def reproduce(out: Path, graphs: Iterable[tuple[str, Graph]], options: Options = DEFAULTS) -> Reproduction:
    """Measure everything, test the claims, and write it to a directory.

    Parameters
    ----------
    out : Path
        The directory; made if need be.
    graphs : iterable of (name, Graph)
        Taken one at a time, so that they need not be in memory together.
    options : Options
        Counted runs of each setting, progress, and whether what claims do not need is left out.

    Returns
    -------
    Reproduction
        The files written, and the verdicts.
    """
    repeat = check_int("repeat", options.repeat, 1, 10**6)
    make_directory(out)
    measured, samples = Measured([], [], [], []), list[Samples]()
    files: list[Path] = []
    findings: list[Finding] = []
    for name, graph in graphs:
        subject = _Subject.of(name, graph)
        results = _measure_variants(measured, subject, repeat, options)
        samples.append(Samples(GraphFacts.of(name, graph), _numbers(subject, results), {}))
        findings = judge_all(CLAIMS, graph.device.kind, samples)
        report = write_report(out, "atos", "The claims of Atos, tested", options.command, graph.device, samples, findings)
        if options.quick:
            files = report
            continue
        for part in (_trace_variants, _measure_settings):
            files = [*report, *write_tables(out, measured), *write_throughput(out, measured)]
            part(measured, subject, options.progress)
        files = [*report, *write_tables(out, measured), *write_throughput(out, measured)]
        with contextlib.suppress(ImportError):  # the tables do not need matplotlib
            from ...tools.figures import draw_figures

            files += draw_figures(out, measured)
    return Reproduction(files, findings)


def _measure_variants(
    measured: Measured, subject: _Subject, repeat: int, options: Options
) -> dict[tuple[str, str], list[LaunchStats]]:
    """Run the variants of each algorithm in turns, those of coloring also with permuted vertex ids; return the runs."""
    shuffled = _Subject.of(subject.name, permute_vertices(subject.graph))
    on = {algorithm: (algorithm, subject) for algorithm in list_runs()} | {_PERMUTED: ("coloring", shuffled)}
    chosen = names_of_runs(CLAIMS, subject.graph.device.kind) if options.quick else None
    families: dict[str, dict[str, Callable[[], LaunchStats]]] = {}
    for name, (algorithm, graph) in on.items():
        for variant, setting in VARIANTS.items():
            run = f"{name}/{variant}"
            if chosen is None or run in chosen:
                families.setdefault(algorithm, {})[run] = functools.partial(graph.run, algorithm, **setting)
    in_turns = run_in_turns(families, repeat, options.progress, subject.name)
    results = {(name, variant): runs for (_, run), runs in in_turns.items() for name, variant in [run.split("/")]}
    for (name, variant), runs in results.items():
        if name != _PERMUTED:
            measured.runs.append(_describe(subject, name, variant, runs))
    if not options.quick:
        measured.permutation.extend(_compare_permuted(measured, subject, results))
    return results


def _describe(subject: _Subject, algorithm: str, variant: str, runs: list[LaunchStats]) -> dict[str, Any]:
    stats = middle_of(runs)
    low, high = np.percentile([each.milliseconds for each in runs], (25, 75))
    return {
        "algorithm": algorithm,
        "graph": subject.name,
        "variant": variant,
        "milliseconds": stats.milliseconds,
        "milliseconds_low": float(low),
        "milliseconds_high": float(high),
        "tasks_run": stats.tasks_run,
        "rounds": stats.rounds,
        "device": stats.device,
        "vertices": subject.graph.num_vertices,
        "isolated": int(np.count_nonzero(subject.host.degrees() == 0)),
    }


def _numbers(subject: _Subject, results: dict[tuple[str, str], list[LaunchStats]]) -> dict[str, list[dict[str, Any]]]:
    """Return the numbers that claims compare; of a coloring also its tasks over those of a run without clashes."""
    least = count_least_tasks(_describe(subject, "", "", next(iter(results.values()))))
    return {
        f"{name}/{variant}": [
            numbers_of(stats) | ({"workload": stats.tasks_run / least} if name in ("coloring", _PERMUTED) else {})
            for stats in runs
        ]
        for (name, variant), runs in results.items()
    }


def _trace_variants(measured: Measured, subject: _Subject, progress: Progress) -> None:
    settings = [(algorithm, variant) for algorithm in list_runs() if algorithm in COUNTED for variant in VARIANTS]
    for algorithm, variant in progress(settings, f"{subject.name}: traces", len(settings)):
        took = measured.run(algorithm, subject.name, variant)["milliseconds"]
        sampled = subject.run(algorithm, trace=max(took * 1e3 / 400, 1), **VARIANTS[variant])
        measured.traces.append({"algorithm": algorithm, "graph": subject.name, "variant": variant, "trace": sampled.trace})


def _measure_settings(measured: Measured, subject: _Subject, progress: Progress) -> None:
    rows = _list_heatmap_rows(subject.graph.device)
    cells = [(a, w, f) for a in ("BFS", "PageRank") for w in rows for f in HEATMAP_FETCHES]
    for algorithm, row, fetch in progress(cells, f"{subject.name}: workers x fetch size", len(cells)):
        where = {"algorithm": algorithm, "graph": subject.name, "workers": row, "fetch_size": fetch}
        measured.heat.append({**where, "milliseconds": _time_cell(subject, algorithm, rows[row], fetch)})


def _compare_permuted(
    measured: Measured, subject: _Subject, results: dict[tuple[str, str], list[LaunchStats]]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of colorings with ids as they are, and permuted."""
    for variant in VARIANTS:
        before, after = measured.run("coloring", subject.name, variant), middle_of(results[_PERMUTED, variant])
        yield {
            "graph": subject.name,
            "variant": variant,
            "ms": before["milliseconds"],
            "ms_permuted": after.milliseconds,
            "workload": before["tasks_run"] / count_least_tasks(before),
            "workload_permuted": after.tasks_run / count_least_tasks(before),
        }


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
        subject.run(algorithm, fetch_size=fetch, **options)
        return min(subject.run(algorithm, fetch_size=fetch, **options).milliseconds for _ in range(2))
    except LaunchConfigError:
        return float("nan")
