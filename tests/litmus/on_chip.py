"""Run the litmus programs on this machine's GPU, and write `results.csv`: all in one call, within some seconds.

    python tests/litmus/on_chip.py --seconds 540

``--only WORDS`` runs the programs that have these words in their names. Rows of other programs stay as they are, if they are
of the same instructions. ``--seconds 0`` runs nothing, and writes a row for each program that has none. Needs nvcc and a GPU;
programs of two GPUs need two that reach each other's memory. Ends with 1 if an outcome was seen that the axioms forbid, or
if not all programs ran that can run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from litmus.form import Program
from litmus.kernel_text import unit
from litmus.results import FILE, FORBIDDEN, Entry, Result, entries, not_run, read, write

HERE = Path(__file__).parent
GRACE = 40  # seconds after which an executable that should have ended is killed; what it has printed counts
NVCC = ("nvcc", "-std=c++17", "-O3", "-I", str(HERE))


def compiled(programs: Mapping[int, Program], directory: Path, architecture: str) -> Path:
    """Return the executable of some programs, by their numbers."""
    count = max(1, min(os.cpu_count() or 1, len(programs) // 8))
    numbers = list(programs)
    sources = [HERE / "main.cu"]
    for k in range(count):
        source = directory / f"unit{k}.cu"
        source.write_text(unit({number: programs[number] for number in numbers[k::count]}))
        sources.append(source)
    objects = [directory / f"{source.stem}.o" for source in sources]

    def run(command: Sequence[str | Path]) -> None:
        subprocess.run([str(word) for word in command], check=True)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(run, [[*NVCC, f"-arch={architecture}", "-c", a, "-o", b] for a, b in zip(sources, objects, strict=True)]))
    target = directory / "on_chip"
    run([*NVCC, f"-arch={architecture}", *objects, "-o", target])
    return target


def results(selected: Mapping[int, Entry], output: str) -> list[Result]:
    """Return the rows of programs by what the executable has printed of them."""
    head, *lines = output.splitlines()
    card, cuda = head.split(",")
    counts = {number: each for number, *each in (map(int, line.split(",")) for line in lines)}
    rows = []
    for number, entry in selected.items():
        if number in counts:
            name = f"2 x {card}" if entry.needs else card
            rows.append(Result(*entry.key, entry.verdict, entry.digest, *counts[number], name, cuda, ""))
        else:
            rows.append(not_run(entry, entry.needs))
    return rows


def run(selected: Mapping[int, Entry], seconds: float, instances: int, seed: int, architecture: str = "native") -> list[Result]:
    """Run programs on the GPU, by their numbers, and return their rows; compilation is a part of the seconds."""
    end = time.monotonic() + seconds
    programs = {number: entry.program for number, entry in selected.items() if entry.needs != "needs the host"}
    with tempfile.TemporaryDirectory() as directory:
        program = compiled(programs, Path(directory), architecture)
        words = [str(program), str(end - time.monotonic()), str(instances), str(seed)]
        output = Path(directory) / "output"
        with output.open("w") as file:
            try:
                ended = subprocess.run(words, stdout=file, timeout=max(0, end - time.monotonic()) + GRACE).returncode
            except subprocess.TimeoutExpired:
                ended = -1
        if ended and not output.read_text():
            raise RuntimeError(f"the programs ended with {ended} before the first one was counted")
        return results(selected, output.read_text())


def wrong(rows: Sequence[Result]) -> list[str]:
    """Return what a run should not have given: outcomes that the axioms forbid, and programs that did not run."""
    seen = [f"forbidden, but seen: {row}" for row in rows if row.seen and row.verdict == FORBIDDEN]
    return seen + [f"not run: {row}" for row in rows if not row.instances and not row.why_not]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, required=True, help="for all, compilation too; 0: only list what was not run")
    parser.add_argument("--instances", type=int, default=10**8, help="of each program, if the time is enough")
    parser.add_argument("--only", default="", help="words in the names of programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--architecture", default="native", help="of the GPU, as nvcc has it: sm_90")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args(words)
    rows, new = read(options.out), list[Result]()
    if options.seconds:
        if shutil.which("nvcc") is None:
            parser.error("nvcc is not on the path")
        selected = {number: entry for number, entry in enumerate(entries()) if options.only in entry.name}
        new = run(selected, options.seconds, options.instances, options.seed, options.architecture)
    write(options.out, rows | {row.key: row for row in new if row.instances})
    print("\n".join([*wrong(new), f"{sum(row.instances > 0 for row in new)} programs ran"]))
    return int(bool(wrong(new)))


if __name__ == "__main__":
    sys.exit(main())
