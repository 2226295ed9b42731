"""One of several processes that exchange messages, as on hosts of their own: `mpiexec -n 3 python host_member.py CASE`.

A check that fails ends the job.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.core.host_group import current_hosts
from atos_py.distributed import engines
from atos_py.errors import (
    DistributedError,
    InvalidArgumentError,
    LaunchConfigError,
    TaskCompileError,
    UnsupportedTypeError,
)

ENGINE = os.environ.get("ENGINE", "mpi")
DEVICE = f"cuda:{os.environ['LOCAL_RANK']}" if "ATOS_TEST_ON_GPUS" in os.environ else "cpu"
engines._LONG = int(os.environ.get("ATOS_TEST_LONG_MESSAGE", engines._LONG))
if "ATOS_TEST_NCCL_ON_CPU" in os.environ:
    from nccl_on_cpu import OnCPU

    engines._NCCL = OnCPU  # type: ignore[misc]


def degree(v, parts, *rest):
    return parts.indptr[v + 1] - parts.indptr[v]


@atos.task(workload=degree)
def visit(worker, v, i, parts, depth):
    worker.push_min(depth, parts.indices[parts.indptr[v] + i], depth[v] + 1)


@atos.task(workload=degree)
def count_edges_to(worker, v, i, parts, counts):
    atos.accumulate(counts, parts.indices[parts.indptr[v] + i], 1)


@atos.task
def fail_at_3(worker, v, depth):
    assert v != 3


@atos.task
def by_atomic_min(worker, v, depth):
    if atos.atomic_min(depth, v, 0) > 0:
        worker.push(v)


@atos.task
def push_next(worker, v, depth):
    worker.push(v + 1)


@atos.task
def store_next(worker, v, depth):
    depth[(v + 1) % depth.size] = 3


def raises(kind: type[BaseException], text: str, call: Any, *args: Any, **options: Any) -> None:
    """Check that a call raises an error that says something."""
    with pytest.raises(kind) as error:
        call(*args, **options)
    assert text in str(error.value), error.value


def random_graph(seed: int) -> atos.Graph:
    """Return a graph that all processes make alike."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    ends = rng.integers(0, n, (2, int(rng.integers(0, 4 * n))))
    weights = [None, rng.integers(0, 9, ends.shape[1]), rng.random(ends.shape[1], np.float32)][seed % 3]
    return atos.Graph.from_edges(*ends, weights, n, symmetrize=seed % 4 > 0, device="cpu")


def algorithms(hosts: atos.distributed.HostGroup) -> None:
    """Every algorithm, on random graphs, is verified by each process."""
    for seed in range(int(os.environ.get("CASES", "24"))):
        graph = random_graph(seed)
        parts = graph.to(DEVICE).partition(order=["keep", "random"][seed % 2])
        assert (parts.num_vertices, parts.num_edges) == (graph.num_vertices, graph.num_edges)
        assert hosts.messages.total(np.array([parts.indices.size]))[0] == graph.num_edges
        sources = [0, graph.num_vertices // 2]
        found = atos.bfs(parts, sources)
        atos.verify_bfs(graph, sources, found.depth.to_numpy())
        assert len(found.stats.devices) == hosts.world_size
        assert sum(each.tasks_run for each in found.stats.devices) == found.stats.tasks_run
        paths = atos.sssp(parts, sources)
        atos.verify_sssp(graph, sources, paths.distance.to_numpy())
        assert paths.distance.dtype == atos.sssp(graph, sources).distance.dtype
        if not graph.is_symmetric():
            for call in (atos.connected_components, atos.pagerank):
                raises(InvalidArgumentError, "to_symmetric()", call, parts)
            continue
        joined = atos.connected_components(parts)
        atos.verify_connected_components(graph, joined.label.to_numpy(), joined.num_components)
        ranks = atos.pagerank(parts, tolerance=1e-4, dtype=np.float64)
        assert ranks.error_bound <= 1e-4
        atos.verify_pagerank(graph.with_weights(None), ranks.rank.to_numpy(), 1e-4)
        finest = (1 + 1e-9) * 1.85 / 0.15 * 2.0**-53 * 1e3  # so near rounding that rounds may not get there: then it is told
        with contextlib.suppress(InvalidArgumentError):
            assert atos.pagerank(parts, tolerance=finest, dtype=np.float64).error_bound <= finest


def tasks(hosts: atos.distributed.HostGroup) -> None:
    """Tasks of a user: push_min and accumulate travel."""
    graph = atos.generate.rmat(11, device="cpu")
    source = int(np.argmax(graph.degrees()))
    for order in ("keep", "random"):
        parts = graph.to(DEVICE).partition(order=order)
        depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32, partition=parts)
        depth[source] = 0
        queue = atos.Queue(capacity=100, owner=parts)
        queue.push(source)
        assert hosts.messages.total(np.array([len(queue)]))[0] == 1
        stats = queue.launch_cta(visit, parts, depth)
        assert len(queue) == 0
        assert stats.rounds > (hosts.world_size > 1)
        found = depth.to_numpy()
        atos.verify_bfs(graph, source, found)
        numbers = np.arange(graph.num_vertices) if parts.places.ownership.numbers is None else parts.places.ownership.numbers
        own = parts.places.own
        for v in range(0, graph.num_vertices, 97):
            if own.start <= numbers[v] < own.stop:
                assert depth[v] == found[v]
            else:
                raises(InvalidArgumentError, f"vertex {v} is on host", depth.__getitem__, v)
        counts = atos.full(graph.num_vertices, 5, dtype=np.int64, partition=parts, combine="sum")
        queue.push(range(graph.num_vertices))
        items = queue.peek()
        assert np.array_equal(np.sort(numbers[items]), np.arange(own.start, own.stop))
        queue.launch_warp(count_edges_to, parts, counts)
        assert np.array_equal(counts.to_numpy(), 5 + np.bincount(np.asarray(graph.indices), minlength=graph.num_vertices))


