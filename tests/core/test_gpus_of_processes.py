"""GPUs of several processes, as far as the host sees them: memory that all of them map, queues in it, and what is kept."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_gpu import FakeGpu

MEET = """
group = atos.distributed.init({rank}, 2, device="cuda:{rank}", job="{job}", timeout=30)

def parts_of(vertices, order="keep"):
    graph = atos.Graph.from_edges(np.arange(vertices - 1), np.arange(1, vertices), num_vertices=vertices, device="cpu")
    return graph.partition(order=order)

def launch(queue, status=0):
    program = ffi.new("atos_program **")
    check(lib.atos_program_load(queue.device.number, ffi.from_buffer(b".entry all(\\0"), b"all", program))
    options = {{"worker": lib.ATOS_CTA, "persistent": 1, "fetch": 1, "threads": 32}}
    found, _, devices = queue._core.form.launch([program[0]], ffi.new("atos_launch *", options))
    lib.atos_program_unload(program[0])
    assert found == status, ffi.string(lib.atos_message())
    return devices
"""


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return FakeGpu(tmp_path_factory.mktemp("driver"))


def run(gpu: FakeGpu, program: str, **settings: int) -> list[str]:
    """Run a program in two processes, with a GPU each; return what they print."""
    job = uuid.uuid4().hex
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: gpu.run(MEET.format(rank=rank, job=job) + program, gpus=2, **settings), range(2)))


def test_each_provides_its_part_and_all_see_the_whole(gpu):
    run(
        gpu,
        """
n = 3 << 20
for order in ("keep", "random"):
    parts = parts_of(n, order)
    trace()
    depth = atos.full(n, 7, dtype=np.uint32, partition=parts)
    calls = trace()
    if order == "keep":
        assert calls.count("map 6 MiB of GPU %d" % group.rank) == calls.count("map 6 MiB of GPU elsewhere") == 1, calls
    copies = atos.full(n, 1.5, partition=parts, placement="mirrored")
    group.barrier()
    if group.rank == 0:
        depth[5], depth[n - 1], copies[3:9] = 1, 2, 4
    group.barrier()
    found = depth.to_numpy()
    assert (found[5], found[n - 1], found.astype(np.int64).sum()) == (1, 2, 7 * (n - 2) + 3)
    assert (copies[3:9] == 4).all() and (copies[9:] == 1.5).all()
    assert str(depth.devices[1]) == "cuda:1" and parts.indptr.device == group.device
    assert parts.indptr.to_numpy()[-1] == parts.num_edges == n - 1
    group.barrier()
    total = atos.distributed.zeros(4)
    if group.rank == 1:
        total[2] = 8
    group.barrier()
    assert total[:].tolist() == [0, 0, 8, 0]
    group.barrier()
""",
    )


def test_memory_is_used_again_when_no_process_has_it_any_more(gpu):
    run(
        gpu,
        """
parts = parts_of(1000)
first = atos.full(1000, 7, partition=parts)
kept = first if group.rank == 0 else None
del first
trace()
second = atos.full(1000, 0, partition=parts)
assert any(call.startswith("map") for call in trace())  # process 0 has the first one
del kept, second
trace()
third, fourth = (atos.full(1000, 0, partition=parts) for _ in range(2))
assert not any(call.startswith("map") for call in trace())
assert (third[:] == 0).all() and (fourth[:] == 0).all()
group.barrier()
if group.rank == 1:
    third[999], fourth[0] = 3, 4
group.barrier()
assert (third[999], third[0], fourth[0], fourth[999]) == (3, 0, 4, 0)
group.barrier()
del third, fourth
gc.collect()
atos.release_memory()
assert trace().count("unmap") == 2  # there is one granule
fifth = atos.full(1000, 0, partition=parts)
assert any(call.startswith("map") for call in trace())
""",
    )


def test_queues_in_cycles_of_garbage(gpu):
    """The collector may take the memory of a queue before the queue."""
    run(
        gpu,
        """
class Cycle:
    pass

parts = parts_of(4000)
for _ in range(5):
    cycle = Cycle()
    cycle.itself, cycle.queue = cycle, atos.Queue(4, owner=parts)
    cycle.queue.push(range(1000))
    del cycle
    gc.collect()
""",
    )


def test_launches(gpu):
    """The kernel of this driver takes what is in the queue of its GPU. What a queue has grown by is mapped by the others."""
    run(
        gpu,
        """
parts = parts_of(4000)
queue = atos.Queue(4, owner=parts)
for waiting in (10, 3000, 10):
    queue.push(range(4000 - waiting, 4000))
    trace()
    ran = [part.tasks_run for part in launch(queue)]
    second = min(waiting, 4000 - parts.ownership.chunk)
    assert ran == [waiting - second, second], ran
    assert len(queue) == 0
if group.rank == 0:
    queue.push([0])
group.close()
launch(queue, lib.ATOS_GONE)
""",
    )


def test_too_little_memory_in_one_process(gpu):
    said = run(
        gpu,
        """
parts = parts_of(1000)
small = atos.full(1000, 7, partition=parts)
del small
try:
    atos.full((1000, 1 << 18), 0, partition=parts)
except atos.DeviceMemoryError as error:
    print(error)
assert (atos.full(1000, 8, partition=parts)[:] == 8).all()
""",
        bytes=128 << 20,
    )
    assert "process 0 cannot map the memory that the processes share: 1048576000 bytes asked for, but GPU 0" in said[0]
    assert "process 0 cannot map the memory that the processes share" in said[1]
