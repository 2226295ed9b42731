"""Differential test of arithmetic in tasks: operators and functions, on edge values of each pair of types, against Python."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases import ALL_COMBINATIONS, IS_FULL
from fake_arrays import FakeArray
from nvvm_texts import nvvm_text
from pairwise import pairwise

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec

TYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64"]
RESULTS = (np.int64, np.uint64, np.float64, np.bool_)  # where they are stored
PAIRS = [(left, right) for left in TYPES for right in TYPES]


IN_PYTHON = types.SimpleNamespace(
    uint32=int,
    floor_divide=lambda x, y: x // y,
    remainder=lambda x, y: x % y,
    fmod=lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1),
    sign=lambda x: (x > 0) - (x < 0),
    minimum=min,
    maximum=max,
)


def described(name: str, dtype: str) -> dict[str, Any]:
    return {f"kind of {name}": np.dtype(dtype).kind, f"size of {name}": np.dtype(dtype).itemsize}


TENTH = [PAIRS[place] for place in pairwise([described("left", left) | described("right", right) for left, right in PAIRS])]
TENTH += [("int64", "float64"), ("uint64", "int64")]


def edge_values(dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind == "f":
        powers = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 7.25, 63.0, 2.0**24, 2.0**53, 2.0**62, 2.0**63, 2.0**64, 1e30, math.inf]
        return np.array([sign * power for power in powers for sign in (1, -1)] + [math.nan], kind)
    info = np.iinfo(kind)
    near = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, 7, 31, 63, 64, 65, 100]
    near += [-1, -2, -3, -7, -64, 2**24 + 1, 2**31, 2**32 - 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63, 2**63 + 1, 2**63 + 1025]
    return np.array(sorted({value for value in near if info.min <= value <= info.max}), kind)


def in_task(dtype: str) -> str:
    """The type that an element has once a task has read it."""
    return "int64" if dtype in ("uint8", "uint16", "uint32") else dtype


def is_whole(kind: str) -> bool:
    return kind[0] in "biu"


def is_mixed(left: str, right: str) -> bool:
    """Whether one is uint64 and the other may be negative, which is refused."""
    return "uint64" in (left, right) and any(kind.startswith("int") for kind in (left, right))


def arithmetic(left: str, right: str) -> str | None:
    """The type of a sum."""
    if is_whole(left) and is_whole(right):
        return None if is_mixed(left, right) else "uint64" if "uint64" in (left, right) else "int64"
    return str(np.promote_types(left, right))


def joined(left: str, right: str) -> str | None:
    """The type of a variable that is now one, now the other."""
    return None if is_mixed(left, right) else str(np.promote_types(left, right))


def smaller(left: str, right: str) -> str | None:
    return None if (left == "bool") != (right == "bool") else joined(left, right)  # for GPUs, Numba has it of one type


def bits(left: str, right: str) -> str | None:
    return "bool" if left == right == "bool" else arithmetic(left, right) if is_whole(left) and is_whole(right) else None


def only_whole(left: str, right: str) -> str | None:
    return arithmetic(left, right) if is_whole(left) and is_whole(right) else None


def whole_and_float(left: str, right: str) -> str | None:
    return str(np.promote_types(left, right)) if is_whole(left) != is_whole(right) and "bool" not in (left, right) else None


def anded(left: str, right: str) -> str | None:
    return "uint64" if is_mixed(left, right) else bits(left, right)


def shifted(left: str, right: str) -> str | None:
    return ("uint64" if left == "uint64" else "int64") if is_whole(left) and is_whole(right) else None


def power(left: str, right: str) -> str | None:
    if not is_whole(right):
        return str(np.promote_types(left, right))
    if not is_whole(left):
        return left
    return None if right.startswith("int") else "uint64" if left == "uint64" else "int64"


def always(kind: str) -> Callable[[str, str], str]:
    return lambda left, right: kind


def divided(left: str, right: str) -> str:
    return "float64" if is_whole(left) and is_whole(right) else str(np.promote_types(left, right))


def rounded(kind: str) -> str | None:
    return None if kind == "bool" else kind if is_whole(kind) else "int64"


def modulo(x: int, y: int, sign: str) -> int:
    """A power or a shift modulo 2**64, without the digits beyond."""
    return pow(x, y, 2**64) if sign == "**" else x << min(y, 64)


def of_left(function: Callable[[str], str | None]) -> Callable[[str, str], str | None]:
    return lambda left, right: function(left)


@dataclass(frozen=True)
class Case:
    """An expression of x and y, the type of its result, None where it is refused, and how far floats may be from Python's."""

    text: str
    result: Callable[[str, str], str | None]
    ulps: int = 0


def signed(kind: str) -> str:
    return "int64" if is_whole(kind) and kind != "uint64" else kind


