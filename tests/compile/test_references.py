"""What tells compiled tasks apart: everything that their code depends on, and nothing that another process could not load."""

from __future__ import annotations

import ctypes
import enum
import functools
import math
import subprocess
import sys
import threading
import types
from collections import namedtuple
from pathlib import Path
from typing import Any

import numba
import numba.extending
import numpy as np
import pytest

import atos_py as atos
from atos_py.compile.codegen import introspect
from atos_py.compile.codegen.introspect import UnhashableError, fingerprint


def function(source: str, **names: Any) -> Any:
    """Return the last function of a source, with these global variables."""
    space = {**names, "__name__": "somewhere"}
    exec(source, space)
    return list(space.values())[-1]


def module(**names: Any) -> types.ModuleType:
    made = types.ModuleType("settings")
    vars(made).update(names)
    return made


def stands_for_another(x):
    raise NotImplementedError


@numba.extending.overload(stands_for_another)
def _other(x):
    return lambda x: x + 1


def named_as_isqrt(k: int) -> types.FunctionType:
    return functools.wraps(math.isqrt)(function(f"def isqrt(x): return x * {k}"))


TWO = "def helper():\n return s.B\ndef body(worker, item, out):\n out[0] = s.A * 10 + helper()\n"
DIFFERENT = {
    "a constant of a module that a helper uses another one of": [function(TWO, s=module(A=k, B=1)) for k in (2, 3)],
    "a function of a module of a module": [
        function("def body(): return s.t.f(3)", s=module(t=module(f=function(f"def f(x): return x * {k}")))) for k in (2, 3)
    ],
    "a member of an enumeration": [
        function("def body(): return C.A", C=enum.IntEnum("C", {"A": k, "B": 9})) for k in (2, 3)
    ],
    "the order of a named tuple's fields": [
        function("def body(): return c.x", c=namedtuple("P", fields)(1, 2)) for fields in ("x y", "y x")
    ],
    "a function that goes by a library's name": [function("def body(): return f(3)", f=named_as_isqrt(k)) for k in (1, 2)],
    "the places of a record's fields": [np.dtype([("a", "u1"), ("b", "u4")], align=packed) for packed in (True, False)],
    "whether the rest of the arguments is one": [
        function(f"def f({given}): return y") for given in ("x, *y", "x, *, y=()")
    ],
    "whether a helper is a dispatcher": [numba.njit(plain := function("def f(x): return x + 1")), plain],
}  # fmt: skip


def double(x):
    y = x * 2
    return y


OPTIONS = {
    "fastmath": [{}, {"fastmath": True}, {"fastmath": {"nnan"}}, {"fastmath": {"ninf"}}],
    "error_model": [{}, {"error_model": "numpy"}],
    "boundscheck": [{}, {"boundscheck": True}],
    "inline": [{}, {"inline": "always"}, {"inline": lambda *_: True}, {"inline": lambda *_: False}],
    "locals": [{}, {"locals": {"y": numba.float32}}, {"locals": {"y": numba.int8}}],
    "parallel": [{}, {"parallel": True}, {"parallel": {"fusion": False}}],
    "signature_or_function": [{}, {"signature_or_function": "f8(f8)"}, {"signature_or_function": ["f4(f8)", "i8(i8)"]}],
}


def body_of(helper: Any) -> types.FunctionType:
    return function("def body(x): return h(x)", h=helper)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_what_a_dispatcher_was_made_with(options):
    names = [fingerprint(body_of(numba.njit(**given)(double))) for given in options]
    assert len(set(names)) == len(options)
    assert names == [fingerprint(body_of(numba.njit(**given)(double))) for given in options]


def test_options_of_cuda():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from numba import cuda

    options = [{}, {"fastmath": True}, {"inline": "always"}, {"lineinfo": True}]
    names = {fingerprint(body_of(cuda.jit(device=True, **given)(double))) for given in options}
    assert len(names) == len(options)
    with pytest.raises(UnhashableError, match="links files"):
        fingerprint(body_of(cuda.jit(link=["helper.ptx"])(double)))


def test_what_a_dispatcher_was_called_with():
    helper = numba.njit(double)
    before = fingerprint(body_of(helper))
    helper(1)
    assert fingerprint(body_of(helper)) == before
    helper.compile("f4(f8)")
    assert fingerprint(body_of(helper)) != before


def test_a_compiler_of_the_users_own_has_no_name():
    class Compiler(numba.core.compiler.Compiler):
        pass

    with pytest.raises(UnhashableError, match="is compiled by Compiler"):
        fingerprint(body_of(numba.njit(pipeline_class=Compiler)(double)))


OVERLOADS = """
import math, sys, numba
from numba.extending import overload, overload_attribute
from atos_py.compile.codegen.introspect import fingerprint
def body(x): return x.half + math.lgamma(x)
names = {fingerprint(body)}
for k in 1, 2:
    overload_attribute(numba.types.Integer, "half")(lambda x: lambda x: x // k)
    names.add(fingerprint(body))
    overload(math.lgamma)(lambda x: lambda x: x * k)
    names.add(fingerprint(body))
print(len(names))
"""