def refusals(hosts: atos.distributed.HostGroup) -> None:
    """What cannot be done is refused on every host, and none waits."""
    graph = atos.generate.road(6, 1.0, device="cpu")
    parts = graph.to(DEVICE).partition()
    depth = atos.full(36, 9, dtype=np.int32, partition=parts)
    queue = atos.Queue(100, owner=parts)
    queue.push(range(36))
    raises(LaunchConfigError, "barrier=", queue.launch_cta, visit, parts, depth, barrier=True)
    raises(InvalidArgumentError, "placement=", atos.full, parts.num_vertices, 0, partition=parts, placement="mirrored")
    raises(LaunchConfigError, "no start()", queue.start, visit, parts, depth)
    raises(LaunchConfigError, "has no buckets=", atos.Queue, 10, owner=parts, buckets=4)
    word = "worker.push_min, which is sent to them after the launch"
    raises(TaskCompileError, word, queue.launch_cta, by_atomic_min, depth)
    raises(TaskCompileError, "worker.push is used over several hosts", queue.launch_cta, push_next, depth)
    if hosts.world_size > 1:  # each has a vertex before one of the next host
        text = "is another host's: tasks store to elements of their own"
        raises(atos.TaskError, text, queue.launch_cta, store_next, depth, debug=True)
    queue.clear()
    queue.push(range(36))
    raises(LaunchConfigError, "over several hosts has no parents yet", atos.bfs, parts, 0, parents=True)
    raises(LaunchConfigError, "over several hosts has no cutoff yet", atos.sssp, parts, 0, cutoff=3)
    raises(InvalidArgumentError, "is for a queue with owner=", one_device().launch_cta, visit, graph, depth)
    raises(InvalidArgumentError, "for each of its 36 vertices", atos.full, 35, 1, partition=parts)
    raises(InvalidArgumentError, "combine must be min or sum", atos.full, 36, 1, partition=parts, combine="max")
    raises(UnsupportedTypeError, "is indexed by a vertex", depth.__getitem__, "a")
    raises(InvalidArgumentError, "there is no vertex 36", depth.__getitem__, 36)
    raises(DistributedError, "no memory in common", atos.distributed.zeros, 3)
    raises(InvalidArgumentError, "met others already", atos.distributed.init, engine=ENGINE)
    different = atos.generate.road(5 + hosts.rank, 1.0, device="cpu")
    raises(DistributedError, "all processes make the same calls", different.partition)
    different_order = hosts.barrier if hosts.rank else lambda: queue.launch_cta(visit, parts, depth)
    raises(DistributedError, "all processes make the same calls", different_order)
    # A check that fails on the host of vertex 3 gives all of them an error.
    own = hosts.rank == 0
    kind, text = (atos.TaskError, "fail_at_3") if own else (DistributedError, "has failed on another host")
    raises(kind, text, queue.launch_cta, fail_at_3, depth, debug=True)
    queue.clear()
    queue.push(0)
    depth[:] = 9
    depth[0] = 0
    queue.launch_cta(visit, parts, depth)  # they go on together
    hosts.barrier()


