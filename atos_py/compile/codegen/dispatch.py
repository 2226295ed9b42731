"""Dispatch of the items of a launch with several kinds of tasks: by the kind of an item, to the entry points of its task."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir
from numba.core import cgutils

from .core_calls import cpu_field
from .lower_arguments import kind_of
from .types import I8, I64, POINTER, ItemLayout

_VOID = ir.VoidType()


def cuda_dispatch(
    module: ir.Module, symbol: str, kinds: Mapping[int, str], parameters: list[ir.Type], items: ItemLayout
) -> None:
    """Add a function that hands an item, its second parameter, to the function of its kind.

    Parameters
    ----------
    module : ir.Module
    symbol : str
        The function to add.
    kinds : mapping
        The function for each kind; the last one is for all others too.
    parameters : list of ir.Type
    items : ItemLayout
        The type of the items.
    """
    kind_of_function = ir.FunctionType(I64, parameters)
    function = ir.Function(module, kind_of_function, symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    kind = kind_of(builder, items, function.args[1])
    *first, last = kinds

    def call_kind(number: int) -> None:
        callee = cgutils.get_or_insert_function(module, kind_of_function, kinds[number])
        builder.ret(builder.call(callee, function.args))

    for number in first:
        with builder.if_then(builder.icmp_unsigned("==", kind, ir.Constant(I8, number))):
            call_kind(number)
    call_kind(last)


def cpu_dispatch(module: ir.Module, symbol: str, loops: list[str], items: ItemLayout) -> None:
    """Add the batch loop of several kinds: hands each run of items of one kind to the batch loop of that kind.

    Parameters
    ----------
    module : ir.Module
    symbol : str
        The function to add.
    loops : list of str
        The batch loop of each kind.
    items : ItemLayout
        The type of the items.
    """
    kind_of_loop = ir.FunctionType(_VOID, [POINTER, POINTER, I64, POINTER])
    function = ir.Function(module, kind_of_loop, symbol)
    worker, batch, n, arguments = function.args
    names = ("entry", "next", "begin", "extend", "compare", "grow", "run", "done")
    entry, following, begin, extend, compare, grow, run, done = map(function.append_basic_block, names)
    builder = ir.IRBuilder(entry)
    first, end = (cgutils.alloca_once_value(builder, ir.Constant(I64, 0)) for _ in range(2))
    ran_by = builder.bitcast(builder.load(cpu_field(builder, worker, "ran_by")), I64.as_pointer())

    def item_at(position: ir.Value) -> ir.Value:
        return builder.gep(batch, [builder.mul(position, ir.Constant(I64, items.stride))])

    def after(position: ir.Value) -> ir.Value:
        return builder.add(builder.load(position), ir.Constant(I64, 1))

    builder.branch(following)
    builder.position_at_end(following)
    builder.store(builder.load(end), first)
    builder.cbranch(builder.icmp_signed("<", builder.load(first), n), begin, done)
    builder.position_at_end(begin)
    kind = kind_of(builder, items, item_at(builder.load(first)))
    builder.store(after(first), end)
    builder.branch(extend)
    builder.position_at_end(extend)
    builder.cbranch(builder.icmp_signed("<", builder.load(end), n), compare, run)
    builder.position_at_end(compare)
    same = builder.icmp_unsigned("==", kind_of(builder, items, item_at(builder.load(end))), kind)
    builder.cbranch(same, grow, run)
    builder.position_at_end(grow)
    builder.store(after(end), end)
    builder.branch(extend)
    builder.position_at_end(run)
    length = builder.sub(builder.load(end), builder.load(first))
    count = builder.gep(ran_by, [builder.zext(kind, I64)])
    builder.store(builder.add(builder.load(count), length), count)
    for number, loop in enumerate(loops):
        callee = cgutils.get_or_insert_function(module, kind_of_loop, loop)
        with builder.if_then(builder.icmp_unsigned("==", kind, ir.Constant(I8, number))):
            builder.call(callee, [worker, item_at(builder.load(first)), length, arguments])
    builder.branch(following)
    builder.position_at_end(done)
    builder.ret_void()
