"""Tasks compiled for CUDA: what their PTX says once they are linked into a stand-in for the core. No GPU needed."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_harness import DTYPES, RECORDS, visit
from fake_arrays import Pair, array
from item_types import RECORDS as ITEM_RECORDS

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.codegen import ITEM_BYTES, item_bytes

core = pytest.importorskip("cuda.core")

from atos_py.compile.codegen.target_cuda import compile_cuda  # noqa: E402
from atos_py.compile.spec import ProgramSpec  # noqa: E402

CC = (9, 0)


@pytest.fixture(scope="session")
def stand_ins(stand_ins_path: Path) -> Any:
    return {size: core.ObjectCode.from_fatbin((stand_ins_path / f"core_cta_{size}.fatbin").read_bytes()) for size in ITEM_BYTES}


@pytest.fixture
def ptx(stand_ins: Any) -> Any:
    """A function that compiles a task, links it into the stand-in, and returns the kernel's PTX."""

    def compile_and_link(task: Any, *args: Any, dtype: Any = np.uint32, idle: Any = None) -> str:
        task = task if isinstance(task, atos.Task) else atos.task(task)
        code = compile_cuda(ProgramSpec(task, idle, tuple(map(describe, args)), np.dtype(dtype)), CC)
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


def width(dtype: Any) -> int:
    return np.dtype(dtype).itemsize * 8


def test_bfs_reads_graphs_through_the_read_only_path_and_depths_coherently(ptx):
    text = ptx(visit, Pair(array("u4", readonly=True), array("u4", readonly=True)), array("u4"))
    assert len(re.findall(r"ld\.global\.nc", text)) >= 3
    assert "ld.relaxed.gpu.global.u32" in text
    assert re.search(r"atom(\.relaxed\.gpu)?\.global\.min\.u32", text)
    assert text.count("// atos_push") == 1


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
            ("atomic_xor", rf"xor\.b{sign[1:]}"),
            ("atomic_mul", rf"cas\.b{sign[1:]}"),
        ]
    ],
    *[
        (name, dtype, rf"atom(\.relaxed\.gpu)?\.global\.{operation}\.b32")
        for dtype in ("int8", "uint8", "int16", "uint16")
        for name, operation in [
            *((f"atomic_{name}", "cas") for name in ("min", "max", "add", "mul", "exch", "cas")),
            *((f"atomic_{name}", name.rstrip("_")) for name in ("or_", "and_", "xor")),
        ]
    ],
    *[
        (f"atomic_{name}", "bool", rf"atom(\.relaxed\.gpu)?\.global\.{operation}\.b32")
        for name, operation in [("exch", "cas"), ("cas", "cas"), ("or_", "or"), ("and_", "and"), ("xor", "xor")]
    ],
    *[
        (name, dtype, rf"atom(\.relaxed\.gpu)?\.global\.{operation}")
        for dtype, size in [("float32", 32), ("float64", 64)]
        for name, operation in [
            ("atomic_min", rf"max\.u{size}"),
            ("atomic_max", rf"min\.u{size}"),
            ("atomic_add", rf"add\.f{size}"),
            ("atomic_mul", rf"cas\.b{size}"),
            ("atomic_exch", rf"exch\.b{size}"),
            ("atomic_cas", rf"cas\.b{size}"),
        ]
    ],
]


@pytest.mark.parametrize(("name", "dtype", "instruction"), ATOMICS)
def test_atomics(ptx, name, dtype, instruction):
    function = getattr(atos, name)

    def body(worker, v, target, value, old):
        old[v] = function(target, v, value)

    def cas(worker, v, target, value, old):
        old[v] = function(target, v, value, value + value)

    text = ptx(cas if name == "atomic_cas" else body, array(dtype), np.dtype(dtype).type(3), array(dtype))
    assert re.search(instruction, text)
    # These read before they swap.
    assert ("ld.relaxed" in text) == (
        name in ("atomic_min", "atomic_max", "atomic_mul") or (width(dtype) < 32 and "cas" in instruction)
    )


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


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("int32", "u32"), ("uint32", "u32"), ("int64", "u64"), ("uint64", "u64"), ("float32", "f32"), ("float64", "f64")],
)
def test_accumulate_is_a_reduction(ptx, dtype, kind):
    def body(worker, v, target):
        atos.accumulate(target, v, 3)

    text = ptx(body, array(dtype))
    assert text.count(f"red.relaxed.gpu.global.add.{kind}") == 1
    assert not re.search(r"\batom\.", text)


def test_accumulate_where_there_is_no_reduction(ptx):
    def body(worker, v, target):
        scratch = worker.scratch(np.float32, 2)
        atos.accumulate(scratch, v % 2, 1.0)
        atos.accumulate(target, v, 3)

    text = ptx(body, array("uint8"))
    assert re.search(r"atom(\.shared)?\.add\.f32", text)
    assert re.search(r"atom(\.relaxed\.gpu)?\.global\.cas\.b32", text)
    assert not re.search(r"\bred\.", text)


@pytest.mark.parametrize(("dtype", "kind"), [("uint8", "u8"), ("uint32", "u32"), ("float32", "u32"), ("float64", "u64")])
def test_a_cached_load_is_of_the_scope_of_a_block(ptx, dtype, kind):
    def body(worker, v, source, target):
        target[v] = atos.load_cached(source, v)

    text = ptx(body, array(dtype), array(dtype))
    assert text.count(f"ld.relaxed.cta.global.{kind}") == 1
    assert "ld.relaxed.gpu" not in text


