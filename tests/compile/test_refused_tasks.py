"""Refusals of tasks that cannot be compiled: the same words for the CPU and for CUDA, with what to write instead."""

from __future__ import annotations

import collections
import linecache
import re
from typing import Any

import numpy as np
import pytest
from fake_arrays import FakeArray, array

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen.target_cpu import compile_cpu
from atos_py.errors import TaskCompileError

pytest.importorskip("cuda.core", reason="cuda-core is not installed")
pytest.importorskip("cuda.core")

from atos_py.compile.codegen.target_cuda import compile_cuda
from atos_py.compile.spec import ProgramSpec

CC = (9, 0)


# These functions are compiled, never called.


def write(worker, v, x):
    x[v] = 1


def add(worker, v, x):
    atos.atomic_add(x, v, 1)


def accumulate(worker, v, x):
    atos.accumulate(x, v, 1)


def use_what_is_accumulated(worker, v, x):
    x[v] = atos.accumulate(x, v, 1)


def accumulate_by_name(worker, v, x):
    atos.accumulate(x, v, value=1)


def push_min(worker, v, x):
    worker.push_min(x, v, v + 1)


def or_(worker, v, x):
    atos.atomic_or_(x, v, 1)


def add_vector(worker, v, x):
    atos.atomic_add2(x, v, 1, 2)


def add_half_a_vector(worker, v, x):
    atos.atomic_add4(x, v, 1, 2)


def load_cached_two(worker, v, x):
    return atos.load_cached(x, v, 1)


def load_cached_number(worker, v, x):
    return atos.load_cached(v, 0)


def load_cached_by_float(worker, v, x):
    return atos.load_cached(x, 0.5)


def pack_wide(worker, v, x):
    return atos.pack(x[v], v)


def pack_as_double(worker, v, x):
    return atos.pack(x[v], v, np.float64)


def pack_cut_off(worker, v, x):
    return atos.pack(x[v], v, np.int32)


def unpack_without_type(worker, v, x):
    return atos.unpack(x[v])


def draw_without_counter(worker, v, x):
    x[v] = atos.random(v)


def draw_by_float(worker, v, x):
    x[v] = atos.random(v, 0.5)


def local_of_any_size(worker, v, x):
    mine = atos.local_array(np.int32, len(x))
    x[v] = mine[0]


def local_of_none(worker, v, x):
    mine = atos.local_array(np.int32, 0)
    x[v] = mine[0]


def local_too_large(worker, v, x):
    mine = atos.local_array(np.float64, 2049)
    x[v] = mine[0]


def local_of_text(worker, v, x):
    mine = atos.local_array("f4", 4)
    x[v] = mine[0]


def atomic_on_local(worker, v, x):
    mine = atos.local_array(np.float64, 4)
    atos.atomic_add(mine, 0, 1)


def push_local(worker, v, x):
    worker.push(atos.local_array(np.float64, 4))


def make_local(n):
    mine = atos.local_array(np.float64, 4)
    mine[0] = n
    return mine


def local_from_a_helper(worker, v, x):
    x[v] = make_local(v)[0]


def make_pair(n):
    return n, atos.local_array(np.float64, 4)


def local_in_a_tuple_from_a_helper(worker, v, x):
    x[v] = make_pair(v)[1][0]


def local_as_a_whole(worker, v, x):
    x[v] = sum(atos.local_array(np.float64, 4))


def print_array(worker, v, x):
    print(x)


def print_to_the_end(worker, v, x):
    print(v, end="")


def print_many(worker, v, x):
    print((v, v, v, v, v, v, v, v), (v, v, v, v, v, v, v, v), (v, v, v, v, v, v, v, v), (v, v, v, v, v, v, v, v), v)


def read_one_index(worker, v, x):
    return x[v]


def read_float_index(worker, v, x):
    return x[v * 0.5]


def read_slice(worker, v, x):
    return x[1:2]


def store_float(worker, v, x):
    x[v] = v * 0.5


def add_float(worker, v, x):
    atos.atomic_add(x, v, x[v] * 0.5)


