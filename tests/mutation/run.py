"""Tries the faults of mutants.py: is each of them noticed, and by what?

    python tests/mutation/run.py                     # all that show without a GPU; takes hours
    python tests/mutation/run.py Q01 B17             # some
    python tests/mutation/run.py --files host/queue.cpp   # those of a file of csrc
    python tests/mutation/run.py --gpu               # those that show on a GPU only, where there is one

The cheapest tests come first, and the first that fails, or hangs, ends it: the C++ tests, the model, the C++ tests under
ThreadSanitizer, then some tests of the package. Prints a table in Markdown; the exit status is 1 if a fault went unnoticed
without a reason, or has a reason and was noticed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from model.scenarios import SCENARIOS, kind_of  # noqa: E402
from model.source import OWN, copy_changed  # noqa: E402
from mutation.mutants import GPU, MUTANTS, Mutant  # noqa: E402
from repository import CXX  # noqa: E402

CSRC, CORE, MODEL = ROOT / "csrc", ROOT / "tests" / "core", ROOT / "tests" / "model"
FLAGS = ["-std=c++17", "-pthread", f"-I{ROOT / 'third_party'}"]
LIBRARY = sorted(CSRC.rglob("*.cpp"))
VARIANTS = {"core": ["-O0"], "thread": ["-O1", "-fsanitize=thread"]}
HANGS = 60  # seconds, or 20 times what a test takes
# Under ThreadSanitizer these take much longer than the others.
SLOW = {"a_burst_into_a_small_ring_loses_nothing", "more_than_the_spill_area_holds_is_counted_as_lost"}
# A scenario that has more states is not gone through, unless none that has fewer finds the fault.
MOST_STATES = (20_000, 1_000_000)
LAUNCH = [f"runtime/test_launch_{of}.py" for of in ("schedules", "items", "tasks", "arguments", "options", "processes")]
ON_CPU = [
    "runtime/test_waiting_items.py",
    "runtime/test_stop.py",
    "runtime/test_worker_stop.py",
    "runtime/test_rounds.py",
    "runtime/test_rounds_of_buckets.py",
    "runtime/test_stop_process.py",
    *LAUNCH,
    "runtime/test_growth.py",
    "runtime/test_inbox.py",
    "runtime/test_queue.py",
    "runtime/test_several_devices.py",
    "runtime/test_buckets_over_devices.py",
    "distributed/test_processes.py",
    "runtime/test_kinds.py",
    "runtime/test_checkpoint.py",
    "runtime/test_checkpoint_killed.py",
    "runtime/test_trace.py",
    "runtime/test_progress.py",
    "runtime/test_debug.py",
    "runtime/test_stress.py",
    "runtime/test_teams.py",
    "runtime/test_groups.py",
]
ON_GPU = [
    "runtime/test_waiting_items.py",
    "runtime/test_groups.py",
    "runtime/test_scratch.py",
    "runtime/test_kinds.py",
    "runtime/test_priorities.py",
    *LAUNCH,
    "runtime/test_growth.py",
    "runtime/test_inbox.py",
    "runtime/test_stop.py",
    "runtime/test_worker_stop.py",
    "runtime/test_rounds.py",
    "runtime/test_rounds_of_buckets.py",
    "runtime/test_stop_process.py",
    "runtime/test_stress.py",
    "runtime/test_gpu_launches.py",
    "algorithms/test_gpu_searches.py",
    "runtime/test_gpu_streams.py",
    "arrays/test_gpu_libraries.py",
]


class DoesNotCompileError(Exception):
    """A fault that the compiler notices is none."""


def run(command: Sequence[object], limit: float, fine: Sequence[int] = (0,), **options: object) -> tuple[str, str]:
    """Run a command: "ok" if its exit status is fine, "failed" or "hangs", and what it printed."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )
        try:
            outcome = "ok" if process.wait(limit) in fine else "failed"
        except subprocess.TimeoutExpired:
            outcome = "hangs"
            os.killpg(process.pid, signal.SIGKILL)  # a test may have started others
            process.wait()
        said.seek(0)
        return outcome, said.read()


def compiled(*arguments: object) -> None:
    outcome, said = run([*CXX, *arguments], 600)
    if outcome != "ok":
        raise DoesNotCompileError(said[-2000:])


def with_fault(directory: Path, mutant: Mutant) -> Path:
    """Copy csrc with the fault in it."""
    shutil.copytree(CSRC, directory)
    file = directory / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.old!r} is {text.count(mutant.old)} times in csrc/{mutant.file}")
    file.write_text(text.replace(mutant.old, mutant.new))
    return directory


def includes(source: Path) -> set[str]:
    """The files of csrc and tests/core that a source includes, also through others."""
    found: set[str] = set()
    waiting = [source]
    while waiting:
        for name in re.findall(r'#include "([^"]+)"', waiting.pop().read_text()):
            for directory in (CSRC, CORE):
                if name not in found and (directory / name).is_file():
                    found.add(name)
                    waiting.append(directory / name)
    return found


