"""What only a GPU can show: BFS on real and large graphs in every configuration, streams, and arrays of other libraries."""

from __future__ import annotations

import functools
import shutil
import subprocess
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from fake_arrays import OnlyDLPack
from item_types import DTYPES
from repository import ROOT
from shared_tasks import (
    assert_each_once,
    copy_element,
    count_item,
    every_schedule,
    forest_on_host,
    grow,
    launch,
    on_device,
    run_through,
)

import atos_py as atos
from atos_py.algorithms import bfs, pagerank
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.errors import InvalidArgumentError, LaunchConfigError

pytestmark = pytest.mark.gpu
SEARCHES = {"New York": 20, "Slashdot": 20, "rmat22": 1, "road4900": 1}  # how often each configuration is run


@pytest.fixture
def say(request):
    """Print past pytest's capturing."""

    def to_terminal(text: str) -> None:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n  {text}", flush=True)

    return to_terminal


class Search(NamedTuple):
    """A graph, where a search begins, and the depths, with a proof."""

    name: str
    graph: atos.Graph
    source: int
    depth: np.ndarray
    queue: atos.Queue
    found: atos.Array


def load(name: str, request: pytest.FixtureRequest) -> tuple[atos.Graph, int]:
    if name == "rmat22":
        graph = atos.generate.rmat(22, 16, 1, device="cuda")
        return graph, int(np.argmax(graph.degrees()))
    if name == "road4900":
        return atos.generate.road(4900, 0.62, 1, device="cuda"), 4900 * 2450 + 2450
    file = {"New York": "USA-road-d.NY.gr.gz", "Slashdot": "soc-Slashdot0902.txt.gz"}[name]
    path = request.getfixturevalue("data_dir") / file
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    graph = atos.Graph.load(path, device="cuda")._replace(weights=None)
    return graph, int(np.argmax(graph.degrees())) if name == "Slashdot" else 0


@pytest.fixture(scope="module", params=SEARCHES)
def search(request) -> Search:
    graph, source = load(request.param, request)
    reference = atos.bfs(graph, source, barrier=True)
    depth = reference.depth.to_numpy()
    bfs.verify(graph, source, depth)  # depths are unique: what equals them is right as well
    reached = np.count_nonzero(depth != bfs.UNREACHED)
    assert reached > {"New York": 264_345, "Slashdot": 10_000, "rmat22": 2_000_000, "road4900": 20_000_000}[request.param]
    found = atos.zeros(graph.num_vertices, dtype=np.uint32, device="cuda")
    return Search(request.param, graph, source, depth, atos.Queue(2 * graph.num_vertices, device="cuda"), found)


def run(search: Search, worker: str, task: atos.Task = bfs.visit, **options: Any) -> atos.LaunchStats:
    search.found[:] = bfs.UNREACHED
    search.found[search.source] = 0
    search.queue.push(search.source)
    stats = launch(search.queue, worker, task, search.graph, search.found, **options)
    wrong = np.flatnonzero(search.found.to_numpy() != search.depth)
    assert not len(wrong), f"{len(wrong)} depths are wrong, such as that of vertex {wrong[0]}"
    assert stats.tasks_run == stats.tasks_pushed + 1
    assert len(search.queue) == 0
    return stats


@pytest.mark.timeout(120)
@every_schedule
@pytest.mark.parametrize("fetch_size", [1, 32, 128])
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_bfs(search, worker, fetch_size, persistent, barrier):
    for _ in range(SEARCHES[search.name]):
        stats = run(search, worker, fetch_size=fetch_size, persistent=persistent, barrier=barrier)
        if barrier:
            reached = np.count_nonzero(search.depth != bfs.UNREACHED)
            levels = int(search.depth[search.depth != bfs.UNREACHED].max()) + 1
            assert (stats.tasks_run, stats.rounds) == (reached, levels)  # each vertex once, level after level