def test_a_cached_load_of_other_arrays_is_a_plain_one(ptx):
    def body(worker, v, source, target):
        scratch = worker.scratch(np.float32, 2)
        target[v] = atos.load_cached(source, v) + atos.load_cached(scratch, v % 2)

    text = ptx(body, array("float32", readonly=True), array("float32"))
    assert "ld.global.nc" in text
    assert "ld.relaxed" not in text


def test_push_min_reads_before_it_lowers_and_pushes(ptx):
    def body(worker, v, depth):
        worker.push_min(depth, v, 7)

    text = ptx(body, array("uint32"))
    read = text.index("ld.relaxed.gpu.global.u32")
    lower = re.search(r"atom(\.relaxed\.gpu)?\.global\.min\.u32", text).start()
    push = text.index("// atos_push")
    assert read < text.index("bra", read) < lower < push


def test_vectors_are_added_in_one_instruction(ptx):
    def body(worker, v, target):
        atos.atomic_add2(target, 2 * v, 1.0, v)
        atos.atomic_add4(target, 4 * v, 1.0, v, 2, 0.5)

    text = ptx(body, array("float32"))
    assert len(re.findall(r"red\.relaxed\.gpu\.global\.add\.v2\.f32", text)) == 1
    assert len(re.findall(r"red\.relaxed\.gpu\.global\.add\.v4\.f32", text)) == 1
    assert "atom" not in re.sub(r"//.*|\batomic|atos", "", text)


def test_a_local_array_lies_in_registers_where_its_indices_are_known(ptx):
    def body(worker, v, source, out):
        mine = atos.local_array(np.float32, 4)
        for k in range(4):
            mine[k] = source[v + k]
        for k in range(4):
            out[v + k] = mine[3 - k] + mine[k]

    ptx(body, array("float32"), array("float32"))  # looks for local memory itself


def test_random_numbers_take_a_wide_product_for_each_half_round(ptx):
    def body(worker, v, out):
        out[v] = atos.random(v, 2 * v, 3 * v, 4 * v)

    text = ptx(body, array("float64"))
    # Of two blocks, since there are more than two counters. The last product is not needed.
    assert len(re.findall(r"mul\.wide\.u32", text)) >= 2 * 2 * 10 - 1


@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32"])
def test_lengths_are_limited_to_what_int64_holds_where_they_may_be_more(ptx, dtype):
    @atos.task(workload=lambda v, lengths: lengths[v])
    def body(worker, v, i, lengths):
        worker.push(i)

    text = ptx(body, array(dtype))
    assert (str(2**63 - 1) in text) == (dtype == "uint64")


def test_constants_of_the_task_fold(ptx):
    def plan(v):
        return v, v, v

    def flat(worker, v):
        worker.push(v)

    def idle(worker):
        worker.push(worker.size)

    def constants(text: str) -> list[int]:
        # One store of each constant, five of them.
        found = re.findall(r"st\.global\.[bu]32\s+\[%rd\d+(?:\+(\d+))?\], (-?\d+|%r\d+);", text)
        registers: dict[str, str] = dict(re.findall(r"mov\.[bu]32\s+(%r\d+), (-?\d+);", text))
        found = [(offset, registers.get(value, value)) for offset, value in found]
        stores = {int(offset or 0): value for offset, value in found if value[0] != "%"}
        return [int(value) for _, value in sorted(stores.items())]

    text = ptx(flat, idle=idle)
    assert constants(text) == [0, 0, 1, 0, 1]

    @atos.task(workload=plan, group=8)
    def nested(worker, v, i, first, second):
        worker.push(i + first + second)

    text = ptx(nested, dtype=np.int64)
    assert constants(text) == [1, 2, 0, 0, 8]


@pytest.mark.parametrize("fields", RECORDS.values(), ids=RECORDS)
def test_record_items(ptx, fields):
    def relax(worker, item, out):
        out[item.vertex] = item.distance
        worker.push((item.vertex + 1, item.distance * 2))

    assert ptx(relax, array("float64"), dtype=np.dtype(fields)).count("// atos_push") == 1


@pytest.mark.parametrize("dtype", ITEM_RECORDS.values(), ids=ITEM_RECORDS)
def test_records_stay_in_registers(ptx, dtype):
    def again(worker, item):
        worker.push(item)

    assert ptx(again, dtype=dtype).count("// atos_push") == 1


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

    assert compile_cuda(ProgramSpec(body, None, (), np.dtype(np.uint32)), CC).value_words == 2


def test_each_call_of_the_clock_reads_it(ptx):
    def measure(worker, v, out):
        began = worker.clock()
        out[v] = worker.clock() - began

    assert len(re.findall(r"mov\.u64 \S+, %globaltimer;", ptx(measure, array("i8")))) == 2


def test_vectors_of_items_are_in_registers(ptx):
    ray = np.dtype([("at", "f4", 3), ("depth", "u4"), ("to", "i2", 2)])

    def step(worker, item, out):
        x, y, z = item.at
        out[item.depth] = x * y + z
        worker.push(((x + 1, y, z), item.depth - 1, (item.to[1], item.to[0])))

    ptx(step, array("f4"), dtype=ray)  # which refuses local memory
