"""Scratch memory: that whose size the launch gives, and regions whose sizes the task itself gives.

Each place in a task that asks for a number of elements has a region of its own, for each worker or each group. How the regions
lie in memory is known only when all code of the task is: helpers may have been compiled for another task before. So a place
leaves a note in the metadata of its module, which linking keeps and which costs nothing, and asks for its region by its number:
on CUDA a function of that number, which is made here in the end and is then inlined, on the CPU the core.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin

from ..debug_checks import SCRATCH
from ..scratch import GROUPS, MOST_BYTES
from .core_calls import call_core, cpu_field
from .team_calls import scratch_region, unsized_region
from .types import I32, I64, POINTER, TEAM, GroupType, TaskArray, WorkerType, on_cuda, refuse

_UNSIZED = "atos.scratch"  # metadata: the sizes of the elements that a module takes scratch of the launch's size for
_SIZED = "atos.sized_scratch"  # the number of each place, how many threads share its region (0: the worker's), and its bytes
_ALIGNMENT = 16


def scratch(worker: WorkerType | GroupType, dtype: types.Type, count: types.Type | None = None) -> tuple[types.Type, ...]:
    """Return the types of the result and the arguments of `scratch`."""
    word = f"{worker.word}.scratch"
    element = dtype.dtype if isinstance(dtype, types.DTypeSpec) else None
    if not isinstance(element, (types.Integer, types.Float, types.Boolean)):
        refuse(f"{word} takes a NumPy type such as np.int32, not {dtype}")
    array = TaskArray(element, 1, "scratch", worker.checked)
    if count is None:
        if worker.nested or isinstance(worker, GroupType):
            refuse(f"{word} takes the number of elements here, as in {word}(np.int32, 16)")
        return array, dtype
    if not isinstance(count, types.IntegerLiteral):
        refuse(
            f"{word} takes a number of elements that is known when the task is compiled, such as 16 or a global variable,"
            f" not {count}"
        )
    most = MOST_BYTES // _size(element)
    if not 1 <= count.literal_value <= most:
        refuse(f"{word} takes 1 to {most} elements of {element}, not {count.literal_value}")
    return array, dtype, count


def _size(element: types.Type) -> int:
    return 1 if isinstance(element, types.Boolean) else int(element.bitwidth) // 8


@lower_builtin("atos.worker.scratch", WorkerType, types.Any)
def lower_unsized(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    worker, array = args[0], sig.return_type
    if on_cuda(context):
        data = call_core(builder, POINTER, "atos_scratch", [worker])
        num_bytes = call_core(builder, I64, "atos_scratch_bytes", [worker])
    else:
        is_shared = sig.args[0].checked == TEAM
        data = unsized_region(builder, worker) if is_shared else builder.load(cpu_field(builder, worker, "scratch"))
        num_bytes = builder.load(cpu_field(builder, worker, "scratch_bytes"))
    itemsize = _size(array.dtype)
    builder.module.add_named_metadata(_UNSIZED, [ir.Constant(I32, itemsize)])
    return _array(context, builder, array, data, builder.udiv(num_bytes, ir.Constant(I64, itemsize)))


@lower_builtin("atos.worker.scratch", WorkerType, types.Any, types.Any)
@lower_builtin("atos.group.scratch", GroupType, types.Any, types.Any)
def lower_sized(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    owner, worker, array = sig.args[0], args[0], sig.return_type
    count = sig.args[2].literal_value
    num_bytes = -(-count * _size(array.dtype) // _ALIGNMENT) * _ALIGNMENT
    threads = owner.size if isinstance(owner, GroupType) else owner.group if owner.nested else 0
    place = uuid.uuid4().int >> 66  # unlike all others, also those that an earlier process compiled
    note = [ir.Constant(I64, place), ir.Constant(I32, threads), ir.Constant(I32, num_bytes)]
    builder.module.add_named_metadata(_SIZED, note)
    if on_cuda(context):
        begin = call_core(builder, POINTER, "atos_sized_scratch", [worker])
        thread = [call_core(builder, I32, name, [worker]) for name in ("atos_size", "atos_rank")]
        data = builder.gep(begin, [call_core(builder, I64, _function_of(place), thread)])
    elif owner.checked == TEAM:
        data = scratch_region(builder, worker, place, num_bytes, threads)
    else:
        function = ir.FunctionType(POINTER, [POINTER, I64, I64]).as_pointer()
        pointer = builder.bitcast(builder.load(cpu_field(builder, worker, "sized_scratch")), function)
        data = builder.call(pointer, [worker, ir.Constant(I64, place), ir.Constant(I64, num_bytes)])
    return _array(context, builder, array, data, ir.Constant(I64, count))


def _array(context: Any, builder: ir.IRBuilder, kind: TaskArray, data: ir.Value, count: ir.Value) -> ir.Value:
    array = cgutils.create_struct_proxy(kind)(context, builder)
    array.data = data
    if kind.checked:
        array.number = ir.Constant(I64, SCRATCH)
    array.shape = cgutils.pack_array(builder, [count])
    return array._getvalue()


def unsized_itemsize(modules: Iterable[str]) -> int:
    """Return the size of the largest element that code, as LLVM's text, takes scratch of the launch's size for; 0 if none."""
    return max((size for module in modules for (size,) in _notes(module, _UNSIZED)), default=0)


def sized_bytes(modules: Iterable[str]) -> tuple[int, ...]:
    """Return the scratch that code sizes itself, as `scratch.sized_scratch` takes it."""
    places = _places(modules)
    sums = [sum(size for owner, size in places.values() if owner == threads) for threads in (0, *GROUPS)]
    # Those of groups are odd multiples, so that the threads of a warp, each of which takes the same element of its own region,
    # find it in different banks.
    return (sums[0], *(size and size | _ALIGNMENT for size in sums[1:])) if places else ()


def define_regions(module: ir.Module, modules: Iterable[str]) -> None:
    """Define in `module` what the code of `modules` for CUDA calls: where the region of each place begins, in bytes.

    First comes what belongs to the worker, then for each size of groups the regions of one group after the other.
    """
    places = _places(modules)
    ends = dict.fromkeys((0, *GROUPS), 0)
    sums = dict(zip(ends, sized_bytes(modules), strict=False))
    for place, (owner, size) in sorted(places.items()):
        function = ir.Function(module, ir.FunctionType(I64, [I32, I32]), _function_of(place))
        builder = ir.IRBuilder(function.append_basic_block())
        num_threads, rank = (builder.zext(arg, I64) for arg in function.args)

        def times(count: ir.Value, threads: int, builder: ir.IRBuilder = builder) -> ir.Value:
            return builder.mul(count, ir.Constant(I64, sums[threads]))

        begin = ir.Constant(I64, ends[owner] + (sums[0] if owner else 0))
        for threads in GROUPS:
            if threads < owner and sums[threads]:
                whole = builder.add(num_threads, ir.Constant(I64, threads - 1))  # a thread worker is a group
                begin = builder.add(begin, times(builder.udiv(whole, ir.Constant(I64, threads)), threads))
        if owner:
            begin = builder.add(begin, times(builder.udiv(rank, ir.Constant(I64, owner)), owner))
        builder.ret(begin)
        ends[owner] += size


def _function_of(place: int) -> str:
    return f"atos_region_{place}"


def _places(modules: Iterable[str]) -> dict[int, tuple[int, int]]:
    """Return for each place how many threads share its region, and its bytes."""
    return {place: (threads, size) for module in modules for place, threads, size in _notes(module, _SIZED)}


def _notes(module: str, name: str) -> Iterator[list[int]]:
    """Yield the numbers in each node of a named metadata of a module."""
    named = re.search(rf"^!{re.escape(name)} = !{{(.*)}}$", module, re.MULTILINE)
    for node in re.findall(r"!\d+", named[1]) if named else []:
        content = re.search(rf"^{node} = !{{(.*)}}$", module, re.MULTILINE)
        if content:
            yield [int(number) for number in re.findall(r"i\d+ (\d+)", content[1])]
