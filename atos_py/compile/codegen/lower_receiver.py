"""Pushes into another queue, which a task gets as an argument: `other.push(item)`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_builtin

from ...core.library import lib
from .core_calls import call_core
from .lower_arguments import store_item
from .lower_push import item_slot, push_item
from .lower_worker import method_template
from .types import I32, I64, POINTER, ItemLayout, ReceiverType, on_cuda, refuse

_PUSH_WORD = lib.ATOS_RECEIVER_WORDS - 1  # of Receiver in csrc/protocol/receiver.cuh, the last one


def _push(receiver: ReceiverType, item: types.Type) -> tuple[types.Type, ...]:
    return push_item(receiver, item)


_TEMPLATE = method_template("queue", "push", _push)


@infer_getattr
class ReceiverAttributes(AttributeTemplate):
    key = ReceiverType

    def generic_resolve(self, receiver: ReceiverType, name: str) -> types.Type:
        if name != "push":
            refuse(f"another queue has no {name!r} in a task; it offers push")
        return types.BoundFunction(_TEMPLATE, receiver)


@lower_builtin("atos.queue.push", ReceiverType, types.Any)
def lower_push_into(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    (receiver_type, pushed_type), (receiver, pushed) = sig.args, args
    items = ItemLayout(receiver_type.item)
    slot = item_slot(builder, items)
    store_item(context, builder, items, slot, pushed_type, pushed)
    if on_cuda(context):
        call_core(builder, ir.VoidType(), f"atos_push_into_{items.stride}", [receiver, slot])
    else:
        function = ir.FunctionType(ir.VoidType(), [POINTER, POINTER]).as_pointer()
        words = builder.bitcast(receiver, I64.as_pointer())
        address = builder.load(builder.gep(words, [ir.Constant(I32, _PUSH_WORD)], inbounds=True))
        builder.call(builder.inttoptr(address, function), [receiver, slot])
    return context.get_dummy_value()