@atos.task
def stop_at_first(worker, v, depth):
    """Stop on the first host; lower a vertex of the next one on all others."""
    if v == 0:
        worker.stop()
    else:
        worker.push_min(depth, (v + 1) % depth.size, 1)


def stops(hosts: atos.distributed.HostGroup) -> None:
    """A full queue of one host does not keep the others waiting, and nothing is lost; a stop is one of all."""
    leaves = 100 * hosts.world_size
    star = atos.Graph.from_edges(np.zeros(leaves, np.int64), np.arange(1, leaves + 1), num_vertices=leaves + 1, device="cpu")
    parts = star.to(DEVICE).partition()
    depth = atos.full(leaves + 1, atos.UNREACHED, dtype=np.uint32, partition=parts)
    depth[0] = 0
    queue = atos.Queue(2, max_capacity=1000 if hosts.rank == 0 else 4, owner=parts)
    queue.push(0)
    queue.launch_thread(visit, parts, depth)  # all leaves come to a queue at once
    assert len(queue) == 0
    atos.verify_bfs(star, 0, depth.to_numpy())
    size = hosts.world_size
    parts = atos.Graph.from_edges([0], [1], num_vertices=size, device=DEVICE).partition()
    depth, queue = atos.full(size, 9, dtype=np.int32, partition=parts), atos.Queue(10, owner=parts)
    queue.push(range(size))
    assert queue.launch_thread(stop_at_first, depth).stopped
    assert depth.to_numpy().tolist() == [1 if v != 1 else 9 for v in range(size)]
    assert list(queue.peek()) == ([hosts.rank] if hosts.rank != 1 else [])  # for the next launch


def one_device() -> atos.Queue:
    """Return a queue of one device, with an item."""
    queue = atos.Queue(10, device="cpu")
    queue.push(0)
    return queue


def killed(hosts: atos.distributed.HostGroup) -> None:
    """The last process dies; the others get an error, of the engine or of this package, and do not wait."""
    parts = atos.generate.road(6, 1.0, device="cpu").to(DEVICE).partition()
    depth = atos.full(36, 9, dtype=np.int32, partition=parts)
    hosts.barrier()
    if hosts.rank == hosts.world_size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    queue = atos.Queue(100, owner=parts)
    queue.push(0)
    try:
        queue.launch_cta(visit, parts, depth)
    except DistributedError:
        print("told", flush=True)
        os._exit(0)
    raise AssertionError("a launch went on without a process")


def killed_in_a_message(hosts: atos.distributed.HostGroup) -> None:
    """The last process dies when the others have begun a message of NCCL; they get an error."""
    engine: Any = hosts.messages.engine
    if hosts.rank == hosts.world_size - 1:
        finish = engine._finish
        engine._finish = lambda prepare: finish(lambda: (None, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    raises(DistributedError, "start them again", hosts.messages.exchange, [np.arange(1000)] * hosts.world_size)
    print("told", flush=True)
    sys.exit()  # in order, with the GPU free again


def _fail() -> Any:
    raise RuntimeError("out of memory")


def failed_before_a_message(hosts: atos.distributed.HostGroup) -> None:
    """The last process has an error of its own before a message of NCCL, which the others do not begin; all get an error."""
    _fails(hosts, _fail)


def failed_in_a_message(hosts: atos.distributed.HostGroup) -> None:
    """The last process has an error of its own when the others have begun a message of NCCL; all get an error."""
    _fails(hosts, lambda: (None, _fail))


def _fails(hosts: atos.distributed.HostGroup, prepare: Any) -> None:
    engine: Any = hosts.messages.engine
    # In a message the others hear of it from this package, or NCCL sees before that that its connection is gone.
    text = "NCCL has failed in another process|could not exchange messages: NCCL Error"
    if hosts.rank == hosts.world_size - 1:
        finish, text = engine._finish, "out of memory"
        engine._finish = lambda _: finish(prepare)
    with pytest.raises(DistributedError, match=text):
        hosts.messages.exchange([np.arange(1000)] * hosts.world_size)
    print("told", flush=True)
    sys.exit()


if __name__ == "__main__":
    with atos.distributed.init(engine=ENGINE) as members:
        for case in sys.argv[1:]:
            try:
                globals()[case](members)
            except SystemExit:
                raise
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            members.barrier()
    assert current_hosts() is None
