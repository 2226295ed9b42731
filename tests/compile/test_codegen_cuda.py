"""Tasks compiled for CUDA: what their PTX says once they are linked into a stand-in for the core. No GPU needed."""

from __future__ import annotations

import collections
import linecache
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_harness import DTYPES, RECORDS, visit
from fake_arrays import FakeArray, Pair

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen import item_bytes
from atos_py.compile.codegen.target_cpu import compile_cpu
from atos_py.errors import TaskCompileError

pytest.importorskip("numba.cuda")
core = pytest.importorskip("cuda.core")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc builds the kernel that stands in for the core")

from atos_py.compile.codegen.target_cuda import compile_cuda  # noqa: E402

CC = (9, 0)

# Calls every symbol of a task, and leaves a comment in the PTX for each symbol of the core that a task calls.
STAND_IN = """
#include <cstdint>
extern "C" {
__device__ int64_t atos_task_workload(void *worker, const void *item, void *values, const void *args);
__device__ void atos_task_body(void *worker, const void *item, int64_t i, const void *values, const void *args);
__device__ void atos_task_idle(void *worker, const void *args);
__device__ int32_t atos_config(int32_t key);
#if ITEM_BYTES == 4
typedef uint32_t Item;
#elif ITEM_BYTES == 8
typedef uint64_t Item;
#else
struct Item { uint64_t words[2]; };
#endif
struct Worker { Item *pushed; unsigned long long *count; uint64_t *reduced; int64_t scratch_bytes; void *scratch; };
struct Arguments { uint64_t words[64]; };
__device__ void atos_push(void *worker, const void *item) {
  asm volatile("// atos_push");
  Worker *w = (Worker *)worker;
  Item *slot = w->pushed + atomicAdd(w->count, 1ull);
  *slot = *(const Item *)item;
}
__device__ int32_t atos_rank(void *) { return threadIdx.x; }
__device__ int32_t atos_size(void *) { return blockDim.x; }
__device__ void atos_sync(void *) { __syncthreads(); }
__device__ int64_t atos_reduce_i64(void *worker, int64_t v, int32_t op) {
  asm volatile("// atos_reduce_i64 %0" :: "r"(op)); ((Worker *)worker)->reduced[0] = v; return ((Worker *)worker)->reduced[1];
}
__device__ uint64_t atos_reduce_u64(void *worker, uint64_t v, int32_t op) {
  asm volatile("// atos_reduce_u64 %0" :: "r"(op)); ((Worker *)worker)->reduced[0] = v; return ((Worker *)worker)->reduced[1];
}
__device__ double atos_reduce_f64(void *worker, double v, int32_t op) {
  asm volatile("// atos_reduce_f64 %0" :: "r"(op)); ((Worker *)worker)->reduced[0] = v; return ((Worker *)worker)->reduced[1];
}
__device__ int32_t atos_any(void *, int32_t p) { return __syncthreads_or(p); }
__device__ int32_t atos_all(void *, int32_t p) { return __syncthreads_and(p); }
__device__ void *atos_scratch(void *worker) { return ((Worker *)worker)->scratch; }
__device__ int64_t atos_scratch_bytes(void *worker) { return ((Worker *)worker)->scratch_bytes; }

__global__ void atos_kernel(const __grid_constant__ Worker given, const char *items, int64_t n, int32_t *constants,
                            const __grid_constant__ Arguments args) {
  extern __shared__ uint64_t shared[];
  Worker worker = given;
  worker.scratch = shared + 64;
  for (int key = 0; key < 6; ++key) constants[key] = atos_config(key);
  for (int64_t k = blockIdx.x; k < n; k += gridDim.x) {
    const char *item = items + k * ITEM_BYTES;
    if (atos_config(1)) {
      const int64_t length = atos_task_workload(&worker, item, shared, &args);
      for (int64_t i = threadIdx.x; i < length; i += blockDim.x) atos_task_body(&worker, item, i, shared, &args);
    } else atos_task_body(&worker, item, 0, nullptr, &args);
  }
  if (atos_config(4)) atos_task_idle(&worker, &args);
}
}
"""