def test_overloads_of_what_only_a_library_names():
    # In a process of its own, since what is registered with Numba stays there.
    assert subprocess.run([sys.executable, "-c", OVERLOADS], capture_output=True, text=True, check=True).stdout == "5\n"


@pytest.mark.parametrize("values", DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs(values):
    assert fingerprint(values[0]) != fingerprint(values[1])
    assert fingerprint(values[0]) == fingerprint(values[0])


EVEN = "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)\ndef body(): return even(4)"
NAMELESS = {
    "numba.vectorize": function("def body(): return h(1.0)", h=numba.vectorize(lambda x: x + 1)),
    "numba.cfunc": function("def body(): return h(1.0)", h=numba.cfunc("f8(f8)")(lambda x: x + 1)),
    "ctypes": function("def body(): return h(1.0)", h=ctypes.CDLL(None).getpid),
    "an overload": function("def body(): return h(1)", h=stands_for_another),
    "recursion": function("def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\ndef body(): return fib(4)"),
    "mutual recursion": function(EVEN),
}


@pytest.mark.parametrize("value", NAMELESS.values(), ids=NAMELESS)
def test_what_is_not_kept_on_disk(value):
    with pytest.raises(UnhashableError):
        fingerprint(value)


def test_what_a_library_names_is_kept():
    body = function(
        "def body(x): return np.sqrt(x) + len(x) + abs(x[0]) + np.sum(x) + m.exp(x[0])", np=np, m=__import__("math")
    )
    assert fingerprint(body) == fingerprint(body)


@atos.task
def copy_item(worker, item, out):
    out[0] = item.a
    out[1] = item.b


@pytest.mark.parametrize("first", [True, False])
def test_records_of_the_same_fields_at_other_places(first):
    for align in (first, not first):
        queue = atos.Queue(10, dtype=np.dtype([("a", np.uint8), ("b", np.uint32)], align=align), device="cpu")
        queue.push((1, 2))
        out = atos.zeros(2, dtype=np.int64, device="cpu")
        queue.launch_thread(copy_item, out)
        assert out.to_numpy().tolist() == [1, 2]


@atos.task
def second_field(worker, item, out):
    out[0] = item[1]


@atos.task
def low(worker, item, limits, out):
    out[0] = limits.low


def test_names_that_look_the_same_when_joined():
    for dtype in ([("a_b", "u4"), ("c", "u4")], [("a", "u4"), ("b_c", "u4")]):
        queue = atos.Queue(4, dtype=dtype, device="cpu")
        queue.push((5, 6))
        out = atos.zeros(1, dtype=np.int64, device="cpu")
        queue.launch_thread(second_field, out)
        assert out[0] == 6


def test_named_tuples_of_one_name():
    for fields in ("low high", "high low"):
        queue = atos.Queue(4, device="cpu")
        queue.push(0)
        out = atos.zeros(1, dtype=np.int64, device="cpu")
        queue.launch_thread(low, namedtuple("Limits", fields)(low=1, high=2), out)
        assert out[0] == 1


PROGRAM = """
import ctypes, numpy as np, atos_py as atos
def even(n):
    if n == 0: return True
    return odd(n - 1)
def odd(n):
    if n == 0: return False
    return even(n - 1)
exp = ctypes.CDLL("libm.so.6").exp
exp.argtypes, exp.restype = [ctypes.c_double], ctypes.c_double
@atos.task
def body(worker, item, out):
    out[0] = (1 if even(item) else 0) + exp(0.0)
queue = atos.Queue(4, device="cpu")
queue.push(10)
out = atos.zeros(1, dtype=np.float64, device="cpu")
queue.launch_thread(body, out)
print(out[0])
"""


def test_a_second_process_compiles_what_it_could_not_load(tmp_path, monkeypatch):
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "cache"))
    program = Path(tmp_path / "program.py")
    program.write_text(PROGRAM)
    for _ in range(2):
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr


def test_names_of_the_package_that_another_thread_asks_for() -> None:
    """The module gets some of its names only then; without the global lock of Python, in the middle of any call."""
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            for number in range(1000):
                setattr(atos, f"asked_{number}", None)
            for number in range(1000):
                delattr(atos, f"asked_{number}")

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(300):
            assert introspect.members_of(atos, frozenset({"errors", "atomic_add"})) == {"errors": atos.errors}
    finally:
        done.set()
        asking.join()


def test_a_module_of_numba_that_another_thread_imports() -> None:
    """It is waited for, and not looked at half made."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    source = """
import threading
from atos_py.compile.codegen import introspect
importing = threading.Thread(target=__import__, args=("numba.cuda.typing.templates",))
importing.start()
while importing.is_alive():
    introspect._registries()
print(len(introspect._registries()))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "2"