def store_text(worker, v, x):
    x[v] = "text"


def unknown_name(worker, v, x):
    return undefined + 1  # noqa: F821


def unknown_word(worker, v, x):
    atos.atomic_exchange(x, v, 1)


def unknown_attribute(worker, v, x):
    return x.T


def unknown_method(worker, v, x):
    worker.pop()


def push_float(worker, v, x):
    worker.push(v * 0.5)


def push_keyword(worker, v, x):
    worker.push(item=v)


def raises(worker, v, x):
    if v:
        raise ValueError("no")


def asserts(worker, v, x):
    assert v


def catches(worker, v, x):
    try:
        x[v] = 1
    finally:
        x[v] = 2


def catches_nothing(worker, v, x):
    x[v] = 1
    with x:
        x[v] = 2


def imports(worker, v, x):
    import math

    x[v] = math.pi


def makes_global(worker, v, x):
    global made
    made = v


def makes_list(worker, v, x):
    some = [v, 1]
    x[v] = some[worker.rank]


def unpacks(worker, v, x):
    x[v], *_ = (v, v)


def yields(worker, v, x):
    yield v


async def waits(worker, v, x):
    x[v] = 1


def uses_what_is_not_yet() -> Any:
    def uses_later(worker, v, x):
        x[v] = later

    if not uses_later:
        later = 1
    return uses_later


def allocates(worker, v, x):
    x[0] = np.zeros(3)[v]


def bad_scratch(worker, v, x):
    worker.scratch(3)


def scratch_of_unknown_size(worker, v, x):
    worker.scratch(np.int32, v)


def scratch_of_nothing(worker, v, x):
    worker.scratch(np.int32, 0)


def scratch_beyond_all(worker, v, x):
    worker.scratch(np.float64, 1 << 20)


def group_of_three(worker, v, x):
    worker.group(3)


def group_of_unknown_size(worker, v, x):
    worker.group(v)


def group_without_size(worker, v, x):
    worker.group()


def group_method(worker, v, x):
    worker.group(4).push(v)


def group_scratch(worker, v, x):
    worker.group(4).scratch(np.int32)


def group_shuffle(worker, v, x):
    worker.group(4).shuffle(v, 0.5)


def broken_helper(value):
    return value.missing


def calls_broken_helper(worker, v, x):
    return broken_helper(v)


captured = FakeArray(np.zeros(3))


def captures_array(worker, v, x):
    return captured[v]


def too_few(worker, v):
    pass


def too_many(worker, v, x, y):
    pass


def keyword_only(worker, v, x, *, y):
    pass


def nested_body(worker, v, i, x):
    pass


def nested_rank(worker, v, i, x):
    return worker.rank


def nested_index(worker, v, i, x):
    return worker.index


def nested_scratch(worker, v, i, x):
    worker.scratch(np.int32)


def nested_group(worker, v, i, x):
    return worker.group.rank


def nested_group_called(worker, v, i, x):
    return worker.group(4).rank


def nested_group_index(worker, v, i, x):
    return worker.group.index


def length(v, x):
    return v


def float_length(v, x):
    return 0.5


def array_value(v, x):
    return v, x


def one_value(v, x):
    return v, v


