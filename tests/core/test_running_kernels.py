"""Kernels that run beside callbacks, other threads, and calls that the driver refuses: with a stand-in for it."""

from __future__ import annotations

import pytest
from fake_gpu import FakeGpu


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return FakeGpu(tmp_path_factory.mktemp("driver"))


def test_a_callback_frees_makes_and_reads_arrays_while_growth_is_asked_for(gpu):
    """Nothing in it waits for the kernel, which waits for the thread that the callback is in."""
    gpu.run(
        """
arrays = [atos.zeros(1000, dtype=np.int32) for _ in range(4)]
kept, other = atos.full(5, 3, dtype=np.int64), atos.Queue(5)
program, refused, made = ffi.new("atos_program **"), [], []

def attempt(call):
    try:
        call()
    except atos.InvalidArgumentError as error:
        refused.append(str(error))

@ffi.callback("int32_t(const atos_sample *)")
def during(now):
    global other
    if made:
        return 0
    arrays.clear()
    made.append(atos.asarray(np.arange(10)))
    made.append(atos.full(6, 2.5))
    made.append(atos.zeros(7))
    made.append(atos.empty(7))
    kept[1] = 9
    made.append((kept.to_numpy().tolist(), made[0].to_numpy().sum(), made[1].to_numpy().sum(), made[2].to_numpy().sum()))
    attempt(lambda: other.push(1))
    attempt(lambda: check(lib.atos_program_load(0, ffi.from_buffer(b".entry all(\\0"), b"all", program)))
    attempt(lambda: check(lib.atos_stream_wait(0, ffi.NULL)))
    attempt(atos.release_memory)
    del other
    gc.collect()
    driver.fake_go()
    return 0

queue = atos.Queue(10, max_capacity=1000)
queue.push(range(10))
trace()
status, stats = launch(queue, poll_callback=during, progress=1)
calls = trace()
check(status)
assert stats.tasks_run == 10
assert made[-1] == ([3, 9, 3, 3, 3], 45, 15.0, 0.0), made
assert len(refused) == 4 and all("during a launch cannot" in words for words in refused), refused
assert not [call for call in calls if call.startswith(("waits", "no "))], calls
begin, end = calls.index("launch all"), calls.index("map 2 MiB of GPU 0")
assert not [call for call in calls[begin:end] if "free" in call], calls
assert calls[end:].count("free to pool") >= 4, calls
""",
        asks=1,
    )


def test_memory_that_another_thread_frees_is_put_off_until_what_ran_has_ended(gpu):
    """Its release waits for no launch, and does not have to wait for one that began later."""
    gpu.run("""
import threading
first, second, arrays = atos.Queue(10), atos.Queue(10), [atos.zeros(10) for _ in range(3)]
inboxes = [ffi.new("atos_inbox **") for _ in range(2)]
for each in inboxes:
    check(lib.atos_inbox_create(0, 4, each))
run(first)
def begin(queue, inbox):
    trace()
    thread = threading.Thread(target=run, args=(queue, inbox), daemon=True)
    thread.start()
    while "launch all" not in trace():
        pass
    return thread
one = begin(first, inboxes[0][0])
del arrays
calls = trace()
assert not [call for call in calls if "waits" in call or "free" in call], calls
check(lib.atos_inbox_close(inboxes[0][0]))
one.join()
calls = trace()
assert not [call for call in calls if "waits" in call], calls
assert calls.count("free to pool") == 3, calls
""")


def test_the_first_counters_of_a_queue_come_after_its_memory_is_cleared(gpu):
    """The clearing waits for other work in the legacy stream, the copy of the counters in the run's own stream does not."""
    gpu.run(
        """
inbox = ffi.new("atos_inbox **")
check(lib.atos_inbox_create(0, 4, inbox))
check(lib.atos_inbox_close(inbox[0]))
trace()
status, stats = launch(atos.Queue(10), inbox=inbox[0], stream=ffi.cast("void *", 64))
check(status)
calls = trace()
assert "launch all" in calls and "counts the inbox as unfinished" in calls, calls
""",
        late_clears=1,
    )


def test_an_array_that_is_made_beside_another_threads_launch_is_cleared_at_once(gpu):
    """The launch's callback writes to the array, and a clearing in the legacy stream would come after that."""
    gpu.run(
        """
import threading
arrays, written = [], []

@ffi.callback("int32_t(const atos_sample *)")
def during(now):
    if arrays and not written:
        arrays[0][1] = 9
        written.append(True)
    return bool(written)

queue = atos.Queue(10)
launched = threading.Thread(target=lambda: launch(queue, poll_callback=during, progress=1, timeout=30), daemon=True)
trace()
launched.start()
while "launch all" not in trace():
    pass
arrays.append(atos.zeros(5, dtype=np.int64))
launched.join(60)
assert written and arrays[0].to_numpy().tolist() == [0, 9, 0, 0, 0], arrays
""",
        late_clears=1,
        endless=1,
    )


