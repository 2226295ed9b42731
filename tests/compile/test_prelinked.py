"""Kernels of the package that are linked beforehand: their names, and the archive that holds them for one kind of GPU."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_arrays import FakeArray
from repository import ROOT

import atos_py as atos
from atos_py.algorithms.bfs.tasks import visit, visit_within
from atos_py.algorithms.coloring import assign, check
from atos_py.compile import linker as link
from atos_py.compile import prelinked
from atos_py.compile.archive import hash_sources, name_in_archive, write_archive
from atos_py.compile.arguments import describe
from atos_py.compile.kinds import Tasks
from atos_py.compile.linker import LinkedKernel, freeze, thaw
from atos_py.compile.recorder import recorded_programs
from atos_py.compile.spec import ProgramSpec
from atos_py.compile.vector_access import load4, store4
from atos_py.support import memory_cache
from atos_py.tools import prelink

KERNEL = LinkedKernel(b"\x7fELF" + bytes(100), "atos_kernel", 2, 0, False, 38, 0, 0, 16, "", sized_scratch=(3, 4))
GRAPH = atos.Graph._make([*(FakeArray(np.zeros(2, dtype), True) for dtype in ("i8", "u4")), None])
DEPTH = FakeArray(np.zeros(2, "u4"), False)
KINDS = tuple(map(describe, (GRAPH, DEPTH)))
U4 = np.dtype("u4")


def name_of(task, kinds=KINDS, dtype=U4, worker="cta", **options):
    return name_in_archive(ProgramSpec(task, None, kinds, dtype, worker, **options))


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive with one kernel, that of `visit`."""
    path = tmp_path / "kernels.xz"
    monkeypatch.setattr(prelinked, "ARCHIVE", path)
    prelinked._kernels.cache_clear()
    write_archive(path, hash_sources(), {name_of(visit): freeze(KERNEL), "other": [b"", b"{}"]})
    yield path
    prelinked._kernels.cache_clear()


def find():
    prelinked._kernels.cache_clear()
    return prelinked.find_prelinked(ProgramSpec(visit, None, KINDS, U4), (9, 0))


def test_a_kernel_comes_back_from_the_archive(archive):
    assert thaw(find()) == KERNEL


def test_what_a_kernel_depends_on_is_in_its_name():
    names = [
        name_of(visit),
        name_of(visit, kinds=KINDS[::-1]),
        name_of(visit, dtype=np.dtype("u8")),
        name_of(visit, worker="warp"),
        name_of(visit, max_registers=40),
        name_of(replace(visit, max_registers={"cta": 48})),
        name_of(visit, buckets=True),
        name_of(visit, each_round=visit.body),
        name_of(visit, inbox=True),
        name_of(atos.task(workload=visit_within.workload)(visit.body)),
        name_of(assign),
        name_of(Tasks((assign, check))),
        name_of(Tasks((check, assign))),
    ]
    assert None not in names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("word", [atos.atomic_add, atos.load_cached, atos.local_array, atos.pack, atos.random, load4, store4])
def test_kernels_with_words_of_tasks_have_names(word):
    importlib.import_module("atos_py.compile.codegen.prepare")  # Numba knows the words then

    def use(worker, v, array):
        word(array, v)

    assert ProgramSpec(atos.Task(use), None, KINDS, U4).fingerprint() is not None


def test_names_are_the_same_in_another_process():
    code = f"""if True:
        import sys
        sys.path[:0] = [{str(ROOT / "tests")!r}, {str(Path(__file__).parent)!r}]
        from test_prelinked import name_of, visit
        print(name_of(visit))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == name_of(visit)


def test_tasks_of_users_have_no_name():
    @atos.task(workload=visit.workload)
    def mine(worker, v, i, first, next_depth, graph, depth):
        worker.push(v)

    assert name_of(mine) is None


def test_an_archive_of_other_sources_does_not_count(archive):
    content = archive.read_bytes()
    archive.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert find() is None


@pytest.mark.parametrize("at", [40, -40])
def test_a_damaged_archive_does_not_count(archive, at):
    content = bytearray(archive.read_bytes())
    content[at] ^= 1
    archive.write_bytes(content)
    assert find() is None
    archive.write_bytes(content[:-10])
    assert find() is None


def test_without_an_archive_there_are_none(archive):
    archive.unlink()
    assert find() is None


def test_settings_of_numba_count_for_kernels_that_are_compiled(archive, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert find() is not None
    monkeypatch.setenv("NUMBA_OPT", "0")
    assert find() is None


def test_other_gpus_have_none(archive):
    assert prelinked.find_prelinked(ProgramSpec(visit, None, KINDS, U4), (8, 0)) is None


def test_a_prelinked_kernel_takes_no_compiler(archive, monkeypatch):
    def compiled(*_):
        raise AssertionError("compiled")

    monkeypatch.setattr(link, "_compiled", compiled)
    memory_cache.forget()
    monkeypatch.setattr(link, "read_entry", lambda name: None)
    prelinked._kernels.cache_clear()
    if not any(link.CORE_DIR.glob("core_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    assert link.cubin(ProgramSpec(visit, None, KINDS, U4), (9, 0)) == KERNEL
    with pytest.raises(AssertionError, match="compiled"):
        link.cubin(ProgramSpec(visit, None, KINDS, U4, "warp"), (9, 0))


def test_launches_of_a_call_are_recorded_with_the_choices_of_a_gpu():
    graph = atos.generate.rmat(10, 16, device="cpu")
    with recorded_programs() as specs:
        atos.bfs(graph, 0)
        assert [spec.task.name for spec in specs][-1] == "visit"
        with prelink.as_a_gpu_chooses():
            atos.bfs(graph, 0)
        tasks = [spec.task.name for spec in specs]
        atos.bfs(atos.generate.road(9, device="cpu"), 0)
    assert "expand, pull, list_level" in tasks
    assert len(specs) == len(tasks)
    assert None not in list(map(name_in_archive, specs))
