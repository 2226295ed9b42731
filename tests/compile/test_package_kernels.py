"""Kernels of the package's own tasks, linked for sm_90: registers and spills. No GPU needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_arrays import FakeArray
from kernel_limits import check_registers, linked

import atos_py as atos
from atos_py.algorithms import maximal_independent_set
from atos_py.algorithms.count_triangles import api as count_triangles
from atos_py.algorithms.count_triangles import orientation
from atos_py.algorithms.k_core import leave
from atos_py.algorithms.label_propagation import api as label_propagation
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.kinds import Tasks
from atos_py.compile.spec import ProgramSpec
from atos_py.models.dynamic import dynamic_components, row_deletion, row_edits, row_keys
from atos_py.operators import connect, peeling

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(link.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

pytestmark = pytest.mark.part("programs")

MOST_REGISTERS = 64


class Rows(NamedTuple):
    indptr: Any
    indices: Any


def array(dtype: str, readonly: bool = False) -> FakeArray:
    return FakeArray(np.zeros(2, dtype), readonly)


GRAPH = Rows(array("i4", readonly=True), array("u4", readonly=True))


def test_triangles_spill_nothing():
    rows = orientation.Oriented(GRAPH.indptr, *(array("u4") for _ in range(3)))
    divided = orientation.Oriented(GRAPH.indptr, *(array("u4", readonly=True) for _ in range(3)))
    graph, numbers = atos.Graph._make([*GRAPH, None]), array("i8")
    tasks = [
        (orientation.orient, (64, graph, rows, 16, array("i4"))),
        (count_triangles.count_in_rows, (64, divided, 4, numbers, numbers)),
    ]
    for task, args in tasks:
        found = linked(ProgramSpec(task, None, tuple(map(describe, args)), np.dtype("u4")))
        assert (found.spill_bytes, found.stack_bytes) == (0, 0)
        assert found.registers <= MOST_REGISTERS


def test_deciding_keeps_to_registers():
    graph, state = atos.Graph._make([*GRAPH, None]), array("u1")
    task, args = maximal_independent_set.decide, tuple(map(describe, (graph, state, np.uint64(0))))
    check_registers(ProgramSpec(task, None, args, np.dtype("u4")))


def test_propagation_spills_nothing():
    graph, label, flag = atos.Graph._make([*GRAPH, None]), array("u4"), array("u1")
    shared = label_propagation.Labels(label, label, flag, flag, array("i8"), np.uint64(0), 0, 16)
    task, args = label_propagation.propagate, tuple(map(describe, (graph, shared)))
    found = linked(ProgramSpec(task, None, args, np.dtype("u4"), each_round=label_propagation.end_step))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= MOST_REGISTERS


def test_peeling_spills_nothing():
    shared = peeling.Peeling(array("i4"), array("u4"), array("u4"), array("i8"), 16)
    graph = atos.Graph._make([*GRAPH, None])
    task, args = Tasks((peeling.scan, peeling.remove_row)), tuple(map(describe, (graph, shared)))
    found = linked(ProgramSpec(task, None, args, np.dtype("u4"), each_round=peeling.open_next_level))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= MOST_REGISTERS


@pytest.mark.parametrize("degree", ["i4", "i8"])
def test_leaving_a_core_spills_nothing(degree):
    args = tuple(map(describe, (*GRAPH, 16, 16, array(degree))))
    found = linked(ProgramSpec(leave, None, args, np.dtype("u4")), 40)
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
    assert found.registers <= 40


@pytest.mark.parametrize("dtype", [None, "f4"])
def test_edits_fit_registers(dtype):
    """They spill nothing, except for the deletion, which is as fast with 64 registers and a stack (`row_deletion`)."""
    weights = None if dtype is None else array(dtype)
    rows = row_edits.DynamicRows(array("i8"), array("i4"), array("u4"), weights)
    table = row_edits.RoomTable(array("i8"), array("i8"), 9)
    ids, state, fixed = array("u4"), array("i8"), array("i8", readonly=True)
    insertion = row_edits.Insertion(ids, ids, weights, 1, 9, array("i4"), ids, rows, table)
    deletion = row_deletion.Deletion(array("u8", readonly=True), ids, rows._replace(start=fixed), fixed)
    deleting, end_deletion_round, _ = row_deletion.DELETION["cuda"]
    launches = [
        (Tasks(row_edits.insertion), (state, insertion), row_edits.end_insertion_round),
        (row_edits.take_back, (insertion,), None),
        (row_keys.make_keys, (state, ids, ids, 1, 9, array("u8")), None),
        (Tasks(deleting), (state, deletion), end_deletion_round),
        (row_edits.pack_rows, (state, row_edits.Packing(rows, table.room, array("i8"), ids, weights)), None),
    ]
    most = 80 if dtype is None else 96
    for task, args, each_round in launches:
        found = linked(ProgramSpec(task, None, tuple(map(describe, args)), np.dtype("u4"), each_round=each_round), most)
        assert found.stack_bytes <= (96 if each_round is end_deletion_round else 0)
        assert found.registers <= most


def test_components_of_edited_rows_keep_to_registers():
    rows = row_edits.DynamicRows(*(array(dtype, readonly=True) for dtype in ("i8", "i4", "u4")), None)
    args = tuple(map(describe, (1024, 16, 2, rows, array("u4"), array("i8"))))
    task, each_round = dynamic_components.connect_rows, connect.choose_largest
    check_registers(ProgramSpec(task, None, args, np.dtype("u4"), each_round=each_round), MOST_REGISTERS)
