"""Say where the time of a first call goes: each algorithm on each graph, in a process of its own, without a cache.

The package and Numba are imported and the graph is made before the call. With `--link` no GPU is needed: the call runs on the
CPU with the choices of a GPU, and the kernels that it launched are then compiled and linked.

Seconds are those of processor time, added over threads, but for `run`, which is by the clock of the device, and `wall`.

python benchmarks/first_use.py
python benchmarks/first_use.py --device cuda --scale-free rmat:22:16 --mesh road:4900:0.62
python benchmarks/first_use.py --link sm_90

What was made when the package was built (`python setup.py build_kernels`), kernels for `--device cuda` and lowered tasks for
`--device cpu`, is used if it is there; with `--compile` it is not, and never with `--link`.

python benchmarks/first_use.py --device cpu --call all --compile

With `--limits` it prints with which limit of registers the kernels of these calls link without a stack, if that is not the
least. A task whose kernels all take 64 says `max_registers={"cta": (64, None)}`, which spares the links with less.

python benchmarks/first_use.py --link sm_90 --limits --call all --repeat 1
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

USUAL = ("bfs", "pagerank", "color")
_LIMITS = (48, 64)  # of registers, that take another link
_PASSES = {
    "nopython_type_inference": "typing",
    "native_lowering": "lowering",
    "cuda_native_lowering": "lowering",
    "nopython_backend": "lowering",
    "cuda_backend": "lowering",
}
_SECONDS = {
    "start": "Numba's start",
    "typing": "typing",
    "lowering": "lowering",
    "Numba": "other passes",
    "LLVM": "LLVM, NVVM",
    "link": "nvJitLink",
    "load": "load",
    "run": "run",
    "rest": "rest",
    "call": "call",
    "wall": "wall",
}


class Clock:
    """Seconds of each part, without those of parts inside it, and how often a part began.

    Of processor time, added over the threads that compile and link, so that what else the machine does counts little.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.count: defaultdict[str, int] = defaultdict(int)
        self.threads = threading.local()
        self.limits: list[tuple[str, int | None]] = []  # of registers, of each kernel

    @property
    def open(self) -> list[list[Any]]:
        """Parts that this thread is in: name, beginning, and seconds of parts inside."""
        if not hasattr(self.threads, "open"):
            self.threads.open = []
        return self.threads.open  # type: ignore[no-any-return]

    def begin(self, part: str) -> None:
        self.count[part] += 1
        self.open.append([part, time.thread_time(), 0.0])

    def end(self) -> None:
        part, begin, inside = self.open.pop()
        took = time.thread_time() - begin
        self.seconds[part] += took - inside
        if self.open:
            self.open[-1][2] += took

    @contextlib.contextmanager
    def during(self, part: str, _task: str = "") -> Iterator[None]:
        self.begin(part)
        try:
            yield
        finally:
            self.end()

    def timed(self, owner: Any, name: str, part: str) -> None:
        true = getattr(owner, name)

        def wrapped(*args: Any, **options: Any) -> Any:
            with self.during(part):
                return true(*args, **options)

        setattr(owner, name, wrapped)


