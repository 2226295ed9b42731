"""Launches with debug=True: what fails inside a task is named, the launch ends in order, and nothing costs without."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from typing import Any, NamedTuple

import debug_tasks as tasks
import numpy as np
import pytest
from fake_arrays import FakeArray
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from item_types import RECORDS

import atos_py as atos
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.codegen.target_cpu import compile_cpu
from atos_py.compile.spec import ProgramSpec
from atos_py.core.library import check, lib
from atos_py.errors import DeviceFaultError, InvalidArgumentError, TaskCompileError, TaskError

ITEMS = 10  # 0 to 9, of which 7 and those above may fail

# Each with what the error says; all fail on item 7, and on it alone but for the first three.
FAILING = {
    "read": ("index", "index 10 is out of range for array 'table' of length 10"),
    "write": ("index", "index -1 is out of range for array 'table' of length 10; negative indices do not count from the end"),
    "add": ("index", "index 14 is out of range for array 'table' of length 10"),
    "on_scratch": ("index", "index 16 is out of range for array 'worker.scratch' of length 16"),
    "divide": ("division", "integer division by zero"),
    "modulo": ("division", "integer modulo by zero"),
    "divide_floats": ("division", "division by zero"),
    "convert": ("cast", "300 (int64) does not fit uint8 (0 to 255)"),
    "store": ("cast", "2147483648 (int64) does not fit int32 (-2147483648 to 2147483647)"),
    "exchange": ("cast", "-1099511627776 (int64) does not fit int32 (-2147483648 to 2147483647)"),
    "push": ("cast", "-1 (int64) does not fit uint32 (0 to 4294967295)"),
    "check": ("assert", "assertion failed: seven"),
    "refuse": ("raise", "ValueError: no sevens"),
    "step": ("raise", "ValueError: range() arg 3 must not be zero"),
    "call": ("index", "index 10 is out of range for array 'table' of length 10"),
    "in_workload": ("index", "index 10 is out of range for array 'table' of length 10"),
    "in_iteration": ("index", "index 4321 is out of range for array 'table' of length 10"),
    "between_collectives": ("division", "integer division by zero"),
    "between_collectives_of_groups": ("division", "integer division by zero"),
    "in_one_of_a_group": ("division", "integer division by zero"),
    "on_scratch_of_a_group": ("index", "index 9 is out of range for array 'worker.scratch' of length 9"),
    "many": ("cast", f"{2**64 - 3} (uint64) does not fit int64 ({-(2**63)} to {2**63 - 1})"),
    "split_too_much": ("cast", f"{2**64 - 1} (uint64) does not fit int64 ({-(2**63)} to {2**63 - 1})"),
}


def failing_line(function: Any) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if "# fails" in line)


class Launch:
    """A queue with one item, and the arrays of the tasks."""

    def __init__(self, device: atos.Device, items: Any, **options: Any) -> None:
        self.queue = atos.Queue(1000, device=device, **options)
        self.queue.push(items)
        self.ran = atos.zeros(ITEMS, dtype=np.int32, device=device)
        self.table = atos.zeros(ITEMS, dtype=np.int32, device=device)

    def run(self, worker: str, task: atos.Task, **options: Any) -> atos.LaunchStats:
        options = {"num_blocks": 2, "shared_memory": 64, "debug": True, **options}
        return getattr(self.queue, f"launch_{worker}")(task, self.ran, self.table, **options)


@pytest.mark.parametrize("name", FAILING)
def test_what_fails_is_named(device, worker, name):
    task, (kind, what) = getattr(tasks, name), FAILING[name]
    launch = Launch(device, 7)
    with pytest.raises(TaskError) as caught:
        launch.run(worker, task)
    error = caught.value
    function = {"call": tasks.helper, "in_workload": tasks.length, "many": tasks.too_long}.get(name, task.body)
    line = failing_line(function)
    assert str(error) == f"{function.__name__} (debug_tasks.py:{line}): {what}, in item 7"
    assert (error.task, error.kind, error.function, error.line) == (name, kind, function.__name__, line)
    assert os.path.samefile(error.filename, tasks.__file__)
    assert error.item == 7
    if kind == "index":
        assert str(error.index) in what
        assert error.bound == {"on_scratch": 16, "on_scratch_of_a_group": 9}.get(name, 10)
    else:
        assert error.index is error.bound is None
    assert isinstance(error, RuntimeError)
    assert len(launch.queue) == 0


@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_the_launch_ends_in_order(device, worker, persistent, barrier):
    """Every other item has run completely or is still there, and runs in the next launch."""
    launch = Launch(device, np.arange(200) % ITEMS)
    options = {"persistent": persistent, "barrier": barrier}
    lanes = {"thread": 1, "warp": 32, "cta": 256}[worker] if device.kind == "cuda" else 1
    with pytest.raises(TaskError, match="assertion failed: seven, in item 7"):
        launch.run(worker, tasks.count, fetch_size=2, **options)
    waiting = np.bincount(launch.queue.peek(), minlength=ITEMS)
    expected = lanes * (20 - waiting)
    expected[7] = 0
    assert launch.ran.to_numpy().tolist() == expected.tolist()
    assert waiting[7] < 20
    assert launch.run(worker, tasks.mend, **options).tasks_run == waiting.sum()
    expected += lanes * waiting
    assert launch.ran.to_numpy().tolist() == expected.tolist()
    assert len(launch.queue) == 0


@pytest.mark.parametrize("persistent", [False, True])
def test_other_iterations_of_groups_are_complete(device, worker, persistent):
    launch = Launch(device, np.arange(200) % ITEMS)
    threads = 4 if device.kind == "cuda" and worker != "thread" else 1
    with pytest.raises(TaskError, match="assertion failed: seven, in item 7"):
        launch.run(worker, tasks.count_in_groups, fetch_size=4, persistent=persistent)
    waiting = np.bincount(launch.queue.peek(), minlength=ITEMS)
    launch.run(worker, tasks.mend_in_groups, persistent=persistent)
    others = np.arange(ITEMS) != 7
    assert waiting[7] < 20
    assert (launch.ran.to_numpy()[others] == 20 * 6 * threads).all()


@pytest.mark.parametrize("name", ["between_collectives", "check"])
def test_every_worker_fails_again_and_again(device, worker, name):
    """Many items that fail in all workers at once, with threads of a worker that wait for those that failed."""
    launch = Launch(device, np.full(500, 7))
    while len(launch.queue):
        pending = len(launch.queue)
        with pytest.raises(TaskError, match="in item 7"):
            launch.run(worker, getattr(tasks, name), num_blocks=4)
        assert len(launch.queue) < pending


def test_an_idle_function_that_fails(device, worker):
    launch = Launch(device, [1, 2])
    with pytest.raises(TaskError, match=r"failing_idle .*index 10 is out of range.*, in the idle function") as caught:
        launch.run(worker, tasks.mend, idle=tasks.failing_idle)
    assert caught.value.item is None
    assert caught.value.function == "failing_idle"


def test_items_that_are_records(device):
    @atos.task
    def read(worker, item, table):
        table[item.vertex] = 1

    step = np.dtype([("vertex", np.int64), ("length", np.float32)])
    queue = atos.Queue(10, dtype=step, device=device)
    queue.push([(-5, 0.5)])
    with pytest.raises(TaskError, match=r"index -5 .*, in item \(-5, 0.5\)") as caught:
        queue.launch_cta(read, atos.zeros(3, dtype=np.int32, device=device), debug=True)
    assert caught.value.item == (-5, 0.5)


def test_arrays_are_called_as_in_the_task(device):
    graph = atos.Graph.from_edges([0, 1], [1, 2], num_vertices=3, device=device)

    @atos.task(workload=lambda v, graph, a, b: (1, v))
    def read(worker, v, i, value, graph, which, other):
        if value == 3:
            which[0] = graph.indptr[v + 1]
        other[v] = 1

    for item, name in ((3, "graph.indptr"), (2, "other")):
        queue = atos.Queue(10, device=device)
        queue.push(item)
        arrays = [atos.zeros(2, dtype=np.int32, device=device) for _ in range(2)]
        with pytest.raises(TaskError) as caught:
            queue.launch_warp(read, graph, *arrays, debug=True)
        assert f"array {name!r} of length" in str(caught.value)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(*[st.integers(-6, 6) | st.integers(-(2**63), 2**63 - 1)] * 2))
def test_each_axis_is_checked(index):
    row, column = index
    table = atos.zeros((3, 5), dtype=np.int64, device="cpu")
    queue = atos.Queue(1, device="cpu")
    queue.push(0)
    inside = [0 <= row < 3, 0 <= column < 5]
    if all(inside):
        queue.launch_thread(two_axes, table, row, column, debug=True)
        assert table.to_numpy()[row, column] == 1
    else:
        with pytest.raises(TaskError) as caught:
            queue.launch_thread(two_axes, table, row, column, debug=True)
        axis = inside.index(False)
        assert f"array 'table' of length {(3, 5)[axis]} along axis {axis}" in str(caught.value)
        assert (caught.value.index, caught.value.bound) == (index[axis], (3, 5)[axis])
        assert not table.to_numpy().any()


@atos.task
def two_axes(worker, v, table, row, column):
    table[row, column] = 1


NUMBERS = {
    np.int64: st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**33), 2**33) | st.integers(-300, 300),
    np.uint64: st.integers(0, 2**64 - 1) | st.integers(0, 300),
    np.float64: st.floats() | st.integers(-(2**64), 2**64).map(float) | st.integers(-300, 300).map(lambda x: x / 4),
}


@pytest.mark.parametrize(
    ("given_type", "wanted"),
    [
        *((np.int64, wanted) for wanted in (np.int8, np.uint8, np.int32, np.uint32, np.uint64)),
        *((np.uint64, wanted) for wanted in (np.uint16, np.int64)),
        *((np.float64, wanted) for wanted in (np.uint8, np.int32, np.int64, np.uint64)),
    ],
    ids=lambda dtype: dtype.__name__,
)
def test_casts_fail_exactly_where_a_value_does_not_fit(given_type, wanted):
    @atos.task
    def convert(worker, v, value, out):
        out[0] = wanted(value)

    limits = np.iinfo(wanted)

    @settings(deadline=None, max_examples=60)
    @given(NUMBERS[given_type] | st.sampled_from([limits.min, limits.max, limits.min - 1, limits.max + 1]).map(int))
    def run(value):
        if given_type is np.float64:
            value = float(value)
        elif not np.iinfo(given_type).min <= value <= np.iinfo(given_type).max:
            return
        out = atos.zeros(1, dtype=wanted, device="cpu")
        queue = atos.Queue(1, device="cpu")
        queue.push(0)
        fits = np.isfinite(value) and limits.min <= int(value) <= limits.max
        if fits:
            queue.launch_thread(convert, given_type(value), out, debug=True, num_blocks=1)
            assert out.to_numpy()[0] == int(value)
        else:
            with pytest.raises(TaskError, match="does not fit") as caught:
                queue.launch_thread(convert, given_type(value), out, debug=True, num_blocks=1)
            assert caught.value.kind == "cast"
            assert str(value) in str(caught.value)

    run()


@pytest.mark.parametrize(
    ("name", "value", "fails"),
    [
        ("atomic_min", -1, True), ("atomic_min", 2**40, False), ("atomic_max", 2**40, True), ("atomic_max", -1, False),
        ("atomic_min", np.uint64(2**64 - 1), False), ("atomic_max", np.uint64(2**63), True),
    ],
)  # fmt: skip
def test_an_extreme_fails_only_where_it_would_store_what_does_not_fit(device, name, value, fails):
    function = getattr(atos, name)

    @atos.task
    def extreme(worker, v, out, value):
        function(out, v, value)

    out = atos.full(1, 5, dtype=np.uint32, device=device)
    queue = atos.Queue(1, device=device)
    queue.push(0)
    if fails:
        with pytest.raises(TaskError, match=f"{value} .u?int64. does not fit uint32"):
            queue.launch_thread(extreme, out, value, debug=True)
    else:
        queue.launch_thread(extreme, out, value, debug=True)
        queue.push(0)
        queue.launch_thread(extreme, out, value)
    assert out.to_numpy()[0] == 5


def test_the_environment_is_the_default(monkeypatch):
    launch = Launch(atos.device("cpu"), [7])
    monkeypatch.setenv("ATOS_DEBUG", "1")
    with pytest.raises(TaskError):
        launch.run("cta", tasks.check, debug=None)
    launch.queue.push(7)
    assert launch.run("cta", tasks.check, debug=False).tasks_run == 1
    monkeypatch.setenv("ATOS_DEBUG", "0")
    launch.queue.push(7)
    assert launch.run("cta", tasks.check, debug=None).tasks_run == 1
    monkeypatch.setenv("ATOS_DEBUG", "yes")
    with pytest.raises(InvalidArgumentError, match="ATOS_DEBUG is 0 or 1"):
        launch.run("cta", tasks.check, debug=None)


def test_algorithms_run_with_checks(device, monkeypatch):
    monkeypatch.setenv("ATOS_DEBUG", "1")
    graph = atos.generate.rmat(8, device=device)
    atos.verify_bfs(graph, 0, atos.bfs(graph, 0).depth)
    atos.pagerank(graph)
    atos.verify_coloring(graph, atos.color(graph).colors)


class Pair(NamedTuple):
    left: atos.Array
    right: atos.Array


def test_no_read_only_array_has_memory_of_one_that_may_be_written(device):
    @atos.task
    def copy(worker, v, pair, other):
        pair.left[v] = pair.right[v] + other[v]

    numbers, others = (atos.zeros(4, dtype=np.int64, device=device) for _ in range(2))
    queue = atos.Queue(4, device=device)
    read_numbers, read_others = (atos.asarray(array, readonly=True) for array in (numbers, others))
    for pair in (Pair(numbers, numbers), Pair(numbers, read_others), Pair(others, read_numbers)):
        queue.push(1)
        if pair.left is others:
            with pytest.raises(
                InvalidArgumentError, match="a read-only array in argument 0 has memory of an array in argument 1"
            ):
                queue.launch_thread(copy, pair, numbers, debug=True)
        else:
            assert queue.launch_thread(copy, pair, numbers, debug=True).tasks_run == 1
    with pytest.raises(InvalidArgumentError, match="in argument 1 has memory of an array in argument 0"):
        queue.launch_thread(copy, Pair(numbers, numbers), read_numbers, debug=True)
    assert queue.launch_thread(copy, Pair(others, others), read_numbers, debug=True).tasks_run == 1


def test_asserts_are_left_out_without_debug(device, worker):
    launch = Launch(device, [7])
    assert launch.run(worker, tasks.check, debug=False).tasks_run == 1
    assert launch.ran.to_numpy()[7] == 1
    launch.queue.push(7)
    assert launch.run(worker, tasks.closing_over(5), debug=False).tasks_run == 1
    launch.queue.push(7)
    with pytest.raises(TaskError, match="over the limit"):
        launch.run(worker, tasks.closing_over(5))


def test_a_raise_needs_debug(device):
    launch = Launch(device, [7])
    with pytest.raises(TaskCompileError, match=r"it has a raise, .*debug=True") as caught:
        launch.run("cta", tasks.refuse, debug=False)
    assert f"line {failing_line(tasks.refuse.body)}" in str(caught.value)
    assert len(launch.queue) == 1


def test_an_assert_without_its_source_needs_debug():
    variables: dict[str, Any] = {}
    exec("def body(worker, v, ran, table):\n    assert v != 7\n    ran[v] = 1\n", variables)
    launch = Launch(atos.device("cpu"), [7])
    with pytest.raises(TaskCompileError, match="debug=True"):
        launch.run("cta", atos.task(variables["body"]), debug=False)
    with pytest.raises(TaskError, match="assertion failed, in item 7"):
        launch.run("cta", atos.task(variables["body"]))


@pytest.mark.parametrize("debug", [False, True])
def test_exceptions_are_not_handled(debug):
    @atos.task
    def body(worker, v, ran, table):
        try:
            ran[v] = table[v]
        except IndexError:
            ran[v] = 1

    with pytest.raises(TaskCompileError, match="try or with"):
        Launch(atos.device("cpu"), [7]).run("cta", body, debug=debug)


KINDS = tuple(map(describe, [FakeArray(np.zeros(1, np.int32), False)] * 2))


def test_nothing_is_left_of_checks_without_debug_on_the_cpu():
    plain, checked, without = (
        compile_cpu(ProgramSpec(task, None, KINDS, np.dtype("u4"), debug=debug)).assembly
        for task, debug in ((tasks.checked_or_not, False), (tasks.checked_or_not, True), (tasks.never_checked, False))
    )
    assert "atos_fail" in checked
    assert "atos_fail" not in plain
    instructions = [[line for line in text.splitlines() if line.startswith("\t")] for text in (plain, without)]
    assert len(instructions[0]) == len(instructions[1])


@pytest.mark.part("programs")
@pytest.mark.parametrize("name", ["thread", "warp", "cta"])
def test_nothing_is_left_of_checks_without_debug_on_the_gpu(name):
    pytest.importorskip("cuda.core")
    if not any(link.CORE_DIR.glob("core_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    with_checks = link.cubin(ProgramSpec(tasks.checked_or_not, None, KINDS, np.dtype("u4"), name, debug=True), (9, 0))
    plain, without = (
        link.cubin(ProgramSpec(task, None, KINDS, np.dtype("u4"), name), (9, 0))
        for task in (tasks.checked_or_not, tasks.never_checked)
    )
    assert plain.code == without.code
    assert plain.shared_bytes == 0
    assert plain.checks is None
    assert with_checks.shared_bytes > 0
    assert with_checks.spill_bytes == 0
    assert {site.kind for site in with_checks.checks.sites} == {"index", "assert", "cast"}


FAULT = """
import numpy as np
import atos_py as atos

