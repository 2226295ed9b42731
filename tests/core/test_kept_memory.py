"""Memory that a GPU keeps for the next queue or array: with a stand-in for the driver."""

from __future__ import annotations

import pytest
from fake_gpu import FakeGpu

KB, MB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return FakeGpu(tmp_path_factory.mktemp("driver"))


def test_a_queue_made_again_takes_what_was_kept(gpu):
    gpu.run("""
for turn in range(3):
    queue = atos.Queue(1000, max_capacity=4000)
    queue.push(range(turn, 1000))
    assert queue.peek().tolist() == list(range(turn, 1000))
    assert run(queue) == 1000 - turn
    made, reserved = trace(), atos.device().memory[0]
    slow = {"allocate managed", "allocate pinned", "reserve addresses", "make stream", "make event"}
    assert slow <= set(made) if turn == 0 else not slow & set(made), made
    del queue
    assert atos.device().memory[0] > reserved
    assert not {"free", "free addresses"} & set(trace())
""")


def test_a_spill_area_that_was_written_is_not_kept(gpu):
    """Its pages would stay in memory."""
    gpu.run(
        """
queue = atos.Queue(10, max_capacity=10)
queue.push([1, 2])
run(queue)
assert trace().count("launch all") == 2 # the second runs what was spilled
del queue
assert trace().count("free") == 1
""",
        spilled=1,
    )


def test_memory_comes_again_as_zeros(gpu):
    gpu.run("""
array = atos.full(1000, 7, dtype=np.int64)
del array
assert not atos.zeros(1000, dtype=np.int64).to_numpy().any()
queue = atos.Queue(1000)
queue.push(range(1000))
del queue
queue = atos.Queue(1000)
queue.push(5)
assert queue.peek().tolist() == [5]
assert run(queue) == 1
""")


@pytest.mark.parametrize("pools", [0, 1])
def test_memory_is_released_when_all_that_runs_has_ended(gpu, pools):
    """Any stream may still use it, also one of another library that has let go of the array."""
    gpu.run(
        """
queue, array = atos.Queue(10), atos.zeros(10)
trace()
del queue, array
calls = trace()
released = [i for i, call in enumerate(calls) if call in ("free", "free to pool")]
assert len(released) == 3, calls
assert all(calls[i - 1] == "synchronize" for i in released), calls
""",
        pools=pools,
    )


def test_what_is_kept_is_given_back_when_an_allocation_fails(gpu):
    gpu.run(
        f"""
small = [atos.zeros(32 * {KB}, dtype=np.uint8) for _ in range(4)]
del small
large = atos.zeros(900 * {KB}, dtype=np.uint8)
assert f"trim to 0" in trace()
assert large.to_numpy().sum() == 0
try:
    atos.zeros(900 * {KB}, dtype=np.uint8)
except atos.DeviceMemoryError as error:
    assert "{900 * KB} bytes asked for, but GPU 0 has only {124 * KB} of {MB} free" in str(error), error
else:
    raise AssertionError
""",
        bytes=MB,
    )


def test_what_is_kept_counts_as_free(gpu):
    gpu.run(
        f"""
before = atos.device().memory
array = atos.zeros(100 * {KB}, dtype=np.uint8)
assert atos.device().memory == (before[0] - 100 * {KB}, before[1])
del array
assert "trim" not in "".join(trace())
assert atos.device().memory == before
capacity = atos.Queue(8).max_capacity
assert 8 * capacity > 0.4 * {MB}, capacity
""",
        bytes=MB,
    )


def test_an_eighth_of_the_memory_is_kept_at_most(gpu):
    gpu.run(
        f"""
used = atos.zeros(100 * {KB}, dtype=np.uint8)
array = atos.zeros(256 * {KB}, dtype=np.uint8)
trace()
del array
assert trace()[-1] == "trim to {100 * KB + MB // 8}"
""",
        bytes=MB,
    )


def test_release_memory_gives_all_back(gpu):
    gpu.run("""
atos.release_memory()
assert trace() == []
free = atos.device().memory[0]
queue = atos.Queue(1000, max_capacity=4000)
queue.push(3)
run(queue)
used = atos.device().memory[0]
trace()
atos.release_memory() # of the launch, whose queue goes on
assert sorted(set(trace())) == ["destroy event", "destroy stream", "free pinned", "synchronize", f"trim to {free - used}"]
queue.push(range(10))
assert run(queue) == 10
del queue
trace()
atos.release_memory()
calls = trace()
assert [calls.count(what) for what in ("free", "free addresses", "free pinned", "trim to 0")] == [1, 1, 1, 1], calls
assert atos.device().memory[0] == free
""")


