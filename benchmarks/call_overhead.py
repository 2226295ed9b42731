"""Print what whole calls of algorithms take beside their kernels, and where that time goes.

Each algorithm is called again and again with one graph, as in a loop of a user. "Kernels" are `stats.milliseconds` of the
result; "beside" is the rest of the call. The functions below an algorithm take most of the time, without other functions that
they call; they are measured by `sys.setprofile` in further calls, which that slows down. A function of the core counts to its
caller. Last comes a search of a small graph, alone and after 10 ms of other work of the host, which takes the caches: what a
call takes behind a long kernel.

python benchmarks/call_overhead.py --device cuda --graph rmat:22:16
python benchmarks/call_overhead.py --lines 12 color pagerank
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import atos_py as atos
from atos_py.graph.spec import SPEC_HELP, graph_of, source_of

PACKAGE = str(Path(atos.__file__).parent)
CALLS: dict[str, Callable[[atos.Graph, int], Any]] = {
    "bfs": lambda graph, source: atos.bfs(graph, source),
    "connected_components": lambda graph, _: atos.connected_components(graph),
    "sssp": lambda graph, source: atos.sssp(graph, source),
    "maximal_independent_set": lambda graph, _: atos.maximal_independent_set(graph),
    "pagerank": lambda graph, _: atos.pagerank(graph),
    "color": lambda graph, _: atos.color(graph),
    "core_number": lambda graph, _: atos.core_number(graph),
    "minimum_spanning_forest": lambda graph, _: atos.minimum_spanning_forest(graph),
}


def time_functions(run: Callable[[], Any]) -> tuple[Counter[str], Counter[str]]:
    """Return the seconds that each function takes without those that it calls, and how often it is called."""
    seconds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    open_calls: list[list[Any]] = []  # name, when it began, seconds of what it called

    def look(frame: FrameType, event: str, argument: Any) -> None:
        now = time.perf_counter()
        if event in ("call", "c_call"):
            code = frame.f_code
            file = code.co_filename.removeprefix(PACKAGE).lstrip("/")
            name = f"{file}: {code.co_name}" if event == "call" else getattr(argument, "__name__", None) or repr(argument)[:60]
            open_calls.append([name, now, 0.0])
        elif open_calls:
            name, begin, inner = open_calls.pop()
            seconds[name] += now - begin - inner
            calls[name] += 1
            if open_calls:
                open_calls[-1][2] += now - begin

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seconds, calls


def repeat(run: Callable[[atos.Graph, int], Any], graph: atos.Graph, source: int, times: int) -> None:
    for _ in range(times):
        run(graph, source)


def work(milliseconds: float) -> None:
    """Keep this core busy with work that needs next to no memory, and no GPU."""
    end = time.perf_counter() + milliseconds / 1e3
    while time.perf_counter() < end:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 100)


def time_after(before: Callable[[], object], device: atos.Device, times: int) -> str:
    """Return the times, as a text, of two searches of a small graph beside their kernels, after something else."""
    graph = atos.generate.road(12, 0.8, device=device)
    beside: tuple[list[float], list[float]] = [], []
    for _ in range(times):
        before()
        for found in beside:
            begin = time.perf_counter()
            result = atos.bfs(graph, 0)
            found.append(1e3 * (time.perf_counter() - begin) - result.stats.milliseconds)
    return ", then ".join(f"{statistics.median(found[3:]):.3f}" for found in beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algorithm", nargs="*", help=f"of {', '.join(CALLS)}; all unless told")
    parser.add_argument("--graph", default="rmat:16:16", help=SPEC_HELP)
    parser.add_argument("--device")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--lines", type=int, default=8, help="functions shown of each algorithm")
    given = parser.parse_args()
    graph = graph_of(given.graph, device=given.device).to_symmetric()
    source = source_of(given.graph, graph)
    print(f"{given.graph}, {graph.num_vertices:,} vertices, {graph.num_edges:,} edges, on {graph.device}, ms a call")
    for name in given.algorithm or CALLS:
        run = CALLS[name]
        repeat(run, graph, source, 4)
        whole, kernels, launches = [], [], 0
        for _ in range(given.repeat):
            begin = time.perf_counter()
            result = run(graph, source)
            whole.append(1e3 * (time.perf_counter() - begin))
            kernels.append(result.stats.milliseconds)
            launches = result.stats.launches
            del result
        beside = [a - b for a, b in zip(whole, kernels, strict=True)]
        print(
            f"{name}: call {statistics.median(whole):.3f}, kernels {statistics.median(kernels):.3f}, "
            f"beside {statistics.median(beside):.3f} ({min(beside):.3f} to {max(beside):.3f}), launches {launches}",
            flush=True,
        )
        seconds, calls = time_functions(partial(repeat, run, graph, source, given.repeat))
        for function, spent in seconds.most_common(given.lines):
            print(f"    {1e3 * spent / given.repeat:8.3f}  {calls[function] / given.repeat:7.1f} x  {function}")
    for what, before in {"in a loop": lambda: None, "after 10 ms of other work": partial(work, 10)}.items():
        print(f"bfs of 144 vertices {what}, beside its kernel: {time_after(before, graph.device, 40)}")


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
