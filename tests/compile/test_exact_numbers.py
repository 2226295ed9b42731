"""Numbers in tasks: what differs from Python as the documents say, what is refused, and calls of functions inside of tasks."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np
import pytest
from fake_arrays import FakeArray
from repository import ROOT

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen.target_cpu import compile_cpu
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import TaskCompileError, TaskError

U = np.array([7, 2**64 - 1], np.uint64)


def value_of(text: str, device: Any, *values: Any, debug: bool = False, dtype: Any = np.float64) -> Any:
    """The value of an expression of x, y and z in a task."""
    names = ("x", "y", "z")[: len(values)]
    arrays = [atos.asarray(np.array([value]), device=device) for value in values]
    lines = [f"def body(worker, item, out, {', '.join(f'of_{name}' for name in names)}):"]
    lines += [f"    {name} = of_{name}[0]" for name in names]
    variables: dict[str, Any] = {"np": np, "math": math}
    exec("\n".join([*lines, f"    out[0] = {text}"]), variables)
    out = atos.zeros(1, dtype=dtype, device=device)
    queue = atos.Queue(4, device=device)
    queue.push(0)
    queue.launch_thread(atos.task(variables["body"]), out, *arrays, debug=debug)
    return out[0].item()


def fails(text: str, device: Any, *values: Any, dtype: Any = np.float64) -> str:
    """The kind of the check that fails with debug=True."""
    with pytest.raises(TaskError) as raised:
        value_of(text, device, *values, debug=True, dtype=dtype)
    return raised.value.kind


# Each row of the table in docs/tasks.md, by its first cell.


def row_sums(device):
    most = np.int64(2**63 - 1)
    for text in ("x + 1", "x - (-1)", "x * 3"):
        expected = (eval(text, {"x": int(most)}) + 2**63) % 2**64 - 2**63
        for debug in (False, True):
            assert value_of(text, device, most, debug=debug, dtype=np.int64) == expected
    assert value_of("x + 1", device, U[1], debug=True, dtype=np.uint64) == 0


def row_other_overflows(device):
    least = np.int64(-(2**63))
    assert value_of("-x", device, least, dtype=np.int64) == value_of("abs(x)", device, least, dtype=np.int64) == least
    assert value_of("x ** 64 + (x << 64)", device, np.int64(2), dtype=np.int64) == 0


def row_smallest_quotient(device):
    assert value_of("x // y", device, np.int64(-(2**63)), np.int64(-1), dtype=np.int64) == 0


def row_integers_by_zero(device):
    for text in ("x // y", "x % y"):
        assert value_of(text, device, np.int64(5), np.int64(0), dtype=np.int64) == 0
        assert fails(text, device, np.int64(5), np.int64(0), dtype=np.int64) == "division"


def row_floats_by_zero(device):
    for text, values in {"x / y": (5, 0), "x // y": (5.0, 0.0), "x % y": (5.0, 0.0)}.items():
        assert not math.isfinite(value_of(text, device, *values))
        assert fails(text, device, *values) == "division"


def row_zero_to_a_negative_power(device):
    for text, values in {"x ** -1": (0.0,), "x ** y": (0.0, -1)}.items():
        assert value_of(text, device, *values) == math.inf
        assert fails(text, device, *values) == "division"


def row_quotients_of_large_integers(device):
    assert value_of("x / y", device, 1, 2**53 + 1) == 1 / 2**53 != 1 / (2**53 + 1)


def row_products(device):
    assert value_of("x ** 3", device, 1.1) == 1.1 * (1.1 * 1.1) or value_of("x ** 3", device, 1.1) == (1.1 * 1.1) * 1.1


def row_complex(device):
    assert math.isnan(value_of("x ** y", device, -8.0, 0.5))


def row_errors_of_floats(device):
    assert value_of("x ** 2", device, 1e200) == value_of("math.exp(x)", device, 1e3) == math.inf
    assert math.isnan(value_of("math.sqrt(x)", device, -1.0))
    assert value_of("math.log(x)", device, 0.0) == -math.inf


def row_floats_beyond_int64(device):
    for text in ("int(x)", "round(x)", "math.floor(x)"):
        for value in (1e30, math.nan):
            assert fails(text, device, value, dtype=np.int64) == "cast"
        assert value_of(text, device, 2.0**62, debug=True, dtype=np.int64) == 2**62


def row_cube_roots(device):
    assert value_of("math.cbrt(x)", device, 27.0) == pytest.approx(3.0, rel=2**-51)
    assert value_of("math.cbrt(x)", device, -1e300) == pytest.approx(-1e100, rel=2**-51)


def row_errors_of_integers(device):
    for text, values in {"math.isqrt(x)": (-1,), "math.comb(x, y)": (-1, 2), "math.fmod(x, y)": (1.5, 0.0)}.items():
        value_of(text, device, *values)
        assert fails(text, device, *values) == "division"


def row_ints_and_floats(device):
    for text in ("min(x, y)", "x if x < y else y"):
        assert value_of(text, device, 2**53 + 1, 1e30) == 2**53


def row_negative_counts(device):
    assert value_of("x << y", device, 5, -1, dtype=np.int64) == 0
    assert value_of("x >> y", device, -5, -1, dtype=np.int64) == -1
    assert fails("x << y", device, 5, -1, dtype=np.int64) == "raise"


def row_inverted_bools(device):
    assert not value_of("~x", device, True, dtype=np.bool_)


def row_casts(device):
    assert value_of("np.uint32(x) - np.uint32(y)", device, 0, 1, dtype=np.uint64) == 2**64 - 1


@atos.task
def without_value(worker, item, out):
    if item > 10:
        x = 5
    out[0] = x


def row_unassigned(device):
    out, queue = atos.zeros(1, dtype=np.int64, device=device), atos.Queue(4, device=device)
    queue.push(11)
    queue.launch_thread(without_value, out, debug=True)
    assert out[0] == 5
    queue.push(3)
    with pytest.raises(TaskError, match="UnboundLocalError: 'x' has no value on the way to here, in item 3") as raised:
        queue.launch_thread(without_value, out, debug=True)
    assert (raised.value.kind, raised.value.function) == ("raise", "without_value")


ROWS = {
    "`x + y`, `x - y`, `x * y` beyond 64 bits": row_sums,
    "`-x`, `abs(x)`, `x ** n`, `x << n` beyond 64 bits": row_other_overflows,
    "`-2**63 // -1`": row_smallest_quotient,
    "`x // 0`, `x % 0` of integers": row_integers_by_zero,
    "`x / 0`, `x // 0.0`, `x % 0.0`": row_floats_by_zero,
    "`0.0 ** -1`": row_zero_to_a_negative_power,
    "`x / y` of integers beyond 2^53": row_quotients_of_large_integers,
    "`x ** 3` of a float": row_products,
    "`(-8.0) ** 0.5`": row_complex,
    "`1e200 ** 2`, `math.exp(1e3)`, `math.sqrt(-1.0)`, `math.log(0.0)`": row_errors_of_floats,
    "`int(x)`, `round(x)`, `math.floor(x)` of a float beyond int64, or NaN": row_floats_beyond_int64,
    "`math.cbrt(x)`": row_cube_roots,
    "`math.isqrt(-1)`, `math.comb(-1, 2)`, `math.fmod(x, 0.0)`": row_errors_of_integers,
    "`min(k, x)`, `k if c else x`, or a variable that is the int `k` or the float `x`": row_ints_and_floats,
    "`x << -1`, with the count in a variable": row_negative_counts,
    "`~b` of a bool": row_inverted_bools,
    "`np.uint32(x) - np.uint32(y)`": row_casts,
    "a variable without a value on the path taken": row_unassigned,
}


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.__name__)
def test_what_differs_from_python(row, device):
    row(device)


def test_each_row_of_the_documents_has_a_test():
    text = (ROOT / "docs" / "tasks.md").read_text().partition("This is what still differs:")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (.*?) \| ", text, re.MULTILINE)[2:] == list(ROWS)


# What is refused, on both targets, and at which words of the source.

MIXED = r"write np.uint64\(x\) for the signed one if it is never negative, or np.int64\(x\) for the uint64 if it stays below"


def helper(u, k):
    return u + k  # of the helper


def chosen(u, k):
    if k:
        return u
    return k


def inner(x, y):
    return x


REFUSED = {
    **{f"u {sign} k": MIXED for sign in ("+", "-", "*", "//", "%", "|", "^")},
    "k + u": MIXED,
    "u + -1": r"\+ of a uint64 and -1 has no integer type",
    "helper(u, k)": MIXED,
    "chosen(u, k)": "a variable or a result that is .* on one path and .* on another has no integer type",
    "u if k else k": "on one path",
    "min(u, k)": "min of a uint64 and an int64",
    "max(k, u)": "max of an int64 and a uint64",
    "divmod(u, k)[0]": "divmod of",
    "sum_of(range(k, u))": "range of",
    "math.gcd(u, k)": "gcd of",
    "np.floor_divide(u, k)": "floor_divide of",
    "k ** k": r"an integer to the power of an int64.* float\(x\) \*\* n, or x \*\* np.uint64\(n\)",
    "k << -1": "shift by -1",
    "round(x, 2)": r"round\(x \* 10\*\*n\) / 10\*\*n",
    "(lambda a: a)()": "without its argument 'a'",
    "(lambda a: a)(1, 2)": "which takes 1 arguments, with 2",
    "(lambda a: a)(1, a=2)": "with a= a second time",
    "(lambda a: a)(b=2)": "with b= which it does not take",
    "(lambda *a: a[0])(1)": "give it a fixed number of parameters",
}


def sum_of(numbers):
    total = 0
    for number in numbers:
        total += number
    return total


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_refused(text, target):
    if text == "u if k else k" and sys.version_info >= (3, 12):
        pytest.skip("each of the two ways has a store of its own, of its own type")
    variables = {"np": np, "math": math, "helper": helper, "chosen": chosen, "sum_of": sum_of}
    exec(f"def body(worker, k, us, xs, out):\n    u, x = us[0], xs[0]\n    out[0] = {text}", variables)
    kinds = tuple(describe(FakeArray(array)) for array in (U, np.zeros(1), np.zeros(1)))
    with pytest.raises(TaskCompileError, match=REFUSED[text]) as raised:
        compile_for(target, variables["body"], kinds)
    if text == "helper(u, k)":
        assert "return u + k  # of the helper" in str(raised.value)


def compile_for(target, body, kinds, debug=False):
    if target == "cpu":
        return compile_cpu(ProgramSpec(atos.task(body), None, kinds, np.dtype(np.uint32), debug=debug))
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    from atos_py.compile.codegen.target_cuda import compile_cuda

    return compile_cuda(ProgramSpec(atos.task(body), None, kinds, np.dtype(np.uint32), debug=debug), (9, 0))


def test_a_total_of_uint64_begins_with_a_literal(device):
    def add(worker, item, numbers, out):
        total = 0
        for number in range(numbers.size):
            total += numbers[number]
        out[0] = total if total > 5 else 0

    numbers, out = (atos.asarray(array, device=device) for array in (np.array([2**63, 3], np.uint64), np.zeros(1, np.uint64)))
    queue = atos.Queue(4, device=device)
    queue.push(0)
    queue.launch_thread(atos.task(add), numbers, out)
    assert out[0] == 2**63 + 3


def test_functions_inside_of_a_task(device):
    def call(worker, item, out):
        k = 1

        def late(x):
            return x + k

        def fixed(x, y=k + 1, z=7):
            return 100 * x + 10 * y + z

        power = lambda base, n=3: base * n  # noqa: E731
        k = 5
        out[0] = late(1)
        out[1] = fixed(1)
        out[2] = fixed(1, z=0)
        out[3] = fixed(z=1, x=2)
        out[4] = power(n=4, base=2) + power(2)
        out[5] = fixed(item, 3) + fixed(item, y=3)

    out, queue = atos.zeros(6, dtype=np.int64, device=device), atos.Queue(4, device=device)
    for debug in (False, True):
        queue.push(2)
        queue.launch_thread(atos.task(call), out, debug=debug)
        assert out.to_numpy().tolist() == [6, 127, 120, 221, 14, 474]


def steps(e):
    count = 0
    while True:
        if e == 1:
            count += 0
            return count
        if e % 2 == 0:
            e //= 2
        else:
            e = 3 * e + 1
        count += 1


def total_until_one(e):
    share, total = 7, 0
    while True:
        if e == 1:
            share = 1000  # for what stands above the end of the loop only
            return share + total
        total += share
        e -= 1


def shares_by_break(e):
    share, total = 7, 0
    while True:
        total += share
        e -= 1
        if e < 3:
            share = 1000
            break
    return total + share


@pytest.mark.parametrize("function", [steps, total_until_one, shares_by_break])
def test_variables_that_are_assigned_before_a_return_from_a_loop(function, device):
    def call(worker, item, out):
        out[0] = function(item)

    out, queue = atos.zeros(1, dtype=np.int64, device=device), atos.Queue(4, device=device)
    for debug in (False, True):
        queue.push(27)
        queue.launch_thread(atos.task(call), out, debug=debug)
        assert out[0] == function(27)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("debug", [False, True])
def test_functions_inside_of_a_task_and_missing_values_compile(target, debug):
    def call(worker, item, out):
        def fixed(x, y=2, z=7):
            return 100 * x + 10 * y + z

        for k in range(item):
            last = fixed(k, z=1)
        out[0] = last

    compile_for(target, call, (describe(FakeArray(np.zeros(1, np.int64))),), debug)


def test_other_code_of_numba_keeps_its_rules():
    """A library does not change what its users compile for themselves."""
    import numba

    compile_cpu(ProgramSpec(atos.task(lambda worker, item: None), None, (), np.dtype(np.uint32)))
    add = numba.njit(lambda x, y: x + y)
    compared = numba.njit(lambda x, y: x == y)
    assert add(np.uint64(1), np.int64(-1)) == 0
    assert compared(np.uint64(2**60), np.int64(2**60 + 1))  # as float64
