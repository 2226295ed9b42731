"""Atomic operations of the scope that an array asks for: one GPU, or the system where several GPUs share it.

LLVM's own are of one GPU. Those of system scope are PTX, since NVVM knows no scope for them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .types import I64

__all__ = ["compare_and_swap", "read_modify_write", "reduce_by_add", "release_add", "scope_of"]

# What PTX calls the operations of LLVM's `atomicrmw`, and the kind of number that they work on.
_OPERATIONS = {
    "add": ("add", "u"),
    "xchg": ("exch", "b"),
    "and": ("and", "b"),
    "or": ("or", "b"),
    "xor": ("xor", "b"),
    "min": ("min", "s"),
    "max": ("max", "s"),
    "umin": ("min", "u"),
    "umax": ("max", "u"),
}


def scope_of(access: str) -> str:
    """Return the scope, as PTX names it, of what tasks access so: an array, or "cached", by `load_cached`."""
    return {"system": "sys", "cached": "cta"}.get(access, "gpu")


def _asm(builder: ir.IRBuilder, code: str, pointer: ir.Value, *values: ir.Value) -> ir.Value:
    """Call PTX that takes an address and values of one type, and returns one of that type."""
    kind = values[0].type
    register = {32: "r", 64: "l"}[kind.width]
    function = ir.FunctionType(kind, [I64, *(value.type for value in values)])
    constraints = ",".join([f"={register}", "l", *[register] * len(values), "~{memory}"])
    return builder.call(ir.InlineAsm(function, code, constraints, side_effect=True), [builder.ptrtoint(pointer, I64), *values])


def read_modify_write(builder: ir.IRBuilder, access: str, operation: str, pointer: ir.Value, value: ir.Value) -> ir.Value:
    """Do an integer operation of LLVM's `atomicrmw`, relaxed; return what was there before."""
    if access != "system":
        return builder.atomic_rmw(operation, pointer, value, "monotonic")
    name, kind = _OPERATIONS[operation]
    return _asm(builder, f"atom.relaxed.sys.global.{name}.{kind}{value.type.width} $0, [$1], $2;", pointer, value)


def release_add(builder: ir.IRBuilder, pointer: ir.Value, value: ir.Value) -> ir.Value:
    """Add an integer on one GPU, with release order; return what was there before.

    A fence before a relaxed addition would order as much, but empties the L1 cache too.
    """
    return _asm(builder, f"atom.release.gpu.global.add.u{value.type.width} $0, [$1], $2;", pointer, value)


def reduce_by_add(builder: ir.IRBuilder, access: str, kind: str, pointer: ir.Value, value: ir.Value) -> None:
    """Add to a number in a GPU's global memory, of the `kind` 'u' or 'f', by a reduction: it returns nothing to wait for.

    ptxas does not make one of an atomic operation whose result nobody reads.
    """
    width = {"float": 32, "double": 64}.get(str(value.type)) or value.type.width
    register = {"u32": "r", "u64": "l", "f32": "f", "f64": "d"}[f"{kind}{width}"]
    code = f"red.relaxed.{scope_of(access)}.global.add.{kind}{width} [$0], $1;"
    function = ir.FunctionType(ir.VoidType(), [I64, value.type])
    asm = ir.InlineAsm(function, code, f"l,{register},~{{memory}}", side_effect=True)
    builder.call(asm, [builder.ptrtoint(pointer, I64), value])


def compare_and_swap(
    builder: ir.IRBuilder, access: str, pointer: ir.Value, expected: ir.Value, desired: ir.Value
) -> tuple[ir.Value, Any]:
    """Replace the bits that a pointer points to if they are `expected`; return those before, and whether it was done."""
    if access != "system":
        result = builder.cmpxchg(pointer, expected, desired, "monotonic", "monotonic")
        return builder.extract_value(result, 0), lambda: builder.extract_value(result, 1)
    code = f"atom.relaxed.sys.global.cas.b{expected.type.width} $0, [$1], $2, $3;"
    old = _asm(builder, code, pointer, expected, desired)
    return old, lambda: builder.icmp_unsigned("==", old, expected)
