"""Global and captured variables that change between two launches: the next launch computes with the new values."""

from __future__ import annotations

import enum
import math
import types
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import atos_py as atos
from atos_py import acc, features
from atos_py.compile import linker, versions
from atos_py.compile.versions import versions_of
from atos_py.errors import TaskCompileError
from atos_py.support import memory_cache

SOURCE = """
def helper(x):
    return x * 10

def body(worker, item, out):
    out[0] = {expression}

def length(item, out):
    return {length}

def nested(worker, item, i, out):
    atos.atomic_add(out, 0, 1)
"""


def space(expression: str = "0", length: str = "1", **variables: Any) -> dict[str, Any]:
    """Return the global variables of a task that writes the value of an expression."""
    made = {"atos": atos, "math": math, **variables}
    exec(SOURCE.format(expression=expression, length=length), made)
    made["task"] = atos.task(made["body"])
    return made


def result_of(task: atos.Task | tuple[atos.Task, ...], **options: Any) -> float:
    out, queue = np.zeros(1), atos.Queue(4, device="cpu")
    queue.push(3)
    queue.launch_thread(task, out, **options)
    return float(out[0])


def module(**members: Any) -> types.ModuleType:
    made = types.ModuleType("settings")
    vars(made).update(members)
    return made


def change_helper(names: dict[str, Any]) -> None:
    exec("def helper(x):\n    return x * 20\n", names)


def replace_code(names: dict[str, Any]) -> None:
    """Change a function in place, as IPython's autoreload does."""
    names["helper"].__code__ = (lambda x: x * 20).__code__


def follow_by_helper(names: dict[str, Any]) -> None:
    exec("def deeper(x):\n    return x + N\ndef helper(x):\n    return deeper(x)\n", names)


def double(x):
    return 2 * x


def triple(x):
    return 3 * x


class Small(enum.IntEnum):
    SIZE = 4


class Large(enum.IntEnum):
    SIZE = 40


def put(value: Any, name: str = "N") -> Callable[[dict[str, Any]], None]:
    return lambda names: names.update({name: value})


CHANGES: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], Any], float, float]] = {
    "integer": (lambda: space("N", N=2), put(7), 2, 7),
    "an integer that becomes a float": (lambda: space("N * 2**62 * 2", N=2), put(2.0), 0, 2.0**64),
    "minus zero in place of zero": (lambda: space("math.copysign(1.0, N)", N=0.0), put(-0.0), 1, -1),
    "tuple": (lambda: space("N[1]", N=(1, 2)), put((1, 3)), 2, 3),
    "enumeration": (lambda: space("N.SIZE + 0", N=Small), put(Large), 4, 40),
    "helper": (lambda: space("helper(item)"), change_helper, 30, 60),
    "a helper with a helper": (lambda: space("helper(item)", N=2), follow_by_helper, 30, 5),
    "code of a helper": (lambda: space("helper(item)"), replace_code, 30, 60),
    "default of a helper": (
        lambda: space("f(item)", f=eval("lambda x, y=1: x + y")),
        lambda names: setattr(names["f"], "__defaults__", (5,)),
        4,
        8,
    ),
    "constant of a module": (lambda: space("m.N", m=module(N=2)), lambda names: setattr(names["m"], "N", 7), 2, 7),
    "constant of a module in a module": (
        lambda: space("m.inner.N", m=module(inner=module(N=2))),
        lambda names: setattr(names["m"].inner, "N", 7),
        2,
        7,
    ),
    "function of a module": (
        lambda: space("m.f(item)", m=module(f=double)),
        lambda names: setattr(names["m"], "f", triple),
        6,
        9,
    ),
    "elements of an array": (lambda: space("N[1]", N=np.arange(3)), lambda names: names["N"].__setitem__(1, 9), 1, 9),
    "elements of an array in a tuple": (
        lambda: space("N[0][1]", N=(np.arange(3),)),
        lambda names: names["N"][0].__setitem__(1, 9),
        1,
        9,
    ),
    "a name that hides a builtin": (lambda: space("max(item, 8)"), put(lambda x, y: x, "max"), 8, 3),
    "variable of a function that Numba was told of": (
        lambda: space("f(item)", f=numba.njit(function("lambda x: x * N", N=2))),
        lambda names: names["f"].py_func.__globals__.update(N=7),
        6,
        21,
    ),
    "variable of a helper of such a function": (
        lambda: space("f(item)", f=numba.njit(function("lambda x: g(x)", g=numba.njit(function("lambda x: x * N", N=2))))),
        lambda names: names["f"].py_func.__globals__["g"].py_func.__globals__.update(N=7),
        6,
        21,
    ),
}


def function(source: str, **variables: Any) -> Any:
    return eval(source, variables)


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_launch_sees_a_change(change):
    make, make_change, before, after = CHANGES[change]
    names = make()
    assert result_of(names["task"]) == before
    make_change(names)
    assert result_of(names["task"]) == after


def test_the_next_launch_with_checks_sees_a_change():
    names = space("N", N=2)
    assert result_of(names["task"], debug=True) == 2
    names["N"] = 7
    assert result_of(names["task"], debug=True) == 7


def test_captured_variables():
    count = 1

    def body(worker, item, out):
        out[0] = count

    task = atos.task(body)
    assert result_of(task) == 1
    count = 5
    assert result_of(task) == 5


