"""Print how many Python calls of the package, in how many files, warm launches and searches take, and what they cost.

The calls are counted by `sys.setprofile`; those of other packages are left out. Times are medians of rounds of many calls.

python benchmarks/call_path.py
python benchmarks/call_path.py --list launch_cta
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import atos_py as atos

PACKAGE = str(Path(atos.__file__).parent)
SIDE = 30  # vertices of a side of the mesh that is searched


@atos.task
def nothing(worker, item):  # type: ignore[no-untyped-def]
    """Do nothing."""


def count_calls(run: Callable[[], Any]) -> Counter[tuple[str, str]]:
    """Return how often each function of the package is called by `run`, by its file and its name."""
    seen: Counter[tuple[str, str]] = Counter()

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            seen[code.co_filename[len(PACKAGE) + 1 :], code.co_name] += 1

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def time_calls(run: Callable[[], Any], rounds: int, calls: int) -> list[float]:
    """Return the microseconds that a call takes, of each round."""
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        found.append(1e6 * (time.perf_counter() - begin) / calls)
    return found


def measured_calls(device: atos.Device) -> dict[str, Callable[[], Any]]:
    """Return the calls to measure, by name."""
    queue, pushed = atos.Queue(1 << 20, device=device), atos.Queue(1 << 24, device=device)
    prepared = queue.prepare(nothing, num_blocks=1)
    graph = atos.generate.road(SIDE, 0.62, device=device)
    return {
        "launch_cta": lambda: queue.launch_cta(nothing, num_blocks=1),
        "prepared": prepared,
        "push": lambda: pushed.push(1),
        "bfs": lambda: atos.bfs(graph, 0),
        "connected_components": lambda: atos.connected_components(graph),
        "sssp": lambda: atos.sssp(graph, 0),
        "pagerank": lambda: atos.pagerank(graph),
    }


def main() -> None:
    """Parse the options, and print a row for each call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="by default the CPU")
    parser.add_argument("--list", metavar="CALL", help="print each function that this call runs instead")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    measured = measured_calls(atos.device(options.device))
    if options.list is not None:
        run = measured[options.list]
        run(), run()
        for (file, name), times in count_calls(run).items():
            print(f"{times:4} {file}: {name}")
        return
    print("| call | Python calls | files | microseconds, median (least to most) |", "| --- | --- | --- | --- |", sep="\n")
    for name, run in measured.items():
        run(), run()
        seen = count_calls(run)
        times = time_calls(run, options.rounds, 1000 if name in ("launch_cta", "prepared", "push") else 50)
        files = len({file for file, _ in seen})
        spread = f"{statistics.median(times):.1f} ({min(times):.1f} to {max(times):.1f})"
        print(f"| {name} | {sum(seen.values())} | {files} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
