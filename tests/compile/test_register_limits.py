"""Limits of registers that tasks say: one link, and the kernel that several would have given."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from fake_arrays import FakeArray

import atos_py as atos
from atos_py.algorithms.bfs import direction
from atos_py.algorithms.coloring import assign, check
from atos_py.algorithms.coloring.ranges import assign_range
from atos_py.algorithms.coloring.tasks import ColoringParams
from atos_py.algorithms.pagerank import chebyshev_pull
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.kinds import Tasks, launchable
from atos_py.compile.spec import REGISTERS, SPILLS_WITH_ROUNDS, ProgramSpec
from atos_py.models.acc import programs
from atos_py.models.acc.dense import make_dense_task
from atos_py.models.acc.tasks import make_tasks
from atos_py.models.dynamic import row_deletion
from atos_py.several.bfs import direction_over_devices
from atos_py.support import memory_cache

INDPTR, INDICES = (FakeArray(np.zeros(2, dtype), True) for dtype in ("i4", "u4"))
COLORS = FakeArray(np.zeros(2, "u4"), False)


def mark(worker, v, seen):
    seen[v] = 1


@atos.task(max_registers={"cta": 32})
def marking(worker, v, seen):
    seen[v] = 1


def spec(*tasks, worker="cta", **options):
    return ProgramSpec(launchable(tasks, len(tasks) > 1), None, (), np.dtype("u4"), worker, **options)


def end_round(worker, seen):
    pass


@pytest.fixture
def limits(monkeypatch):
    """The limits of the links that are made."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    if not any(link.CORE_DIR.glob("core_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    monkeypatch.setattr(link, "read_entry", lambda name: None)
    monkeypatch.setattr(link, "write_entry", lambda name, parts: None)
    monkeypatch.setattr(link, "find_prelinked", lambda *_: None)
    monkeypatch.setattr(link, "num_threads", lambda: 1)
    tried, true = [], link._link

    def _link(*args):
        tried.append(args[-1])
        return true(*args)

    monkeypatch.setattr(link, "_link", _link)
    return tried


@pytest.mark.part("programs")
def test_a_known_limit_takes_one_link(limits):
    def coloring(**options):
        memory_cache.forget()
        graph = atos.Graph._make([INDPTR, INDICES, None])
        args = tuple(map(describe, (graph, COLORS, ColoringParams(None, 9, 9, 0))))
        return link.cubin(ProgramSpec(Tasks((assign, check)), None, args, np.dtype("u4"), "warp", **options), (9, 0))

    known = coloring()
    assert limits == [48]
    assert coloring(max_registers=REGISTERS).code == known.code
    assert limits == [48, 40, 48]  # a limit that is too low is not the last


@pytest.mark.part("programs")
def test_a_limit_of_a_user_is_the_only_one(limits):
    @atos.task(max_registers=24)
    def crowd(worker, v, seen):
        a, b, c, d = seen[v], seen[v + 1], seen[v + 2], seen[v + 3]
        for k in range(v):
            a, b, c, d = seen[a + k] * b, seen[b + k] * c, seen[c + k] * d, seen[d + k] * a
        seen[v] = a + b + c + d

    args = (describe(FakeArray(np.zeros(2, "f8").astype("i8"), False)),)
    found = link.cubin(ProgramSpec(crowd, None, args, np.dtype("u4")), (9, 0))
    assert limits == [24]
    assert found.registers <= 24


def test_a_task_says_limits_for_all_workers_or_for_some():
    assert spec(atos.task(mark)).limits() == (REGISTERS, 0)
    assert spec(atos.task(max_registers=40)(mark)).limits()[0] == (40,)
    assert spec(atos.task(max_registers=(48, None))(mark), worker="warp").limits()[0] == (48, None)
    assert spec(marking).limits()[0] == (32,)
    assert spec(marking, worker="warp").limits()[0] == REGISTERS


def test_a_launch_has_the_limit_of_its_first_task_or_its_own():
    other = atos.task(max_registers=64)(end_round)
    assert spec(marking, other).limits()[0] == (32,)
    assert spec(other, marking).limits()[0] == (64,)
    assert spec(atos.task(mark), other).limits()[0] == REGISTERS
    assert spec(marking, max_registers=(40, 64, 128)).limits()[0] == (40, 64, 128)


def test_a_task_cannot_change_limits_that_were_given():
    given = {"cta": 40}
    made = atos.task(max_registers=given)(mark)
    given["cta"] = 64
    assert spec(made).limits()[0] == (40,)


def test_limits_are_part_of_what_a_kernel_is_found_by_but_not_of_code_for_cpus():
    plain, limited = spec(atos.task(mark)), spec(atos.task(max_registers=40)(mark))
    assert plain.fingerprint() != limited.fingerprint()
    assert plain.fingerprint() != replace(plain, worker="warp").fingerprint()
    assert plain.on_cpu().fingerprint() == limited.on_cpu().fingerprint()


def test_limits_are_pickled_with_a_task_that_has_no_name():
    assert pickle.loads(pickle.dumps(marking)) is marking
    function, arguments = atos.Task(mark, max_registers=40).__reduce__()
    assert function(*arguments).max_registers == 40


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (15, "max_registers must be from 16 to 255"),
        ("40", "max_registers must be an integer"),
        ((40, 256), "max_registers must be from 16 to 255"),
        ((), "empty tuple"),
        ({"block": 40}, "there is no worker 'block'"),
        ({"cta": 4}, r"max_registers\['cta'\] must be from 16 to 255"),
        ({"cta": None}, r"max_registers\['cta'\] must be an integer"),
    ],
)
def test_what_is_no_limit_is_refused(limits, words):
    with pytest.raises((atos.InvalidArgumentError, atos.UnsupportedTypeError), match=words):
        atos.task(max_registers=limits)


def test_launches_of_the_package_have_the_limits_that_are_fastest():
    assert spec(*direction.LEVEL_TASKS).limits() == ((40,), 0)
    assert spec(*direction_over_devices.LEVEL_TASKS).limits() == ((64,), 0)
    assert spec(assign_range, check).limits() == ((40,), 0)
    assert spec(assign, check).limits()[0] == (64, None)
    assert spec(chebyshev_pull.chebyshev_round).limits() == ((48,), 0)
    assert spec(chebyshev_pull.chebyshev_round, worker="thread").limits() == (REGISTERS, 0)
    assert spec(*row_deletion.DELETION["cuda"][0]).limits() == ((64,), 0)


def test_what_gathers_in_rounds_may_spill_a_little_and_other_programs_less():
    gathers, end_gathering = make_dense_task(programs.WEIGHTED_SUMS, np.dtype("f4"), 0.0)
    tasks, stubs, _ = make_tasks(programs.BFS, np.dtype("u4"))
    assert spec(gathers, each_round=end_gathering).limits() == (REGISTERS, 128)
    assert spec(tasks[0], *stubs[1:], each_round=end_round).limits() == (REGISTERS, SPILLS_WITH_ROUNDS)
    assert spec(atos.task(mark), each_round=end_round).limits() == (REGISTERS, SPILLS_WITH_ROUNDS)
    assert spec(tasks[0]).limits() == spec(atos.task(mark)).limits() == (REGISTERS, 0)
    deleting, end_deletion, _ = row_deletion.DELETION["cuda"]
    assert spec(*deleting, each_round=end_deletion).limits() == ((64,), 0)
