"""The queue as the host sees it: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from item_types import DTYPES, INTEGERS, RECORDS, all_dtypes, random_items

import atos_py as atos
from atos_py.errors import DeviceMemoryError, InvalidArgumentError, QueueFullError, UnsupportedTypeError


def test_records_are_taken_exactly_or_refused():
    queue = atos.Queue(10, dtype=[("key", np.uint64)], device="cpu")
    queue.push([(1,), (2**63,)])
    assert queue.peek().tolist() == [(1,), (2**63,)]
    with pytest.raises(atos.InvalidArgumentError, match="does not fit"):
        queue.push([(1,), (2**64,)])
    queue = atos.Queue(10, dtype=[("a", np.uint32), ("b", np.float32)], device="cpu")
    for items in ((1, []), (1, [2, 3]), np.array(5)):
        with pytest.raises(atos.UnsupportedTypeError, match="tuples of 2 numbers"):
            queue.push(items)
    assert len(queue) == 0


@pytest.mark.parametrize("name", ["class", "_x", "a b", "1"])
def test_fields_that_no_task_could_name(name):
    with pytest.raises(atos.UnsupportedTypeError, match="rename it"):
        atos.Queue(4, dtype=[(name, "i8")], device="cpu")


@all_dtypes
def test_what_goes_in_comes_out_in_order(device, dtype):
    queue = atos.Queue(100, dtype=dtype, device=device)
    items = random_items(dtype, 100)
    assert (len(queue), queue.peek().tolist(), queue.peek().dtype) == (0, [], dtype)
    queue.push(items[:1])
    queue.push(items[1:40])
    queue.push(items[40:])
    assert len(queue) == 100
    assert queue.peek().tolist() == items.tolist()
    assert queue.peek().tolist() == items.tolist()  # looking takes nothing away
    assert (queue.capacity, queue.dtype, queue.device) == (100, dtype, device)


@all_dtypes
def test_resize_keeps_items_and_clear_drops_them(device, dtype):
    queue = atos.Queue(7, dtype=dtype, device=device)
    items = random_items(dtype, 20, seed=1)
    queue.push(items[:7])
    queue.resize(20)
    assert queue.capacity == 20
    queue.push(items[7:])
    for capacity in (1000, 20, 21):
        queue.resize(capacity)
        assert queue.capacity == capacity
        assert queue.peek().tolist() == items.tolist()
    with pytest.raises(InvalidArgumentError, match=r"a capacity of 19 is less than the 20 tasks pending"):
        queue.resize(19)
    assert queue.capacity == 21
    queue.clear()
    assert len(queue) == 0
    queue.push(items[3:5])
    assert queue.peek().tolist() == items[3:5].tolist()


@atos.task
def nothing(worker, item):
    """Do nothing."""


@pytest.mark.parametrize("dtype", ["u4", "i4", "u8", "i8"])
def test_ranges_are_pushed_as_their_numbers(device, dtype):
    """Also at the end of the ring, behind others, and where the queue grows; those that begin below 0 or skip some as well."""
    queue, most = atos.Queue(capacity=10, dtype=dtype, device=device), np.iinfo(dtype).max
    queue.push(range(7))
    queue.launch_thread(nothing)
    for items in (range(4), [99], range(most - 2, most), range(0), range(20, 40), range(3, 9, 2), range(5, 2, -1)):
        queue.push(items)
    assert queue.peek().tolist() == [0, 1, 2, 3, 99, most - 2, most - 1, *range(20, 40), 3, 5, 7, 5, 4, 3]
    with pytest.raises(InvalidArgumentError, match="does not fit"):
        queue.push(range(most, most + 2))
    if dtype[0] == "i":
        queue.push(range(-2, 2))
        assert queue.peek()[-4:].tolist() == [-2, -1, 0, 1]
    with pytest.raises(UnsupportedTypeError):
        atos.Queue(10, dtype=[("a", "u4"), ("b", "u4")], device=device).push(range(3))


@pytest.mark.parametrize("dtype", ["u4", "i8"])
def test_ranges_for_a_task_or_with_a_priority(device, dtype):
    queue = atos.Queue(capacity=10, dtype=dtype, device=device)
    queue.push(range(2, 5))
    queue.push(range(7, 9), task=nothing)
    items, kinds = queue.peek(kinds=True)
    assert items.tolist() == [2, 3, 4, 7, 8]
    assert kinds.tolist() == [None, None, None, "nothing", "nothing"]
    ordered = atos.Queue(capacity=10, dtype=dtype, device=device, buckets=4, delta=1)
    ordered.push(range(3), priority=[2, 0, 1])
    assert ordered.peek().tolist() == [1, 2, 0]


def test_ways_to_push():
    queue = atos.Queue(100, dtype=np.int32, device="cpu")
    queue.push(1)
    queue.push([2, -3])
    queue.push(np.int64(4))
    queue.push(np.array([5, 6], np.uint8))
    queue.push(range(7, 9))
    queue.push((9,))
    queue.push(np.arange(20, dtype=np.int64)[10:16:2])
    queue.push(atos.asarray(np.array([16, 17]), device="cpu"))
    queue.push([])
    queue.push(np.array([], np.int32))
    assert queue.peek().tolist() == [1, 2, -3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 17]
    records = atos.Queue(10, dtype=RECORDS["16 bytes"], device="cpu")
    records.push((1, 2.5))
    records.push([(3, 4), (5, 6)])
    records.push(np.array([(-7, np.inf)], RECORDS["16 bytes"]))
    assert records.peek().tolist() == [(1, 2.5), (3, 4.0), (5, 6.0), (-7, np.inf)]


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(
            dtype,
            id=name,
        )
        for name, dtype in DTYPES.items()
    ],
)
def test_nothing_may_be_pushed(dtype):
    queue = atos.Queue(1, dtype=dtype, device="cpu")
    queue.push(np.array([], dtype))
    queue.push([])
    assert len(queue) == 0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_values_that_do_not_fit_are_named(dtype):
    limits = np.iinfo(dtype)
    queue = atos.Queue(10, dtype=dtype, device="cpu")
    wrong = [limits.min - 1, limits.max + 1] if limits.bits == 32 else [-1 if limits.min == 0 else limits.max + 1]
    for value in wrong:
        for items in (value, [value], np.array([value, value])):
            with pytest.raises(
                InvalidArgumentError, match=rf"item {value} does not fit {dtype} \({limits.min} to {limits.max}\)"
            ):
                queue.push(items)
        if limits.bits == 32:
            with pytest.raises(InvalidArgumentError, match=f"item {value} does not fit"):
                queue.push([limits.max, value, limits.min])
    assert len(queue) == 0


def test_mixed_integers_of_64_bits():
    queue = atos.Queue(10, dtype=np.uint64, device="cpu")
    queue.push([0, 2**64 - 1, 1])
    assert queue.peek().tolist() == [0, 2**64 - 1, 1]


@pytest.mark.parametrize("items", [2**64, [-1, 2**64], -(2**63) - 1, [1, 2**63]])
def test_integers_beyond_the_type_are_named(items):
    queue = atos.Queue(10, dtype=np.int64, device="cpu")
    value = items[-1] if isinstance(items, list) else items
    with pytest.raises(InvalidArgumentError, match=f"item {value} does not fit int64"):
        queue.push(items)


@pytest.mark.parametrize(
    ("items", "error"),
    [
        (1.0, "float64"),
        ([1, 2.5], "float64"),
        (True, "bool"),
        ([False], "bool"),
        (None, "object"),
        ("1", "<U1"),
        (1j, "complex"),
        (np.array([(1, 2)], "u4,u4"), "u4"),
        (np.datetime64(3, "s"), "datetime"),
    ],
    ids=str,
)
def test_what_is_no_integer_is_refused(items, error):
    queue = atos.Queue(10, dtype=np.int32, device="cpu")
    with pytest.raises(UnsupportedTypeError, match=f"items of dtype .*{error}.* cannot be pushed to a queue of int32"):
        queue.push(items)
    assert len(queue) == 0


def test_items_have_one_dimension():
    queue = atos.Queue(10, dtype=np.int32, device="cpu")
    with pytest.raises(InvalidArgumentError, match=r"one-dimensional array \(got shape \(2, 1\)\)"):
        queue.push([[1], [2]])


WRONG_RECORDS = {
    "a number": 5,
    "numbers": [1, 2],
    "too few fields": [(1,)],
    "too many fields": [(1, 2, 3)],
    "too large": [(2**40, 1)],
    "negative": (-1, 1),
    "a fraction for an integer": (1.5, 2),
    "too large for the float": (1, 1e300),
    "too large, in an array": np.array([(2**40, 1)], [("vertex", "i8"), ("distance", "f4")]),
    "text": "x",
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("items", WRONG_RECORDS.values(), ids=WRONG_RECORDS)
def test_wrong_records_are_refused(items):
    queue = atos.Queue(10, dtype=RECORDS["8 bytes"], device="cpu")
    with pytest.raises((InvalidArgumentError, UnsupportedTypeError)):
        queue.push(items)
    assert len(queue) == 0


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "uint16",
        "float32",
        "float64",
        "bool",
        "complex64",
        "S4",
        "O",
        "M8[s]",
        ">u4",
        "u8,u8,u8,u8,u1",
        "f2,f2",
        ">u4,u4",
        "O,i4",
        [("a", "u4", (2, 2))],
        [("a", "i4,i4")],
        np.dtype(("u4", 3)),
    ],
    ids=str,
)
def test_types_that_cannot_be_items(dtype):
    with pytest.raises(UnsupportedTypeError, match="items are integers of 32 or 64 bits, or records"):
        atos.Queue(10, dtype=dtype, device="cpu")


def test_records_have_fields():
    with pytest.raises(UnsupportedTypeError, match="items are"):
        atos.Queue(10, dtype=np.dtype([]), device="cpu")


def test_a_full_queue_takes_nothing_and_says_what_to_do(device):
    queue = atos.Queue(10, max_capacity=10, device=device)
    queue.push(range(8))
    with pytest.raises(
        QueueFullError, match=r"pushing 3 items to a queue that holds 8 would exceed its max_capacity of 10.*max_capacity = 11"
    ) as full:
        queue.push([1, 2, 3])
    assert (full.value.capacity, full.value.pending, full.value.lost) == (10, 8, 0)
    assert isinstance(full.value, MemoryError)
    assert queue.peek().tolist() == list(range(8))
    queue.push([8, 9])
    with pytest.raises(QueueFullError, match="holds 10"):
        queue.push(0)
    queue.resize(11)
    queue.push(10)
    assert queue.peek().tolist() == list(range(11))


@pytest.mark.parametrize("capacity", [0, -1, -(2**70), 2**63, 2**100])
def test_capacities_out_of_range(capacity):
    with pytest.raises(InvalidArgumentError, match=rf"capacity must be from 1 to \d+ \(got {capacity}\)"):
        atos.Queue(capacity, device="cpu")
    queue = atos.Queue(1, device="cpu")
    with pytest.raises(InvalidArgumentError, match=rf"capacity must be from 1 to \d+ \(got {capacity}\)"):
        queue.resize(capacity)


@pytest.mark.parametrize("capacity", [1.0, True, None, "1", [1]])
def test_capacities_of_other_types(capacity):
    with pytest.raises(UnsupportedTypeError, match="capacity must be an integer"):
        atos.Queue(capacity, device="cpu")


def test_capacities_of_numpy():
    queue = atos.Queue(np.uint8(3), device="cpu")
    assert type(queue.capacity) is int


def test_resize_to_an_integer_of_numpy():
    queue = atos.Queue(3, device="cpu")
    queue.resize(np.int64(5))
    assert type(queue.capacity) is int


def test_more_than_any_memory(device):
    with pytest.raises(DeviceMemoryError, match="larger than any memory"):
        atos.Queue(2**50, device=device)
    with pytest.raises(DeviceMemoryError, match="bytes asked for"):
        atos.Queue(2**40, dtype=RECORDS["16 bytes"], device=device)


def python(code: str) -> str:
    """Run code in a process of its own, which may crash."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr}"
    return done.stdout


