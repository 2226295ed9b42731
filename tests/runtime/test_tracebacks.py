"""Tracebacks of tasks that do not compile: short, and with the line of the task at their end."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py import acc, features
from atos_py.errors import TaskCompileError

PACKAGE = str(Path(atos.__file__).parent)
MOST_FRAMES = 5


def helper(x):
    return x.missing


@atos.task
def wrong(worker, item, out):
    out[0] = item
    out[0] = item.missing


@atos.task
def uses_helper(worker, item, out):
    out[0] = helper(item)


@atos.task(
    workload=lambda item, out: 1,
)
def too_many(worker, item, i, out, more):
    out[0] = more


def of_feature(f, v, data):
    data[v, f] = v.missing


def of_edge(f, u, v, edge, data):
    data[v, f] = v.missing


def term(f, v, u, edge, data):
    return v.missing


def compute(m_v, weight, m_u):
    return m_v.missing


def queue() -> atos.Queue:
    made = atos.Queue(4, device="cpu")
    made.push(3)
    return made


def maps() -> features.Maps:
    return features.Maps(graph(), 2, atos.zeros((2, 2), device="cpu"))


def graph() -> atos.Graph:
    return atos.Graph.from_edges([0], [1], device="cpu")


CALLS: dict[str, tuple[Any, str, str]] = {
    "launch_thread": (lambda: queue().launch_thread(wrong, np.zeros(1)), "wrong", "out[0] = item.missing"),
    "launch_warp": (lambda: queue().launch_warp(wrong, np.zeros(1)), "wrong", "out[0] = item.missing"),
    "launch_cta": (lambda: queue().launch_cta(wrong, np.zeros(1), debug=True), "wrong", "out[0] = item.missing"),
    "start": (lambda: queue().start(wrong, np.zeros(1)), "wrong", "out[0] = item.missing"),
    "a helper": (lambda: queue().launch_cta(uses_helper, np.zeros(1)), "uses_helper", "return x.missing"),
    "an argument too few": (lambda: queue().launch_cta(too_many, np.zeros(1)), "too_many", "def too_many("),
    "vertex_map": (lambda: maps().vertex_map(of_feature), "of_feature", "data[v, f] = v.missing"),
    "edge_map": (lambda: maps().edge_map(of_edge), "of_edge", "data[v, f] = v.missing"),
    "fold_map": (lambda: maps().fold_map(of_feature, of_edge), "of_feature", "data[v, f] = v.missing"),
    "sum_map": (lambda: maps().sum_map(term, of_feature), "", "return v.missing"),
    "fixed_point": (
        lambda: features.fixed_point(graph(), atos.zeros((2, 2), device="cpu"), term, lambda f, v, total, data: total),
        "",
        "return v.missing",
    ),
    "a program of SIMD-X": (
        lambda: acc.Program(compute, acc.MIN).run(graph(), atos.zeros(2, device="cpu"), start=0),
        "",
        "return m_v.missing",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_traceback_ends_in_the_line_of_the_task(call):
    make, name, line = CALLS[call]
    with pytest.raises(TaskCompileError) as caught:
        make()
    frames = traceback.extract_tb(caught.value.__traceback__)
    last = frames.pop()
    assert last.filename == __file__
    assert last.line is not None
    assert last.line.startswith(line)
    assert not name or last.name == name
    assert caught.value.place == (__file__, last.lineno, last.name)
    assert 0 < sum(frame.filename.startswith(PACKAGE) for frame in frames) <= MOST_FRAMES
    assert not any("numba" in frame.filename for frame in frames)


def test_an_error_is_copied_with_its_place():
    error = TaskCompileError("a message", ("a.py", 3, "f"))
    assert copy.copy(error).place == error.place


SCRIPT = """
import atos_py as atos, numpy as np

@atos.task
def wrong(worker, item, out):
    out[0] = [item][0]

queue = atos.Queue(4, device="cpu")
queue.push(3)
queue.launch_thread(wrong, np.zeros(1))
"""


def test_what_a_script_prints(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    printed = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False).stderr
    before, _, message = printed.partition("atos_py.errors.TaskCompileError: ")
    assert before.splitlines()[-2:] == [f'  File "{path}", line 6, in wrong', "    out[0] = [item][0]"]
    assert "task 'wrong' cannot be compiled: it allocates memory" in message
    assert before.count(PACKAGE) <= MOST_FRAMES
    assert "another exception" not in printed


def test_what_a_notebook_prints():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell(colors="nocolor")
    imports, task, launch = SCRIPT.partition("@atos.task")[0], *SCRIPT.partition("@atos.task")[1:]
    definition, _, launch = (task + launch).partition("\n\n")
    printed = io.StringIO()
    with redirect_stdout(printed):
        shell.run_cell(imports)
        shell.run_cell(definition)
        shell.run_cell(launch)
    trace, _, _ = printed.getvalue().rpartition("TaskCompileError: task 'wrong'")
    assert trace.rstrip().endswith("out[0] = [item][0]")
    assert trace.count(PACKAGE) <= MOST_FRAMES