def watch(clock: Clock, *, cuda: bool) -> None:
    """Have the clock see the package's own parts, Numba's passes, LLVM, NVVM and the linker."""
    from numba.core import base, codegen, event, typing

    from atos_py.compile import linker as link
    from atos_py.compile import program

    if cuda:
        from atos_py.compile.codegen import target_cuda

        clock.timed(target_cuda, "compile_modules", "LLVM")
    for context in (base.BaseContext, typing.BaseContext):
        clock.timed(context, "refresh", "start")  # registers what there is, most of it the first time

    class Passes(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            clock.begin(_PASSES.get(event.data["name"].partition(" ")[0], "Numba"))

        def on_end(self, event: Any) -> None:
            clock.end()

    event.register("numba:run_pass", Passes())
    clock.timed(codegen.CPUCodeLibrary, "finalize", "LLVM")
    linked, best = link._link, link._link_best
    limit_of: dict[bytes, int | None] = {}

    def _link(*args: Any) -> Any:
        clock.count["links"] += 1
        kernel = linked(*args)
        limit_of[kernel.code] = args[-1]
        return kernel

    def _link_best(name: str, core: bytes, *args: Any) -> Any:
        kernel = best(name, core, *args)
        clock.limits.append((name, limit_of.get(kernel.code)))  # None: linked by another process
        return kernel

    link._link, link._link_best = _link, _link_best
    link.during = program.during = lambda part, task: clock.during({"compile": "Numba"}.get(part, part), task)  # type: ignore


def child(
    name: str, path: str, device: str | None, link_for: str | None, find_limits: bool, compile_all: bool
) -> dict[str, Any]:
    """Make the call in this process, and return what it took."""
    begin = time.thread_time()
    import atos_py as atos

    imported = time.thread_time()
    from atos_py.compile import linker as link
    from atos_py.compile.codegen import target_cpu as cpu  # noqa: F401

    on = atos.device("cpu" if link_for else device)
    cuda = bool(link_for) or on.kind == "cuda"
    if cuda:
        import cuda.core

        from atos_py.compile.codegen import target_cuda as _  # noqa: F401
    ready = time.thread_time()
    from atos_py.compile.recorder import recorded_programs
    from atos_py.compile.spec import REGISTERS
    from atos_py.tools import prelink

    clock = Clock()
    watch(clock, cuda=cuda)
    graph = atos.Graph.load(path, device=on)
    if link_for:
        link.num_threads = lambda: 1  # in turn, in the thread whose processor time is told
    if link_for or compile_all:
        link.find_prelinked = link.find_lowered = lambda *_: None
    source = int(np.argmax(graph.degrees()))
    clock.seconds.clear()
    clock.count.clear()
    # On a GPU the process does nothing but compile, link and wait; on the CPU other threads of it run the tasks.
    processor_time = time.process_time if cuda and not link_for else time.thread_time
    start, wall = processor_time(), time.perf_counter()
    with recorded_programs() as programs, prelink.as_a_gpu_chooses() if link_for else contextlib.nullcontext():
        run = prelink.call(name, graph, source).stats.milliseconds / 1e3
    limits: list[tuple[str, str, int | None]] = []
    if link_for:
        clock.seconds.clear()
        clock.count.clear()
        start, wall, run = processor_time(), time.perf_counter(), 0.0
        cc = int(link_for[3:-1]), int(link_for[-1])
        for spec in programs:
            before = len(clock.limits)
            with clock.during("load"):
                link.cubin(dataclasses.replace(spec, max_registers=REGISTERS) if find_limits else spec, cc)
            limits += [(kernel, spec.worker, limit) for kernel, limit in clock.limits[before:]]
    call, wall = processor_time() - start, time.perf_counter() - wall
    seconds = {part: clock.seconds[part] for part in ("start", "typing", "lowering", "Numba", "LLVM", "link", "load")}
    return {
        "import": imported - begin,
        "numba": ready - imported,
        "tasks": [spec.task.name for spec in programs],
        "limits": limits,
        "links": clock.count["links"],
        **seconds,
        "run": run,
        "rest": max(call - sum(seconds.values()), 0.0),  # the host's own: checks, arrays, queues, launches
        "call": call,
        "wall": wall,
    }


def in_a_process(name: str, path: Path, cache: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run `child` in a new process with this cache."""
    command = [sys.executable, __file__, "--child", name, str(path)]
    command += ["--device", options.device] if options.device else []
    command += ["--link", options.link] if options.link else []
    command += ["--limits"] if options.limits else []
    command += ["--compile"] if options.compile else []
    environment = os.environ | {"ATOS_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def fastest(name: str, path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fastest first call of several, and the fastest call of a process after such a one."""
    first, again = [], []
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as cache:
            first.append(in_a_process(name, path, cache, options))
            again.append(in_a_process(name, path, cache, options))
    return min(first, key=lambda found: found["wall"]), min(again, key=lambda found: found["wall"])


def graphs(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Write the graphs to files: scale-free, a mesh, and the scale-free one with each edge in one direction alone."""
    from atos_py.graph.spec import graph_of
    from atos_py.tools.prelink import directed_half

    scale_free = graph_of(options.scale_free + "@1-255", device="cpu")
    mesh = graph_of(options.mesh + "@1-255", device="cpu")
    for name, graph in (("scale-free", scale_free), ("mesh", mesh), ("directed", directed_half(scale_free))):
        path = folder / f"{name}.npz"
        graph.save(path)
        yield name, path


def print_limits(options: argparse.Namespace) -> None:
    """Print the least limit of each kernel and worker, where that is not the least of all."""
    found: defaultdict[tuple[str, str], set[int | None]] = defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        for _, path in graphs(options, Path(folder)):
            for name in options.call:
                with tempfile.TemporaryDirectory() as cache:
                    for kernel, worker, limit in in_a_process(name, path, cache, options)["limits"]:
                        found[kernel, worker].add(limit)
    for (kernel, worker), limits in sorted(found.items()):
        least = min(limit or _LIMITS[-1] for limit in limits)
        if least in _LIMITS:
            print(f"{kernel}, {worker}: {least}", flush=True)


def main() -> None:
    """Parse the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--device", help="the best there is, by default")
    where.add_argument("--link", metavar="SM", help="link for such a GPU, as sm_90, without one")
    parser.add_argument("--call", nargs="+", default=USUAL, metavar="NAME", help=f"or 'all'; default: {' '.join(USUAL)}")
    parser.add_argument("--scale-free", default="rmat:14:16", metavar="GRAPH", help="default: rmat:14:16")
    parser.add_argument("--mesh", default="road:200:0.62", metavar="GRAPH", help="default: road:200:0.62")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="times, of which the fastest is told; default: 3")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there, with the names of the tasks")
    parser.add_argument("--limits", action="store_true", help="with --link: print limits of registers instead")
    parser.add_argument("--compile", action="store_true", help="compile also what was made when the package was built")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*options.child, options.device, options.link, options.limits, options.compile)))
        return
    from atos_py.tools.prelink import CALLS  # a child tells how long the package takes to import

    if "all" in options.call:
        options.call = list(CALLS)
    if unknown := [name for name in options.call if name not in CALLS]:
        parser.error(f"--call is one of {', '.join(CALLS)}, or all (got {unknown[0]!r})")
    if options.limits:
        print_limits(options)
        return
    told = []
    print("| | tasks | links |", *(f"{title} |" for title in _SECONDS.values()), "again | import, Numba's |")
    print("|", *["--- |"] * (len(_SECONDS) + 5))
    with tempfile.TemporaryDirectory() as folder:
        for kind, path in graphs(options, Path(folder)):
            for name in options.call:
                first, again = fastest(name, path, options)
                told.append({"call": name, "graph": kind, "first": first, "again": again})
                parts = (f"{first[part]:.2f} |" for part in _SECONDS)
                imports = f"{first['import']:.2f}, {first['numba']:.2f}"
                cells = f"{len(first['tasks'])} | {first['links']} |", *parts, f"{again['call']:.2f} | {imports} |"
                print(f"| {name}, {kind} |", *cells, flush=True)
    if options.json:
        options.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
