"""libNVVM: LLVM's code as Numba's core lowers it for CPUs, in the dialect that libNVVM reads, compiled to LTO-IR or PTX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from llvmlite import ir
from numba.core import cgutils

__all__ = ["callers_first", "compile_modules", "nvvm_text", "use_libdevice"]

# Functions of C that libdevice has with `__nv_` before the name, and with an f behind it for float32.
_OF_C = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "erf",
        "erfc",
        "exp",
        "exp10",
        "exp2",
        "expm1",
        "fabs",
        "floor",
        "fmod",
        "hypot",
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "nextafter",
        "pow",
        "remainder",
        "rint",
        "round",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    ]
)
_OF_NUMBA = {"gamma": "tgamma", "frexp": "frexp", "ldexp": "ldexp", "modf": "modf", "nextafter": "nextafter"}
_INTRINSICS = {**{name: name for name in _OF_C}, "minnum": "fmin", "maxnum": "fmax", "powi": "powi", "roundeven": "rint"}
_INTRINSIC = re.compile(r"llvm\.([a-z0-9]+)(\.(f32|f64|float|double)(\.i32)?)?$")


def _in_libdevice(function: ir.Function) -> str | None:
    """Return the function of libdevice that does what a function of C, of Numba's runtime, or an intrinsic of LLVM does."""
    name, narrow = function.name, function.ftype.return_type == ir.FloatType()
    intrinsic = _INTRINSIC.match(name)
    if intrinsic:
        found = _INTRINSICS.get(intrinsic[1])
    else:
        base = name.removesuffix("f") if narrow else name
        found = _OF_NUMBA.get(base.removeprefix("numba_")) if base.startswith("numba_") else base if base in _OF_C else None
    return found and f"__nv_{found}" + ("f" if narrow else "")


def use_libdevice(module: ir.Module) -> None:
    """Have a module call functions of libdevice where it calls the like of C, Numba or LLVM."""
    replaced: dict[str, ir.Function] = {}
    for function in [each for each in module.functions if each.is_declaration]:
        found = _in_libdevice(function)
        if found is not None:
            replaced[function.name] = cgutils.get_or_insert_function(module, function.ftype, found)
            del module.globals[function.name]
    for function in module.functions if replaced else ():
        for block in function.blocks:
            for instruction in block.instructions:
                if isinstance(instruction, ir.CallInstr) and getattr(instruction.callee, "name", None) in replaced:
                    instruction.replace_callee(replaced[instruction.callee.name])


def callers_first(entry: ir.Module, modules: Iterable[ir.Module]) -> list[ir.Module]:
    """Return a module and what it needs of others, each behind all that call its functions.

    libNVVM takes of a module, when it comes, what modules before it have called, and forgets the rest.
    """
    owner = {function.name: module for module in modules for function in module.functions if not function.is_declaration}
    order: list[ir.Module] = []
    seen: set[int] = set()

    def visit(module: ir.Module) -> None:
        seen.add(id(module))
        for function in module.functions:
            callee = owner.get(function.name) if function.is_declaration else None
            if callee is not None and id(callee) not in seen:
                visit(callee)
        order.append(module)

    visit(entry)
    return order[::-1]


def nvvm_text(module: ir.Module) -> str:
    """Return the text of a module in the dialect of libNVVM."""
    from cuda.bindings import nvvm

    if "nvvmir.version" not in module.namedmetadata:
        module.add_named_metadata("nvvmir.version", [ir.Constant(ir.IntType(32), n) for n in nvvm.ir_version()])
    text = str(module).replace("immarg", "")
    return re.sub(r"\b(willreturn|mustprogress|nofree|nosync) ?", "", text)


def compile_modules(texts: Sequence[str], cc: tuple[int, int], output: str) -> bytes:
    """Compile modules together for GPUs of compute capability `cc` or newer, to "ltoir" or "ptx"."""
    from cuda.core import Program, ProgramOptions

    first, *others = texts
    options = ProgramOptions(
        arch=f"compute_{cc[0]}{cc[1]}",
        use_libdevice=True,
        extra_sources=[(f"module_{number}", text) for number, text in enumerate(others, start=1)] or None,
    )
    code = Program(first, "nvvm", options).compile(output).code
    return code if isinstance(code, bytes) else str(code).encode()
