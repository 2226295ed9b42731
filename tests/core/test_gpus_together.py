"""Several GPUs of one launch, as far as the host sees them: memory that they share, the way between them, and their queues."""

from __future__ import annotations

import pytest
from fake_gpu import FakeGpu

PARTS = """
from atos_py.runtime.peer_queues import PeerForm

def parts_of(vertices, devices):
    graph = atos.Graph.from_edges(np.arange(vertices - 1), np.arange(1, vertices), num_vertices=vertices, device="cpu")
    return graph.partition(devices)

def launch(queue):
    programs = []
    for device in queue.devices:
        program = ffi.new("atos_program **")
        check(lib.atos_program_load(device.number, ffi.from_buffer(b".entry all(\\0"), b"all", program))
        programs.append(ffi.gc(program[0], lib.atos_program_unload))
    options = {"worker": lib.ATOS_CTA, "persistent": 1, "fetch": 1, "threads": 32}
    return queue._core.form.launch(programs, ffi.new("atos_launch *", options))
"""


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return FakeGpu(tmp_path_factory.mktemp("driver"))


def test_memory_lies_where_its_owner_is(gpu):
    gpu.run(
        PARTS
        + """
n = 3 << 20
trace()
parts = parts_of(n, ["cuda:0", "cuda:1"])
calls = trace()
assert "GPU 1 reaches the pool of GPU 0" in calls and "GPU 0 reaches the pool of GPU 1" in calls
depth = atos.full(n, 7, dtype=np.uint32, partition=parts)
calls = trace()
assert [call for call in calls if "map" in call] == ["map 6 MiB of GPU 0", "map 6 MiB of GPU 1"], calls
assert "access for 2" in calls
values = np.arange(n, dtype=np.uint32)
depth[:] = values
assert (depth.to_numpy() == values).all() and depth[n // 2 - 1] == n // 2 - 1 and depth[n // 2 - 3: n // 2 + 3].tolist() == \
    list(range(n // 2 - 3, n // 2 + 3))
depth.fill(9)
assert (depth.to_numpy() == 9).all()
assert np.asarray(parts.indptr).tolist() == [*range(n), n - 1] and np.asarray(parts.indices)[-1] == n - 1
assert atos.full((5, 3), 1, dtype=np.int8, partition=parts_of(5, ["cuda:1", "cuda:0"])).to_numpy().sum() == 15
trace()
place = depth.pointer
del depth
calls = trace()
assert "unmap" not in calls and calls.count("synchronize") == 2, calls
again = atos.full(n, 3, dtype=np.uint32, partition=parts)  # in the range that was kept
assert again.pointer == place and (again.to_numpy() == 3).all()
assert not [call for call in trace() if "map" in call]
del again
other = atos.full((n, 2), 0, dtype=np.uint8, partition=parts)  # with other borders
assert other.pointer != place and not other.to_numpy().any()
trace()
atos.release_memory()
calls = trace()
assert calls.count("unmap") >= 2 and "free addresses" in calls, calls
assert not other.to_numpy().any()  # which is in use
""",
        gpus=2,
    )


def test_a_launch_over_two(gpu):
    gpu.run(
        PARTS
        + """
parts = parts_of(100, ["cuda:0", "cuda:1"])
queue = atos.Queue(1000, owner=parts)
queue.push(range(100))
for turn in range(3):
    trace()
    status, stats, devices = launch(queue)
    assert status == 0, ffi.string(lib.atos_message())
    assert [each.tasks_run for each in devices] == [50, 50], devices
    assert [call for call in trace() if "launch" in call] == ["launch all"] * 2
    assert len(queue) == 0
    queue.push(range(100))
assert [str(device) for device in queue.devices] == ["cuda:0", "cuda:1"]
""",
        gpus=2,
    )


def test_one_gpu_as_several_devices(gpu):
    """Which share its blocks."""
    gpu.run(
        PARTS
        + """
queue = atos.Queue(1000, owner=parts_of(100, ["cuda:0"] * 4))
queue.push(range(10, 60))
status, stats, devices = launch(queue)
assert status == 0, ffi.string(lib.atos_message())
assert [each.tasks_run for each in devices] == [15, 25, 10, 0], devices
assert [each.num_workers for each in devices] == [2 * 65536 // 4] * 4, devices
queue = atos.Queue(1000, owner=parts_of(100, ["cuda:0"] * 5))
status, stats, devices = launch(queue)
assert status == lib.ATOS_INVALID and b"at most 4 devices" in ffi.string(lib.atos_message())
"""
    )


def test_gpus_without_a_link_are_refused(gpu):
    gpu.run(
        PARTS
        + """
try:
    parts_of(10, ["cuda:0", "cuda:1"])
except atos.InvalidArgumentError as error:
    assert "GPU 1 cannot reach the memory of GPU 0" in str(error), error
else:
    raise AssertionError
parts_of(10, ["cuda:1"])
try:
    parts_of(10, ["cuda:0", "cpu"])
except atos.InvalidArgumentError as error:
    assert "all GPUs or all CPU devices" in str(error), error
else:
    raise AssertionError
""",
        gpus=2,
        linked=0,
    )


def test_too_little_memory_on_one_leaves_nothing(gpu):
    gpu.run(
        PARTS
        + """
parts = parts_of(100 << 10, ["cuda:0", "cuda:1"])
trace()
try:
    atos.full((100 << 10, 700), 0, dtype=np.float64, partition=parts)
except atos.DeviceMemoryError as error:
    assert "GPU 0 has less free" in str(error), error
else:
    raise AssertionError
assert "free addresses" in trace()
assert atos.full(100 << 10, 1, dtype=np.int8, partition=parts).to_numpy().sum() == 100 << 10
""",
        gpus=2,
        bytes=256 << 20,
    )