CASES = [
    *(Case(f"x {sign} y", arithmetic) for sign in ("+", "-", "*", "//", "%")),
    *(Case(f"divmod(x, y)[{place}]", arithmetic) for place in (0, 1)),
    Case("x / y", divided),
    Case("x ** y", power, 4),
    Case("x & y", anded),
    *(Case(f"x {sign} y", bits) for sign in ("|", "^")),
    *(Case(f"x {sign} y", shifted) for sign in ("<<", ">>")),
    *(Case(f"x {sign} y", always("bool")) for sign in ("==", "!=", "<", "<=", ">", ">=")),
    *(Case(text, joined) for text in ("x if x < y else y", "chosen(x, y)")),
    *(Case(text, smaller) for text in ("min(x, y)", "max(x, y)")),
    *(Case(text, always("bool")) for text in ("not x", "bool(x)", "x < 5 <= y", "x == 3", "3.5 < x")),
    *(Case(text, of_left(signed)) for text in ("-x", "+x", "abs(x)")),
    Case("~x", of_left(lambda kind: signed(kind) if kind != "bool" and is_whole(kind) else None)),
    Case("float(x)", of_left(lambda kind: None if kind == "bool" else "float64" if is_whole(kind) else kind)),
    Case("round(x)", of_left(rounded)),
    *(
        Case(f"x {sign} 3", of_left(lambda kind: divided(kind, "float64") if kind[0] == "f" else signed(kind)))
        for sign in "+-*"
    ),
    Case("x // 3", of_left(lambda kind: "float64" if kind[0] == "f" else signed(kind))),
    Case("x % 1000", of_left(lambda kind: "float64" if kind[0] == "f" else signed(kind))),
    *(Case(text, of_left(lambda kind: kind if is_whole(kind) and kind != "bool" else None)) for text in ("min(x, 100)",)),
    Case("x & 255", of_left(lambda kind: signed(kind) if is_whole(kind) else None)),
    *(
        Case(f"np.uint32(x & 7) {sign} -2", of_left(lambda kind: "int64" if is_whole(kind) else None))
        for sign in ("+", "//", "&")
    ),
    Case("np.uint32(x & 7) > -2", of_left(lambda kind: "bool" if is_whole(kind) else None)),
    Case("x >> 70", of_left(lambda kind: signed(kind) if is_whole(kind) else None)),
    Case("x ** 3", of_left(lambda kind: signed(kind)), 4),
    Case("x ** -1", of_left(lambda kind: "float64" if is_whole(kind) else kind), 4),
    *(
        Case(f"math.{name}(x)", of_left(lambda kind: kind if kind[0] == "f" else "float64"), 4)
        for name in ("sqrt", "exp", "fabs")
    ),
    *(Case(f"math.{name}(x)", of_left(rounded)) for name in ("floor", "ceil", "trunc")),
    *(Case(f"math.{name}(x)", always("bool")) for name in ("isnan", "isinf", "isfinite")),
    *(Case(f"math.{name}(x, y)", divided, 4) for name in ("copysign", "hypot", "atan2", "pow")),
    *(Case(f"np.{name}(x, y)", only_whole) for name in ("floor_divide", "remainder", "fmod")),
    Case("np.sign(x)", of_left(lambda kind: "int64" if is_whole(kind) and kind != "bool" else None)),
    *(Case(f"np.{name}(x, y)", whole_and_float) for name in ("minimum", "maximum")),
    Case("math.ldexp(x, y)", lambda left, right: left if left[0] == "f" and is_whole(right) else None),
    Case("math.gcd(x, y)", only_whole),
]


def python_value(case: Case, x: Any, y: Any, result: str) -> Any:
    """The value of an expression of Python's numbers in a type; None where Python has none."""
    if result == "float32" and case.ulps == 0:
        x, y = (np.float32(value) if isinstance(value, float) else value for value in (x, y))
    try:
        with np.errstate(all="ignore"):
            if case.text in ("x ** y", "x << y") and isinstance(x, int) and isinstance(y, int):
                value = modulo(x, y, case.text[2:4]) if y >= 0 else None
            else:
                value = eval(case.text, {"math": math, "np": IN_PYTHON, "chosen": chosen}, {"x": x, "y": y})
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    if value is None or isinstance(value, complex) or (case.text.startswith("np.m") and math.isnan(x + y)):
        return None
    if result == "bool":
        return bool(value)
    if result.startswith("float"):
        return float(value)
    if not math.isfinite(value):
        return None
    return int(value)


def wrapped(value: int, result: str) -> int:
    value %= 2**64
    return value - 2**64 if result.startswith("int") and value >= 2**63 else value


def chosen(x, y):
    z = y
    if x > 5:
        z = x
    return z


def make_task(left: str, right: str, cases: list[tuple[Case, str]]) -> atos.Task:
    lines = [
        "def compute(worker, k, a, b, whole, unsigned, fraction, positive):",
        "    x, y = a[k // b.size], b[k % b.size]",
    ]
    for place, (case, result) in enumerate(cases):
        array = "fraction" if result.startswith("float") else "unsigned" if result == "uint64" else "whole"
        lines += [
            f"    r{place} = {case.text}",
            f"    {array}[{place}, k] = r{place}",
            f"    positive[{place}, k] = r{place} > 0",
        ]
    variables: dict[str, Any] = {"math": math, "np": np, "chosen": chosen}
    exec("\n".join(lines), variables)
    return atos.task(variables["compute"])