# What can show on the CPU: what the library is compiled from, but for what only a GPU does there.
BUILT = {str(source.relative_to(CSRC)) for source in LIBRARY}.union(*map(includes, LIBRARY)) - {"protocol/split_item.cuh"}
MODELED = {name for model in ("model.cpp", "peers.cpp") for name in includes(MODEL / model) if not (OWN / name).exists()}


def object_name(source: Path) -> str:
    """The name of a source's object file: in csrc, that with its folders."""
    within = CSRC if source.is_relative_to(CSRC) else CORE
    return f"{'_'.join(source.relative_to(within).with_suffix('').parts)}.o"


class CppTests:
    """The programs in tests/core, compiled once as they are; for a fault only what it changes is compiled again."""

    def __init__(self, work: Path, variant: str) -> None:
        self.work, self.variant = work / variant, variant
        self.flags = [*FLAGS, *VARIANTS[variant]]
        self.tests = sorted(CORE.glob("test_*.cpp"))

    @cached_property
    def times(self) -> dict[tuple[str, str], float]:
        """Seconds that each test takes without a fault; tests that fail anyhow are left out."""
        self.work.mkdir()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            flags = [*self.flags, f"-I{CSRC}"]
            list(pool.map(lambda s: compiled(*flags, "-c", s, "-o", self.work / object_name(s)), [*LIBRARY, *self.tests]))
        result = {}
        for test, program in self.programs(self.work, []):
            for name in re.findall(r"^TEST\((\w+)\)", test.read_text(), re.M):
                began = time.monotonic()
                if not (self.variant == "thread" and name in SLOW) and run([program, name], 600, env=ENVIRONMENT)[0] == "ok":
                    result[test.stem, name] = time.monotonic() - began
        self.tests.sort(key=lambda test: sum(seconds for (file, _), seconds in result.items() if file == test.stem))
        return result

    def programs(self, directory: Path, changed: list[Path]) -> Iterator[tuple[Path, Path]]:
        """Link each test whose code is another."""
        libraries = [directory / object_name(s) for s in changed if s in LIBRARY]
        for test in self.tests:
            if not changed or test in changed or libraries:
                # What is inline is taken from the first object that has it.
                objects = {
                    path.name: path
                    for path in [
                        (directory if test in changed else self.work) / object_name(test),
                        *libraries,
                        *(self.work / object_name(source) for source in LIBRARY),
                    ][::-1]
                }
                program = directory / test.stem
                compiled(*self.flags, *list(objects.values())[::-1], "-ldl", "-o", program)
                yield test, program

    def __call__(self, mutant: Mutant, directory: Path) -> str | None:
        times = self.times
        csrc, directory = directory / "csrc", directory / self.variant
        directory.mkdir()
        # The CUDA backend knows the queue only by the counters' names.
        sources = [s for s in [*LIBRARY, *self.tests] if s == CSRC / mutant.file or mutant.file in includes(s)]
        changed = [s for s in sources if s.parent != CSRC / "cuda"]
        if not changed:
            return None
        for source in changed:
            path = csrc / source.relative_to(CSRC) if source in LIBRARY else source
            compiled(*self.flags, f"-I{csrc}", "-c", path, "-o", directory / object_name(source))
        for test, program in self.programs(directory, changed):
            for (file, name), seconds in times.items():
                if file == test.stem:
                    outcome, _ = run([program, name], max(HANGS, 20 * seconds), env=ENVIRONMENT)
                    if outcome != "ok":
                        return f"{test.stem}: {name}{' (hangs)' if outcome == 'hangs' else ''}"
        return None


ENVIRONMENT = {**os.environ, "TSAN_OPTIONS": "allocator_may_return_null=1:halt_on_error=1"}


class Model:
    """tests/model: every interleaving of a few workers."""

    lock = Lock()

    def __init__(self, work: Path) -> None:
        self.checker = work / "check.o"

    def __call__(self, mutant: Mutant, directory: Path) -> str | None:
        if mutant.file not in MODELED:
            return None
        with self.lock:
            if not self.checker.exists():
                compiled(*FLAGS, "-O2", "-c", MODEL / "check.cpp", "-o", self.checker)
        programs = {}
        for kind in set(map(kind_of, SCENARIOS)):
            at = directory / f"{kind.source} {kind.item_bytes}"
            at.mkdir()
            copy_changed(at)
            shutil.copy(directory / "csrc" / mutant.file, at / mutant.file)
            programs[kind] = at / "model"
            where = ["-I", at, "-I", MODEL, f"-DBYTES={kind.item_bytes}"]
            compiled(*FLAGS, "-w", "-O1", *where, MODEL / kind.source, self.checker, "-o", programs[kind])
        waiting = list(SCENARIOS)
        for most in MOST_STATES:
            again = []
            for name in waiting:
                bounds = SCENARIOS[name]
                words = [f"{key}={value}" for key, value in bounds.items() if key != "item_bytes"]
                outcome, said = run([programs[kind_of(name)], *words, f"most={most}"], 600)
                if "more states than are allowed" in said:
                    again.append(name)
                elif outcome != "ok":
                    return f"model: {name}{' (hangs)' if outcome == 'hangs' else ''}"
            waiting = again
        return None