def test_a_resize_that_fails_keeps_the_queue(device):
    code = f"""
import atos_py as atos
queue = atos.Queue(5, device="{device}")
queue.push([1, 2, 3])
try:
    queue.resize(2**50)
except atos.DeviceMemoryError:
    print(queue.capacity, queue.peek().tolist())
    queue.push([4, 5])
    print(queue.peek().tolist())
"""
    assert python(code) == "5 [1, 2, 3]\n[1, 2, 3, 4, 5]\n"


def test_peek_while_another_thread_takes_items():
    class Emptied(atos.Queue):
        """One whose items are gone as soon as they were counted."""

        def __len__(self) -> int:
            count = super().__len__()
            self.clear()
            return count

    queue = Emptied(10, device="cpu")
    queue.push([1, 2, 3])
    assert queue.peek().tolist() in ([], [1, 2, 3])


def test_repr():
    queue = atos.Queue(1234, device="cpu")
    queue.push([1, 2])
    assert repr(queue) == "<atos queue 2 of 1,234 items of uint32 on cpu>"


@pytest.mark.parametrize("bad", ["gpu", "cuda:x", 3, ""])
def test_devices_that_are_none(bad):
    with pytest.raises((InvalidArgumentError, UnsupportedTypeError)):
        atos.Queue(1, device=bad)


def test_memory_comes_back(device):
    """Making and dropping queues does not add up."""
    if device.kind == "cuda":
        atos.Queue(1 << 20, device=device)
        before = device.memory[0]
        for _ in range(50):
            atos.Queue(1 << 24, device=device)  # 128 MB each, 6 GB in all
        assert device.memory[0] > before - (512 << 20)
    else:
        page = 4096
        atos.Queue(1 << 20, device=device).clear()
        with open("/proc/self/statm") as file:
            before = int(file.read().split()[1])
        for _ in range(200):
            atos.Queue(1 << 20, device=device).clear()  # touches 8 MB each
        with open("/proc/self/statm") as file:
            after = int(file.read().split()[1])
        assert (after - before) * page < 100 << 20


def test_queues_leave_addresses_for_others():
    """Under `ulimit -v`."""
    code = """
import resource
import numpy as np
import atos_py as atos
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30),) * 2)
queues = [atos.Queue(1000, device="cpu") for _ in range(12)]
np.zeros(1 << 29, np.uint8)
try:
    atos.Queue(1 << 28, device="cpu")
except atos.DeviceMemoryError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2147483648 bytes asked for, more than the host has or than this process may take\n"