@pytest.mark.parametrize(("persistent", "barrier"), [(1, 0), (0, 0), (0, 1)])
def test_a_stop_waits_for_no_other_threads_launch(gpu, persistent, barrier):
    """That launch's kernel is next in the stream, before what the host copies of a queue that was stopped."""
    gpu.run(
        f"""
import threading, time
queue, other = atos.Queue(60_000, dtype=np.uint32), atos.Queue(10)
queue.push(range(50_000))
trace()
options = {{"persistent": {persistent}, "barrier": {barrier}}}
goes_on = threading.Thread(target=lambda: launch(other, timeout=3), daemon=True)
goes_on.start()
while "launch all" not in trace():
    time.sleep(0.001)
status, stats = launch(queue, timeout=0.1, **options)
calls = trace()
assert goes_on.is_alive() and status == lib.ATOS_STOPPED, status
assert not [call for call in calls if call.startswith("waits")], calls
assert stats.pending == 50_000
goes_on.join(60)
assert queue.peek().tolist() == list(range(50_000))
""",
        endless=1,
    )


@pytest.mark.parametrize("persistent", [0, 1])
def test_workers_stop_by_their_own_clock_while_the_driver_waits(gpu, persistent):
    """A driver that waits for the kernel, since another thread loads a program, takes no stop."""
    gpu.run(
        f"""
import threading
queue, program, ends = atos.Queue(10), ffi.new("atos_program **"), []
queue.push(range(7))
trace()
run = threading.Thread(target=lambda: ends.append(launch(queue, timeout=0.5, persistent={persistent})), daemon=True)
load = lambda: check(lib.atos_program_load(0, ffi.from_buffer(b".entry all(\\0"), b"all", program))
run.start()
while "launch all" not in trace():
    pass
loading = threading.Thread(target=load, daemon=True)
loading.start()
for thread in run, loading:
    thread.join(60)
    assert not thread.is_alive()
[(status, stats)] = ends
assert status == lib.ATOS_STOPPED and stats.pending == 7, (status, stats.pending)
assert queue.peek().tolist() == list(range(7))
""",
        slow_loads=1,
        endless=1,
    )


@pytest.mark.parametrize(("persistent", "barrier"), [(1, 0), (0, 0), (0, 1)])
def test_a_launch_goes_on_after_a_full_ring(gpu, persistent, barrier):
    """The spilled item, 42, has the ticket behind all others, and its slot is free by then."""
    gpu.run(
        f"""
queue = atos.Queue(1 << 20, max_capacity=1 << 20)
queue.push(range(5000))
trace()
status, stats = launch(queue, persistent={persistent}, barrier={barrier})
calls = trace()
assert status == lib.ATOS_OK, status
assert calls.count("launch all") == 2, calls
assert len(queue) == 0
""",
        spilled=1,
    )


def test_many_spilled_items_stay_on_the_gpu(gpu):
    """At a stop no more of them is copied to the host than find their slots, and a larger ring gets them by kernels."""
    gpu.run(
        """
queue, n = atos.Queue(40_000, max_capacity=40_000, dtype=np.uint32), 100_000
queue.push(range(7))
trace()
status, stats = launch(queue)
assert status == lib.ATOS_QUEUE_FULL, status
assert [call for call in trace() if call.startswith("launch")] == ["launch all", "launch gather_spilled"]
assert len(queue) == stats.pending == n
assert queue.peek().tolist() == list(range(42, 42 + n))
queue.resize(n + 10)
assert [call for call in trace() if call.startswith("launch")] == ["launch move_slots", "launch store_spilled"]
assert queue.peek().tolist() == list(range(42, 42 + n))
queue.resize(n + 20)
assert [call for call in trace() if call.startswith("launch")] == ["launch move_slots"]
queue.push(range(20))
assert queue.peek().tolist() == [*range(42, 42 + n), *range(20)]
assert run(queue) == n + 20
""",
        spilled=100_000,
    )


def test_many_items_are_moved_by_the_host_beside_a_launch(gpu):
    """A kernel would wait for the other launch, which may run for hours."""
    gpu.run(
        """
import threading
queue, other, n = atos.Queue(60_000, dtype=np.uint32), atos.Queue(10), 50_000
queue.push(range(n))
other.push([1])
trace()
launched = threading.Thread(target=lambda: launch(other, timeout=2), daemon=True)
launched.start()
while "launch all" not in trace():
    pass
queue.resize(70_000)
assert launched.is_alive()
assert not [call for call in trace() if call.startswith("launch")]
assert queue.peek().tolist() == list(range(n))
launched.join(60)
""",
        endless=1,
    )