class PythonTests:
    """Tests of the package, whose core is built with the fault in it."""

    def __init__(self, files: list[str], *, gpu: bool) -> None:
        self.files, self.gpu = files, gpu

    def __call__(self, mutant: Mutant, directory: Path) -> str | None:
        if not self.gpu and mutant.file not in BUILT:
            return None
        tree = directory / "tree"
        kept_out = shutil.ignore_patterns(".?*", "__pycache__", "build", "dist", "docs", "shared", "_lib")
        shutil.copytree(ROOT, tree, ignore=kept_out, symlinks=True)
        shutil.rmtree(tree / "csrc")
        shutil.copytree(directory / "csrc", tree / "csrc")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(tree), os.environ.get("PYTHONPATH")]))}
        if not self.gpu:
            environment["CUDA_HOME"] = "none"
        if run([sys.executable, "setup.py", "-q", "build_core"], 1800, cwd=tree, env=environment)[0] != "ok":
            raise DoesNotCompileError(mutant.what)
        for file in self.files:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/{file}"]
            command += ["-m", "gpu" if self.gpu else "not gpu", f"--timeout={60 if self.gpu else 120}"]
            outcome, said = run(command, 1200, fine=(0, 5), cwd=tree, env=environment)  # 5: a file without such tests
            if outcome != "ok":
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.M)
                return f"pytest: {failed[1].removeprefix('tests/')}" if failed else f"pytest: {file} ({outcome})"
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="of the faults to try; all of them unless told")
    parser.add_argument("--files", nargs="+", help="only the faults of these files of csrc")
    parser.add_argument(
        "--stages", default="core,model,thread,python", help="what tries them, in this order (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, help="faults at a time; as many as there are cores, or 1 with --gpu, unless told")
    parser.add_argument("--gpu", action="store_true", help="those that show on a GPU only, by the tests that need one")
    given = parser.parse_args()
    if unknown := set(given.ids) - set(MUTANTS):
        parser.error(f"there are no faults {', '.join(sorted(unknown))}")
    chosen = {
        name: mutant
        for name, mutant in MUTANTS.items()
        if (not given.ids or name in given.ids)
        and (not given.files or mutant.file in given.files)
        and (given.ids or mutant.survives.startswith(GPU) == given.gpu)
    }
    work = Path(tempfile.mkdtemp(prefix="atos-mutation-"))
    stages: dict[str, Callable[[Mutant, Path], str | None]] = {
        "core": CppTests(work, "core"),
        "model": Model(work),
        "thread": CppTests(work, "thread"),
        "python": PythonTests(ON_CPU, gpu=False),
    }
    wanted = [PythonTests(ON_GPU, gpu=True)] if given.gpu else [stages[name] for name in given.stages.split(",")]
    for stage in wanted:
        if isinstance(stage, CppTests):
            print(
                f"{stage.variant}: {len(stage.times)} tests in {sum(stage.times.values()):.0f} s", file=sys.stderr, flush=True
            )

    def outcome_of(name: str) -> str:
        mutant, directory = chosen[name], work / name
        try:
            with_fault(directory / "csrc", mutant)
            for stage in wanted:
                if found := stage(mutant, directory):
                    return found
            return f"**survived**{', ' + mutant.survives if mutant.survives else ''}"
        except DoesNotCompileError as error:
            return f"**does not compile**: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    rows: dict[str, str] = {}
    bad: list[str] = []
    with ThreadPoolExecutor(given.jobs or (1 if given.gpu else os.cpu_count())) as pool:
        begun = {pool.submit(outcome_of, name): name for name in chosen}
        for done in as_completed(begun):
            name, outcome = begun[done], done.result()
            mutant = chosen[name]
            as_said = outcome.startswith("**survived") == (bool(mutant.survives) and not given.gpu)
            if not as_said or outcome.startswith("**does not compile"):
                bad.append(name)
            rows[name] = f"| {name} | {mutant.file} | {mutant.what} | {outcome} |"
            print(rows[name], file=sys.stderr, flush=True)
    print("\n".join(["| id | file | fault | outcome |", "| --- | --- | --- | --- |", *(rows[name] for name in chosen)]))
    shutil.rmtree(work, ignore_errors=True)
    return len(bad) > 0


if __name__ == "__main__":
    sys.exit(main())