def test_nothing_waits_for_a_run_that_waits_for_items(gpu):
    """Releases beside a run are put off, since the thread that frees memory may be the one that sends the items."""
    gpu.run(
        """
import threading
inbox, program = ffi.new("atos_inbox **"), ffi.new("atos_program **")
check(lib.atos_inbox_create(0, 4, inbox))
check(lib.atos_program_load(0, ffi.from_buffer(b".entry all(\\0"), b"all", program))
spilled, grown, queue, array = atos.Queue(10, max_capacity=10), atos.Queue(10), atos.Queue(10), atos.zeros(10)
spilled.push([1, 2])
run(spilled)
run(grown)
trace()
thread = threading.Thread(target=run, args=(queue, inbox[0]), daemon=True)
thread.start()
while "launch all" not in trace():
    pass
free = atos.device().memory[0]
del spilled, grown, array
lib.atos_program_unload(program[0])
for dtype in (np.int8, np.int32):
    assert atos.full(1000, 7, dtype=dtype).to_numpy().sum() == 7000
assert atos.zeros(10).to_numpy().sum() == 0
for call in (atos.release_memory, lambda: atos.zeros(1 << 31)):
    try:
        call()
    except atos.InvalidArgumentError as error:
        assert "a run on GPU 0 is open" in str(error), error
    except atos.DeviceMemoryError as error:
        assert "bytes asked for" in str(error), error
    else:
        raise AssertionError
calls = trace()
assert not [call for call in calls if "waits" in call or "free" in call or "trim" in call], calls
assert atos.device().memory[0] < free
check(lib.atos_inbox_close(inbox[0]))
thread.join()
calls = trace()
assert not [call for call in calls if "waits" in call], calls
assert [calls.count(what) for what in ("free", "free to pool", "unload")] == [1, 8, 2], calls
lib.atos_inbox_destroy(inbox[0])
atos.release_memory()
assert trace().count("free pinned") == 3 # of the launches in two threads, and the inbox
""",
        spilled=1,
    )


def test_a_stop_reaches_a_run_while_the_driver_waits_for_it(gpu):
    """The driver may load a program only after the kernels that run, and answer no other thread until then."""
    gpu.run(
        """
import threading, time
inbox, program, stats = ffi.new("atos_inbox **"), ffi.new("atos_program **"), ffi.new("atos_stats *")
check(lib.atos_inbox_create(0, 4, inbox))
load = lambda: check(lib.atos_program_load(0, ffi.from_buffer(b".entry all(\\0"), b"all", program))
load()
queue, ends = atos.Queue(10), []
options = {"worker": lib.ATOS_CTA, "persistent": 1, "fetch": 1, "threads": 32, "inbox": inbox[0]}
launch = ffi.new("atos_launch *", options)
run = threading.Thread(target=lambda: ends.append(lib.atos_queue_launch(queue._handle, program[0], launch, stats)), daemon=True)
run.start()
while "launch all" not in trace():
    pass
loading = threading.Thread(target=load, daemon=True)
loading.start()
while "load" not in trace():
    pass
time.sleep(0.1)
assert run.is_alive() and loading.is_alive()
lib.atos_inbox_stop(inbox[0])
for thread in run, loading:
    thread.join(30)
    assert not thread.is_alive()
assert ends == [lib.ATOS_OK] # nothing was pending
""",
        slow_loads=1,
    )


def test_a_forked_child_leaves_the_gpu_alone(gpu):
    gpu.run("""
import os
queue, array = atos.Queue(10), atos.zeros(10)
trace()
child = os.fork()
if not child:
    del queue, array
    left = trace()
    try:
        atos.zeros(10)
    except atos.DeviceError:
        os._exit(len(left))
    os._exit(99)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert len(queue) == 0
""")


def test_arrays_are_copied_between_gpus(gpu):
    gpu.run(
        """
first = atos.asarray(np.arange(10), device="cuda:0")
trace()
second = atos.asarray(first, device="cuda:1")
assert "copy between GPUs" in trace()
second[0] = 5
first[...] = second
assert "copy between GPUs" in trace()
assert first.to_numpy().tolist() == [5, *range(1, 10)]
""",
        gpus=2,
    )
