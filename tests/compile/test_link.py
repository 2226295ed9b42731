"""Linking and the cache: what is kept, what makes a new entry, and what of a cache directory is not trusted."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from cpu_harness import Harness
from fake_arrays import FakeArray
from repository import ROOT

import atos_py as atos
from atos_py.compile import linker as link
from atos_py.compile import toolchain
from atos_py.compile.arguments import describe
from atos_py.compile.program import register_limits
from atos_py.compile.scratch import sized_scratch
from atos_py.compile.spec import REGISTERS, ProgramSpec
from atos_py.errors import BuildError, TaskCompileError
from atos_py.support import memory_cache

ITEM = np.dtype(np.uint32)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache directory of the test's own."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("ATOS_CACHE_DIR", str(directory))
    forget()
    return directory


def forget() -> None:
    """Forget what is kept in memory, as a new process would."""
    memory_cache.forget()


def entries(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.exists() else []


def make(text: str = "v + 1", **variables: Any) -> atos.Task:
    """Return a task that pushes an expression, over global variables of its own."""
    exec(f"def body(worker, v):\n    worker.push({text})\n", variables)
    return atos.task(variables["body"])


def pushed(task: atos.Task, item: int = 5) -> list[int]:
    harness = Harness(np.uint32)
    harness.run(link.native(ProgramSpec(task, None, (), ITEM)), [item])
    return harness.pushed


@pytest.fixture
def compilations(monkeypatch):
    """Counts how often something is compiled for the CPU."""
    from atos_py.compile.codegen import target_cpu as cpu

    counts: list[str] = []
    original = cpu.compile_cpu
    monkeypatch.setattr(cpu, "compile_cpu", lambda spec: counts.append(spec.task.name) or original(spec))
    return counts


def test_a_task_is_compiled_once(compilations, cache):
    task = make()
    assert link.native(ProgramSpec(task, None, (), ITEM)) is link.native(ProgramSpec(task, None, (), ITEM))
    assert pushed(make()) == [6]  # another task of the same content
    assert len(compilations) == 1
    forget()
    assert pushed(make()) == [6]
    assert len(compilations) == 1
    assert len(entries(cache)) == 1


def helper_module(factor: int) -> Any:
    module = type(sys)("helpers")
    exec(f"def scaled(x):\n    return x * {factor}", vars(module))
    return module


def function(text: str) -> Any:
    return eval(f"lambda x: {text}")


def closure(offset: int) -> atos.Task:
    def body(worker, v):
        worker.push(v + offset)

    return atos.task(body)


def narrow(kind: str) -> atos.Task:
    import numba  # not above: a test below looks at what imports it

    variables: dict[str, Any] = {}
    exec("def f(x):\n    y = x * 60\n    return y\n", variables)
    return make("f(v)", f=numba.njit(locals={"y": getattr(numba, kind)})(variables["f"]))


class Before(NamedTuple):
    value: int


CHANGES = {
    "source": (lambda: make("v + 1"), lambda: make("v + 2"), 6, 7),
    "global number": (lambda: make("v + N", N=1), lambda: make("v + N", N=2), 6, 7),
    "global array": (lambda: make("v + N[1]", N=np.array([0, 1])), lambda: make("v + N[1]", N=np.array([0, 2])), 6, 7),
    "type of a global": (
        lambda: make("v + (N << 31 >> 31)", N=np.int32(3)),
        lambda: make("v + (N << 31 >> 31)", N=np.int64(3)),
        8,
        8,
    ),
    "helper": (lambda: make("f(v)", f=function("x + 1")), lambda: make("f(v)", f=function("x + 2")), 6, 7),
    "helper of a helper": (
        lambda: make("g(v)", g=eval("lambda x: f(x)", {"f": function("x + 1")})),
        lambda: make("g(v)", g=eval("lambda x: f(x)", {"f": function("x + 2")})),
        6,
        7,
    ),
    "helper in a module": (
        lambda: make("m.scaled(v)", m=helper_module(2)),
        lambda: make("m.scaled(v)", m=helper_module(3)),
        10,
        15,
    ),
    "closure": (lambda: closure(1), lambda: closure(2), 6, 7),
    "default": (
        lambda: make("f(v)", f=eval("lambda x, y=1: x + y")),
        lambda: make("f(v)", f=eval("lambda x, y=2: x + y")),
        6,
        7,
    ),
    "options of a helper": (lambda: narrow("int32"), lambda: narrow("uint8"), 300, 44),
}


@pytest.mark.parametrize(("before", "after", "first", "second"), CHANGES.values(), ids=CHANGES)
def test_a_change_makes_a_new_entry(compilations, cache, before, after, first, second):
    assert pushed(before()) == [first]
    assert pushed(after()) == [second]
    forget()
    assert pushed(before()) == [first]
    assert pushed(after()) == [second]
    assert len(compilations) == len(entries(cache)) == 2


def test_kinds_items_and_idle_make_new_entries(cache):
    def body(worker, v, x):
        pass

    def idle(worker, x):
        pass

    def other_idle(worker, x):
        worker.push(1)

    kinds = [describe(value) for value in (1, 1.5, FakeArray(np.zeros(1)), FakeArray(np.zeros(1), True), None, Before(1))]
    task = atos.task(body)
    for kind in kinds:
        link.native(ProgramSpec(task, None, (kind,), ITEM))
    link.native(ProgramSpec(task, None, (kinds[0],), np.dtype(np.uint64)))
    link.native(ProgramSpec(task, idle, (kinds[0],), ITEM))
    link.native(ProgramSpec(task, other_idle, (kinds[0],), ITEM))
    assert len(entries(cache)) == 9


def test_what_has_no_name_is_not_kept(compilations, cache):
    class Holder:
        value = 1

    # Never compiled, but what a global refers to decides how the task is named.
    task = make("v + 1 if True else h.value", h=Holder())
    assert link.name_in_cache(ProgramSpec(task, None, (), ITEM)) is not None  # Python itself drops the other branch
    task = make("v + 1 if v else h", h=Holder())
    assert link.name_in_cache(ProgramSpec(task, None, (), ITEM)) is None
    with pytest.raises(TaskCompileError):
        pushed(task)
    assert entries(cache) == []


def test_entries_are_private(cache):
    pushed(make())
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in entries(cache)] == [0o600]


def flip_last_byte(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


DAMAGES = {
    "changed": flip_last_byte,
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-10]),
    "empty": lambda path: path.write_bytes(b""),
    "writable by the group": lambda path: path.chmod(0o620),
    "writable by all": lambda path: path.chmod(0o602),
    "unreadable": lambda path: (path.unlink(), path.mkdir(), path.rmdir()),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_and_untrusted_entries_are_made_anew(compilations, cache, damage):
    pushed(make())
    (entry,) = entries(cache)
    good = entry.read_bytes()
    damage(entry)
    for _ in range(2):
        forget()
        assert pushed(make()) == [6]
    assert len(compilations) == 2
    assert len(good) > 1000
    assert entries(cache) == [entry]
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


def test_an_entry_under_another_name_is_not_taken(compilations, cache):
    pushed(make("v + 1"))
    (first,) = entries(cache)
    pushed(make("v + 2"))
    (second,) = set(entries(cache)) - {first}
    shutil.copy(first, second)
    forget()
    assert pushed(make("v + 2")) == [7]


def test_a_link_is_not_followed(compilations, cache, tmp_path):
    pushed(make())
    (entry,) = entries(cache)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    forget()
    assert pushed(make()) == [6]
    assert len(compilations) == 2
    assert not entry.is_symlink()


def test_a_directory_that_cannot_be_made_means_no_cache(compilations, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert pushed(make()) == [6]
    forget()
    assert pushed(make()) == [6]
    assert len(compilations) == 2


def test_the_sources_of_the_compiler_are_part_of_the_name(monkeypatch):
    task = make()
    before = link.name_in_cache(ProgramSpec(task, None, (), ITEM))
    monkeypatch.setattr(toolchain, "_toolchain", lambda: ("another version",))
    assert link.name_in_cache(ProgramSpec(task, None, (), ITEM)) != before


def test_settings_of_numba_are_part_of_the_name(monkeypatch):
    task = make()
    names = [link.name_in_cache(ProgramSpec(task, None, (), ITEM))]
    for value in ("0", "1"):
        monkeypatch.setenv("NUMBA_OPT", value)
        names.append(link.name_in_cache(ProgramSpec(task, None, (), ITEM)))
    assert len(set(names)) == 3
    monkeypatch.delenv("NUMBA_OPT")
    assert link.name_in_cache(ProgramSpec(task, None, (), ITEM)) == names[0]


def test_settings_of_numba_that_the_program_changes_are_part_of_the_name(monkeypatch, tmp_path):
    from numba.core import config

    task = make()
    names = [link.name_in_cache(ProgramSpec(task, None, (), ITEM))]
    with monkeypatch.context() as patch:
        patch.setattr(config, "BOUNDSCHECK", 1)
        names.append(link.name_in_cache(ProgramSpec(task, None, (), ITEM)))
        patch.chdir(tmp_path)
        Path(".numba_config.yaml").write_text("opt: 0\n")
        names.append(link.name_in_cache(ProgramSpec(task, None, (), ITEM)))
    assert len(set(names)) == 3
    assert link.name_in_cache(ProgramSpec(task, None, (), ITEM)) == names[0]


def test_what_another_thread_does_with_numba_meanwhile_changes_no_name(monkeypatch):
    """LLVM runs for long with a setting of ours; and a module has no lock while it is imported."""
    from numba.core import config

    from atos_py.compile.codegen.numba_patches import vectorize_unrolled_loops

    task = make()
    name = link.name_in_cache(ProgramSpec(task, None, (), ITEM))
    with vectorize_unrolled_loops():
        assert link.name_in_cache(ProgramSpec(task, None, (), ITEM)) == name

    class Adding:
        """A setting that is shown while the module gets another one."""

        def __repr__(self) -> str:
            setattr(half, f"SETTING_{len(vars(half))}", 0)
            return ""

    half = ModuleType(config.__name__)
    half.__file__, half.SETTING = config.__file__, Adding()
    monkeypatch.setitem(sys.modules, config.__name__, half)
    assert link.name_in_cache(ProgramSpec(task, None, (), ITEM)) == name


def test_importing_numba_changes_no_name():
    script = (
        "import sys, numpy as np, atos_py as atos\n"
        "from atos_py.compile import linker as link\n"
        "from atos_py.compile.spec import REGISTERS, ProgramSpec\n"
        "task = atos.task(lambda worker, v: worker.push(v))\n"
        "name = lambda: link.name_in_cache(ProgramSpec(task, None, (), np.dtype('u4')))\n"
        "names = {name()}\n"
        "import numba; names.add(name())\n"
        "import atos_py.compile.codegen.target_cpu; names.add(name())\n"
        "import numba.cuda, atos_py.compile.codegen.target_cuda; names.add(name())\n"
        "print(len(names))\n"
    )
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "1\n"


def scratch_in_a_dispatcher() -> atos.Task:
    import numba  # not above: a test below looks at what imports it

    return make("f(worker)", f=numba.njit(eval("lambda worker: len(worker.scratch(np.int32))", {"np": np})))


SCRATCH = {
    "none": (make, 0),
    "the largest": (lambda: make("len(worker.scratch(np.int8)) + len(worker.scratch(np.float64))", np=np), 8),
    "in a helper": (lambda: make("f(worker)", f=eval("lambda worker: len(worker.scratch(np.int32))", {"np": np})), 4),
    "in a dispatcher": (scratch_in_a_dispatcher, 4),
}


@pytest.mark.parametrize(("task", "itemsize"), SCRATCH.values(), ids=SCRATCH)
def test_that_a_task_takes_scratch_is_kept(cache, compilations, task, itemsize):
    task = task()
    for _ in range(2):
        assert link.native(ProgramSpec(task, None, (), ITEM)).scratch_itemsize == itemsize
        forget()
    assert len(compilations) == 1
    # A dispatcher is compiled by now, and is not compiled again for the same worker.
    assert link.native(ProgramSpec(task, lambda worker: None, (), ITEM)).scratch_itemsize == itemsize


SIZED = "len(worker.scratch(np.int8, 17)) + len(worker.scratch(np.int64, 3)) + len(worker.group(4).scratch(np.int16, 12))"
NEEDS = (64, 0, 0, 48, 0, 0, 0)  # in multiples of 16 bytes, odd ones for groups


def test_the_size_of_groups_is_part_of_the_name():
    def body(worker, v, i):
        worker.push(v)

    tasks = [atos.task(workload=lambda v: v, group=group)(body) for group in (None, 2, 4)]
    assert len({link.name_in_cache(ProgramSpec(task, None, (), ITEM)) for task in tasks}) == 3


def test_what_scratch_a_task_sizes_is_kept(cache, compilations):
    task = make(SIZED, np=np)
    for _ in range(2):
        assert link.native(ProgramSpec(task, None, (), ITEM)).sized_scratch == NEEDS
        forget()
    assert len(compilations) == 1
    assert link.native(ProgramSpec(make(), None, (), ITEM)).sized_scratch == ()


def test_scratch_of_a_worker():
    assert sized_scratch((), 256) == 0
    assert [sized_scratch(NEEDS, threads) for threads in (1, 32, 256)] == [64 + 48, 64 + 8 * 48, 64 + 64 * 48]


# CUDA


CC = (9, 0)


@pytest.fixture
def core_dir(stand_ins_path, tmp_path, monkeypatch):
    directory = shutil.copytree(stand_ins_path, tmp_path / "core")
    monkeypatch.setattr(link, "CORE_DIR", directory)
    return directory


def plan(v, x):
    return v, v


@atos.task(workload=plan)
def nested(worker, v, i, first, x):
    if atos.atomic_min(x, first + i, v) > v:
        worker.push(first)


KINDS = (describe(FakeArray(np.zeros(1, np.uint32))),)


def test_a_kernel_is_linked_without_stack_or_spills(core_dir):
    kernel = link.cubin(ProgramSpec(nested, None, KINDS, ITEM), CC)
    assert kernel.symbol == "atos_kernel"
    assert kernel.value_words == 1
    assert kernel.code[:4] == b"\x7fELF"
    assert b"atos_kernel" in kernel.code
    assert b"atos_task" not in kernel.code
    assert 0 < kernel.registers <= 64
    assert (kernel.stack_bytes, kernel.spill_bytes, kernel.shared_bytes) == (0, 0, 0)
    assert "atos_kernel" in kernel.log


@pytest.mark.parametrize(("task", "itemsize"), SCRATCH.values(), ids=SCRATCH)
def test_that_a_kernel_takes_scratch_is_kept(core_dir, task, itemsize):
    task = task()
    for _ in range(2):
        assert link.cubin(ProgramSpec(task, None, (), ITEM), CC).scratch_itemsize == itemsize
        forget()


def test_what_scratch_a_kernel_sizes_is_kept(core_dir):
    task = make(SIZED, np=np)
    for _ in range(2):
        assert link.cubin(ProgramSpec(task, None, (), ITEM), CC).sized_scratch == NEEDS
        forget()


@pytest.mark.parametrize(("processors", "tried"), [(2, [40, 48, 64]), (16, [40, 48, 64, None])])
@pytest.mark.parametrize("spilled", [{40: 16, 48: 8}, {40: 16, 48: 8, 64: 8, None: 8}], ids=["64 are enough", "none are"])
def test_limits_tried_at_once_choose_as_those_in_turn(processors, tried, spilled, monkeypatch):
    limits = []

    def linked(name: str, core: bytes, code: Any, cc: tuple[int, int], limit: int | None) -> link.LinkedKernel:
        limits.append(limit)
        spills = spilled.get(limit, 0)
        return link.LinkedKernel(b"", "atos_kernel", 0, 0, False, limit or 255, spills, spills, 0, "")

    monkeypatch.setattr(link, "_link", linked)
    monkeypatch.setattr(link, "num_threads", lambda: processors)
    kernel = link._link_best("task", b"", None, CC, REGISTERS, 0)
    assert kernel.registers == (48 if None in spilled else 64)
    assert sorted(limits, key=lambda limit: limit or 255) == (tried if None not in spilled else [40, 48, 64, None])


@pytest.mark.parametrize(("allowed", "registers"), [(0, 64), (15, 48), (16, 40), (1000, 40)])
def test_few_spills_may_be_allowed(allowed, registers, monkeypatch):
    def linked(name: str, core: bytes, code: Any, cc: tuple[int, int], limit: int) -> link.LinkedKernel:
        spills = {40: 16, 48: 8}.get(limit, 0)
        return link.LinkedKernel(b"", "atos_kernel", 0, 0, False, limit, spills, spills, 0, "")

    monkeypatch.setattr(link, "_link", linked)
    monkeypatch.setattr(link, "num_threads", lambda: 1)
    assert link._link_best("task", b"", None, CC, REGISTERS, allowed).registers == registers


def test_registers_are_limited(core_dir):
    def body(worker, v, x):
        a, b, c, d, e, f = v, v + 1, v + 2, v + 3, v + 4, v + 5
        for _ in range(v):
            a, b, c, d, e, f = b * x[a], c * x[b], d * x[c], e * x[d], f * x[e], a * x[f]
        worker.push(a + b + c + d + e + f)

    free = link.cubin(ProgramSpec(atos.task(body), None, KINDS, ITEM), CC)
    tight = link.cubin(ProgramSpec(atos.task(body), None, KINDS, ITEM, max_registers=24), CC)
    assert tight.registers <= 24 < free.registers


def test_larger_blocks_take_registers_for_as_many_threads_at_once():
    """Blocks of 512 threads and 76 registers would be alone on a multiprocessor, which holds two with 64."""
    assert register_limits(256) is register_limits(32) is None
    assert register_limits(512) == (40, 64, 128)
    assert register_limits(1024) == (64,)
    for threads in range(257, 1025):
        limits = register_limits(threads)
        assert sorted(limits) == list(limits)
        for limit in limits:
            blocks = 65536 // (threads * limit)
            assert blocks >= 1
            assert 65536 // (threads * (limit + 8)) < blocks  # with no more registers there would be as many


def test_what_makes_another_kernel(core_dir, cache):
    link.cubin(ProgramSpec(nested, None, KINDS, ITEM), CC)
    link.cubin(ProgramSpec(nested, None, KINDS, np.dtype(np.int64)), CC)
    link.cubin(ProgramSpec(nested, None, KINDS, ITEM, max_registers=40), CC)
    assert len(entries(cache)) == 3
    core = core_dir / "core_cta_4.fatbin"
    core.write_bytes(core.read_bytes() + b"\0" * 8)
    forget()
    link.cubin(ProgramSpec(nested, None, KINDS, ITEM), CC)
    assert len(entries(cache)) == 4


def test_a_stored_kernel_needs_neither_numba_nor_the_linker(core_dir):
    kernel = link.cubin(ProgramSpec(nested, None, KINDS, ITEM), CC)
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path\n"
        "import test_link, hashlib\n"
        "before = set(sys.modules)\n"
        "test_link.link.CORE_DIR = Path(sys.argv[1])\n"
        "kernel = test_link.link.cubin(\n"
        "    test_link.ProgramSpec(test_link.nested, None, test_link.KINDS, test_link.ITEM), test_link.CC)\n"
        "slow = sorted(name for name in set(sys.modules) - before if name.startswith(('numba', 'cuda')))\n"
        "print(hashlib.sha256(kernel.code).hexdigest(), slow)\n"
    )
    import hashlib

    command = [sys.executable, "-c", script, str(core_dir), str(ROOT / "tests"), str(Path(__file__).parent)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(None, 1)
    assert output == [hashlib.sha256(kernel.code).hexdigest(), "[]\n"]


def test_a_core_without_gpu_support_is_reported(core_dir):
    with pytest.raises(BuildError, match=r"built without GPU support: .*core_warp_4.fatbin cannot be read"):
        link.cubin(ProgramSpec(nested, None, KINDS, ITEM, "warp"), CC)


@pytest.mark.part("programs")
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, [("vertex", "i8"), ("distance", "f8")]], ids=["4", "8", "16"])
def test_tasks_link_into_the_core_itself(worker, dtype):
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    dtype = np.dtype(dtype)
    if not (link.CORE_DIR / f"core_{worker}_{dtype.itemsize}.fatbin").exists():
        pytest.skip("the core is built without GPU support")

    def length(item, x):
        return x[0]

    @atos.task(workload=length)
    def body(worker, item, i, x):
        if atos.atomic_min(x, i, 3) > 3:
            worker.push(item)

    for cc in [(7, 5), (8, 6), (9, 0), (12, 0)]:
        kernel = link.cubin(ProgramSpec(body, None, KINDS, dtype, worker), cc)
        assert kernel.registers <= 128
        assert (kernel.stack_bytes, kernel.spill_bytes) == (0, 0)


def test_a_core_that_does_not_link_is_reported(core_dir):
    (core_dir / "core_cta_4.fatbin").write_bytes(b"no fatbin")
    with pytest.raises(TaskCompileError, match="'nested' compiled but did not link for sm_90"):
        link.cubin(ProgramSpec(nested, None, KINDS, ITEM), CC)