@pytest.mark.parametrize("persistent", [0, 1])
def test_a_kernel_is_stopped_when_a_call_for_it_is_refused(gpu, persistent):
    """Whatever the driver refuses beside a kernel: none runs on, no item is lost, and the queue goes on later."""
    said = gpu.run(f"""
refused = []
for which in range(1, 100):
    queue = atos.Queue(20)
    queue.push(range(20))
    driver.fake_endless(1)
    trace()
    driver.fake_refuse(which)
    callback = ffi.callback("int32_t(const atos_sample *)", lambda now: 0)
    status, stats = launch(queue, poll_callback=callback, progress=1, timeout=0.1, persistent={persistent})
    driver.fake_refuse(0)
    calls = [call for call in trace() if call.startswith("refuse")]
    assert status != lib.ATOS_OK, which
    assert status != lib.ATOS_STUCK, (which, calls)
    assert sorted(queue.peek().tolist()) == list(range(20)), (which, calls)
    driver.fake_endless(0)
    assert run(queue) == 20, (which, calls)
    if not calls:
        break
    refused += calls
print(*sorted(set(refused)), sep=", ")
""")
    always = {"refuse copy from GPU", "refuse copy to GPU", "refuse record an event"}
    assert always <= set(said.strip().split(", ")) <= always | {"refuse synchronize"}  # the kernel may have ended by then


def test_a_kernel_that_does_not_stop_after_a_refusal_is_stuck(gpu):
    gpu.run("""
queue = atos.Queue(20)
queue.push(range(20))
run(atos.Queue(1))
driver.fake_endless(2)
driver.fake_refuse(3)  # the event behind the kernel
status, stats = launch(queue)
assert status == lib.ATOS_STUCK, status
words = ffi.string(lib.atos_message()).decode()
assert "then the workers were asked to stop, and did not for 1000 ms" in words, words
for call in (queue.peek, lambda: atos.zeros(3)):
    try:
        call()
    except atos.DeviceError as error:
        assert "still runs" in str(error)
    else:
        raise AssertionError
driver.fake_endless(0)
import time
while True:
    try:
        assert sorted(queue.peek().tolist()) == list(range(20))
        break
    except atos.DeviceError:
        time.sleep(0.01)
assert run(queue) == 20
""")


@pytest.mark.parametrize(("persistent", "barrier"), [(1, 0), (0, 0), (0, 1)])
def test_a_kernel_that_has_not_begun_holds_its_queue_alone(gpu, persistent, barrier):
    """Another process holds the GPU. The stop reaches the kernel, whose first counters are copied after it."""
    gpu.run(f"""
import time
queue = atos.Queue(20)
queue.push(range(20))
run(atos.Queue(1))
driver.fake_endless(3)
interrupt = ffi.callback("int32_t(const atos_sample *)", lambda now: 1)
status, stats = launch(queue, persistent={persistent}, barrier={barrier}, poll_callback=interrupt)
assert status == lib.ATOS_NOT_BEGUN, status
words = ffi.string(lib.atos_message()).decode()
assert "its kernel has not begun, since other launches or processes hold GPU 0" in words, words
atos.zeros(3)
try:
    queue.peek()
except atos.DeviceStuckError as error:
    assert "the launch has not begun" in str(error)
else:
    raise AssertionError
driver.fake_endless(1)
until = time.monotonic() + 30
while True:
    try:
        assert sorted(queue.peek().tolist()) == list(range(20))
        break
    except atos.DeviceStuckError:
        assert time.monotonic() < until, "the kernel has not seen the stop"
        time.sleep(0.01)
driver.fake_endless(0)
assert run(queue) == 20
""")


@pytest.mark.parametrize("barrier", [0, 1])
def test_a_launch_without_items_waits_for_nobody(gpu, barrier):
    """Another process holds the GPU, and the stream waits for it."""
    gpu.run(f"""
queue = atos.Queue(20)
run(queue)
driver.fake_endless(3)
status, stats = launch(queue, persistent=0, barrier={barrier})
check(status)
assert stats.tasks_run == 0
""")


@pytest.mark.parametrize("call", ["make a stream", "allocate pinned"])
def test_an_inbox_that_cannot_be_made_leaves_nothing(gpu, call):
    gpu.run(f"""
inbox = ffi.new("atos_inbox **")
atos.Queue(1)
trace()
driver.fake_refuse_once({call!r}.encode())
assert lib.atos_inbox_create(0, 4, inbox) != lib.ATOS_OK
calls = trace()
assert calls.count("make stream") == calls.count("destroy stream"), calls
assert calls.count("allocate pinned") == calls.count("free pinned"), calls
check(lib.atos_inbox_create(0, 4, inbox))
lib.atos_inbox_destroy(inbox[0])
""")
