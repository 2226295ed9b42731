"""Two tiers of kernels: the first one links at once, and another process links the best one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.compile import best_links, link_child
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.cuda_code import CudaCode, freeze_code, thaw_code
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import InvalidArgumentError
from atos_py.support import memory_cache

CC = (9, 0)
X = atos.zeros(4, dtype=np.uint32, device="cpu")
NUMBERS = atos.zeros(4, dtype=np.float64, device="cpu")


def length(v, x):
    return x[v]


@atos.task
def flat(worker, v, x):
    if atos.atomic_min(x, v, 3) > 3:
        worker.push(v + 1)


@atos.task(workload=length)
def nested(worker, v, i, x):
    worker.push(x[i])


@atos.task
def together(worker, v, x):
    scratch = worker.scratch(np.int32, 16)
    scratch[worker.rank % 16] = v
    worker.sync()
    if worker.sum(scratch[0]) > worker.round and worker.any(v > 3):
        worker.stop()


@atos.task(workload=length)
def later(worker, v, i, x):
    worker.push(v, task=flat)


def idle(worker, x):
    worker.push(x[0])


def between(worker, x):
    if worker.pending == 0:
        worker.set_mode(2)


PROGRAMS: dict[str, dict[str, Any]] = {
    "flat": {"task": flat},
    "nested": {"task": nested},
    "together": {"task": together},
    "kinds": {"task": Tasks((later, flat))},
    "idle": {"task": nested, "idle": idle},
    "rounds": {"task": together, "each_round": between},
}


def spec_of(name: str = "nested", worker: str = "cta", item: Any = np.uint32, **options: Any) -> ProgramSpec:
    return ProgramSpec(
        **{"idle": None, **PROGRAMS[name]}, kinds=(describe(X),), item_dtype=np.dtype(item), worker=worker, **options
    )


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch, tmp_path):
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    if not any(link.CORE_DIR.glob("ready_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CUDA_CACHE_DISABLE", "1")
    memory_cache.forget()
    link._compiled.cache_clear()


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_kernel_is_linked_at_once(name, worker, monkeypatch):
    monkeypatch.setattr(best_links._links, "put", lambda link: best_links._links)
    for item in (np.uint32, np.int64):
        kernel, better = link.first_cubin(spec_of(name, worker, item), CC)
        assert better is not None
        assert "error" not in kernel.log.lower()  # as of functions that are declared otherwise than they are
        assert kernel.symbol == "atos_kernel"
        assert kernel.registers <= 64  # so that blocks of 1,024 threads can be launched
        code = link._compile(spec_of(name, worker, item), CC)
        assert (kernel.value_words, kernel.asks_for_round) == (code.value_words, code.asks_for_round)


def test_another_process_links_what_this_one_would():
    spec = spec_of()
    kernel, better = link.first_cubin(spec, CC)
    assert better is not None
    better._ended.wait(120)
    assert better.is_due()
    best = link.cubin(spec, CC)
    assert best.code != kernel.code
    assert link.first_cubin(spec, CC) == (best, None)
    code = link._compile(spec, CC)
    here = link._link_best("nested", link._core(spec), code, CC, *spec.limits())
    assert (here.code, here.registers, here.spill_bytes, here.shared_bytes) == (
        best.code,
        best.registers,
        best.spill_bytes,
        best.shared_bytes,
    )
    memory_cache.forget()
    assert link.first_cubin(spec, CC) == (best, None)  # from the disk


def test_the_newest_link_is_made_first():
    links, made, all_put = best_links._Links(), [], threading.Event()

    class Link(best_links.BestLink):
        def __init__(self, number: int) -> None:
            self.number = number

        def run(self) -> None:
            all_put.wait(60)
            made.append(self.number)

    for number in range(4):
        links.put(Link(number))
        while number == 0 and links._waiting:  # until the thread has taken it
            time.sleep(0.001)
    all_put.set()
    while len(made) < 4:
        time.sleep(0.001)
    assert made == [0, 3, 2, 1]


def test_the_next_process_compiles_nothing(monkeypatch):
    """Not even where this one has ended before the best kernel was linked."""
    monkeypatch.setattr(best_links._links, "put", lambda link: best_links._links)
    kernels = [link.first_cubin(spec_of(worker="warp"), CC)[0]]
    memory_cache.forget()
    monkeypatch.setattr(link, "_compiled", None)
    for worker in ("warp", "cta"):  # which have the same code
        kernels.append(link.first_cubin(spec_of(worker=worker), CC)[0])
        memory_cache.forget()
    assert kernels[0].code == kernels[1].code != kernels[2].code
    facts = [(each.value_words, each.asks_for_round, each.sized_scratch) for each in kernels]
    assert facts[0] == facts[1] == facts[2]


def test_code_is_kept_as_it_is():
    code = CudaCode([b"module", b"other"], 2, 8, (3, 4), True, ptx=b"text")
    assert thaw_code(freeze_code(code)) == code


def test_the_best_kernel_is_waited_for():
    spec = spec_of("flat")
    kernel, better = link.first_cubin(spec, CC)
    best = link.cubin(spec, CC)
    assert best.code != kernel.code
    assert best.stack_bytes == 0
    assert better is not None
    assert link.first_cubin(spec, CC) == (best, None)


@pytest.mark.parametrize("options", [{"debug": True}, {"buckets": True}, {"inbox": True}, {"peers": True}, {"counters": True}])
def test_what_few_launches_use_waits_for_the_best_kernel(options):
    spec = spec_of("flat", **options)
    kernel, better = link.first_cubin(spec, CC)
    assert better is None
    assert kernel == link.cubin(spec, CC)


def test_other_architectures_wait_for_the_best_kernel():
    kernel, better = link.first_cubin(spec_of("flat"), (8, 0))
    assert better is None
    assert kernel == link.cubin(spec_of("flat"), (8, 0))


def test_a_link_that_fails_elsewhere_is_made_here(monkeypatch):
    monkeypatch.setattr(best_links, "_path_of_nvjitlink", lambda: "/nothing/libnvJitLink.so")
    kernels = {}
    for name in ("flat", "nested"):
        kernels[name], better = link.first_cubin(spec_of(name), CC)
        assert better is not None
        assert better._ended.wait(60)
        assert better.is_due()
    best, none = link.first_cubin(spec_of("flat"), CC)
    assert none is None
    assert best.code != kernels["flat"].code
    assert best == link.cubin(spec_of("flat"), CC)

    def fail(*_: Any) -> Any:
        raise atos.TaskCompileError("not here either")

    monkeypatch.setattr(link, "_link", fail)
    for _ in range(2):
        kernel, still = link.first_cubin(spec_of("nested"), CC)
        assert still is better
        assert kernel.code == kernels["nested"].code
        assert not better.is_due()  # launches go on with the first kernel
    with pytest.raises(atos.TaskCompileError, match="not here either"):
        link.cubin(spec_of("nested"), CC)


def test_the_child_says_what_is_wrong():
    link.first_cubin(spec_of("flat"), CC)  # which loads nvJitLink
    with pytest.raises(RuntimeError, match="bad input"):
        best_links._link_in_child((b"no fatbin", [], ["-arch=sm_90", "-lto"]))
    with pytest.raises(RuntimeError, match=r"option|status"):
        best_links._link_in_child((b"", [], ["--no-such-option"]))


def test_messages_of_the_child(tmp_path):
    path = tmp_path / "message"
    for parts in ([], [b""], [b"a\0b", b"c" * 100_000]):
        with path.open("wb") as stream:
            link_child.write_message(stream, {"word": "ü"}, *parts)
        with path.open("rb") as stream:
            assert link_child.read_message(stream) == ({"word": "ü", "sizes": list(map(len, parts))}, parts)
        content = path.read_bytes()
        for end in range(min(len(content), 60)):
            path.write_bytes(content[:end])
            with path.open("rb") as stream, pytest.raises(EOFError):
                link_child.read_message(stream)


def test_links_wait_for_each_other():
    """One link runs at a time; what waits can be taken back."""
    runs, may_go = [], threading.Event()

    def make(name: str) -> Any:
        def run(elsewhere: Any) -> None:
            runs.append(name)
            assert may_go.wait(60)

        return run

    first = best_links.BestLink(make("first"))
    while not runs:
        time.sleep(0.001)
    second, third = best_links.BestLink(make("second")), best_links.BestLink(make("third"))
    second.finish()  # at once, since nobody has begun it
    assert not first.is_due()
    may_go.set()
    first.finish()
    third.finish()
    assert runs in (["first", "third"], ["first"])  # unless the third was taken back as well
    assert first.is_due()
    assert not second.is_due()


def test_no_kernel_is_loaded_beside_a_launch():
    better = best_links.BestLink(lambda elsewhere: None)
    assert better._ended.wait(60)
    assert better.is_due()
    best_links.running.append(None)
    try:
        assert not better.is_due()
    finally:
        best_links.running.pop()
    assert better.is_due()


def test_who_measures_gets_the_best(monkeypatch):
    failing = best_links.BestLink(lambda elsewhere: 1 / 0)
    assert failing._ended.wait(60)
    assert [failing.give_up(), failing.give_up(), failing.is_due()] == [True, False, False]
    with best_links.only_best(), best_links.only_best():
        assert failing.is_due()
    assert not best_links.wants_best()
    monkeypatch.setenv("ATOS_TIER", "best")
    assert best_links.wants_best()
    monkeypatch.setenv("ATOS_TIER", "fast")
    with pytest.raises(InvalidArgumentError, match="ATOS_TIER is auto or best \\(got 'fast'\\)"):
        best_links.wants_best()


@pytest.mark.parametrize("executable", ["", None, "/opt/blender", "/usr/bin/nsys"])
def test_a_program_with_python_in_it_starts_no_copy_of_itself(executable, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    assert not best_links.can_link_elsewhere()
    kernel, better = link.first_cubin(spec_of("flat"), CC)
    assert better is None
    assert kernel.stack_bytes == 0


SCRIPT = """
import os, sys, time
sys.path[:0] = sys.argv[1:3]
import test_best_links as tests
kernel, better = tests.link.first_cubin(tests.spec_of(), tests.CC)
while tests.best_links._links.child is None:
    time.sleep(0.001)
