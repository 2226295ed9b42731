"""Tasks for GPUs become what libNVVM reads for every GPU: LLVM 7 with typed pointers, and functions of libdevice."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from fake_arrays import FakeArray
from nvvm_texts import nvvm_text

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec

pytest.importorskip("cuda.core", reason="cuda-core is not installed")


def words(text: str) -> list[str]:
    return text.split()


# Instructions of LLVM 7; later ones are fneg, freeze, callbr.
INSTRUCTIONS = words(
    "ret br switch unreachable add fadd sub fsub mul fmul udiv sdiv fdiv urem srem frem shl lshr ashr and or"
    " xor extractelement insertelement shufflevector extractvalue insertvalue alloca load store fence cmpxchg"
    " atomicrmw getelementptr trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr"
    " bitcast addrspacecast icmp fcmp phi select call"
)
# Intrinsics that numbers and memory become, of those in LLVM 7; libNVVM's own begin with llvm.nvvm.
INTRINSICS = re.compile(
    r"llvm\.(nvvm\..*|(ctlz|cttz|ctpop|bswap|bitreverse|fshl|fshr)\.i\d+|[su](add|sub|mul)\.with\.overflow\.i\d+"
    r"|mem(cpy|set|move)\..*|lifetime\..*|dbg\..*|assume|expect\.i\d+|(fma|fmuladd|fabs|floor|ceil|trunc|rint|nearbyint|sqrt)\.f(32|64))"
)
WORDS = re.compile(r"\bpoison\b|\bptr\b(?! \[)|\bnoundef\b|\bmustprogress\b|\bwillreturn\b|\bnofree\b|\bnosync\b|\bimmarg\b")
OF_ONE = words(
    "acos acosh asin asinh atan atanh ceil cos cosh degrees erf erfc exp expm1 fabs floor gamma isfinite isinf"
    " isnan lgamma log log10 log1p log2 radians sin sinh sqrt tan tanh trunc exp2 cbrt"
)
OF_TWO = ["atan2", "copysign", "fmod", "hypot", "nextafter", "pow", "remainder"]
OF_NUMPY = words(
    "abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad exp exp2 expm1 fabs floor"
    " isfinite isinf isnan log log10 log1p log2 rad2deg reciprocal rint sign signbit sin sinh sqrt square tan"
    " tanh trunc"
)
PAIRS_OF_NUMPY = words(
    "arctan2 copysign floor_divide fmax fmin fmod hypot logaddexp logaddexp2 maximum minimum nextafter power remainder"
)
WHOLE = (
    "math.gcd(n, k) + math.isqrt(abs(n)) + math.comb(abs(n), 2) + n // k + n % k + (n << 3) + n ** 2 + np.gcd(n, k) + round(x)"
)


def make(statements: list[str], first: str) -> str:
    """Return the text of a task that stores what these expressions are, of numbers of a type."""
    body = "\n".join(f"    out[{number}] += {each}" for number, each in enumerate(statements))
    source = (
        f"def task(worker, item, out, numbers, whole):\n    x, y, n, k = numbers[0], numbers[1], whole[0], whole[1]\n{body}\n"
    )
    variables: dict[str, object] = {"math": math, "np": np}
    exec(source, variables)
    return nvvm_text(variables["task"], np.zeros(99, first), np.zeros(2, first), np.zeros(2, np.int64))


@pytest.fixture(scope="module", params=["f4", "f8"])
def text(request) -> str:
    known = [name for name in OF_ONE if hasattr(math, name)]  # exp2 and cbrt are there from Python 3.11 on
    return make(
        [
            *(f"math.{name}(x)" for name in known),
            *(f"math.{name}(x, y)" for name in OF_TWO),
            *("math.ldexp(x, 3)", "math.frexp(x)[0]", "math.modf(x)[0]", "-x", "x ** 3", "x ** y", "x % y", "x // y"),
            *(f"np.{name}(x)" for name in OF_NUMPY),
            *(f"np.{name}(x, y)" for name in PAIRS_OF_NUMPY),
            *("min(x, y)", "max(x, y)", "np.ldexp(x, 3)", WHOLE),
        ],
        request.param,
    )


def instructions(text: str) -> set[str]:
    """Return the words of all instructions."""
    return set(re.findall(r"^  +(?:%\S+ = )?(?:tail |musttail |notail )?([a-z]+)\b", text, re.MULTILINE))


def test_instructions_are_those_of_llvm_7(text):
    found = instructions(text)
    assert {"call", "fadd", "getelementptr"} <= found
    assert found <= set(INSTRUCTIONS)


def test_pointers_have_types_and_words_are_those_of_llvm_7(text):
    assert "i8*" in text
    assert sorted(set(WORDS.findall(text))) == []


def test_functions_are_of_libdevice_or_of_the_core(text):
    declared = set(re.findall(r'^declare [^@]*@"?([\w.$]+)"?\(', text, re.MULTILINE))
    defined = set(re.findall(r'^define [^@]*@"?([^"(]+)"?\(', text, re.MULTILINE))
    missing = {name for name in declared - defined if not name.startswith(("__nv_", "atos_", "llvm."))}
    assert missing == set()
    assert {name for name in declared if name.startswith("llvm.") and not INTRINSICS.fullmatch(name)} == set()
    assert any(name.startswith("__nv_") for name in declared)


@pytest.mark.parametrize(("line", "word"), [("  %x = fneg double %y", "fneg"), ("  freeze i32 %x", "freeze")])
def test_an_instruction_of_later_versions_is_found(line, word):
    assert word in instructions(line) - set(INSTRUCTIONS)


def test_a_word_of_later_versions_is_found():
    assert WORDS.findall("define void @f(ptr noundef %x)") == ["ptr", "noundef"]


@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0), (10, 0), (12, 0)], ids=lambda cc: f"sm_{cc[0]}{cc[1]}")
def test_every_gpu_takes_it(cc):
    from atos_py.compile.codegen.target_cuda import compile_cuda, with_ptx

    spec = ProgramSpec(roots, None, (describe(FakeArray(np.zeros(4))),), np.dtype(np.uint32))
    code = with_ptx(compile_cuda(spec, cc), cc)
    assert code.modules
    assert f".target sm_{cc[0]}{cc[1]}".encode() in code.ptx
    assert b"__nv_" not in code.ptx  # libdevice is linked


@atos.task
def roots(worker, item, out):
    out[item] = math.sqrt(item) + math.sin(item)