REFUSED = [
    (write, array("f8", readonly=True), "a read-only array is written to", "x[v] = 1"),
    (add, array("f8", readonly=True), "atomic_add is used on a read-only array", "atos.atomic_add"),
    (add, array("?"), "atomic_add works on integers and floats of 32 and 64 bits, not on bool", "atos.atomic_add"),
    (accumulate, array("f8", readonly=True), "accumulate is used on a read-only array", "atos.accumulate"),
    (accumulate, array("?"), "accumulate works on integers and floats of 32 and 64 bits, not on bool", "atos.accumulate"),
    (use_what_is_accumulated, array("f8"), "an element of type float64 cannot be given a none", "x[v] ="),
    (accumulate_by_name, array("f8"), "accumulate takes (array, index, value) by position", "atos.accumulate"),
    (push_min, array("f8", readonly=True), "worker.push_min is used on a read-only array", "worker.push_min"),
    (push_min, array("?"), "push_min works on integers and floats of 32 and 64 bits, not on bool", "worker.push_min"),
    (push_min, array("u4", ndim=2), "worker.push_min pushes the index of an array of one dimension", "worker.push_min"),
    (or_, array("f8"), "atomic_or_ works on integers and bool, not on float64", "atos.atomic_or_"),
    (add_vector, array("f8"), "atomic_add2 works on float32, not on float64", "atos.atomic_add2"),
    (add_vector, array("f4", readonly=True), "atomic_add2 is used on a read-only array", "atos.atomic_add2"),
    (add_half_a_vector, array("f4"), "atomic_add4 takes (array, first index, 4 values) by position", "atos.atomic_add4"),
    (load_cached_two, array("f4"), "load_cached takes (array, index) by position", "atos.load_cached"),
    (load_cached_number, array("f4"), "load_cached works on arrays, not on a int64", "atos.load_cached"),
    (load_cached_by_float, array("f4"), "index", "atos.load_cached"),
    (pack_wide, array("u4"), "pack takes a int64 as uint32 or as int32, whose words differ", "atos.pack"),
    (pack_as_double, array("f4"), "pack takes a dtype of np.uint32, np.int32 or np.float32, not float64", "atos.pack"),
    (pack_cut_off, array("f4"), "pack would cut off a float32 to int32; convert it, as in int(x)", "atos.pack"),
    (unpack_without_type, array("u8"), "unpack takes (word, dtype) by position", "atos.unpack"),
    (draw_without_counter, array("f8"), "random takes a seed and one or more counters", "atos.random"),
    (draw_by_float, array("f8"), "random takes integers, not float64; convert it", "atos.random"),
    (local_of_any_size, array("i4"), "a number of elements that is known when the task is compiled, not int64", "atos.local_"),
    (local_of_none, array("i4"), "local_array takes from 1 to 4096 elements of int32, not 0", "atos.local_array"),
    (local_too_large, array("f8"), "local_array takes from 1 to 2048 elements of float64, not 2049", "atos.local_array"),
    (local_of_text, array("f4"), "local_array takes a NumPy type such as np.int32, not ", "atos.local_array"),
    (atomic_on_local, array("f8"), "atomic_add is used on a local_array, which is this thread's own", "atos.atomic_add"),
    (push_local, array("f8"), "worker.push takes an integer (uint32) here, not local array(float64, 1d)", "worker.push"),
    (local_from_a_helper, array("f8"), "a local_array is returned from a function, with which its memory ends", ""),
    (local_in_a_tuple_from_a_helper, array("f8"), "a local_array is returned from a function", ""),
    (local_as_a_whole, array("f8"), "'sum' is used on a whole array, and in tasks there are only elements", "sum("),
    (print_array, array("f8"), "print takes numbers, texts and tuples of them, not shared array(float64, 1d)", "print(x)"),
    (print_to_the_end, array("f8"), "print takes what it prints alone, and no end: each call prints a line", "print(v"),
    (print_many, array("f8"), "print takes 32 numbers at most (got 33)", "print("),
    (read_one_index, array("f8", ndim=2), "a 2-dimensional array takes 2 indices, not 1", "return x[v]"),
    (read_float_index, array("f8"), "an array is indexed by float64; convert it, as in int(x)", "x[v * 0.5]"),
    (read_slice, array("f8"), "indices are integers", "x[1:2]"),
    (store_float, array("i4"), "an element of type int32 is given a float64, which would be cut off", "x[v] = v * 0.5"),
    (add_float, array("u8"), "an element of type uint64 is given a float64", "atos.atomic_add"),
    (store_text, array("f8"), "an element of type float64 cannot be given", "x[v] ="),
    (unknown_name, array("f8"), "name 'undefined' is not defined", "return undefined + 1"),
    (unknown_word, array("i4"), "module 'atos_py' has no 'atomic_exchange'; did you mean 'atomic_exch'?", "atos.atomic_ex"),
    (unknown_attribute, array("f8"), "an array in a task has no 'T'; it has elements, len(), shape", "x.T"),
    (
        unknown_method,
        array("f8"),
        "a worker has no 'pop'; it offers rank, size, index, count, round, mode, pending, push",
        "worker.pop()",
    ),
    (push_float, array("f8"), "worker.push takes an integer (uint32) here, not float64", "worker.push(v * 0.5)"),
    (push_keyword, array("f8"), "worker.push takes an item by position, and a priority", "worker.push(item=v)"),
    (raises, array("f8"), "it has a raise, which takes a launch with debug=True", "raise ValueError"),
    (asserts, array("f8"), "it has a raise, which takes a launch with debug=True", "assert v"),
    (catches, array("f8"), "it has a try or with", "x[v] = 2"),
    (catches_nothing, array("f8"), "it has a try or with", "with x:"),
    (imports, array("f8"), "it imports a module; do that outside of it", "import math"),
    (makes_global, array("f8"), "it assigns to a global variable", "made = v"),
    (makes_list, array("f8"), "it allocates memory", "some = [v, 1]"),
    (unpacks, array("f8"), "Use of unsupported opcode (UNPACK_EX) found", "x[v], *_ ="),
    (yields, array("f8"), "the body has a yield or is async", "def yields"),
    (waits, array("f8"), "the body has a yield or is async", "async def waits"),
    (uses_what_is_not_yet(), array("f8"), "it uses 'later', which has no value yet", "def uses_later"),
    (allocates, array("f8"), "it allocates memory (an array", "np.zeros(3)"),
    (bad_scratch, array("f8"), "worker.scratch takes a NumPy type such as np.int32", "worker.scratch(3)"),
    (
        scratch_of_unknown_size,
        array("f8"),
        "worker.scratch takes a number of elements that is known when the task is compiled, such as 16",
        "worker.scratch(np.int32, v)",
    ),
    (
        scratch_of_nothing,
        array("f8"),
        "worker.scratch takes 1 to 262144 elements of int32, not 0",
        "worker.scratch(np.int32, 0)",
    ),
    (scratch_beyond_all, array("f8"), "worker.scratch takes 1 to 131072 elements of float64, not 1048576", "worker.scratch("),
    (group_of_three, array("f8"), "worker.group takes 2, 4, 8, 16 or 32 threads, not 3", "worker.group(3)"),
    (
        group_of_unknown_size,
        array("f8"),
        "worker.group takes a number that is known when the task is compiled, such as 4 or a global variable, not int64",
        "worker.group(v)",
    ),
    (group_without_size, array("f8"), "worker.group takes one argument by position", "worker.group()"),
    (group_method, array("f8"), "a group has no 'push'; it offers rank, size, index, count, split", "worker.group(4).push"),
    (group_scratch, array("f8"), "group.scratch takes the number of elements here", "worker.group(4).scratch"),
    (group_shuffle, array("f8"), "an integer, not float64", "worker.group(4).shuffle"),
    (calls_broken_helper, array("f8"), "Unknown attribute 'missing' of type int64", "return value.missing"),
    (captures_array, array("f8"), "arrays reach a task as arguments of the launch", "captured[v]"),
    (too_few, array("f8"), "takes 2 arguments, but this launch gives it 3: worker, item, argument 1", "def too_few"),
    (too_many, array("f8"), "takes 4 arguments, but this launch gives it 3: worker, item, argument 1", "def too_many"),
    (keyword_only, array("f8"), "keyword-only parameter 'y'", "def keyword_only"),
    (atos.task(workload=length)(nested_rank), array("f8"), "worker.rank is for flat tasks", "worker.rank"),
    (atos.task(workload=length)(nested_index), array("f8"), "worker.index is for flat tasks", "worker.index"),
    (atos.task(workload=length)(nested_scratch), array("f8"), "takes the number of elements here", "worker.scratch(np.int32)"),
    (atos.task(workload=length)(nested_group), array("f8"), "@atos.task(workload=..., group=4)", "worker.group.rank"),
    (atos.task(workload=length, group=4)(nested_group_called), array("f8"), "leave out the call", "worker.group(4).rank"),
    (
        atos.task(workload=length, group=4)(nested_group_index),
        array("f8"),
        "group.index is for flat tasks",
        "worker.group.index",
    ),
    (atos.task(workload=float_length)(nested_body), array("f8"), "a workload returns an integer", "def float_length"),
    (
        atos.task(workload=array_value)(nested_body),
        array("f8"),
        "value 1 that the workload returns is no scalar",
        "def array_value",
    ),
    (
        atos.task(workload=one_value)(nested_body),
        array("f8"),
        "gives it 5: worker, item, i, value 1, argument 1",
        "def nested_body",
    ),
    (
        atos.task(workload=nested_rank)(nested_body),
        array("f8"),
        "the workload nested_rank(worker, v, i, x) takes 4",
        "def nested_rank",
    ),
    (print, array("f8"), "the body of task 'print' is no plain Python function", ""),
]