def build_stand_ins(directory: Path) -> Path:
    """Compile the stand-in as the core is compiled, for each size of item."""
    source = directory / "stand_in.cu"
    source.write_text(STAND_IN)
    options = ["-std=c++17", "-O3", "-rdc=true", "-fatbin", "-gencode", "arch=compute_90,code=lto_90"]
    for size in (4, 8, 16):
        target = str(directory / f"core_cta_{size}.fatbin")
        subprocess.run(["nvcc", *options, f"-DITEM_BYTES={size}", str(source), "-o", target], check=True)
    return directory


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = build_stand_ins(tmp_path_factory.mktemp("core"))
    return {size: core.ObjectCode.from_fatbin((directory / f"core_cta_{size}.fatbin").read_bytes()) for size in (4, 8, 16)}


@pytest.fixture
def ptx(stand_ins: Any) -> Any:
    """A function that compiles a task, links it into the stand-in, and returns the kernel's PTX."""

    def compile_and_link(task: Any, *args: Any, dtype: Any = np.uint32, idle: Any = None) -> str:
        task = task if isinstance(task, atos.Task) else atos.task(task)
        code = compile_cuda(task, idle, tuple(map(describe, args)), np.dtype(dtype), CC)
        options = core.LinkerOptions(arch="sm_90", link_time_optimization=True, ptx=True)
        linker = core.Linker(
            stand_ins[item_bytes(np.dtype(dtype).itemsize)], *map(core.ObjectCode.from_ltoir, code.modules), options=options
        )
        text = bytes(linker.link("ptx").code).decode().rstrip("\0")
        assert "atos_task" not in text  # everything is inlined
        assert not re.search(r"^\s*call", text, re.MULTILINE)
        assert ".local" not in text
        return text

    return compile_and_link


def array(dtype: Any, ndim: int = 1, readonly: bool = False) -> FakeArray:
    return FakeArray(np.zeros((2,) * ndim, dtype), readonly)


def width(dtype: Any) -> int:
    return np.dtype(dtype).itemsize * 8


@needs_nvcc
def test_bfs_reads_graphs_through_the_read_only_path_and_depths_coherently(ptx):
    text = ptx(visit, Pair(array("u4", readonly=True), array("u4", readonly=True)), array("u4"))
    assert len(re.findall(r"ld\.global\.nc", text)) >= 3
    assert "ld.relaxed.gpu.global.u32" in text
    assert re.search(r"atom(\.relaxed\.gpu)?\.global\.min\.u32", text)
    assert text.count("// atos_push") == 1


@needs_nvcc
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type(ptx, dtype):
    def copy(worker, v, source, target):
        target[v] = source[v]

    text = ptx(copy, array(dtype), array(dtype))
    assert f"ld.relaxed.gpu.global.u{width(dtype)}" in text
    assert f"st.relaxed.gpu.global.u{width(dtype)}" in text
    text = ptx(copy, array(dtype, readonly=True), array(dtype))
    assert re.search(rf"ld\.global\.nc\.[bufs]{width(dtype)}", text)
    assert "ld.relaxed" not in text


@needs_nvcc
def test_read_only_loads_are_merged_and_coherent_ones_are_not(ptx):
    def twice(worker, v, source, out):
        out[0] = source[v]
        out[1] = source[v]

    assert len(re.findall(r"ld\.global\.nc\.[bu]32", ptx(twice, array("u4", readonly=True), array("u4")))) == 1
    assert len(re.findall(r"ld\.relaxed\.gpu\.global\.u32", ptx(twice, array("u4"), array("u4")))) == 2


ATOMICS = [
    *[
        (name, dtype, rf"atom(\.relaxed\.gpu)?\.global\.{operation}")
        for dtype, sign in [("int32", "s32"), ("uint32", "u32"), ("int64", "s64"), ("uint64", "u64")]
        for name, operation in [
            ("atomic_min", rf"min\.{sign}"),
            ("atomic_max", rf"max\.{sign}"),
            ("atomic_add", rf"add\.[su]{sign[1:]}"),
            ("atomic_exch", rf"exch\.b{sign[1:]}"),
            ("atomic_cas", rf"cas\.b{sign[1:]}"),
            ("atomic_or_", rf"or\.b{sign[1:]}"),
            ("atomic_and_", rf"and\.b{sign[1:]}"),
        ]
    ],
    *[
        (name, dtype, rf"atom(\.relaxed\.gpu)?\.global\.{operation}")
        for dtype, size in [("float32", 32), ("float64", 64)]
        for name, operation in [
            ("atomic_min", rf"max\.u{size}"),
            ("atomic_max", rf"min\.u{size}"),
            ("atomic_add", rf"add\.f{size}"),
            ("atomic_exch", rf"exch\.b{size}"),
            ("atomic_cas", rf"cas\.b{size}"),
        ]
    ],
]