def test_a_captured_variable_that_has_no_value_at_first():
    def body(worker, item, out):
        out[0] = count

    task = atos.task(body)
    with pytest.raises(TaskCompileError, match="'count', which has no value yet"):
        result_of(task)
    for value in (1, 5):
        count = value
        assert result_of(task) == value


def test_variables_of_every_function_of_a_launch():
    names = space(length="N", N=2)
    exec("def between(worker, out):\n    out[0] = out[0] * 10 + M\n", names)
    nested = atos.task(workload=names["length"])(names["nested"])
    names["M"] = 1
    assert result_of(nested, barrier=True, each_round=names["between"]) == 21
    names["M"] = 2
    assert result_of(nested, barrier=True, each_round=names["between"]) == 22
    names["N"] = 3
    assert result_of(nested, barrier=True, each_round=names["between"]) == 32
    exec("def look(worker, out):\n    out[0] = M\n", names)
    assert result_of(names["task"], idle=names["look"]) == 2
    names["M"] = 6
    assert result_of(names["task"], idle=names["look"]) == 6


def test_variables_of_one_of_several_tasks():
    names = space("N", N=2)
    tasks = names["task"], atos.task(lambda worker, item, out: None)
    assert result_of(tasks) == 2
    names["N"] = 7
    assert result_of(tasks) == 7


def test_variables_of_functions_of_features_and_of_programs():
    graph = atos.Graph.from_edges([0], [1], device="cpu")
    names: dict[str, Any] = {"N": 2}
    exec("def store(f, v, data):\n    data[v, f] = N\ndef compute(before, weight, other):\n    return N\n", names)
    program = acc.Program(names["compute"], acc.MIN)
    for value in (2, 7):
        names["N"] = value
        data, metadata = atos.zeros((2, 2), device="cpu"), atos.full(2, 100, dtype=np.int64, device="cpu")
        features.Maps(graph, 2, data).vertex_map(names["store"])
        program.run(graph, metadata, start=0)
        assert data.to_numpy().tolist() == [[value, value], [value, value]]
        assert metadata[1] == value


def test_a_value_that_returns_finds_its_program(monkeypatch):
    compiled: list[str] = []
    true = linker.native
    monkeypatch.setattr(linker, "native", lambda spec: compiled.append(spec.task.name) or true(spec))
    names = space("N", N=2)
    found = []
    for value in (2, 7, 2, 7, 2):
        names["N"] = value
        found.append(result_of(names["task"]))
    assert found == [2, 7, 2, 7, 2]
    assert len(compiled) == 2
    names["N"] = int("1000")
    result_of(names["task"])
    names["N"] = int("1000")  # another object of the same value
    result_of(names["task"])
    assert len(compiled) == 3


def test_a_new_process_finds_the_programs_of_both_values(monkeypatch, tmp_path):
    from atos_py.compile.codegen import target_cpu

    compiled: list[str] = []
    true = target_cpu.compile_cpu
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(target_cpu, "compile_cpu", lambda spec: compiled.append(spec.task.name) or true(spec))
    for _ in range(2):
        memory_cache.forget()
        names = space("N", N=2)
        assert result_of(names["task"]) == 2
        names["N"] = 7
        assert result_of(names["task"]) == 7
        assert len(compiled) == 2
    memory_cache.forget()


def test_the_oldest_version_is_dropped_while_another_thread_adds_one(monkeypatch):
    class Growing(dict):
        """A dictionary that another thread adds to once somebody looks for its first key."""

        def __iter__(self):
            found = super().__iter__()
            self[object()] = None
            return found

    monkeypatch.setattr(versions, "_MOST_KEPT", 1)
    names = space("N", N=0)
    of_task = versions.versions_of(names["task"])
    of_task._kept = Growing(of_task._kept)
    for value in range(3):
        names["N"] = value
        assert result_of(names["task"]) == value


def test_a_variable_that_comes_after_a_launch_that_failed():
    names = space("m.N", m=module())
    with pytest.raises(TaskCompileError, match="has no 'N'"):
        result_of(names["task"])
    for value in (2, 7):
        names["m"].N = value
        assert result_of(names["task"]) == value


def test_a_variable_that_is_deleted():
    names = space("N", N=2)
    assert result_of(names["task"]) == 2
    del names["N"]
    with pytest.raises(TaskCompileError, match="the name 'N' is not defined"):
        result_of(names["task"])


@pytest.mark.parametrize("value", [np.zeros(513), (1, np.zeros(513))], ids=["array", "in a tuple"])
@pytest.mark.parametrize("expression", ["N", "m.N"])
def test_large_arrays_are_arguments(value, expression):
    index = "[1][0]" if isinstance(value, tuple) else "[0]"
    names = space(expression + index, N=value, m=module(N=value))
    with pytest.raises(TaskCompileError, match=r"'N' is an array of more than 4096 bytes.* pass it as an argument"):
        result_of(names["task"])


def test_a_large_array_that_a_task_does_not_use():
    names = space("m.f(item)", m=module(f=double, zeros=np.zeros(5000)))
    names["m"].item = np.zeros(5000)
    assert result_of(names["task"]) == 6


def test_what_has_not_changed_is_the_same_version():
    names = space("N + m.N + helper(item) + T[0] + len(out)", N=2, m=module(N=1), T=np.arange(2))
    assert versions_of(names["task"]).current() is versions_of(names["task"]).current()
    names["unused"] = 1
    names["N"] = 2
    assert versions_of(names["task"]).current() is versions_of(names["task"]).current()
    assert versions_of(atos.task(names["body"])).current() is not versions_of(names["task"]).current()