def _id(case: Any) -> str:
    return getattr(case, "name", None) or getattr(case, "__name__", "")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(("task", "argument", "reason", "source"), REFUSED, ids=lambda x: _id(x) if callable(x) else "")
def test_what_cannot_be_compiled_is_explained(target, task, argument, reason, source):
    task = task if isinstance(task, atos.Task) else atos.task(task)
    given = (task, None, (describe(argument),), np.dtype(np.uint32))
    with pytest.raises(TaskCompileError) as caught:
        compile_cpu(ProgramSpec(*given)) if target == "cpu" else compile_cuda(ProgramSpec(*given), CC)
    message = str(caught.value)
    assert reason in message
    assert f"task {task.name!r}" in message
    assert len(message) < 700
    if source:
        assert re.search(rf"{re.escape(__file__)}, line \d+: .*{re.escape(source)}", message)
        assert f"for items of uint32 and arguments {describe(argument)}" in message


def field_as_index(worker, item, x):
    x[item["vertex"]] = 1


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("items", [[("vertex", "u4"), ("level", "u4")], "u4"], ids=["record", "number"])
def test_a_field_as_an_index_is_explained(target, items):
    given = (atos.task(field_as_index), None, (describe(array("f8")),), np.dtype(items))
    with pytest.raises(TaskCompileError, match=r"the text .vertex. is used as an index; .* as in item.vertex\n.*item\["):
        compile_cpu(ProgramSpec(*given)) if target == "cpu" else compile_cuda(ProgramSpec(*given), CC)


