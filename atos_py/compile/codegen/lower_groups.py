"""Lowering of what a group offers: calls into the core on CUDA; on the CPU, where it is one thread, next to nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_builtin, lower_getattr

from .core_calls import call_core
from .lower_checks import leave
from .lower_scratch import scratch
from .lower_worker import REDUCTIONS, lower_split_count, lower_split_range, method_template, reduction, split, sync, vote
from .team_calls import meet
from .types import I32, I64, TEAM, GroupType, bits_of, has_threads, on_cuda, refuse


def _shuffle(group: GroupType, value: types.Type, source: types.Type) -> tuple[types.Type, ...]:
    if not isinstance(value, (types.Integer, types.Float, types.Boolean)):
        refuse(f"group.shuffle takes a number, not {value}")
    if not isinstance(source, types.Integer):
        refuse(f"group.shuffle takes the rank of the thread whose value it returns, an integer, not {source}")
    return types.unliteral(value), types.unliteral(value), types.int64


_METHODS: dict[str, Callable[..., tuple[types.Type, ...]]] = {
    "split": split,
    "sync": sync,
    "any": vote,
    "all": vote,
    "sum": reduction,
    "min": reduction,
    "max": reduction,
    "shuffle": _shuffle,
    "scratch": scratch,
}
_TEMPLATES = {name: method_template("group", name, typing) for name, typing in _METHODS.items()}
_PLACES = ("rank", "size", "index", "count")


@infer_getattr
class GroupAttributes(AttributeTemplate):
    key = GroupType

    def generic_resolve(self, group: GroupType, name: str) -> types.Type:
        if name == "__call__":
            refuse("worker.group in a nested task is the group itself, of as many threads as group= says: leave out the call")
        if name not in _TEMPLATES and name not in _PLACES:
            refuse(f"a group has no {name!r}; it offers {', '.join((*_PLACES, *_TEMPLATES))}")
        if group.nested and name in ("index", "count"):
            refuse(f"group.{name} is for flat tasks: any group runs any iteration of a nested task")
        return types.BoundFunction(_TEMPLATES[name], group) if name in _TEMPLATES else types.int64


def _size(group: GroupType) -> ir.Constant:
    return ir.Constant(I32, group.size)


def _collective(context: Any, builder: ir.IRBuilder, group: GroupType, name: str) -> None:
    """Begin a call that all threads of the group make. Those that are left alone by a check that failed leave the task too."""
    if group.checked == TEAM:
        meet(builder, group, name)
    elif group.checked and on_cuda(context):
        together = call_core(builder, I32, "atos_group_together", [_size(group), ir.Constant(I32, int(group.nested))])
        with builder.if_then(builder.icmp_signed("==", together, ir.Constant(I32, 0)), likely=False):
            leave(builder)


@lower_getattr(GroupType, "rank")
def lower_rank(context: Any, builder: ir.IRBuilder, group: GroupType, worker: ir.Value) -> ir.Value:
    if has_threads(context, group):
        return builder.zext(call_core(builder, I32, "atos_group_rank", [_size(group)]), I64)
    return ir.Constant(I64, 0)


@lower_getattr(GroupType, "size")
def lower_size(context: Any, builder: ir.IRBuilder, group: GroupType, worker: ir.Value) -> ir.Value:
    if has_threads(context, group):
        return builder.zext(call_core(builder, I32, "atos_group_size", [_size(group)]), I64)
    return ir.Constant(I64, 1)


@lower_getattr(GroupType, "index")
def lower_index(context: Any, builder: ir.IRBuilder, group: GroupType, worker: ir.Value) -> ir.Value:
    if not has_threads(context, group):
        return ir.Constant(I64, 0)
    return builder.zext(builder.udiv(call_core(builder, I32, "atos_rank", [worker]), _size(group)), I64)


@lower_getattr(GroupType, "count")
def lower_count(context: Any, builder: ir.IRBuilder, group: GroupType, worker: ir.Value) -> ir.Value:
    if not has_threads(context, group):
        return ir.Constant(I64, 1)
    size = builder.add(call_core(builder, I32, "atos_size", [worker]), ir.Constant(I32, group.size - 1))  # may be one thread
    return builder.zext(builder.udiv(size, _size(group)), I64)


lower_builtin("atos.group.split", GroupType, types.Integer)(lower_split_count)
lower_builtin("atos.group.split", GroupType, types.RangeType)(lower_split_range)


@lower_builtin("atos.group.sync", GroupType)
def lower_sync(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    if has_threads(context, sig.args[0]):
        _collective(context, builder, sig.args[0], "sync")
        call_core(builder, ir.VoidType(), "atos_group_sync", [_size(sig.args[0])])
    return context.get_dummy_value()


def _lower_vote(name: str) -> None:
    @lower_builtin(f"atos.group.{name}", GroupType, types.Any)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        if not has_threads(context, sig.args[0]):
            return args[1]
        _collective(context, builder, sig.args[0], name)
        result = call_core(builder, I32, f"atos_group_{name}", [builder.zext(args[1], I32), _size(sig.args[0])])
        return builder.icmp_signed("!=", result, ir.Constant(I32, 0))


def _lower_reduction(name: str) -> None:
    @lower_builtin(f"atos.group.{name}", GroupType, types.Any)
    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        dtype, value, group = sig.return_type, args[1], sig.args[0]
        if not has_threads(context, group):
            return value
        _collective(context, builder, group, name)
        bits = max(dtype.bitwidth, 32)
        kind = "f" if isinstance(dtype, types.Float) else "i" if dtype.signed else "u"
        wide = {
            **{"f32": types.float32, "f64": types.float64, "i32": types.int32, "i64": types.int64},
            **{"u32": types.uint32, "u64": types.uint64},
        }[f"{kind}{bits}"]
        given = [context.cast(builder, value, dtype, wide), ir.Constant(I32, REDUCTIONS[name]), _size(group)]
        result = call_core(builder, given[0].type, f"atos_group_reduce_{kind}{bits}", given)
        return context.cast(builder, result, wide, dtype)


for _name in ("any", "all"):
    _lower_vote(_name)
for _name in REDUCTIONS:
    _lower_reduction(_name)


@lower_builtin("atos.group.shuffle", GroupType, types.Any, types.Any)
def lower_shuffle(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    _, value, source = args
    if not has_threads(context, sig.args[0]):
        return value
    _collective(context, builder, sig.args[0], "shuffle")
    bits = bits_of(value.type)
    register = I64 if bits == I64 else I32
    word = builder.bitcast(value, bits)
    word = builder.zext(word, register) if bits.width < register.width else word
    given = [word, builder.trunc(source, I32), _size(sig.args[0])]
    result = call_core(builder, register, f"atos_group_shuffle_{register.width}", given)
    result = builder.trunc(result, bits) if bits.width < register.width else result
    return builder.bitcast(result, value.type)
