"""Tasks of the package that are lowered beforehand for CPUs: the same code, and an archive for its own sources and versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding
from repository import ROOT

import atos_py as atos
from atos_py.algorithms.bfs.tasks import visit
from atos_py.compile import archive, cpu_archive
from atos_py.compile.archive import hash_sources, is_current, name_in_archive, write_archive
from atos_py.compile.codegen import target_cpu as cpu
from atos_py.compile.cpu_archive import archive_key, collected_tasks, find_lowered
from atos_py.compile.recorder import recorded_programs
from atos_py.support import memory_cache
from atos_py.tools import prelink

GRAPH = atos.generate.rmat(6, 8, device="cpu")


def specs_of(call):
    """Return the specs of everything that a call launches."""
    with recorded_programs() as specs:
        call()
    return [spec.on_cpu() for spec in specs]


@pytest.fixture(scope="module")
def of():
    """The spec of the task of `bfs`."""
    return specs_of(lambda: atos.bfs(GRAPH, 0, direction="push"))[0]


@pytest.fixture(scope="module")
def lowered(of):
    return cpu.lower_cpu(of)


def forget():
    """Forget what is kept in memory, as a new process would."""
    cpu_archive._tasks.cache_clear()
    memory_cache.forget()
    atos.release_memory()  # with the launches that are kept with graphs


@pytest.fixture
def path(of, lowered, tmp_path, monkeypatch):
    """An archive with the task of `bfs` alone, and an empty cache."""
    path = tmp_path / "tasks.xz"
    monkeypatch.setattr(cpu_archive, "CPU_ARCHIVE", path)
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "cache"))
    write_archive(path, archive_key(cpu.abi()), {name_in_archive(of): lowered})
    forget()
    yield path
    forget()


@pytest.fixture
def compiled(monkeypatch):
    """The names of the tasks that Numba compiles."""
    names: list[str] = []
    original = cpu.compile_cpu
    monkeypatch.setattr(cpu, "compile_cpu", lambda spec: names.append(spec.task.name) or original(spec))
    return names


def calls_of(code):
    """Return the instructions without names and addresses, which are those of one compilation."""
    lines = re.findall(r"^\s+([a-z]\w*\b[^\n#]*)", code.assembly, re.MULTILINE)
    return [line for line in lines if "atos_" not in line and "_Z" not in line]


@pytest.mark.parametrize(
    "call",
    [
        lambda: atos.bfs(GRAPH, 0),
        lambda: atos.color(GRAPH),  # with several tasks in a launch
        lambda: atos.pagerank(GRAPH),  # with a function between rounds
        lambda: atos.shortest_path_lengths(GRAPH, [0, 1]),
    ],
)
def test_archived_tasks_become_the_code_that_compiling_gives(call):
    for spec in specs_of(call):
        compiled = cpu.compile_cpu(spec)
        finished = cpu.finish_cpu(cpu.lower_cpu(spec))
        assert calls_of(compiled) == calls_of(finished) != []
        assert compiled.parts[1] == finished.parts[1]
        assert (compiled.scratch_itemsize, compiled.sized_scratch) == (finished.scratch_itemsize, finished.sized_scratch)
        assert [code != 0 for code in (compiled.run, compiled.idle, compiled.each_round)] == [
            code != 0 for code in (finished.run, finished.idle, finished.each_round)
        ]


def test_archived_tasks_are_for_every_cpu_of_the_architecture(lowered):
    text = str(binding.parse_bitcode(lowered[-1]))
    assert "target-cpu" not in text
    assert "target-features" not in text
    assert not re.search(r"@llvm\.(x86|aarch64)\.|<\d+ x ", text)


def test_a_first_call_compiles_nothing(path, compiled):
    depth = atos.bfs(GRAPH, 0, direction="push").depth
    assert compiled == []
    atos.verify_bfs(GRAPH, 0, depth)
    forget()
    path.unlink()
    assert np.array_equal(atos.bfs(GRAPH, 0, direction="push").depth[:], depth[:])  # from the cache
    assert compiled == []


def test_code_that_is_loaded_twice_is_no_other_code(lowered):
    first, second = cpu.finish_cpu(lowered), cpu.finish_cpu(lowered)
    assert first.run != second.run


def test_what_a_task_depends_on_is_in_its_name(of):
    other = atos.task(workload=visit.workload)(lambda_of_package())
    changes = [
        {"task": other},
        {"idle": visit.body},
        {"kinds": of.kinds[::-1]},
        {"item_dtype": np.dtype("u8")},
        {"buckets": True},
        {"each_round": visit.body},
    ]
    names = [name_in_archive(replace(of, **change)) for change in ({}, *changes)]
    assert None not in names
    assert len(set(names)) == len(names)


def lambda_of_package():
    return visit.workload  # any other function of the package


def test_tasks_of_users_have_no_name(of):
    @atos.task(workload=visit.workload)
    def mine(worker, v, i, *args):
        worker.push(v)

    assert name_in_archive(replace(of, task=mine)) is None


@pytest.fixture
def found(path, of):
    """Say whether the task of `bfs` is found."""

    def find():
        forget()
        return find_lowered(of, cpu.abi()) is not None

    assert find()
    return find


@pytest.mark.parametrize("package", ["numba", "llvmlite"])
def test_an_archive_of_other_versions_does_not_count(found, package, monkeypatch):
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version(name) + ("+1" if name == package else ""))
    assert not found()


def test_numpy_counts_up_to_its_second_number(found, monkeypatch):
    first, second, *_ = np.__version__.split(".")
    monkeypatch.setattr(np, "__version__", f"{first}.{second}.999")
    assert found()
    monkeypatch.setattr(np, "__version__", f"{first}.{int(second) + 1}.0")
    assert not found()


def test_an_archive_of_another_abi_does_not_count(found, monkeypatch):
    llvm, triple, layout = cpu.abi()
    assert platform.machine() in triple
    assert llvm.count(".") == 2
    assert "i64:" in layout
    for other in (("0.0.0", triple, layout), (llvm, "sparc-sun-solaris", layout), (llvm, triple, "E-m:e")):
        monkeypatch.setattr(cpu, "abi", lambda other=other: other)
        assert not found()


def test_an_archive_of_other_sources_does_not_count(found, compiled, tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "_lib").mkdir(parents=True)
    (package / "_lib" / "built.json").write_text("{}")
    (package / "module.py").write_text("x = 1")
    monkeypatch.setattr(archive, "_PACKAGE", package)
    monkeypatch.setattr(archive, "CORE_DIR", package / "_lib")
    hashes = {hash_sources()}
    (package / "module.py").write_text("x = 2")
    hashes.add(hash_sources())
    (package / "_lib" / "built.json").write_text("[]")
    hashes.add(hash_sources())
    assert len(hashes) == 3
    monkeypatch.setattr(cpu_archive, "hash_sources", lambda: b"of other sources")
    assert not found()
    atos.bfs(GRAPH, 0, direction="push")
    assert compiled == ["visit"]


def test_settings_of_numba_count(found, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert found()
    monkeypatch.setenv("NUMBA_OPT", "0")
    assert not found()


@pytest.mark.parametrize("at", [40, -40])
def test_a_damaged_archive_does_not_count(found, path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert not found()
    path.write_bytes(content[:-10])
    assert not found()
    path.unlink()
    assert not found()


def test_checks_are_compiled(path, compiled):
    atos.bfs(GRAPH, 0, direction="push", debug=True)
    assert compiled == ["visit"]


def test_names_are_the_same_in_another_process(of):
    code = f"""if True:
        import sys
        sys.path[:0] = [{str(ROOT / "tests")!r}, {str(Path(__file__).parent)!r}]
        from test_cpu_archive import atos, GRAPH, specs_of, name_in_archive
        print(name_in_archive(specs_of(lambda: atos.bfs(GRAPH, 0, direction="push"))[0]))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == name_in_archive(of)


def test_tasks_are_collected_as_they_are_compiled(path, of, compiled):
    path.unlink()
    with collected_tasks() as table:
        atos.bfs(GRAPH, 0, direction="push")
    assert compiled == []
    assert list(table) == [name_in_archive(of)]
    write_archive(path, archive_key(cpu.abi()), table)
    forget()
    assert find_lowered(of, cpu.abi()) == list(next(iter(table.values())))


def test_an_archive_is_current_under_its_key_alone(path):
    assert is_current(path, archive_key(cpu.abi()))
    assert not is_current(path, archive_key((*cpu.abi(), "more")))
    path.unlink()
    assert not is_current(path, archive_key(cpu.abi()))


def test_the_archive_is_not_made_with_settings_of_numba(monkeypatch):
    monkeypatch.setenv("NUMBA_OPT", "0")
    with pytest.raises(SystemExit, match="Numba has settings"):
        prelink.main()