class Thing:
    pass


ALLOCATES = (
    "it allocates memory (an array, a list, a dict, a set, a string), which tasks cannot do; use arrays given as arguments"
)
OUTSIDE = "arrays reach a task as arguments of the launch, and its global variables are numbers, tuples and functions"
IN_PLAIN_WORDS = {
    **dict.fromkeys(
        [
            *("np.zeros(4)", "np.empty(v)", "np.array([1, 2])", "np.arange(v)", "np.full(4, v)", "np.zeros_like(x)"),
            *("[v, 1][v]", "[]", "list(range(v))", "[k for k in range(v)]", "{1: 2}[v]", "dict()", "{k: k for k in range(v)}"),
            *("len({1, v})", "set()", "bytearray(4)", "f'{v}'", "f'{v} {v}'", "'{}'.format(v)", "'%d' % v", "str(v)"),
        ],
        ALLOCATES,
    ),
    "x.sum()": "an array in a task has no 'sum'; it has elements",
    "x.copy()": "an array in a task has no 'copy'; it has elements",
    "np.sum(x)": "'sum' is used on a whole array, and in tasks there are only elements",
    "x + x": "'add' is used on a whole array",
    "[0 for k in x]": "a loop goes over an array; let it go over range(len(array))",
    "sum(k for k in range(v))": "it uses a generator",
    "sorted((3, v))": "such as sorted, which makes a list",
    "tuple(range(v))": "it makes a tuple of a length that is not known before the task runs",
    "LIST[v]": f"is a list or a set; {OUTSIDE}",
    "v in SET": f"is a list or a set; {OUTSIDE}",
    "DICT[v]": f"it uses 'DICT', of type dict, which tasks cannot; {OUTSIDE}",
    "THING.x": f"it uses 'THING', of type {__name__}.Thing, which tasks cannot; {OUTSIDE}",
    "Thing()": f"it uses 'Thing', a class, which tasks cannot; {OUTSIDE}",
    "collections.deque()": "collections.deque cannot be used in a task on this device",
}


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(("source", "reason"), IN_PLAIN_WORDS.items(), ids=IN_PLAIN_WORDS)
def test_what_python_has_and_tasks_have_not(target, source, reason, monkeypatch):
    variables = {
        "np": np,
        "collections": collections,
        "LIST": [1],
        "SET": {1},
        "DICT": {1: 2},
        "THING": Thing(),
        "Thing": Thing,
    }
    line = f"    y = {source}\n"
    lines = ["def body(worker, v, x):\n", line]
    monkeypatch.setitem(linecache.cache, "<plain>", (1, None, lines, "<plain>"))
    exec(compile("".join(lines), "<plain>", "exec"), variables)
    given = (atos.task(variables["body"]), None, (describe(array("f8")),), np.dtype(np.uint32))
    with pytest.raises(TaskCompileError) as caught:
        compile_cpu(ProgramSpec(*given)) if target == "cpu" else compile_cuda(ProgramSpec(*given), CC)
    message = str(caught.value)
    assert reason in message
    assert line.strip() in message
    assert not re.search(r"Function\(|Literal|<class|No implementation|Untyped", message)