def cases_of(left: str, right: str) -> list[tuple[Case, str]]:
    kinds = in_task(left), in_task(right)
    return [(case, result) for case in CASES if (result := case.result(*kinds)) is not None]


def compare(left: str, right: str, device: Any) -> tuple[int, list[str]]:
    cases = cases_of(left, right)
    a, b = edge_values(left), edge_values(right)
    shape = len(cases), len(a) * len(b)
    arrays = [atos.zeros(shape, dtype=dtype, device=device) for dtype in RESULTS]
    queue = atos.Queue(capacity=shape[1], device=device)
    queue.push(range(shape[1]))
    queue.launch_thread(make_task(left, right, cases), atos.asarray(a, device=device), atos.asarray(b, device=device), *arrays)
    whole, unsigned, fraction, positive = (array.to_numpy() for array in arrays)
    wrong, compared = [], 0
    for place, (case, result) in enumerate(cases):
        for k in range(shape[1]):
            x, y = (value.item() for value in (a[k // len(b)], b[k % len(b)]))
            expected = python_value(case, x, y, result)
            if expected is None:
                continue
            if (
                case.text in ("x // y", "divmod(x, y)[0]", "np.floor_divide(x, y)")
                and result == "int64"
                and (x, y) == (-(2**63), -1)
            ):
                expected = 0
            overflows = not result.startswith(("float", "bool")) and expected != wrapped(expected, result)
            if overflows and isinstance(x, float):
                continue
            expected = wrapped(expected, result) if overflows else expected
            compared += 1
            found = (fraction if result.startswith("float") else unsigned if result == "uint64" else whole)[place, k].item()
            if result.startswith("float"):
                rounded_first = case.text == "x / y" and any(isinstance(each, int) and abs(each) > 2**53 for each in (x, y))
                right_value = is_close(found, expected, np.dtype(result), case.ulps + rounded_first)
            else:
                right_value = found == expected
            # Of an overflow the compiler may take the number for what it would be otherwise.
            if not right_value or (bool(positive[place, k]) != (found > 0) and not overflows):
                wrong.append(f"{case.text} = {found}, not {expected}, of x = {x} ({left}) and y = {y} ({right})")
    return compared, wrong


def is_close(found: float, expected: float, dtype: Any, ulps: int) -> bool:
    with np.errstate(all="ignore"):
        value = dtype.type(expected)
    if not np.isfinite(value):
        return np.isnan(found) if np.isnan(value) else found == value
    return abs(found - float(value)) <= ulps * float(np.spacing(abs(value)))


@pytest.mark.parametrize("dtypes", PAIRS if ALL_COMBINATIONS and not IS_FULL else TENTH, ids=" ".join)
def test_as_python(dtypes, device):
    compared, wrong = compare(*dtypes, device)
    assert wrong == []
    assert compared > 0


@pytest.mark.part("numbers")
@pytest.mark.parametrize("dtypes", [pair for pair in PAIRS if pair not in TENTH], ids=" ".join)
def test_all_other_pairs_as_python(dtypes):
    test_as_python(dtypes, "cpu")


@pytest.mark.parametrize(
    "dtypes", [("int32", "uint64"), ("uint64", "bool"), ("float32", "int8"), ("float64", "float64")], ids=" ".join
)
@pytest.mark.parametrize("debug", [False, True])
def test_the_same_types_for_gpus(dtypes, debug):
    """What is compiled for a GPU has the types that the CPU's has: floats cannot be stored as integers."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    from atos_py.compile.codegen.target_cuda import compile_cuda

    arrays = [np.zeros(2, dtype) for dtype in dtypes] + [np.zeros((2, 2), dtype) for dtype in RESULTS]
    kinds = tuple(describe(FakeArray(array)) for array in arrays)
    assert compile_cuda(
        ProgramSpec(make_task(*dtypes, cases_of(*dtypes)), None, kinds, np.dtype(np.uint32), debug=debug), (9, 0)
    ).modules


def test_remainders_for_gpus_are_exact():
    """NVVM computes `frem` as x - trunc(x / y) * y, and nothing of it is left: 1e30 % 3.0, 5.0 % inf."""

    def remainders(worker, v, x, y):
        x[0] = x[1] % x[2] + x[1] // x[2] + math.fmod(x[1], x[2])
        y[0] = divmod(y[1], y[2])[0]

    text = nvvm_text(remainders, np.zeros(3), np.zeros(3, np.float32))
    assert " frem " not in text
    assert 'call double @"__nv_fmod"' in text
    assert 'call float @"__nv_fmodf"' in text