@pytest.mark.timeout(120)
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_bfs_with_parents(search, worker):
    result = atos.bfs(search.graph, search.source, parents=True, worker=worker)
    bfs.verify(search.graph, search.source, result.depth, result.parent)
    several = np.random.default_rng(1).integers(search.graph.num_vertices, size=1000)
    result = atos.bfs(search.graph, several, parents=True, worker=worker)
    bfs.verify(search.graph, several, result.depth, result.parent)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_bfs_that_switches_direction(search, worker):
    graph = search.graph.to_symmetric()
    for source in (search.source, graph.num_vertices // 3):
        result = atos.bfs(graph, source, direction="switch", parents=True, worker=worker)
        bfs.verify(graph, source, result.depth, result.parent)


@pytest.mark.timeout(120)
def test_pagerank_by_default(search):
    graph = search.graph.to_symmetric()
    for dtype in ("f4", "f8"):
        pagerank.verify(graph, atos.pagerank(graph, tolerance=5e-4, dtype=dtype), 5e-4)


@pytest.mark.timeout(120)
def test_bfs_in_words(search, say):
    """The best of a few configurations, printed and not judged: other tests and benchmarks do that."""
    best = min(
        (
            run(search, worker, fetch_size=fetch, num_threads=threads)
            for worker, fetch in (("cta", 128), ("warp", 32))
            for threads in (64, 256)
        ),
        key=lambda stats: stats.milliseconds,
    )
    say(f"BFS on {search.name}: {best}")


def stand_in(worker, v, i, first, next_depth, graph, depth):
    """Stand for the CUDA C++ task: a function of its own, so that the caches tell the two apart, but never compiled."""


@pytest.fixture(scope="module")
def cuda_task(tmp_path_factory) -> atos.Task:
    """The BFS task in CUDA C++; launching it for the first time has to happen within `as_cuda`."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    return atos.Task(stand_in, bfs.degree)


@pytest.fixture(scope="module")
def as_cuda(tmp_path_factory) -> Any:
    """A context in which whatever is compiled becomes the task of tests/core/bfs_task.cu."""
    from atos_py.compile.codegen import target_cuda as cuda

    source = ROOT / "tests" / "core" / "bfs_task.cu"
    target = tmp_path_factory.mktemp("task") / "task.ltoir"
    major, minor = atos.device("cuda").compute_capability
    command = ["nvcc", "-std=c++17", "-O3", "-dlto", "-ltoir", f"-arch=sm_{major}{minor}", str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    code = cuda.CudaCode([target.read_bytes()], 2)
    return lambda: mock.patch.object(cuda, "compile_cuda", return_value=code)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_the_task_in_cuda_gives_the_same_depths(search, cuda_task, as_cuda, worker, say):
    kinds = (describe(search.graph), describe(search.found))
    device = search.graph.device
    with as_cuda():
        kernels = [
            link.cubin(task, None, kinds, np.dtype(np.uint32), worker, device.compute_capability) for task in (cuda_task,)
        ]
        theirs = [run(search, worker, cuda_task).milliseconds for _ in range(5)]
    kernels.append(link.cubin(bfs.visit, None, kinds, np.dtype(np.uint32), worker, device.compute_capability))
    assert kernels[0].code != kernels[1].code
    ours = [run(search, worker).milliseconds for _ in range(5)]
    say(f"BFS on {search.name}, {worker}: Python {min(ours):.3f} ms, CUDA C++ {min(theirs):.3f} ms")


# Long items


@pytest.fixture(scope="module")
def star() -> atos.Graph:
    """Eight hubs, each with an edge to every leaf and to the next hub: 16 million edges, in eight items."""
    hubs, leaves = 8, 2_000_000
    indptr = np.concatenate([np.arange(hubs + 1) * (leaves + 1), np.full(leaves, hubs * (leaves + 1))])
    rows = [np.append(np.arange(hubs, hubs + leaves), (hub + 1) % hubs) for hub in range(hubs)]
    return atos.Graph.from_csr(indptr, np.concatenate(rows).astype(np.uint32), device="cuda")


@pytest.mark.timeout(120)
@every_schedule
@pytest.mark.parametrize("worker", ["warp", "cta"])
def test_long_items_are_shared(star, worker, persistent, barrier):
    expected = np.ones(star.num_vertices, np.uint32)
    expected[:8] = np.arange(8)
    for fetch_size in (1, 128):
        result = atos.bfs(
            star, 0, capacity=20_000_000, worker=worker, persistent=persistent, barrier=barrier, fetch_size=fetch_size
        )
        assert np.array_equal(result.depth.to_numpy(), expected)


@pytest.mark.timeout(120)
@every_schedule
def test_many_long_items_at_once(persistent, barrier):
    """More of them than can be open at a time, begun together, over and over."""
    device = atos.device("cuda")
    roots = 150
    lengths = np.random.default_rng(1).integers(4000, 12_000, roots)
    first = np.concatenate([[0], np.cumsum(lengths)]) + roots
    level = np.concatenate([np.zeros(roots), np.ones(lengths.sum())]).astype(np.int32)
    host = forest_on_host(1)._replace(
        first=np.concatenate([first, np.full(lengths.sum(), first[-1])]),
        level=level,
        of_level=np.bincount(level).astype(np.int32),
    )
    queue = atos.Queue(len(level), device=device)
    for worker, num_threads in (("warp", 32), ("warp", 256), ("cta", 32), ("cta", 256), ("cta", 512)):
        for _ in range(5):
            there, counts = on_device(host, device)
            queue.push(np.arange(roots))
            launch(
                queue,
                worker,
                grow,
                there,
                counts,
                persistent=persistent,
                barrier=barrier,
                num_threads=num_threads,
                fetch_size=16,
            )
            assert_each_once(counts.seen.to_numpy())
            assert counts.early[0] == 0 or not barrier


@pytest.mark.timeout(120)
@every_schedule
@pytest.mark.parametrize("dtype", ["uint32", "int64", "16 bytes"])
def test_large_random_trees_through_small_queues(worker, persistent, barrier, dtype):
    device = atos.device("cuda")
    forest = forest_on_host(100_000, 1, most=3, seed=5)
    filled = 0
    for capacity in (64, 5000):
        queue = atos.Queue(capacity, max_capacity=capacity, dtype=DTYPES[dtype], device=device)
        filled += run_through(queue, worker, forest, device, persistent=persistent, barrier=barrier)
    assert filled > 0  # the small one did: in the other, workers may keep what they push


# Configurations


@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_more_blocks_than_can_be_resident_are_refused(worker):
    counts = atos.zeros(3, dtype=np.int64, device="cuda")
    queue = atos.Queue(10, device="cuda")
    queue.push([1, 2])
    resident = launch(queue, worker, count_item, counts).num_blocks
    assert resident >= atos.device("cuda").processors
    queue.push([1, 2])
    message = rf"{resident + 1} blocks of 256 threads asked for, but only {resident} are resident"
    for barrier in (False, True):
        with pytest.raises(LaunchConfigError, match=message):
            launch(queue, worker, count_item, counts, num_blocks=resident + 1, barrier=barrier)
    assert queue.peek().tolist() == [1, 2]
    assert launch(queue, worker, count_item, counts, num_blocks=resident).tasks_run == 2
    queue.push([1, 2])
    assert launch(queue, worker, count_item, counts, num_blocks=resident + 1, persistent=False).tasks_run == 2


def test_more_shared_memory_than_there_is_is_refused():
    counts = atos.zeros(3, dtype=np.int64, device="cuda")
    queue = atos.Queue(10, device="cuda")
    queue.push([1, 2])
    with pytest.raises(LaunchConfigError, match=r"needs \d+ bytes of shared memory, more than the \d+ that this GPU has"):
        queue.launch_thread(count_item, counts, shared_memory=4096, num_threads=1024)
    with pytest.raises(LaunchConfigError, match="shared memory"):
        queue.launch_cta(count_item, counts, shared_memory=1 << 20)
    assert queue.launch_cta(count_item, counts, shared_memory=100_000).tasks_run == 2
    assert queue.peek().tolist() == []


def test_blocks_of_1024_threads(worker):
    """A block of the largest size starts, whatever registers the task would like."""
    forest = forest_on_host(3000, 3)
    there, counts = on_device(forest, atos.device("cuda"))
    queue = atos.Queue(4000, device="cuda")
    queue.push([0, 1, 2])
    assert launch(queue, worker, grow, there, counts, num_threads=1024).num_threads == 1024
    assert_each_once(counts.seen.to_numpy())


def streams() -> list[Any]:
    result = []
    try:
        import cupy

        result += [
            pytest.param(functools.partial(cupy.cuda.Stream, non_blocking=flag), id=f"CuPy, non_blocking={flag}")
            for flag in (True, False)
        ]
    except ImportError:
        result.append(pytest.param(None, id="CuPy", marks=pytest.mark.skip(reason="CuPy is not installed")))
    return result


@every_schedule
@pytest.mark.parametrize("make", streams())
def test_a_launch_runs_in_the_order_of_its_stream(make, worker, persistent, barrier):
    import cupy

    stream = make()
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long end = clock64() + n; while (clock64() < end); }', "spin"
    )
    n = 1000
    for _ in range(3):
        with stream:
            source, target = cupy.zeros(n, dtype=cupy.int64), cupy.zeros(n, dtype=cupy.int64)
        queue = atos.Queue(n, device="cuda")
        queue.push(np.arange(n))
        stream.synchronize()
        there = [atos.asarray(array) for array in (source, target)]
        with stream:
            spin((1,), (1,), (100_000_000,))  # some 50 ms
            source += 7
        launch(queue, worker, copy_element, *there, stream=stream, persistent=persistent, barrier=barrier)
        # It has ended, for every stream and for the host.
        assert there[1].to_numpy().tolist() == [8] * n
        with stream:
            target *= 2
        assert target.get(stream=stream).tolist() == [16] * n


def test_ways_to_name_a_stream():
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, stream.ptr)

    names: list[Any] = [None, 0, stream, stream.ptr, Protocol()]
    try:
        import torch

        names += [torch.cuda.Stream(), torch.cuda.current_stream()]
    except ImportError:
        pass
    from numba import cuda

    names.append(cuda.external_stream(stream.ptr))
    source, target = (atos.full(5, value, dtype=np.int64, device="cuda") for value in (3, 0))
    queue = atos.Queue(5, device="cuda")
    for name in names:
        target[:] = 0
        queue.push(range(5))
        queue.launch_warp(copy_element, source, target, stream=name)
        assert target.to_numpy().tolist() == [4] * 5
    with pytest.raises(TypeError, match="stream must be an address or a stream"):
        queue.launch_warp(copy_element, source, target, stream="fast")


@pytest.fixture(params=["cupy", "torch", "dlpack of cupy", "dlpack of torch"])
def others(request) -> Any:
    """A function that makes a GPU array of another library from a NumPy array, and one that makes it NumPy's again."""
    library = pytest.importorskip(request.param.split()[-1])
    if library.__name__ == "cupy":
        make, back = library.asarray, library.asnumpy
    else:
        make, back = (lambda values: library.as_tensor(values, device="cuda")), (lambda array: array.cpu().numpy())
    if request.param.startswith("dlpack"):
        return (lambda values: OnlyDLPack(make(values))), (lambda wrapped: back(wrapped.array))
    return make, back


def test_arrays_of_others_are_arguments(others, worker):
    make, back = others
    source, target = make(np.arange(100, dtype=np.int64)), make(np.zeros(100, np.int64))
    queue = atos.Queue(100, device="cuda")
    queue.push(np.arange(100))
    launch(queue, worker, copy_element, source, target)
    assert back(target).tolist() == list(range(1, 101))
    array = atos.asarray(target)
    assert array.device == atos.device("cuda")
    array[3] = 77
    assert back(target)[3] == 77  # the same memory


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float32", "float64"])
def test_types_of_others(others, dtype):
    make, _ = others
    values = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    array = atos.asarray(make(values))
    assert (array.shape, array.dtype) == ((2, 3), np.dtype(dtype))
    assert array.to_numpy().tolist() == values.tolist()


def test_arrays_of_others_have_to_be_contiguous(others):
    make, _ = others
    array = make(np.zeros((4, 6), np.int64))
    part = OnlyDLPack(array.array[:, ::2]) if isinstance(array, OnlyDLPack) else array[:, ::2]
    with pytest.raises(InvalidArgumentError, match="make it C-contiguous first"):
        atos.asarray(part)
    queue = atos.Queue(4, device="cuda")
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        queue.launch_cta(copy_element, part, part)


def test_our_arrays_in_other_libraries():
    array = atos.full(10, 5, dtype=np.int32, device="cuda")
    try:
        import cupy
    except ImportError:
        pytest.skip("CuPy is not installed")
    view = cupy.asarray(array)
    assert view.data.ptr == array.pointer
    view += 1
    cupy.cuda.get_current_stream().synchronize()
    assert array.to_numpy().tolist() == [6] * 10
    del array
    assert cupy.asnumpy(view).tolist() == [6] * 10  # it keeps the memory
    torch = pytest.importorskip("torch")
    again = atos.full((2, 3), 1.5, dtype=np.float32, device="cuda")
    tensor = torch.as_tensor(again, device="cuda")
    assert tensor.data_ptr() == again.pointer
    tensor[0, 1] = 4
    torch.cuda.synchronize()
    assert again.to_numpy().tolist() == [[1.5, 4.0, 1.5], [1.5] * 3]
    assert cupy.asarray(atos.zeros((0, 3), device="cuda")).shape == (0, 3)


def test_what_others_still_write_is_waited_for():
    """An array whose producer is busy on a stream that blocks with the default one."""
    cupy = pytest.importorskip("cupy")
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long end = clock64() + n; while (clock64() < end); }', "spin"
    )
    for stream in (cupy.cuda.Stream(), cupy.cuda.Stream.null):
        with stream:
            values = cupy.zeros(10, dtype=cupy.int64)
            spin((1,), (1,), (100_000_000,))
            values += 3
            assert atos.asarray(values).to_numpy().tolist() == [3] * 10
