"""How much longer calls take that look for races: with debug="races", with debug=True, and plain, on CPU threads.

`debug=True` runs on all cores, and the search for races on one thread. Medians of warm calls, least to most, in turns.

python benchmarks/races.py
python benchmarks/races.py rmat:12 --calls bfs core_number --repeat 9
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import atos_py as atos

CALLS: dict[str, Callable[[atos.Graph], Any]] = {
    "bfs": lambda graph: atos.bfs(graph, 0),
    "connected_components": atos.connected_components,
    "core_number": atos.core_number,
    "pagerank": atos.pagerank,
}
MODES = {"plain": "0", "debug=True": "1", 'debug="races"': "races"}


def milliseconds(call: Callable[[], Any], mode: str) -> float:
    """Return what a call takes with the checks of a mode."""
    os.environ["ATOS_DEBUG"] = MODES[mode]
    begin = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph", nargs="?", default="rmat:14")
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    kind, _, scale = given.graph.partition(":")
    graph = getattr(atos.generate, kind)(int(scale), device="cpu")
    print(f"{'':24}" + "".join(f"{mode + ', ms':>26}" for mode in MODES) + f"{'races / debug=True':>22}")
    for name in given.calls:
        times: dict[str, list[float]] = {mode: [] for mode in MODES}
        for repeat in range(given.repeat + 1):
            for mode, found in times.items():
                took = milliseconds(lambda call=CALLS[name]: call(graph), mode)  # type: ignore[misc]
                if repeat:  # the first call compiles
                    found.append(took)
        middle = {mode: statistics.median(found) for mode, found in times.items()}
        cells = "".join(f"{f'{middle[mode]:.2f} ({min(found):.2f} to {max(found):.2f})':>26}" for mode, found in times.items())
        *_, checked, races = middle.values()
        print(f"{name:24}{cells}{races / checked:>22.0f}")


if __name__ == "__main__":
    main()