def test_a_record_is_pushed_as_a_tuple_of_its_fields():
    def body(worker, item):
        worker.push(item.vertex)

    with pytest.raises(
        TaskCompileError, match=r"worker\.push takes a tuple of 2 numbers here, the fields of the queue's items"
    ):
        compile_cpu(ProgramSpec(atos.task(body), None, (), np.dtype([("vertex", "u4"), ("distance", "f4")])))


def test_an_idle_function_is_checked_too():
    def body(worker, v):
        pass

    with pytest.raises(TaskCompileError, match=r"the idle function body\(worker, v\) takes 2 arguments, .* gives it 1: worker"):
        compile_cpu(ProgramSpec(atos.task(body), body, (), np.dtype(np.uint32)))


def takes_an_element_of_none(worker, v, graph, x):
    x[v] = graph.weights[v]


def misspells_a_part(worker, v, graph, x):
    x[v] = graph.indptrs[v]


def sums_by_numpy(worker, v, graph, x):
    x[v] = np.einsum("i,i", x, x)


def pushes_a_tuple(worker, v, graph, x):
    worker.push((v, 1))


def pushes_from_a_helper(worker, v, graph, x):
    push_it(v)


def push_it(v):
    worker.push(v)  # noqa: F821 - which is the mistake


def writes_to_a_graph(worker, v, graph, x):
    graph.indices[v] = 3


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (takes_an_element_of_none, "it takes an element of None: .*graph.weights is where a graph has no weights"),
        (misspells_a_part, "a graph in a task has no 'indptrs'; it has indptr, indices and weights"),
        (sums_by_numpy, "numpy.einsum cannot be used in a task, or not like this; .* write a loop"),
        (pushes_a_tuple, "takes an integer .uint32. here, not a tuple, which is an item of a queue whose dtype is a record"),
        (pushes_from_a_helper, "the name 'worker' is not defined where it is used; a helper gets what it uses"),
        (writes_to_a_graph, "a read-only array is written to; .* those of a graph always are read-only"),
    ],
)
def test_mistakes_of_those_who_begin(function: Any, reason: str) -> None:
    """Said without the traceback of Numba, which is a hundred lines about Numba."""
    queue = atos.Queue(10, device="cpu")
    queue.push(1)
    graph, x = atos.generate.road(3, device="cpu"), atos.zeros(9, device="cpu")
    with pytest.raises(TaskCompileError, match=reason) as told:
        queue.launch_warp(atos.task(function), graph, x)
    assert told.value.__suppress_context__
    assert told.value.__context__ is not None