print(tests.best_links._links.child.pid, flush=True)
"""


def run_script(rest: str) -> str:
    tests = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT + rest, str(tests), str(tests.parent)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout


@pytest.mark.parametrize("rest", ["", "os._exit(0)"])
def test_a_link_ends_with_its_process(rest):
    child = int(run_script(rest).split()[0])
    for _ in range(1000):
        if not Path(f"/proc/{child}").exists() or Path(f"/proc/{child}/stat").read_text().split(")")[1].split()[0] == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {child} goes on")


def test_a_forked_process_links_for_itself():
    rest = """
child = os.fork()
if child == 0:
    assert tests.best_links._links.child is None
    best = tests.link.cubin(tests.spec_of(), tests.CC)
    print("best" if best.code != kernel.code else "first", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert tests.link.cubin(tests.spec_of(), tests.CC).stack_bytes == 0
print("parent")
"""
    assert run_script(rest).split()[1:] == ["best", "parent"]


def test_what_was_built_is_noted():
    built = json.loads((link.CORE_DIR / "built.json").read_text())
    assert "90" in built["ready"]
    for worker in ("thread", "warp", "cta"):
        for size in (4, 8, 16, 32):
            assert (link.CORE_DIR / f"ready_{worker}_{size}.fatbin").stat().st_size < 200_000


def test_a_core_without_ready_loops_links_the_best(monkeypatch, tmp_path):
    for each in link.CORE_DIR.iterdir():
        if not each.name.startswith("ready_"):
            os.symlink(each, tmp_path / each.name)
    monkeypatch.setattr(link, "CORE_DIR", tmp_path)
    kernel, better = link.first_cubin(spec_of("flat"), CC)
    assert better is None
    assert kernel.stack_bytes == 0
