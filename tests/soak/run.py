"""Launches, inputs and API calls drawn at random, as long as there is time: ``python tests/soak/run.py --minutes 60``.

Three programs take turns, each in a process of its own, so that a crash and a hang are noticed as well:

    launches.py   random trees through queues of all kinds, by benchmarks/stress.py
    fuzz.py       inputs for the readers of graphs, checkpoints and reports, guided by coverage where atheris is installed
    api.py        sequences of public calls, by hypothesis, compared with lists, dicts and arrays of Python

A run without a failure adds a line to tests/soak.csv, if the sources are those of a commit. A failure ends the run with 1; the
end of its output, its seed and the command that does it again are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from soak.table import FILE, Run, add  # noqa: E402

HERE = Path(__file__).parent
PROGRAMS = {"launches": HERE / "launches.py", "inputs": HERE / "fuzz.py", "steps": HERE / "api.py"}
TURN = 120.0  # seconds of a program before the next one has its turn
LATE = 600.0  # seconds after which a program that should have ended is ended
KEPT = ROOT / "build" / "soak"  # inputs that were interesting, and those that have failed


class FailedError(Exception):
    """A program has found something."""


def take_turn(part: str, folder: Path, seconds: float, seed: int, device: str) -> int:
    """Run a program for so long; return how many of its things went well."""
    (folder / "count").write_text("0")
    command = [sys.executable, str(PROGRAMS[part]), str(folder), str(seconds), str(seed), device]
    with (folder / "log").open("w+") as log:
        try:
            code = subprocess.run(command, stdout=log, stderr=log, timeout=seconds + LATE, check=False, cwd=ROOT).returncode
            ended = f"ended with {code}"
        except subprocess.TimeoutExpired:
            code, ended = 1, f"did not end within {seconds + LATE:.0f} s"
        log.seek(0)
        said = log.read().splitlines()
    if code:
        again = [line for line in said if line.startswith("again: ")][-1:]
        if part == "inputs":
            again = [f"again: python tests/soak/fuzz.py {keep_input(folder / 'current')}"]
        raise FailedError("\n".join([*said[-60:], f"{part}: {PROGRAMS[part].name} {ended}, seed {seed}", *again]))
    return int((folder / "count").read_text())


def keep_input(file: Path) -> Path:
    """Copy the input that was tried last to where it stays."""
    data = file.read_bytes() if file.exists() else b""
    kept = KEPT / f"failed-{hashlib.sha256(data).hexdigest()[:12]}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(data)
    return kept


def soak(minutes: float, seed: int, device: str, folder: Path) -> Counter[str]:
    """Let the programs take turns; return what each has done."""
    begin, counts, turn = time.monotonic(), Counter(dict.fromkeys(PROGRAMS, 0)), 0
    while (left := begin + 60 * minutes - time.monotonic()) > 0 or turn < len(PROGRAMS):
        part = list(PROGRAMS)[turn % len(PROGRAMS)]
        turns_left = len(PROGRAMS) - turn % len(PROGRAMS)  # of this round
        seconds = max(1.0, min(TURN, left / turns_left))
        counts[part] += take_turn(part, folder, seconds, seed + turn * 1_000_000, device)
        turn += 1
        done = ", ".join(f"{counts[name]:,} {name}" for name in PROGRAMS)
        print(f"{(time.monotonic() - begin) / 60:.1f} of {minutes:g} minutes: {done}", flush=True)
    return counts


def commit() -> str | None:
    """Return the commit that the sources are those of, or None if some have changed or nobody knows."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{FILE.relative_to(ROOT)}")
        return None if changed else git("rev-parse", "--short=10", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def machine(device: str) -> str:
    """Return the kind of the machine."""
    import atos_py as atos

    there: Any = atos.device(device)
    return f"{os.cpu_count()} CPU cores" if there.kind == "cpu" else str(there.name)


def main(given: list[str] | None = None) -> int:
    """Parse the options and run; 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--device", default="cpu", help="of launches and API calls; files are read on the CPU")
    parser.add_argument("--seed", type=int, default=None, help="one that nobody knows, by default")
    parser.add_argument("--csv", type=Path, default=FILE, help="the file that gets a line")
    options = parser.parse_args(given)
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    before, began = commit(), time.monotonic()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="soak-", dir=memory if memory.is_dir() else None) as directory:
        folder, corpus = Path(directory), KEPT / "corpus"
        if corpus.is_dir():
            shutil.copytree(corpus, folder / "corpus")
        try:
            counts = soak(options.minutes, seed, options.device, folder)
        except FailedError as failure:
            print(f"{failure}\nsoak: failed, seed {seed}; no line is added", flush=True)
            return 1
        finally:
            if (folder / "corpus").is_dir():
                shutil.copytree(folder / "corpus", corpus, dirs_exist_ok=True)
    minutes = (time.monotonic() - began) / 60
    said = f"{', '.join(f'{number:,} {name}' for name, number in counts.items())} in {minutes:.1f} minutes, seed {seed}"
    if before is None or commit() != before:
        print(f"soak: nothing failed: {said}; no line is added, since the sources are not those of a commit")
        return 0
    date = time.strftime("%Y-%m-%d", time.gmtime())
    numbers = counts["launches"], counts["inputs"], counts["steps"], round(minutes, 1)
    add(Run(date, before, machine(options.device), seed, *numbers, failures=0), options.csv)
    print(f"soak: nothing failed: {said}; {options.csv.name} has a line that says so")
    return 0


if __name__ == "__main__":
    sys.exit(main())
