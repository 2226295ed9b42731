"""Limits of registers that are known beforehand: one link, and the kernel that several would have given."""

from __future__ import annotations

import numpy as np
import pytest
from fake_arrays import FakeArray

import atos_py as atos
from atos_py.algorithms.coloring import assign, check
from atos_py.algorithms.coloring.tasks import ColoringParams
from atos_py.algorithms.pagerank import chebyshev_pull
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.first_limits import _FIRST, _ONLY, first_limit, only_limit, spills_allowed
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec
from atos_py.models.acc import programs
from atos_py.models.acc.dense import make_dense_task
from atos_py.models.acc.tasks import make_tasks
from atos_py.models.dynamic import row_deletion
from atos_py.support import memory_cache

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

INDPTR, INDICES = (FakeArray(np.zeros(2, dtype), True) for dtype in ("i4", "u4"))
COLORS = FakeArray(np.zeros(2, "u4"), False)


@pytest.fixture
def limits(monkeypatch):
    """The limits of the links that are made."""
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


def coloring():
    memory_cache.forget()
    graph = atos.Graph._make([INDPTR, INDICES, None])
    args = tuple(map(describe, (graph, COLORS, ColoringParams(None, 9, 9, 0))))
    return link.cubin(ProgramSpec(Tasks((assign, check)), None, args, np.dtype("u4"), "warp"), (9, 0))


@pytest.mark.part("programs")
def test_a_known_limit_takes_one_link(limits, monkeypatch):
    known = coloring()
    assert limits == [48]
    monkeypatch.setattr(link, "first_limit", lambda task, worker: 0)
    assert coloring().code == known.code
    assert limits == [48, 40, 48]


@pytest.mark.part("programs")
def test_a_limit_that_is_too_low_is_not_the_last(limits, monkeypatch):
    known = coloring()
    monkeypatch.setattr(link, "first_limit", lambda task, worker: 40)
    assert coloring().code == known.code
    assert limits == [48, 40, 48]


def test_tasks_of_users_have_no_known_limit():
    @atos.task
    def assign(worker, v):
        pass

    @atos.task
    def check(worker, v):
        pass

    assert first_limit(Tasks((assign, check)), "warp") == 0


def test_known_limits_are_some_that_are_tried():
    assert set(_FIRST.values()) <= set(link._REGISTERS[1:])


def test_only_limits_are_of_kernels_of_the_package():
    @atos.task
    def chebyshev_round(worker, item):
        pass

    assert only_limit(chebyshev_pull.chebyshev_round, "cta") == 48
    assert only_limit(chebyshev_pull.chebyshev_round, "warp") is None
    assert only_limit(chebyshev_round, "cta") is None
    assert only_limit(Tasks(row_deletion.DELETION["cuda"][0]), "cta") == 64
    assert not _ONLY.keys() & _FIRST.keys()


def test_what_gathers_in_rounds_may_spill_a_little_and_other_programs_less():
    gathers, end_round = make_dense_task(programs.WEIGHTED_SUMS, np.dtype("f4"), 0.0)
    tasks, _, _ = make_tasks(programs.BFS, np.dtype("u4"))
    assert spills_allowed(gathers, end_round) > spills_allowed(Tasks(tuple(tasks)), end_round) > 0
    assert spills_allowed(tasks[0], None) == 0
    assert spills_allowed(Tasks(row_deletion.DELETION["cuda"][0]), row_deletion.DELETION["cuda"][1]) == 0
    assert spills_allowed(chebyshev_pull.chebyshev_round, None) == 0
