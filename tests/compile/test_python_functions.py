"""Functions of Python in tasks that Numba lacks: against Python, on edge values, on both devices."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from fake_arrays import FakeArray

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import TaskCompileError, TaskError

FLOATS = [0.0, -0.0, 0.5, 1.0, 1.5, 2.5, -3.0, 7.25, 63.0, 1e-300, 1e30, -1e308, 2.0**53, math.inf, -math.inf, math.nan]
WHOLE = [0, 1, 2, 3, 7, 31, 62, 64, 2**31, 2**32 - 1, 2**53 + 1, 2**62 + 1, 2**63 - 1]


def run(function: Any, device: atos.Device, *arrays: np.ndarray, result: Any = np.float64, **options: Any) -> np.ndarray:
    """Return what a task stores for each index of the arrays, whose last one is made for it."""
    out = atos.zeros(len(arrays[0]), dtype=result, device=device)
    queue = atos.Queue(len(arrays[0]), device=device)
    queue.push(range(len(arrays[0])))
    queue.launch_thread(atos.task(function), *(atos.asarray(each, device=device) for each in arrays), out, **options)
    return out.to_numpy()


def python_of(function: Any, *args: Any) -> float:
    try:
        return function(*args)
    except ValueError:
        return math.nan


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_remainders(device, dtype):
    def both(worker, k, x, y, out):
        out[2 * k], out[2 * k + 1] = math.fmod(x[2 * k], y[2 * k]), math.remainder(x[2 * k], y[2 * k])

    with np.errstate(over="ignore"):
        values = np.array(FLOATS, dtype)
    x, y = (np.repeat(each, 2) for each in np.array(list(itertools.product(values, values)), dtype).T)
    out = atos.zeros(len(x), dtype=dtype, device=device)
    queue = atos.Queue(len(x), device=device)
    queue.push(range(len(x) // 2))
    queue.launch_thread(atos.task(both), atos.asarray(x, device=device), atos.asarray(y, device=device), out)
    found = out.to_numpy()
    pairs = zip(x[::2].tolist(), y[::2].tolist(), strict=True)
    expected = np.array([python_of(f, *pair) for pair in pairs for f in (math.fmod, math.remainder)], dtype)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(expected)]))


def test_remainders_of_integers(device):
    def of_whole(worker, k, x, out):
        out[k] = math.fmod(x[k], 7) + math.remainder(x[k], 4)

    x = np.array([0, 5, -5, 10, -10, 2**53])
    assert run(of_whole, device, x).tolist() == [math.fmod(v, 7) + math.remainder(v, 4) for v in x.tolist()]


def test_parts_of_floats(device):
    def parts(worker, k, x, whole, out):
        out[k], whole[k] = math.modf(x[k])

    x = np.array(FLOATS)
    whole, out = (atos.zeros(len(x), dtype=np.float64, device=device) for _ in range(2))
    queue = atos.Queue(len(x), device=device)
    queue.push(range(len(x)))
    queue.launch_thread(atos.task(parts), atos.asarray(x, device=device), whole, out)
    expected = np.array([math.modf(value) for value in FLOATS])
    np.testing.assert_array_equal(np.stack([out.to_numpy(), whole.to_numpy()], 1), expected)
    assert np.signbit(out.to_numpy()).tolist()[:-1] == np.signbit(expected[:, 0]).tolist()[:-1]


def test_cube_roots(device):
    def root(worker, k, x, out):
        out[k] = np.cbrt(x[k])

    x = np.array([value for value in FLOATS if not math.isnan(value)] + [27.0, -8.0, 1e-9, 3.0])
    found, expected = run(root, device, x), np.cbrt(x)
    finite = np.isfinite(expected)
    assert (found[~finite] == expected[~finite]).all()
    assert (np.abs(found - expected)[finite] <= 2 * np.spacing(np.abs(expected[finite]))).all()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_functions_of_integers(device, dtype):
    def root(worker, k, n, m, out):
        out[k] = math.isqrt(n[k])

    def choose(worker, k, n, m, out):
        out[k] = math.comb(n[k], m[k])

    def order(worker, k, n, m, out):
        out[k] = math.perm(n[k], m[k])

    numbers = [*WHOLE, *((2**32 - 1) ** 2 + d for d in (-1, 0, 1)), *([2**64 - 1] if dtype == np.uint64 else [])]
    numbers = [number for number in numbers if number <= np.iinfo(dtype).max]
    n = np.array(numbers, dtype)
    assert run(root, device, n, n, result=dtype).tolist() == [math.isqrt(number) for number in numbers]
    pairs = [(a, b) for a in (*range(8), 30, 61, 62, 66) for b in (*range(9), 15, 31, 60, 62)]
    for function, exact in ((choose, math.comb), (order, math.perm)):
        fits = [pair for pair in pairs if exact(*pair) <= np.iinfo(np.int64).max]
        left, right = (np.array(each, dtype) for each in zip(*fits, strict=True))
        assert run(function, device, left, right, result=dtype).tolist() == [exact(*pair) for pair in fits]


def test_negative_numbers_are_an_error_with_checks():
    def root(worker, k, n, out):
        out[k] = math.isqrt(n[k])

    with pytest.raises(TaskError, match="isqrt of a negative number"):
        run(root, atos.device("cpu"), np.array([4, -4]), debug=True)

    def rest(worker, k, n, out):
        out[k] = math.fmod(n[k], 0.0)

    with pytest.raises(TaskError, match="float modulo by zero"):
        run(rest, atos.device("cpu"), np.array([4.0]), debug=True)


def test_closeness(device):
    def close(worker, k, a, b, out):
        out[k] = (
            math.isclose(a[k], b[k]) + 2 * math.isclose(a[k], b[k], rel_tol=0.1) + 4 * math.isclose(a[k], b[k], abs_tol=1e-3)
        )

    values = [*FLOATS, 1.05, 1.0 + 1e-10, 1e-4, 0.9]
    a, b = np.array(list(itertools.product(values, values))).T
    expected = [
        math.isclose(x, y) + 2 * math.isclose(x, y, rel_tol=0.1) + 4 * math.isclose(x, y, abs_tol=1e-3)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert run(close, device, a, b).tolist() == expected


def test_votes_of_tuples(device):
    def vote(worker, k, a, out):
        out[k] = any((a[k] > 3, a[k] == 0)) + 2 * all((a[k], a[k] < 5.5, True)) + 4 * any(()) + 8 * all(())

    expected = [any((v > 3, v == 0)) + 2 * all((v, v < 5.5, True)) + 8 for v in range(8)]
    assert run(vote, device, np.arange(8)).tolist() == expected


def test_backwards(device):
    def walk(worker, k, a, out):
        number = 0
        for i in reversed(range(a[k])):
            number = 3 * number + i
        for i in reversed(range(10, a[k], -2)):
            number = 3 * number + i
        for i in reversed((4, 5, a[k])):
            number = 3 * number + i
        out[k] = number

    def in_python(v):
        number = 0
        for i in [*reversed(range(v)), *reversed(range(10, v, -2)), *reversed((4, 5, v))]:
            number = 3 * number + i
        return number

    assert run(walk, device, np.arange(8), result=np.int64).tolist() == [in_python(v) for v in range(8)]


def test_least_common_multiples(device):
    def multiple(worker, k, a, out):
        out[k] = math.lcm(a[k], 12)

    assert run(multiple, device, np.arange(-6, 20), result=np.int64).tolist() == [math.lcm(v, 12) for v in range(-6, 20)]


@pytest.mark.parametrize(
    ("call", "message"), [("any(v)", r"any takes a tuple of numbers"), ("reversed(v)", "reversed takes a range or a tuple")]
)
def test_what_is_refused(call, message):
    variables: dict[str, Any] = {}
    exec(f"def use(worker, v, out):\n    {call}", variables)
    queue = atos.Queue(2, device="cpu")
    queue.push(0)
    with pytest.raises(TaskCompileError, match=message):
        queue.launch_thread(atos.task(variables["use"]), atos.zeros(1, device="cpu"))


@pytest.mark.parametrize("debug", [False, True])
def test_all_compile_for_gpus(debug):
    """With the checks and without, of both types of floats."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    from atos_py.compile.codegen.target_cuda import compile_cuda

    def all_of_them(worker, k, x, y, n, m, out):
        fraction, whole = math.modf(x[k])
        out[0] = math.fmod(x[k], y[k]) + math.remainder(x[k], y[k]) + fraction + whole + np.cbrt(x[k])
        out[1] = math.isclose(x[k], y[k], rel_tol=0.1) + math.isclose(x[k], y[k], abs_tol=0.1)
        out[2] = math.isqrt(n[k]) + math.comb(n[k], m[k]) + math.perm(n[k], m[k]) + math.lcm(n[k], m[k])
        out[3] = any((x[k] > 3, n[k] == 0)) + 2 * all((n[k], y[k] < 5.5))
        for i in reversed(range(n[k])):
            out[4] += i
        for value in reversed((x[k], y[k])):
            out[5] = out[5] / 2 + value

    for floats in (np.float64, np.float32):
        arrays = [np.zeros(2, dtype) for dtype in (floats, floats, np.int64, np.int64, np.float64)]
        kinds = tuple(describe(FakeArray(array)) for array in arrays)
        assert compile_cuda(ProgramSpec(atos.task(all_of_them), None, kinds, np.dtype(np.uint32), debug=debug), (9, 0)).modules
