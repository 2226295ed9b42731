"""Entry points: the functions of a task that the core calls, as LLVM's code around what Numba compiled of the user's.

On a CPU it is a loop over a batch of items; on CUDA a function of one item, or of one iteration, since the loop is the core's.
A check that fails returns from the user's function, and on a CPU from the batch too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from .core_calls import cpu_field
from .lower_arguments import load_item, pack, plan_of, unpack
from .lower_checks import began, ended
from .lower_push import push
from .prepare import Part, Program, Target
from .race_hooks import RACES, begin_between, begin_item, begin_iteration
from .team_calls import begin_own_iteration, own_iterations, run_team
from .types import I64, POINTER, ItemLayout, on_cuda

__all__ = ["add_batch_loop", "add_body", "add_function", "add_workload", "return_nothing"]

_VOID = ir.VoidType()


def return_nothing(builder: ir.IRBuilder) -> None:
    """Return from an entry point: nothing, or a word that nobody reads."""
    kind = builder.function.ftype.return_type
    if kind == _VOID:
        builder.ret_void()
    else:
        builder.ret(ir.Constant(kind, 0))


class _Entry:
    """An entry point under way: its builder and parameters, and calls of what Numba compiled."""

    def __init__(self, target: Target, module: ir.Module, symbol: str, result: ir.Type, parameters: Sequence[ir.Type]) -> None:
        function = ir.Function(module, ir.FunctionType(result, parameters), symbol)
        self.target, self.context = target, target.context
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.parameters = function.args

    def unpack(self, kinds: Sequence[types.Type], packed: ir.Value, constant: bool = True) -> list[ir.Value]:
        return unpack(self.context, self.builder, kinds, packed, constant)

    def item(self, items: ItemLayout, batch: ir.Value, place: ir.Value) -> ir.Value:
        return load_item(self.context, self.builder, items, batch, place)

    def call(self, compiled: Any, values: Sequence[ir.Value]) -> ir.Value:
        """Call a compiled function; its `*args` are one tuple."""
        kinds = compiled.signature.args
        if kinds and isinstance(kinds[-1], (types.StarArgTuple, types.StarArgUniTuple)):
            named = len(kinds) - 1
            rest = self.context.make_tuple(self.builder, kinds[-1], values[named:])
            values = [*values[:named], rest]
        return self.target.call(self.builder, compiled, values)

    def run(self, part: Part, given: Sequence[ir.Value], arguments: Sequence[ir.Value]) -> None:
        """Call the body of a task, if it may begin, with the worker, the item and what else there is, and the arguments."""
        with contextlib.ExitStack() as stack:
            for begin, number in part.begins:
                stack.enter_context(self.builder.if_then(self.call(begin, [*given[:2], arguments[number]])))
            self.call(part.body, [*given, *arguments])

    def plan(self, part: Part, item: ir.Value, arguments: Sequence[ir.Value]) -> list[ir.Value]:
        """Call a workload; return the length, as int64, and the values."""
        result = self.call(part.workload, [item, *arguments[: part.taken]])
        return plan_of(self.context, self.builder, part.task, part.workload.signature.return_type, result)


def add_batch_loop(target: Target, module: ir.Module, symbol: str, part: Part, program: Program, threads: int) -> None:
    """Add the loop of a task over a batch of items, for a CPU whose workers have so many threads."""
    entry = _Entry(target, module, symbol, _VOID, [POINTER, POINTER, I64, POINTER])
    worker, batch, n, packed = entry.parameters
    arguments = entry.unpack(program.arguments, packed)
    if threads > 1:
        _loop_of_team(entry, part, program, threads)
    elif part.worker.checked == RACES:
        _loop_for_races(entry, part, program, (worker, batch, n), arguments)
    elif part.task.nested:
        _nested_loop(entry, part, program.items, (worker, batch, n), arguments)
    else:
        with cgutils.for_range(entry.builder, n) as loop:
            entry.run(part, [worker, entry.item(program.items, batch, loop.index)], arguments)
    return_nothing(entry.builder)


def _nested_loop(
    entry: _Entry, part: Part, items: ItemLayout, batch: Sequence[ir.Value], arguments: Sequence[ir.Value]
) -> None:
    """Call the workload of the next item before the body of one, so that the memory it begins with is on its way meanwhile.

    On a GPU too, the workloads of a batch come before its bodies.
    """
    builder, (worker, first, n) = entry.builder, batch
    kinds = [items.value, types.int64, *part.values]
    following = [cgutils.alloca_once(builder, entry.context.get_value_type(kind)) for kind in kinds]

    def look_ahead(place: ir.Value) -> None:
        item = entry.item(items, first, place)
        for slot, value in zip(following, [item, *entry.plan(part, item, arguments)], strict=True):
            builder.store(value, slot)

    with builder.if_then(builder.icmp_signed(">", n, ir.Constant(I64, 0))):
        look_ahead(ir.Constant(I64, 0))
    with cgutils.for_range(builder, n) as loop:
        item, length, *values = map(builder.load, following)
        place = builder.add(loop.index, ir.Constant(I64, 1))
        with builder.if_then(builder.icmp_signed("<", place, n)):
            look_ahead(place)
        with cgutils.for_range(builder, length) as iterations:
            entry.run(part, [worker, item, iterations.index, *values], arguments)


def _loop_for_races(
    entry: _Entry, part: Part, program: Program, batch: Sequence[ir.Value], arguments: Sequence[ir.Value]
) -> None:
    """Run a batch of items one by one, and tell which task begins; an item that is to run later is pushed again."""
    builder, items, (worker, first, n) = entry.builder, program.items, batch
    whole = ir.IntType(8 * items.stride).as_pointer()
    with cgutils.for_range(builder, n) as loop:
        place = builder.gep(first, [builder.mul(loop.index, ir.Constant(I64, items.stride))])

        def store_in(slot: ir.Value) -> None:
            builder.store(builder.load(builder.bitcast(place, whole), align=4), builder.bitcast(slot, whole), align=4)

        round_number = builder.load(cpu_field(builder, worker, "round"))
        runs = begin_item(builder, round_number, place, items.stride, part.worker.with_kind)
        with builder.if_else(runs) as (now, later):
            with later:
                push(entry.context, builder, program.flat_worker, worker, store_in, ir.Constant(ir.DoubleType(), 0), True)
            with now:
                item = entry.item(items, first, loop.index)
                if not part.task.nested:
                    entry.run(part, [worker, item], arguments)
                else:
                    length, *values = entry.plan(part, item, arguments)
                    with cgutils.for_range(builder, length) as iterations:
                        i = begin_iteration(builder, iterations.index, length)
                        entry.run(part, [worker, item, i, *values], arguments)


def _loop_of_team(entry: _Entry, part: Part, program: Program, threads: int) -> None:
    """Run the items of a batch one by one, each by all threads of the worker, which get the item and what a workload says."""
    builder, items, (worker, first, n, packed) = entry.builder, program.items, entry.parameters
    kinds = [items.value, *([types.int64, *part.values] if part.task.nested else [])]
    whole = ir.LiteralStructType([entry.context.get_value_type(kind) for kind in kinds])
    given = cgutils.alloca_once(builder, whole)
    body = _body_of_thread(entry, part, program, whole)
    arguments = entry.unpack(program.arguments, packed)
    with cgutils.for_range(builder, n) as loop:
        item = entry.item(items, first, loop.index)
        for k, value in enumerate([item, *(entry.plan(part, item, arguments) if part.task.nested else [])]):
            builder.store(value, cgutils.gep_inbounds(builder, given, 0, k))
        place = builder.gep(first, [builder.mul(loop.index, ir.Constant(I64, items.stride))])
        passed = builder.bitcast(given, POINTER)
        run_team(builder, threads, body, worker, passed, place, items.stride, packed, part.task.body)


def _body_of_thread(entry: _Entry, part: Part, program: Program, whole: ir.Type) -> ir.Function:
    """Return what a thread of a worker runs for an item: the task, or of a nested one the iterations of this thread."""
    own = _Entry(entry.target, entry.builder.module, f"{entry.builder.function.name}_thread", _VOID, [POINTER] * 3)
    builder, (worker, given, packed) = own.builder, own.parameters
    item, *values = cgutils.unpack_tuple(builder, builder.load(builder.bitcast(given, whole.as_pointer())))
    arguments = own.unpack(program.arguments, packed)
    if not part.task.nested:
        own.run(part, [worker, item], arguments)
    else:
        length, *inner = values
        first, step = own_iterations(builder, worker, part.worker.group)
        with cgutils.for_range_slice(builder, first, length, step, I64, inc=True) as (i, _):
            with builder.if_then(builder.not_(begin_own_iteration(builder, part.worker.group)), likely=False):
                return_nothing(builder)
            own.run(part, [worker, item, i, *inner], arguments)
    return_nothing(builder)
    return builder.function


def add_body(target: Target, module: ir.Module, symbol: str, part: Part, program: Program) -> None:
    """Add the body of a task, of one item or of one iteration of a nested task, for CUDA."""
    entry = _Entry(target, module, symbol, I64, [POINTER, POINTER, I64, POINTER, POINTER])
    worker, batch, i, values, packed = entry.parameters
    item, inner = entry.item(program.items, batch, ir.Constant(I64, 0)), []
    if part.task.nested:
        began(entry.builder, part.worker)
        inner = [i, *entry.unpack(part.values, values, constant=False)]
    entry.run(part, [worker, item, *inner], entry.unpack(program.arguments, packed))
    ended(entry.builder, part.worker, worker, batch)
    return_nothing(entry.builder)


def add_workload(target: Target, module: ir.Module, symbol: str, part: Part, program: Program) -> None:
    """Add the workload of a nested task for CUDA: it writes the values, and returns the length."""
    entry = _Entry(target, module, symbol, I64, [POINTER] * 4)
    worker, batch, values, packed = entry.parameters
    item = entry.item(program.items, batch, ir.Constant(I64, 0))
    length, *found = entry.plan(part, item, entry.unpack(program.arguments, packed))
    pack(entry.context, entry.builder, part.values, values, found)
    ended(entry.builder, part.worker, worker, batch)
    entry.builder.ret(length)


def add_function(
    target: Target, module: ir.Module, symbol: str, compiled: Any, program: Program, threads: int = 1, function: Any = None
) -> None:
    """Add a function without an item, such as an idle function; on a CPU of workers with so many threads."""
    cuda = on_cuda(target.context)
    if threads > 1:
        body = _Entry(target, module, f"{symbol}_thread", _VOID, [POINTER] * 3)
        worker, _, packed = body.parameters
        body.call(compiled, [worker, *body.unpack(program.arguments, packed)])
        return_nothing(body.builder)
        entry = _Entry(target, module, symbol, _VOID, [POINTER] * 2)
        worker, packed = entry.parameters
        null = ir.Constant(POINTER, None)
        run_team(entry.builder, threads, body.builder.function, worker, null, null, 0, packed, function)
        return_nothing(entry.builder)
        return
    entry = _Entry(target, module, symbol, I64 if cuda else _VOID, [POINTER] * 2)
    worker, packed = entry.parameters
    if compiled.signature.args[0].checked == RACES:
        begin_between(entry.builder)
    entry.call(compiled, [worker, *entry.unpack(program.arguments, packed)])
    if cuda:
        ended(entry.builder, compiled.signature.args[0], worker, None)
    return_nothing(entry.builder)
