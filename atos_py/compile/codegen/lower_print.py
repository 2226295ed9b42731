"""`print` in tasks: one call of C's printf for a line, which on the CPU needs no lock of Python's.

Numba's own `print` on the CPU takes that lock, for which a task could wait for ever. It is replaced in the user's functions
(`specialize.py`) rather than in Numba, whose other users keep theirs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from .types import I32, POINTER, in_task, on_cuda, refuse

_STANDARD_OUTPUT = 1
_MOST_VALUES = 32  # that printf of a GPU takes


def print_line(*values: Any) -> None:
    """Inside a task: what `print` stands for."""
    raise NotImplementedError


def _count(kind: types.Type) -> int:
    """Return how many values printf gets for one of this type; refuse what cannot be printed."""
    if isinstance(kind, types.BaseTuple):
        return sum(map(_count, kind))
    if isinstance(kind, types.StringLiteral):
        return 0
    if not isinstance(kind, (types.Integer, types.Float, types.Boolean)):
        refuse(f"print takes numbers, texts and tuples of them, not {kind}")
    return 1


@infer_global(print_line)
class PrintLine(AbstractTemplate):
    prefer_literal = True  # as constant texts are

    def generic(self, args: Any, kws: Any) -> Any:
        if kws:
            refuse(f"print takes what it prints alone, and no {', '.join(kws)}: each call prints a line")
        if sum(map(_count, args)) > _MOST_VALUES:
            refuse(f"print takes {_MOST_VALUES} numbers at most (got {sum(map(_count, args))})")
        return signature(types.none, *(x if isinstance(x, types.StringLiteral) else types.unliteral(x) for x in args))


@lower_builtin(print_line, types.VarArg(types.Any))
def lower_print_line(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    values: list[ir.Value] = []

    def text(string: str) -> ir.Value:
        constant = context.insert_const_string(builder.module, string)
        return builder.addrspacecast(constant, POINTER) if on_cuda(context) else constant

    def form(kind: types.Type, value: ir.Value) -> str:
        """Return what printf is told for a value, after adding it to the values."""
        if isinstance(kind, types.StringLiteral):
            return str(kind.literal_value).replace("%", "%%")
        if isinstance(kind, types.BaseTuple):
            members = [form(member, builder.extract_value(value, k)) for k, member in enumerate(kind)]
            return f"({', '.join(members)}{',' if len(members) == 1 else ''})"
        if isinstance(kind, types.Boolean):
            values.append(builder.select(value, text("True"), text("False")))
            return "%s"
        if isinstance(kind, types.Float):
            values.append(context.cast(builder, value, kind, types.float64))
            return "%.7g" if kind == types.float32 else "%.15g"
        wide = types.int64 if in_task(kind).signed else types.uint64
        values.append(context.cast(builder, value, kind, wide))
        return "%lld" if wide.signed else "%llu"

    line = text(" ".join(form(kind, value) for kind, value in zip(sig.args, args, strict=True)) + "\n")
    if on_cuda(context):
        packed = cgutils.alloca_once_value(builder, cgutils.make_anonymous_struct(builder, values))
        function = ir.FunctionType(I32, [POINTER, POINTER])
        vprintf = cgutils.get_or_insert_function(builder.module, function, "vprintf")
        builder.call(vprintf, [line, builder.bitcast(packed, POINTER)])
    else:
        function = ir.FunctionType(I32, [I32, POINTER], var_arg=True)
        dprintf = cgutils.get_or_insert_function(builder.module, function, "dprintf")
        builder.call(dprintf, [ir.Constant(I32, _STANDARD_OUTPUT), line, *values])
    return context.get_dummy_value()