@atos.task
def stray(worker, v, out):
    out[v * 1_000_000_000_000] = 1

out, queue = atos.zeros(10, dtype=np.int32), atos.Queue(10)
queue.push(7)
for attempt in (
    lambda: queue.launch_cta(stray, out),
    lambda: queue.launch_cta(stray, out),
    lambda: out.to_numpy(),
    lambda: atos.zeros(10),
    lambda: atos.Queue(10),
    lambda: queue.push(1),
):
    try:
        attempt()
    except atos.DeviceFaultError as error:
        assert "context is lost" in str(error) and "debug=True" in str(error)
        print("fault")
"""


def test_a_fault_says_what_to_do():
    with pytest.raises(DeviceFaultError, match=r"context is lost.* start a new process, .*debug=True") as caught:
        check(lib.ATOS_FAULT)
    assert isinstance(caught.value, atos.DeviceError)


@pytest.mark.gpu
def test_a_fault_of_the_gpu_is_told_again_and_again():
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["fault"] * 6, done.stderr
    assert done.returncode == 0, done.stderr


def test_the_whole_of_a_large_item_is_told(device, worker):
    queue = atos.Queue(4, dtype=RECORDS["32 bytes"], device=device)
    queue.push((1, 2.5, 3, 7.5))
    with pytest.raises(TaskError) as failed:
        getattr(queue, f"launch_{worker}")(tasks.refuse_large, debug=True)
    assert failed.value.item == (1, 2.5, 3, 7.5)
