"""Compare builds of the package on one machine, in turns: kernel times and whole-call times, and their ratio.

    python benchmarks/side_by_side.py ../before . --device cuda

The arguments are checkouts whose core is built (``python setup.py build_core``). The graphs are made once, by the first build.
A process imports one build, runs each workload ``--repeat`` times after two runs that warm up, and prints its times; in the
first turn it proves the last result. Processes of the builds take turns, so that a drift of the machine meets all. A figure is
the median of all runs of a build; ratios are to the first build. The workloads use calls that all builds know.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GRAPHS = {"cuda": ("rmat:22:16", "road:4900:0.62"), "cpu": ("rmat:16:16", "road:500:0.62")}
SCHEDULER = {"cuda": {"chain": 100_000, "tree": 1 << 28}, "cpu": {"chain": 20_000, "tree": 1 << 20}}
TOLERANCE = 5e-4

Workload = tuple[Callable[[], Any], Callable[[Any], None]]


def make_graph(spec: str, path: Path, device: str) -> int:
    """Write the graph of a spec to a file; return the vertex that searches start from."""
    import atos_py as atos

    kind, *numbers = spec.split(":")
    if kind == "rmat":
        graph = atos.generate.rmat(int(numbers[0]), int(numbers[1]), device="cpu")
        source = int(graph.degrees().argmax())
    else:
        side = int(numbers[0])
        graph = atos.generate.road(side, float(numbers[1]), device="cpu")
        source = side // 2 * side + side // 2
    graph.save(path)
    return source


def workloads_on(path: Path, source: int, device: str) -> dict[str, Workload]:
    """Return the calls on a graph, each with the proof of its result."""
    import atos_py as atos

    host = atos.Graph.load(path, device="cpu")
    graph = host.to(device)
    return {
        "bfs": (lambda: atos.bfs(graph, source), lambda result: atos.verify_bfs(host, source, result.depth)),
        "bfs, push": (
            lambda: atos.bfs(graph, source, direction="push"),
            lambda result: atos.verify_bfs(host, source, result.depth),
        ),
        "pagerank": (
            lambda: atos.pagerank(graph, tolerance=TOLERANCE),
            lambda result: atos.verify_pagerank(host, result, TOLERANCE) and None,
        ),
        "color": (lambda: atos.color(graph), lambda result: atos.verify_coloring(host, result.colors)),
        "color by degree": (
            lambda: atos.color(graph, "degree"),
            lambda result: atos.verify_coloring(host, result.colors),
        ),
        "components": (
            lambda: atos.connected_components(graph),
            lambda result: atos.verify_connected_components(host, result.label),
        ),
        "strong components": (
            lambda: atos.strongly_connected_components(graph),
            lambda result: atos.verify_strongly_connected_components(host, result.label),
        ),
    }


def scheduler_workloads(device: str) -> dict[str, Workload]:
    """Return launches of empty tasks: a chain, each task pushing the next, and a tree, each pushing two."""
    import atos_py as atos

    @atos.task
    def chain(worker, left):  # type: ignore[no-untyped-def]
        if left > 0 and worker.rank == 0:
            worker.push(left - 1)

    @atos.task(workload=lambda size: 2)
    def tree(worker, size, i):  # type: ignore[no-untyped-def]
        half = (size - i) // 2
        if half > 0:
            worker.push(half)

    result: dict[str, Workload] = {}
    for task, (name, size) in zip((chain, tree), SCHEDULER[device].items(), strict=True):
        queue = atos.Queue(size if name == "tree" else 1024, device=device)

        def run(task: Any = task, queue: Any = queue, first: int = size - (name == "chain")) -> Any:
            queue.push([first])
            return queue.launch_cta(task, fetch_size=128)

        def check(stats: Any, size: int = size) -> None:
            assert stats.tasks_run == size, f"{stats.tasks_run} tasks ran, and not {size}"

        result[name] = run, check
    return result


def measure(graphs: dict[str, tuple[str, int]], device: str, repeat: int, prove: bool) -> None:
    """Print a line of JSON for each workload: its kernel and call times, in ms. Run in a process of its own."""
    everything = {("", name): workload for name, workload in scheduler_workloads(device).items()}
    for spec, (path, source) in graphs.items():
        for name, workload in workloads_on(Path(path), source, device).items():
            everything[spec, name] = workload
    for (spec, name), (run, check) in everything.items():
        kernel, call = [], []
        for _ in range(repeat + 2):
            begin = time.perf_counter()
            result = run()
            call.append(1e3 * (time.perf_counter() - begin))
            kernel.append(getattr(result, "stats", result).milliseconds)
        if prove:
            check(result)
        print(json.dumps({"graph": spec, "name": name, "kernel": kernel[2:], "call": call[2:]}), flush=True)


def main() -> None:
    """Print a table: a row for each workload, and the ratios to the first build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", type=Path, help="checkouts with their core built")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--graph", nargs="*", metavar="SPEC", help="rmat:SCALE:EDGE_FACTOR or road:SIDE:KEEP")
    parser.add_argument("--repeat", type=int, default=10, help="runs of each workload in a turn")
    parser.add_argument("--turns", type=int, default=3, help="processes of each build")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # what a child process is given
    parser.add_argument("--prove", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(json.loads(options.measure), options.device, options.repeat, options.prove)
        return
    builds = [build.resolve() for build in options.builds]
    times: dict[tuple[str, str], list[dict[str, list[float]]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, str(builds[0]))
        graphs = {}
        for number, spec in enumerate(GRAPHS[options.device] if options.graph is None else options.graph):
            path = Path(directory) / f"{number}.npz"
            graphs[spec] = str(path), make_graph(spec, path, options.device)
        shared = ["--device", options.device, "--repeat", str(options.repeat), "--measure", json.dumps(graphs)]
        for turn in range(options.turns):
            for number, build in enumerate(builds):
                environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(build), os.environ.get("PYTHONPATH", "")])}
                command = [sys.executable, __file__, *shared, *(["--prove"] if turn == 0 else [])]
                done = subprocess.run(command, env=environment, cwd=directory, stdout=subprocess.PIPE, text=True, check=True)
                for line in done.stdout.splitlines():
                    row = json.loads(line)
                    kept = times.setdefault((row["graph"], row["name"]), [{"kernel": [], "call": []} for _ in builds])
                    kept[number]["kernel"] += row["kernel"]
                    kept[number]["call"] += row["call"]
    names = [str(build) for build in options.builds]
    heads = [f"{what} {name}" for what in ("kernels", "call") for name in names]
    print("ms | " + " | ".join(heads), " | ".join(["---"] * (1 + len(heads))), sep="\n")
    for (spec, name), kept in times.items():
        cells = [f"{name} of {spec}" if spec else name]
        for what in ("kernel", "call"):
            medians = [statistics.median(of_build[what]) for of_build in kept]
            cells += [f"{median:.3f} ({median / medians[0]:.3f})" for median in medians]
        print(" | ".join(cells))


if __name__ == "__main__":
    main()
