"""BFS and PageRank on real and large graphs, in every configuration, and the BFS task in CUDA C++. Needs a GPU."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from repository import ROOT
from shared_tasks import every_schedule, launch

import atos_py as atos
from atos_py.algorithms import bfs
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec

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
    atos.verify_bfs(graph, source, depth)  # depths are unique: what equals them is right as well
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
    atos.verify_bfs(search.graph, search.source, result.depth, result.parent)
    several = np.random.default_rng(1).integers(search.graph.num_vertices, size=1000)
    result = atos.bfs(search.graph, several, parents=True, worker=worker)
    atos.verify_bfs(search.graph, several, result.depth, result.parent)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("worker", ["thread", "warp", "cta"])
def test_bfs_that_switches_direction(search, worker):
    graph = search.graph.to_symmetric()
    for source in (search.source, graph.num_vertices // 3):
        result = atos.bfs(graph, source, direction="auto", parents=True, worker=worker)
        atos.verify_bfs(graph, source, result.depth, result.parent)


@pytest.mark.timeout(120)
def test_pagerank_by_default(search):
    graph = search.graph.to_symmetric()
    for dtype in ("f4", "f8"):
        atos.verify_pagerank(graph, atos.pagerank(graph, tolerance=5e-4, dtype=dtype), 5e-4)


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
            link.cubin(ProgramSpec(task, None, kinds, np.dtype(np.uint32), worker), device.compute_capability)
            for task in (cuda_task,)
        ]
        theirs = [run(search, worker, cuda_task).milliseconds for _ in range(5)]
    kernels.append(link.cubin(ProgramSpec(bfs.visit, None, kinds, np.dtype(np.uint32), worker), device.compute_capability))
    assert kernels[0].code != kernels[1].code
    ours = [run(search, worker).milliseconds for _ in range(5)]
    say(f"BFS on {search.name}, {worker}: Python {min(ours):.3f} ms, CUDA C++ {min(theirs):.3f} ms")
