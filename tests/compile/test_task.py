"""The decorator and the names that work inside tasks only."""

from __future__ import annotations

import linecache
import subprocess
import sys

import numpy as np
import pytest

import atos_py as atos
from atos_py.compile.group import Group
from atos_py.compile.task import Task, task
from atos_py.compile.worker import Worker
from atos_py.errors import InvalidArgumentError, TaskCallError

ATOMICS = [
    *("atomic_min", "atomic_max", "atomic_add", "atomic_mul", "atomic_exch", "atomic_cas"),
    *("atomic_or_", "atomic_and_", "atomic_xor", "atomic_add2", "atomic_add4", "accumulate", "load_cached"),
]


def length(item):
    return item


def test_flat():
    @task
    def visit(worker, item):
        """Visit."""

    assert isinstance(visit, Task)
    assert (visit.name, visit.nested, visit.workload, visit.__doc__) == ("visit", False, None, "Visit.")
    assert repr(visit) == "<atos task visit>"


def test_nested():
    @task(workload=length)
    def visit(worker, item, i):
        pass

    assert (visit.nested, visit.workload) == (True, length)
    assert repr(visit) == "<atos task visit workload=length>"


def test_nested_in_groups():
    @task(workload=length, group=4)
    def visit(worker, item, i):
        pass

    assert (visit.nested, visit.group) == (True, 4)
    assert repr(visit) == "<atos task visit workload=length group=4>"


def test_task_without_workload_but_with_parentheses_is_flat():
    @task()
    def visit(worker, item):
        pass

    assert not visit.nested


def test_calling_a_task_says_what_to_do():
    with pytest.raises(TaskCallError, match=r"'length' was called from the host; give it to queue.launch_thread"):
        task(length)(1)


@pytest.mark.parametrize("wrong", [3, "visit", task(length)])
def test_only_functions_become_tasks(wrong):
    with pytest.raises(InvalidArgumentError, match="@task decorates a function"):
        task(wrong)


def test_workload_has_to_be_a_function():
    with pytest.raises(InvalidArgumentError, match="workload"):
        task(workload=3)


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_from_the_host_say_what_to_do(name):
    arguments = (0,) * {"atomic_cas": 4, "atomic_add2": 4, "atomic_add4": 6, "load_cached": 2}.get(name, 3)
    with pytest.raises(TaskCallError, match=f"{name} works inside tasks only"):
        getattr(atos, name)(*arguments)


@pytest.mark.parametrize("thing", [Worker, Group])
def test_there_are_no_workers_on_the_host(thing):
    with pytest.raises(TaskCallError, match=f"{thing.__name__} works inside tasks only"):
        thing()


def test_everything_public_is_documented():
    methods = [
        getattr(thing, name)
        for thing in (Worker, Group)
        for name in vars(thing)
        if not name.startswith("_") and callable(getattr(thing, name))
    ]
    assert len(methods) == 18 + 9
    for thing in [*(getattr(atos, name) for name in sys.modules["atos_py.compile.task"].__all__), *methods]:
        assert thing.__doc__


def test_importing_imports_no_numba():
    code = "import sys, atos_py.compile.linker; print([m for m in sys.modules if m.split('.')[0] in ('numba', 'cuda')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_cell_of_a_notebook_is_shown_though_it_is_no_file():
    source = "@atos.task\ndef body(worker, v, out):\n    x = v + 1\n\n    out[0] = x + 'a'\n"
    name, space = "/tmp/ipykernel_4711/123456.py", {"atos": atos}
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), space)
    queue = atos.Queue(4, device="cpu")
    queue.push(3)
    with pytest.raises(atos.TaskCompileError, match=r"123456\.py, line 5: out\[0\] = x \+ 'a'"):
        queue.launch_cta(space["body"], np.zeros(2))


@atos.task
def with_default(worker, item, out, scale=2):
    out[0] = scale


@atos.task
def with_more(worker, item, out, scale, *others):
    out[0] = scale


@pytest.mark.parametrize("task", [with_default, with_more])
def test_every_argument_is_given(task):
    queue = atos.Queue(4, device="cpu")
    queue.push(3)
    with pytest.raises(atos.TaskCompileError, match="takes 4 arguments"):
        queue.launch_cta(task, np.zeros(2))