@needs_nvcc
@pytest.mark.parametrize(("name", "dtype", "instruction"), ATOMICS)
def test_atomics(ptx, name, dtype, instruction):
    function = getattr(atos, name)

    def body(worker, v, target, value, old):
        old[v] = function(target, v, value)

    def cas(worker, v, target, value, old):
        old[v] = function(target, v, value, value + value)

    text = ptx(cas if name == "atomic_cas" else body, array(dtype), np.dtype(dtype).type(3), array(dtype))
    assert re.search(instruction, text)
    assert ("ld.relaxed" in text) == (name in ("atomic_min", "atomic_max"))


@needs_nvcc
def test_atomics_on_scratch_and_several_dimensions(ptx):
    def body(worker, v, target):
        scratch = worker.scratch(np.float32)
        worker.sync()
        target[v, 1] = atos.atomic_add(scratch, v % len(scratch), 1.0)
        atos.atomic_max(target, (v, 1), 3)

    text = ptx(body, array("float32", ndim=2))
    assert re.search(r"atom(\.shared)?\.add\.f32", text)
    assert re.search(r"atom(\.relaxed\.gpu)?\.global\.max\.s32", text)
    assert "bar.sync" in text


@needs_nvcc
@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32"])
def test_lengths_are_limited_to_what_int64_holds_where_they_may_be_more(ptx, dtype):
    @atos.task(workload=lambda v, lengths: lengths[v])
    def body(worker, v, i, lengths):
        worker.push(i)

    text = ptx(body, array(dtype))
    assert (str(2**63 - 1) in text) == (dtype == "uint64")


@needs_nvcc
def test_constants_of_the_task_fold(ptx):
    def plan(v):
        return v, v, v

    def flat(worker, v):
        worker.push(v)

    def idle(worker):
        worker.push(worker.size)

    def constants(text: str) -> list[int]:
        # One store of a constant for each key, six of them.
        found = re.findall(r"st\.global\.[bu]32\s+\[%rd\d+(?:\+(\d+))?\], (-?\d+|%r\d+);", text)
        registers: dict[str, str] = dict(re.findall(r"mov\.[bu]32\s+(%r\d+), (-?\d+);", text))
        found = [(offset, registers.get(value, value)) for offset, value in found]
        stores = {int(offset or 0): value for offset, value in found if value[0] != "%"}
        return [int(value) for _, value in sorted(stores.items())]

    text = ptx(flat, idle=idle)
    assert constants(text) == [-1, 0, -1, 0, 1, 0]

    @atos.task(workload=plan)
    def nested(worker, v, i, first, second):
        worker.push(i + first + second)

    text = ptx(nested, dtype=np.int64)
    assert constants(text) == [-1, 1, -1, 2, 0, 0]


@needs_nvcc
@pytest.mark.parametrize("fields", RECORDS.values(), ids=RECORDS)
def test_record_items(ptx, fields):
    def relax(worker, item, out):
        out[item.vertex] = item.distance
        worker.push((item.vertex + 1, item.distance * 2))

    assert ptx(relax, array("float64"), dtype=np.dtype(fields)).count("// atos_push") == 1


@needs_nvcc
def test_the_worker_of_a_flat_task(ptx):
    def body(worker, v, out):
        out[0] = worker.rank + worker.size
        out[1] = worker.sum(np.uint64(v))
        out[2] = worker.min(np.int32(-3))
        out[3] = worker.max(np.float32(1.5))
        if worker.any(v > 3) and worker.all(v > 4):
            for i in worker.split(range(10)):
                out[i] = 1

    text = ptx(body, array("float64"))
    assert len(re.findall("// atos_reduce_u64", text)) == 1
    assert len(re.findall("// atos_reduce_i64", text)) == 1
    assert len(re.findall("// atos_reduce_f64", text)) == 1
    assert "barrier.red.or" in text or "bar.red.or" in text
    assert "barrier.red.and" in text or "bar.red.and" in text


