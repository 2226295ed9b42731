"""Time what a user waits for after an edit: an edited task until it runs, another worker, a small task, and the best kernel.

Each measurement is a process of its own with empty caches, that of nvJitLink among them. An edit changes a number in the search
of the README. Times are of whole calls of `launch`, by the clock, in seconds; "search" is the time on the device, in ms, of the
kernel of the first tier and of the best one. "README" is its first program from Enter to its end, and again in a new process.

python benchmarks/edits.py
python benchmarks/edits.py --device cuda --repeat 10
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"
HELLO = """

@atos.task
def hello(worker, item, out):
    out[item] = item + {number}
"""


def readme_program() -> str:
    """Return the first program of the README."""
    return README.read_text().partition("```python\n")[2].partition("```")[0]


def edited_source(number: int) -> str:
    """Return the search of the README, with a condition that an edit changes, and a small task."""
    tasks, _, rest = readme_program().partition("\n\n\n# On the first GPU")
    condition = "if old > next_depth:"
    assert rest
    assert tasks.count(condition) == 1
    return (tasks + HELLO).replace("{number}", str(number)).replace(condition, f"if {number} < 1000 and old > next_depth:")


def child(device: str | None) -> dict[str, float]:
    """Make the launches of one process, and return what they took."""
    begin = time.perf_counter()
    import numpy as np

    import atos_py as atos

    found = {"import": time.perf_counter() - begin}
    graph = atos.generate.road(300, keep=0.8, device=device)
    queue = atos.Queue(capacity=2 * graph.num_vertices, device=device)

    def edit(number: int) -> dict[str, Any]:
        """Write a file with other tasks, and import it."""
        path = f"edited_{number}.py"
        spec = importlib.util.spec_from_file_location(path.removesuffix(".py"), path)
        with open(path, "w") as file:
            file.write(edited_source(number))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return vars(module)

    def search(task: Any, worker: str = "cta", tier: str = "auto") -> tuple[float, Any]:
        depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, device=device)
        depth[0] = 0
        queue.push([0])
        begin = time.perf_counter()
        stats = queue.launch(task, graph, depth, worker=worker, tier=tier)
        return time.perf_counter() - begin, stats

    found["first in a process"], _ = search(edit(0)["visit"])
    edited = edit(1)
    began = time.perf_counter()
    found["edited task"], stats = search(edited["visit"])
    first = [stats.milliseconds]
    found["another worker"], _ = search(edited["visit"], "warp")
    out, small = atos.zeros(4, dtype=np.int64, device=device), atos.Queue(10, device=device)
    small.push([1, 2])
    begin = time.perf_counter()
    small.launch_thread(edited["hello"], out)
    found["hello world, by threads"] = time.perf_counter() - begin
    while stats.tier == "first" and time.perf_counter() - began < 60:
        _, stats = search(edited["visit"])
        if stats.tier == "first":
            first.append(stats.milliseconds)
    found["until the best kernel runs"] = time.perf_counter() - began
    best = [search(edited["visit"])[1].milliseconds for _ in range(9)]
    found["search, first tier, ms"], found["search, best, ms"] = statistics.median(first), statistics.median(best)
    return found


def run_readme(directory: str, environment: dict[str, str]) -> float:
    """Return the seconds of a process that runs the first program of the README."""
    path = os.path.join(directory, "program.py")
    with open(path, "w") as file:
        file.write(readme_program())
    begin = time.perf_counter()
    subprocess.run([sys.executable, path], cwd=directory, env=environment, check=True, capture_output=True)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device")
    parser.add_argument("--repeat", type=int, default=5, help="processes (default: 5)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.device)))
        return
    rows: dict[str, list[float]] = {}
    for _ in range(given.repeat):
        with tempfile.TemporaryDirectory() as directory:
            environment = {**os.environ, "CUDA_CACHE_DISABLE": "1", "ATOS_CACHE_DIR": os.path.join(directory, "cache")}
            command = [
                sys.executable,
                os.path.abspath(__file__),
                "--child",
                *(["--device", given.device] if given.device else []),
            ]
            text = subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True, text=True).stdout
            environment["ATOS_CACHE_DIR"] = os.path.join(directory, "other")
            if given.device:
                environment["ATOS_DEVICE"] = given.device
            for name in "README, first time", "README, again":
                rows.setdefault(name, []).append(run_readme(directory, environment))
        for name, value in json.loads(text.splitlines()[-1]).items():
            rows.setdefault(name, []).append(value)
    print(f"{'':28}{'median':>9}{'least':>9}{'most':>9}")
    for name, values in rows.items():
        print(f"{name:28}{statistics.median(values):9.3f}{min(values):9.3f}{max(values):9.3f}")


if __name__ == "__main__":
    main()
