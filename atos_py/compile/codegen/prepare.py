"""The functions of a task, checked against the arguments of a launch and compiled for either target, ready for entry points."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Protocol

from llvmlite import ir
from numba.core import types

from ...core.library import lib
from ...errors import TaskCompileError
from ..debug_checks import Checks, array_names
from ..kinds import Tasks, tasks_of
from ..spec import ProgramSpec
from ..task import Task
from . import exact_comparisons as _exact_comparisons  # noqa: F401  # these for what they register with Numba
from . import exact_functions as _exact_functions  # noqa: F401
from . import exact_integers as _exact_integers  # noqa: F401
from . import lower_arrays as _arrays  # noqa: F401
from . import lower_atomics as _atomics  # noqa: F401
from . import lower_cached_load as _cached_load  # noqa: F401
from . import lower_groups as _groups  # noqa: F401
from . import lower_local_array as _local_array  # noqa: F401
from . import lower_numbers as _numbers  # noqa: F401
from . import lower_packing as _packing  # noqa: F401
from . import lower_pool as _pool  # noqa: F401
from . import lower_powers as _powers  # noqa: F401
from . import lower_random as _random  # noqa: F401
from . import lower_receiver as _receiver  # noqa: F401
from . import lower_returned as _returned  # noqa: F401
from . import lower_rounds as _rounds  # noqa: F401
from . import lower_vector_access as _vector_access  # noqa: F401
from . import lower_vector_atomics as _vector_atomics  # noqa: F401
from . import lower_worker as _worker  # noqa: F401
from . import python_functions as _python_functions  # noqa: F401
from .error_messages import failure, translated
from .find_counters import find_counters
from .introspect import first_return, plain_function
from .join_records import beginning
from .lower_checks import arrivals
from .race_hooks import RACES
from .specialize import RefusedError, Specializer
from .types import TEAM, ItemLayout, JoinsType, WorkerType, is_over_hosts, item_type, numba_type

_LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Target(Protocol):
    """Operations of Numba's target, the CPU or CUDA, that preparing a task and its entry points take.

    `compile` returns what Numba calls the result of a compilation, and `call` adds a call of it to an entry point.
    """

    context: Any

    def dispatcher(self, function: FunctionType) -> Any: ...
    def is_known(self, value: Any) -> bool: ...
    def device_function(self, dispatcher: Any) -> Any: ...
    def compile(self, function: Any, args: tuple[types.Type, ...]) -> Any: ...
    def call(self, builder: ir.IRBuilder, compiled: Any, values: Sequence[ir.Value]) -> ir.Value: ...


@dataclass(frozen=True)
class Part:
    """A task whose functions are compiled, and the types of the worker and of the values that its workload returns."""

    task: Task
    workload: Any
    taken: int  # how many of the arguments the workload takes
    body: Any
    worker: WorkerType
    values: tuple[types.Type, ...]
    begins: tuple[tuple[Any, int], ...] = ()  # what is asked before the body begins, and which argument it takes


@dataclass(frozen=True)
class Program:
    """The tasks of a launch, one or several kinds, its functions without an item, and the types of items and arguments."""

    parts: list[Part]
    idle: Any
    each_round: Any
    flat_worker: WorkerType
    items: ItemLayout
    arguments: tuple[types.Type, ...]

    @property
    def compiled(self) -> list[Any]:
        """All that Numba has compiled for entry points to call."""
        of_parts = [each for part in self.parts for each in (part.workload, part.body, *(begin for begin, _ in part.begins))]
        return [each for each in (*of_parts, self.idle, self.each_round) if each is not None]

    @property
    def value_words(self) -> int:
        """Number of values, at most, that a workload hands to its body."""
        return max(len(part.values) for part in self.parts)

    @property
    def num_kinds(self) -> int:
        """Number of kinds of tasks; 0 if there is one, and nothing to tell apart."""
        return len(self.parts) if len(self.parts) > 1 else 0

    @property
    def group(self) -> int:
        """Number of threads that run an iteration of a nested task together, the same for all of them."""
        return max(part.worker.group for part in self.parts)

    def numbered(self, nested: bool) -> dict[int, Part]:
        """Return the nested or the flat tasks by their kinds."""
        return {number: part for number, part in enumerate(self.parts) if part.task.nested == nested}


def prepare(target: Target, spec: ProgramSpec, checks: Checks | None = None) -> Program:
    """Check the functions of tasks against the arguments of a launch, and compile them: with checks, if `checks` is given."""
    kinds, item_dtype, idle, each_round = spec.kinds, spec.item_dtype, spec.idle, spec.each_round
    checked: bool | str = checks is not None
    if checks is not None and (checks.races or spec.threads > 1):
        checked = RACES if checks.races else TEAM
    args = tuple(numba_type(kind, checked, spec.peers) for kind in kinds)
    with_kind = isinstance(spec.task, Tasks)
    items = ItemLayout(item_type(item_dtype), with_kind)
    specialize = Specializer(target)
    described = f"items of {item_dtype} and " + (f"arguments {', '.join(map(str, kinds))}" if kinds else "no arguments")

    with_worker: list[tuple[FunctionType, list[types.Type]]] = []

    def compile_function(task: Task, value: Any, role: str, given: list[tuple[str, types.Type]]) -> Any:
        function = plain_function(value)
        if function is None:
            raise TaskCompileError(f"the {role} of task {task.name!r} is no plain Python function: {value!r}")
        if function.__code__.co_flags & _LAZY:
            raise failure(
                task.name, function, described, f"the {role} has a yield or is async, so that a call would run nothing"
            )
        _check_arity(task.name, function, role, [name for name, _ in given], described)
        try:
            dispatcher = specialize(function)
        except RefusedError as error:
            raise failure(task.name, function, described, str(error), error.place) from None
        if isinstance(given[0][1], WorkerType):
            with_worker.append((function, [kind for _, kind in given]))
        with translated(task.name, function, described):
            return target.compile(dispatcher, _fold_varargs(function, tuple(kind for _, kind in given)))

    def compile_procedure(task: Task, value: Any, role: str, given: list[tuple[str, types.Type]]) -> Any:
        """Compile a function that returns nothing."""
        compiled, function = compile_function(task, value, role, given), plain_function(value)
        assert function is not None
        result = compiled.signature.return_type
        if result != types.none and function.__name__ != "<lambda>":  # which always returns something
            raise failure(
                task.name,
                function,
                described,
                f"the {role} returns a value ({result}), which nothing takes; write it to an array, or push it",
                first_return(function.__code__),
            )
        return compiled

    tasks = tasks_of(spec.task)
    of_launch: dict[str, Any] = {"buckets": spec.buckets, "kinds": tuple(task.name for task in tasks), "with_kind": with_kind}
    of_launch["over_hosts"] = any(map(is_over_hosts, kinds))
    flat_worker = WorkerType(items.item, False, checked, **of_launch)
    round_worker = WorkerType(items.item, False, checked, between_rounds=True, **of_launch)
    argument_list = [(f"argument {number}", kind) for number, kind in enumerate(args, start=1)]

    def prepare_begin(task: Task) -> Iterator[tuple[Any, int]]:
        """Compile what makes sure, before a flat task begins, that it can open joins."""
        for number, kind in enumerate(args if task.opens and not task.nested else ()):
            if isinstance(kind, JoinsType):
                begin = Specializer(target)(beginning(task))
                with translated(task.name, begin, described):
                    yield target.compile(begin, (flat_worker, items.value, kind)), number

    def prepare_task(task: Task) -> Part:
        workload: Any = None
        taken = 0
        values: tuple[types.Type, ...] = ()
        inner: list[tuple[str, types.Type]] = []
        worker = flat_worker
        if task.nested:
            worker = WorkerType(items.item, True, checked, group=task.group, **of_launch)
            taken = _taken_by_workload(plain_function(task.workload), len(args))
            workload = compile_function(task, task.workload, "workload", [("item", items.value), *argument_list[:taken]])
            length = plain_function(task.workload)
            assert length is not None
            values = _values(task, length, workload.signature.return_type, described)
            inner = [("i", types.int64), *zip((f"value {number}" for number in range(1, len(values) + 1)), values, strict=True)]
        given = [("worker", worker), ("item", items.value), *inner, *argument_list]
        body = compile_procedure(task, task.body, "body", given)
        if checks is not None:
            function = plain_function(task.body)
            assert function is not None
            checks.arrays[task.name] = array_names(_argument_names(function, 2 + len(inner), len(kinds)), kinds)
        return Part(task, workload, taken, body, worker, values, tuple(prepare_begin(task)))

    parts = [prepare_task(task) for task in tasks]
    compiled_idle = compiled_round = None
    if idle is not None:
        compiled_idle = compile_procedure(tasks[0], idle, "idle function", [("worker", flat_worker), *argument_list])
    if each_round is not None:
        given = [("worker", round_worker), *argument_list]
        compiled_round = compile_procedure(tasks[0], each_round, "function each_round", given)
        if checks is not None:
            checks.without_item = "between rounds" if idle is None else "in the idle function or between rounds"
    if checks is not None and arrivals():

        def compile_again(function: FunctionType, given: tuple[types.Type, ...]) -> None:
            with translated(spec.task.name, function, described):
                target.compile(Specializer(target)(function), _fold_varargs(function, given))

        for function, parameters in with_worker:
            names = array_names(_argument_names(function, len(parameters) - len(args), len(kinds)), kinds)
            for number in find_counters(compile_again, function, parameters, len(args)):
                checks.counters.setdefault(number, names[number])
    return Program(parts, compiled_idle, compiled_round, flat_worker, items, args)


def _argument_names(function: FunctionType, skip: int, count: int) -> list[str]:
    """Return the names of a launch's arguments in a function, after `skip` other parameters; those in `*args` by number."""
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    more = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [*names, *(f"{more}[{k}]" for k in range(count - len(names)))]


