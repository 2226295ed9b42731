"""What Python has and Numba has not, or not rightly: expressions that tasks compute as Python does, on both targets."""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_arrays import array

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import TaskCompileError

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core")


class Point(NamedTuple):
    x: int
    y: int = 40
    scale: float = 0.5


class Color(enum.IntEnum):
    RED = 2
    BLUE = 9


def swapped(a, b):
    return a * 100 + b


def walrus_in_a_condition(worker, i, out):
    if (n := i + 1) > 3:
        out[0] = n
    if (m := i) > 3:
        out[1] = m
    else:
        out[1] = -m


def walrus_in_a_loop(worker, i, out):
    total = 0
    while (i := i - 1) > 0:
        total += i
    out[0] = total


def walrus_in_a_comparison(worker, i, out):
    if 0 < (a := i * 2) < 10 and (b := a if i > 2 else 1) > 3:
        out[0] = a + b


def walrus_in_a_call(worker, i, out):
    out[0] = swapped(a := i + 5, a)
    pair = (k := (i, i + 1))
    out[1] = len(pair) + k[1] + (j := i) + j


def several_targets(worker, i, out):
    a = b = i * 2
    a += 1
    out[0] = out[1] = a + b
    c = out[2] = b
    out[3] = c


def defaults_of_a_named_tuple(worker, i, out):
    out[0] = Point(i).y
    out[1] = Point(i, scale=0.25).scale
    out[2] = Point(y=1, x=i).x
    point = Point(i, 5, 6)
    out[3] = point.x + point.y * point.scale


def logarithm_to_a_base(worker, i, out):
    out[0] = math.log(i, 2.0)
    out[1] = math.log(i + 0.5, 10)
    out[2] = math.log(i)


def number_of_a_member(worker, i, out):
    out[0] = int(Color.BLUE) + i
    out[int(Color.RED)] = int(Color.RED)
    out[1] = Color.RED + i


def by_keyword(a, *, k=1):
    return a * 10 + k


def all_by_keyword(*, a, b, c=3):
    return a * 100 + b * 10 + c


def parameters_by_keyword_alone(worker, i, out):
    out[0] = by_keyword(i)
    out[1] = by_keyword(i, k=i + 2)
    out[2] = all_by_keyword(b=1, a=i)
    out[3] = all_by_keyword(c=1, b=4, a=i)


COMPUTED = [
    *(walrus_in_a_condition, walrus_in_a_loop, walrus_in_a_comparison, walrus_in_a_call, several_targets),
    *(parameters_by_keyword_alone, defaults_of_a_named_tuple, logarithm_to_a_base, number_of_a_member),
]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("function", COMPUTED, ids=lambda function: function.__name__)
def test_tasks_compute_what_python_computes(function, debug):
    for item in (3, 4):
        found, expected = np.zeros(4), np.zeros(4)
        queue = atos.Queue(4, device="cpu")
        queue.push(item)
        queue.launch_thread(atos.task(function), found, debug=debug)
        function(None, item, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("function", COMPUTED, ids=lambda function: function.__name__)
def test_they_compile_for_gpus(function):
    from atos_py.compile.codegen.target_cuda import compile_cuda

    assert compile_cuda(ProgramSpec(atos.task(function), None, (describe(array("f8")),), np.dtype("u4")), (9, 0)).modules


def test_other_code_of_numba_is_compiled_as_before():
    from numba.core.byteflow import TraceRunner
    from numba.core.interpreter import Interpreter

    before = TraceRunner.op_COPY
    queue = atos.Queue(4, device="cpu")
    queue.launch_thread(atos.task(walrus_in_a_loop), np.zeros(4))
    assert TraceRunner.op_COPY is before
    assert not hasattr(Interpreter, "op_COPY")


def test_another_default_is_another_program():
    out, queue = np.zeros(1), atos.Queue(4, device="cpu")
    for default in (1, 2):
        space: dict[str, Any] = {"__name__": __name__}
        exec("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = " + str(default), space)
        exec("def body(worker, i, out):\n    out[0] = P(i).y\n", space)
        queue.push(3)
        queue.launch_thread(atos.task(space["body"]), out)
        assert out[0] == default


ARRAY = np.arange(4.0)


def sets_an_element(worker, i, out):
    ARRAY[i] = 1


def adds_to_an_element(worker, i, out):
    ARRAY[i] += 1


def after_rest(a, *rest, k=1):
    return a + k


def after_a_default(a, b=2, *, k):
    return a + b + k


def calls_with_a_rest(worker, i, out):
    out[0] = after_rest(i, 3)


def calls_after_a_default(worker, i, out):
    out[0] = after_a_default(i, 4, k=5)


def has_a_keyword_alone(worker, i, out, *, k=5):
    out[0] = k


def stores_a_member(worker, i, out):
    out[0] = Color.RED


def indexes_by_a_member(worker, i, out):
    out[Color.RED] = 1


def pushes_a_member(worker, i, out):
    worker.push(Color.RED)


def returns_a_value(worker, i, out):
    out[0] = 1
    return i * 2


def may_return_a_value(worker, i, out):
    if i > 2:
        return True


def returns_nothing(worker, i, out):
    if i > 2:
        return
    return None


REFUSED = {
    sets_an_element: "it sets an element of a global or captured array, .* pass the array as an argument",
    adds_to_an_element: "it sets an element of a global or captured array, .* pass the array as an argument",
    calls_with_a_rest: r"'after_rest' has parameters that are given by keyword alone.* by place.*: def after_rest",
    calls_after_a_default: r"'after_a_default' has parameters that are given by keyword alone.* by place",
    has_a_keyword_alone: r"the body has a keyword-only parameter 'k', which nothing gives; leave it out",
    stores_a_member: r"is given a member of Color; write int\(...\) around it",
    indexes_by_a_member: r"indexed by a member of Color; write int\(...\) around it",
    pushes_a_member: r"worker.push takes an integer .* convert it, as in int\(x\)",
    returns_a_value: r"the body returns a value \(int64\), which nothing takes; write it .*line \d+: return i \* 2",
    may_return_a_value: r"the body returns a value .*line \d+: return True",
}


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(("function", "reason"), REFUSED.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_refused_says_what_to_change(function, reason, target):
    from atos_py.compile.codegen.target_cpu import compile_cpu
    from atos_py.compile.codegen.target_cuda import compile_cuda

    given = atos.task(function), None, (describe(array("f8")),), np.dtype("u4")
    with pytest.raises(TaskCompileError, match=f"(?s){reason}"):
        compile_cpu(ProgramSpec(*given)) if target == "cpu" else compile_cuda(ProgramSpec(*given), (9, 0))


@pytest.mark.parametrize("role", ["idle", "each_round"])
def test_functions_of_a_launch_return_nothing(role):
    def function(worker, out):
        return worker.rank + 1

    queue = atos.Queue(4, device="cpu")
    with pytest.raises(TaskCompileError, match=r"the (idle )?function.* returns a value \(int64\)"):
        queue.launch_thread(atos.task(returns_nothing), np.zeros(1), barrier=True, **{role: function})


def test_a_lambda_may_return_a_value():
    out, queue = np.zeros(1), atos.Queue(4, device="cpu")
    queue.push(3)
    queue.launch_thread(atos.task(lambda worker, i, out: atos.atomic_add(out, 0, i)), out)
    assert out[0] == 3
