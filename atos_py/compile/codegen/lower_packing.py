"""`pack` and `unpack` in tasks: the same words as on the host."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from ..packing import pack, unpack
from .lower_checks import cast
from .types import I32, I64, in_task, refuse

_DTYPES = (types.uint32, types.int32, types.float32)
_SIGN, _ONES, _NAN = (ir.Constant(I32, bits) for bits in (1 << 31, (1 << 32) - 1, 0x7FC00000))


def _dtype(name: str, given: types.Type) -> types.Type:
    dtype = given.dtype if isinstance(given, types.DTypeSpec) else None
    if dtype not in _DTYPES:
        refuse(f"{name} takes a dtype of np.uint32, np.int32 or np.float32, not {dtype or given}")
    return dtype


def _packed_as(value: types.Type, dtype: tuple[types.Type, ...]) -> types.Type:
    """Return the type that a value is packed as: the one that is said, or else its own where that is clear."""
    if not isinstance(value, (types.Integer, types.Float)):
        refuse(f"pack takes a value that is a number, not {value}")
    if dtype:
        kind = _dtype("pack", dtype[0])
        if isinstance(value, types.Float) and kind != types.float32:
            refuse(f"pack would cut off a {value} to {kind}; convert it, as in int(x)")
        return kind
    if isinstance(value, types.Float):
        return types.float32
    if not value.signed:
        return types.uint32
    if value.bitwidth > 32:
        refuse(
            f"pack takes a {types.unliteral(value)} as uint32 or as int32, whose words differ (arrays of uint32 are read as"
            " int64); say which, as in pack(value, id, np.uint32)"
        )
    return types.int32


@infer_global(pack)
class Pack(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) not in (2, 3):
            refuse("pack takes (value, id) or (value, id, dtype) by position")
        value, number, *dtype = args
        _packed_as(value, tuple(dtype))
        if not isinstance(number, types.Integer):
            refuse(f"pack takes an id that is an integer, not {number}; convert it, as in int(x)")
        return signature(types.uint64, types.unliteral(value), types.unliteral(number), *dtype)


@infer_global(unpack)
class Unpack(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if kws or len(args) != 2:
            refuse("unpack takes (word, dtype) by position: a word does not tell what its value was packed as")
        word, dtype = args
        if not isinstance(word, types.Integer):
            refuse(f"unpack takes a word of uint64, not {word}")
        return signature(types.Tuple((in_task(_dtype("unpack", dtype)), types.int64)), types.uint64, dtype)


@lower_builtin(pack, types.Any, types.Any)
@lower_builtin(pack, types.Any, types.Any, types.Any)
def lower_pack(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    kind = _packed_as(sig.args[0], sig.args[2:])
    value = cast(context, builder, args[0], sig.args[0], kind)
    number = cast(context, builder, args[1], sig.args[1], types.uint32)
    if kind == types.float32:
        bits = builder.select(
            builder.fcmp_ordered("==", value, ir.Constant(value.type, 0)), ir.Constant(I32, 0), _bits(builder, value)
        )
        bits = builder.select(builder.fcmp_unordered("uno", value, value), _NAN, bits)
        value = builder.xor(bits, builder.select(_is_negative(builder, bits), _ONES, _SIGN))
    elif kind == types.int32:
        value = builder.xor(value, _SIGN)
    upper = builder.shl(builder.zext(value, I64), ir.Constant(I64, 32))
    return builder.or_(upper, builder.zext(number, I64))


@lower_builtin(unpack, types.uint64, types.Any)
def lower_unpack(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    kind = _dtype("unpack", sig.args[1])
    value = builder.trunc(builder.lshr(args[0], ir.Constant(I64, 32)), I32)
    if kind == types.float32:
        value = builder.xor(value, builder.select(_is_negative(builder, value), _SIGN, _ONES))
        value = builder.bitcast(value, ir.FloatType())
    elif kind == types.int32:
        value = builder.xor(value, _SIGN)
    number = builder.zext(builder.trunc(args[0], I32), I64)
    return context.make_tuple(builder, sig.return_type, [context.cast(builder, value, kind, in_task(kind)), number])


def _bits(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return builder.bitcast(value, I32)


def _is_negative(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """Whether the highest bit is set."""
    return builder.icmp_signed("<", bits, ir.Constant(I32, 0))