def _fold_varargs(function: FunctionType, kinds: tuple[types.Type, ...]) -> tuple[types.Type, ...]:
    """Return the types of a function's parameters: those that its `*args` takes are one tuple."""
    parameters = inspect.signature(function).parameters.values()
    if all(p.kind is not p.VAR_POSITIONAL for p in parameters):
        return kinds
    named = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return (*kinds[:named], types.StarArgTuple.from_types(kinds[named:]))


def _taken_by_workload(function: FunctionType | None, num_args: int) -> int:
    """Return how many of the launch's arguments a workload takes: all, or the first few if it has no more parameters."""
    if function is None:
        return num_args
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return num_args
    return max(0, min(num_args, sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) - 1))


def _check_arity(name: str, function: FunctionType, role: str, given: list[str], described: str) -> None:
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(given) < len(positional) or (len(given) > len(positional) and not takes_more):
        wanted = f"{len(positional)}"
        own = f"{function.__name__}({', '.join(p.name for p in positional)})"
        gets = f"this launch gives it {len(given)}: {', '.join(given)}"
        raise failure(name, function, described, f"the {role} {own} takes {wanted} arguments, but {gets}")
    by_keyword = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if by_keyword:
        raise failure(
            name,
            function,
            described,
            f"the {role} has a keyword-only parameter {by_keyword[0]!r}, which nothing gives; leave it out",
        )


def _values(task: Task, function: FunctionType, plan: types.Type, described: str) -> tuple[types.Type, ...]:
    """Return the types of the values that `workload` returns after the length."""
    parts = tuple(plan) if isinstance(plan, types.BaseTuple) else (plan,)
    if not parts or not isinstance(parts[0], types.Integer):
        reason = f"a workload returns an integer, or a tuple of an integer and values, not {plan}"
        raise failure(task.name, function, described, reason)
    if len(parts) - 1 > lib.ATOS_MAX_VALUE_WORDS:
        most = lib.ATOS_MAX_VALUE_WORDS
        reason = f"the workload returns {len(parts) - 1} values, but at most {most} can be handed on"
        raise failure(task.name, function, described, reason)
    for position, part in enumerate(parts[1:], start=1):
        if not isinstance(part, (types.Integer, types.Float, types.Boolean)):
            raise failure(task.name, function, described, f"value {position} that the workload returns is no scalar but {part}")
    return parts[1:]
