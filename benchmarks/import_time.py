"""Print how long programs take to start, and how many modules they load: each is a process of its own, the programs in turns.

python benchmarks/import_time.py
python benchmarks/import_time.py --repeat 20 --only import
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

TASK = """\
import atos_py as atos
@atos.task
def mark(worker, v, seen):
    seen[v] = 1
queue, seen = atos.Queue(10, device="cpu"), atos.zeros(10, device="cpu")
"""
COMMAND = """\
import sys
from atos_py.__main__ import main
try:
    main({!r})
except SystemExit:
    pass
"""
PROGRAMS = {
    "python": "pass",
    "import numpy": "import numpy",
    "import atos_py": "import atos_py",
    "import numba": "import numba",
    "a task, a queue, an array": TASK,
    "atos_py.bfs": "import atos_py; atos_py.bfs",
    "from atos_py import *": "from atos_py import *",
    **{
        " ".join(["atos", *words]): COMMAND.format(words)
        for words in (["--version"], ["--help"], ["info"], ["bfs", "--help"], ["bench", "--help"])
    },
}


def modules_of(program: str) -> int:
    """Return how many modules a program has loaded at its end."""
    program = f"{program}\nimport sys; print(len(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1])


def seconds_of(program: str) -> float:
    """Return what a process takes from its start to its end."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--only", default="", help="programs with this in their names")
    options = parser.parse_args()
    programs = {name: program for name, program in PROGRAMS.items() if options.only in name}
    modules = {name: modules_of(program) for name, program in programs.items()}  # which also compiles them to bytecode
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(options.repeat):
        for name, program in programs.items():
            seconds[name].append(seconds_of(program))
    print("| program | modules | median, ms | least, ms |\n| --- | --- | --- | --- |")
    for name, taken in seconds.items():
        print(f"| `{name}` | {modules[name]} | {1e3 * statistics.median(taken):.0f} | {1e3 * min(taken):.0f} |")


if __name__ == "__main__":
    main()