@needs_nvcc
def test_values_helpers_scalars_none_and_tuples(ptx):
    offset = 3

    def helper(x):
        return x + offset

    def plan(v, pair, scale, out):
        return helper(v), pair.first.first[v], v > 3

    @atos.task(workload=plan)
    def body(worker, v, i, value, flag, pair, scale, out):
        if pair.second is None and flag:
            out[i] = helper(value) * scale + np.iinfo(np.uint16).max + math.sqrt(i)

    ptx(body, Pair(Pair(array("int16", readonly=True), None), None), np.float32(2), array("float64"))


def test_value_words_are_told():
    def plan(v):
        return v, v, v + 0.5

    @atos.task(workload=plan)
    def body(worker, v, i, first, second):
        worker.push(first)

    assert compile_cuda(body, None, (), np.dtype(np.uint32), CC).value_words == 2


# What cannot be compiled is refused with the same words on both targets. These functions are compiled, never called.


def write(worker, v, x):
    x[v] = 1


def add(worker, v, x):
    atos.atomic_add(x, v, 1)


def or_(worker, v, x):
    atos.atomic_or_(x, v, 1)


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
    (add, array("u1"), "integers and floats of 32 and 64 bits, not on uint8", "atos.atomic_add"),
    (or_, array("f8"), "atomic_or_ works on integers of 32 and 64 bits, not on float64", "atos.atomic_or_"),
    (read_one_index, array("f8", ndim=2), "a 2-dimensional array takes 2 indices, not 1", "return x[v]"),
    (read_float_index, array("f8"), "an array is indexed by float64; convert it, as in int(x)", "x[v * 0.5]"),
    (read_slice, array("f8"), "indices are integers", "x[1:2]"),
    (store_float, array("i4"), "an element of type int32 is given a float64, which would be cut off", "x[v] = v * 0.5"),
    (add_float, array("u8"), "an element of type uint64 is given a float64", "atos.atomic_add"),
    (store_text, array("f8"), "an element of type float64 cannot be given", "x[v] ="),
    (unknown_name, array("f8"), "name 'undefined' is not defined", "return undefined + 1"),
    (unknown_attribute, array("f8"), "an array in a task has no 'T'; it has elements, len(), shape", "x.T"),
    (unknown_method, array("f8"), "a worker has no 'pop'; it offers rank, size, push", "worker.pop()"),
    (push_float, array("f8"), "worker.push takes an integer (uint32) here, not float64", "worker.push(v * 0.5)"),
    (push_keyword, array("f8"), "worker.push takes one argument by position", "worker.push(item=v)"),
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
    (calls_broken_helper, array("f8"), "Unknown attribute 'missing' of type int64", "return value.missing"),
    (captures_array, array("f8"), "arrays reach a task as arguments of the launch", "captured[v]"),
    (too_few, array("f8"), "takes 2 arguments, but this launch gives it 3: worker, item, argument 1", "def too_few"),
    (too_many, array("f8"), "takes 4 arguments, but this launch gives it 3: worker, item, argument 1", "def too_many"),
    (keyword_only, array("f8"), "keyword-only parameter 'y'", "def keyword_only"),
    (atos.task(workload=length)(nested_rank), array("f8"), "worker.rank is for flat tasks", "worker.rank"),
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
        compile_cpu(*given) if target == "cpu" else compile_cuda(*given, CC)
    message = str(caught.value)
    assert reason in message
    assert f"task {task.name!r}" in message
    assert len(message) < 700
    if source:
        assert re.search(rf"{re.escape(__file__)}, line \d+: .*{re.escape(source)}", message)
        assert f"for items of uint32 and arguments {describe(argument)}" in message


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
        compile_cpu(*given) if target == "cpu" else compile_cuda(*given, CC)
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
        compile_cpu(atos.task(body), None, (), np.dtype([("vertex", "u4"), ("distance", "f4")]))


def test_an_idle_function_is_checked_too():
    def body(worker, v):
        pass

    with pytest.raises(TaskCompileError, match=r"the idle function body\(worker, v\) takes 2 arguments, .* gives it 1: worker"):
        compile_cpu(atos.task(body), body, (), np.dtype(np.uint32))
