"""Too little memory on the host is one error of this package, wherever it is found."""

from __future__ import annotations

import errno
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse

import atos_py as atos
from atos_py import Array, BFSResult, DeviceMemoryError, Graph, Queue
from atos_py.compile import host_kernels as parallel
from atos_py.core.process_group import set_group
from atos_py.graph import generate
from atos_py.support.host_memory import host_memory_for

PACKAGE = Path(atos.__file__).parent
CPU = "cpu"
EDGES = ([0, 1, 2, 3], [1, 2, 3, 0])

GRAPH = Graph.from_edges(*EDGES, [1, 2, 3, 4], device=CPU, symmetrize=True)
ARRAY = atos.asarray([1, 2, 3], device=CPU)


@atos.task
def touch(worker, v, values):
    values[0] = v


def queue() -> Queue:
    made = Queue(8, device=CPU)
    made.push([0, 1])
    return made


def edited() -> atos.DynamicGraph:
    graph = atos.DynamicGraph(GRAPH)
    graph.insert_edges([0], [2], [5])
    return graph


def written(what: Any, path: Path) -> Path:
    what.save(path)
    return path


# What is called, after a preparation in a folder.
PAIRS = Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1], device=CPU)
SIMILAR, COLUMN, LABELS = np.ones((4, 1)), np.array([[1.0], [0.0], [0.0]]), [0, -1, 1]
POTENTIALS = np.zeros((3, 2)), np.eye(2)
RATINGS = [0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0]


def partition_of_processes(_: Any) -> None:
    """Make parts, an array over them and a queue, as the only process of a group."""
    with atos.distributed.init(0, 1):
        parts = GRAPH.partition(order="random")
        atos.full((4, 2), 3, partition=parts).fill(2)
        atos.Queue(10, owner=parts).push([0])


ENTRIES: dict[str, tuple[Callable[[Path], Any], Callable[[Any], Any]]] = {
    "Graph.load": (lambda folder: written(GRAPH, folder / "a.npz"), lambda path: Graph.load(path, device=CPU)),
    "Graph.load, text": (
        lambda folder: [(folder / "a.txt").write_text("0 1 5\n"), folder / "a.txt"][1],
        lambda path: Graph.load(path, device=CPU),
    ),
    "Graph.load, renumbered": (
        lambda folder: [(folder / "a.txt").write_text("7 9 {'weight': 2}\n"), folder / "a.txt"][1],
        lambda path: Graph.load(path, device=CPU, renumber=True),
    ),
    "Graph.vertex_of": (
        lambda folder: [(folder / "a.txt").write_text("7 9\n"), Graph.load(folder / "a.txt", device=CPU, renumber=True)][1],
        lambda graph: graph.vertex_of(9),
    ),
    "Graph.load, in parts": (
        lambda folder: written(GRAPH, folder / "a.npz"),
        lambda path: Graph.load(path, devices=["cpu", "cpu:1"], order="random"),
    ),
    "Graph.from_csr": (lambda _: None, lambda _: Graph.from_csr([0, 1, 1], [1], device=CPU)),
    "Graph.from_edges": (lambda _: None, lambda _: Graph.from_edges(*EDGES, device=CPU)),
    "Graph.from_edge_index": (lambda _: None, lambda _: Graph.from_edge_index(EDGES, device=CPU)),
    "Graph.from_scipy": (lambda _: scipy.sparse.eye_array(4), lambda matrix: Graph.from_scipy(matrix, device=CPU)),
    "Graph.from_networkx": (lambda _: networkx.path_graph(4), lambda graph: Graph.from_networkx(graph, device=CPU)),
    "Graph.degrees": (lambda _: None, lambda _: GRAPH.degrees()),
    "Graph.is_symmetric": (lambda _: GRAPH.simplify(sort=True), lambda graph: graph.is_symmetric()),
    "Graph.to": (lambda _: None, lambda _: GRAPH.to(CPU)),
    "Graph.to_scipy": (lambda _: None, lambda _: GRAPH.to_scipy()),
    "Graph.simplify": (lambda _: None, lambda _: GRAPH.simplify(deduplicate=True)),
    "Graph.to_symmetric": (lambda _: Graph.from_edges(*EDGES, device=CPU), lambda graph: graph.to_symmetric()),
    "Graph.transpose": (
        lambda _: GRAPH.simplify(sort=True),
        lambda graph: [graph.transpose(return_edges=True), graph.transpose().transpose(return_edges=True)],
    ),
    "Graph.reverse_edges": (lambda _: GRAPH.simplify(sort=True), lambda graph: graph.reverse_edges()),
    "Graph.with_weights": (lambda _: None, lambda _: GRAPH.with_weights(np.arange(8))),
    "Graph.with_edge_arrays": (lambda _: None, lambda _: GRAPH.with_edge_arrays(a=np.arange(8)).simplify(sort=True)),
    "Graph.subgraph": (lambda _: None, lambda _: GRAPH.subgraph([0, 2])),
    "Graph.largest_component": (lambda _: None, lambda _: GRAPH.largest_component()),
    "Graph.reorder": (lambda _: None, lambda _: [GRAPH.reorder("rcm"), GRAPH.reorder("random")]),
    "distributed.init": (lambda _: set_group(None), lambda _: atos.distributed.init(0, 1).close()),
    "Graph.partition, of processes": (lambda _: set_group(None), partition_of_processes),
    "Graph.partition": (lambda _: None, lambda _: GRAPH.partition(["cpu", "cpu:1"], order="random")),
    "DynamicGraph": (lambda _: None, lambda _: atos.DynamicGraph(GRAPH)),
    "DynamicGraph.insert_edges": (lambda _: atos.DynamicGraph(4, device=CPU), lambda graph: graph.insert_edges([0], [1])),
    "DynamicGraph.delete_edges": (lambda _: atos.DynamicGraph(GRAPH), lambda graph: graph.delete_edges([0], [1])),
    "DynamicGraph.degrees": (lambda _: atos.DynamicGraph(GRAPH), lambda graph: graph.degrees()),
    "DynamicGraph.to_graph": (lambda _: edited(), lambda graph: graph.to_graph()),
    "DynamicComponents": (lambda _: edited(), atos.DynamicComponents),
    "DynamicBFS": (lambda _: edited(), lambda graph: atos.DynamicBFS(graph, 0)),
    "Graph.save": (lambda folder: folder / "b.npz", lambda path: GRAPH.save(path)),
    "rmat": (lambda _: None, lambda _: generate.rmat(4, device=CPU)),
    "rmat, in parts": (lambda _: None, lambda _: generate.rmat(4, devices=["cpu", "cpu:1"], order="random")),
    "road": (lambda _: None, lambda _: generate.road(4, device=CPU)),
    **{
        f"generate.{name}": (lambda _: None, lambda _, name=name, args=args: getattr(generate, name)(*args))
        for name, args in {
            "barabasi_albert": (9, 2),
            "bipartite": (4, 5, 6),
            "grid2d": (2, 3),
            "grid3d": (2, 3, 4),
            "kronecker": ([[1, 2], [3, 4]], 4),
            "random_weights": (GRAPH, 1, 5),
            "sample_edges": (GRAPH, 0.5),
            "small_world": (9, 2, 0.5),
            "uniform": (9, 5),
        }.items()
    },
    "zeros": (lambda _: None, lambda _: atos.zeros(8, device=CPU)),
    "empty": (lambda _: None, lambda _: atos.empty(8, device=CPU)),
    "full": (lambda _: None, lambda _: atos.full(8, 3, device=CPU)),
    "full, over parts": (
        lambda _: GRAPH.partition(["cpu", "cpu:1"], order="random"),
        lambda parts: atos.full((4, 2), 3, partition=parts).to_numpy(),
    ),
    "asarray": (lambda _: None, lambda _: atos.asarray([1, 2], device=CPU)),
    "Array.to_numpy": (lambda _: None, lambda _: ARRAY.to_numpy()),
    "Array, read": (lambda _: None, lambda _: ARRAY[1:]),
    "Array, written": (lambda _: atos.zeros(3, device=CPU), lambda array: array.__setitem__(slice(1, 3), [1, 2])),
    "Array, iterated": (lambda _: None, lambda _: list(ARRAY)),
    "Array, as one of NumPy": (lambda _: None, lambda _: ARRAY.__array__(copy=True)),
    "Array.astype": (lambda _: None, lambda _: ARRAY.astype(np.float64)),
    "ones": (lambda _: None, lambda _: atos.ones(3, device=CPU)),
    "arange": (lambda _: None, lambda _: atos.arange(3, device=CPU)),
    "Graph.to_networkx": (lambda _: None, lambda _: GRAPH.to_networkx()),
    "Graph.to_pandas_edgelist": (lambda _: None, lambda _: GRAPH.to_pandas_edgelist()),
    "Array, by DLPack": (lambda _: None, lambda _: ARRAY.__dlpack__(copy=True)),
    "Array.fill": (lambda _: atos.zeros(3, device=CPU), lambda array: array.fill(2)),
    "Array.copy": (lambda _: None, lambda _: ARRAY.copy()),
    **{
        name: (lambda _: None, lambda _, name=name: getattr(atos, name)(ARRAY))
        for name in ("nonzero", "cumsum", "sort", "argsort", "sum", "min", "max")
    },
    "Joins": (lambda _: None, lambda _: atos.Joins(8, device=CPU)),
    "Joins.open": (lambda _: atos.Joins(8, device=CPU), lambda made: made.open(2, n=3)),
    "Joins.waiting": (lambda _: atos.Joins(8, device=CPU), lambda made: made.waiting()),
    "Pool": (lambda _: None, lambda _: atos.Pool(np.int32, 8, device=CPU)),
    "Pool.append": (lambda _: atos.Pool(np.int32, 8, device=CPU), lambda made: made.append([1, 2])),
    "Pool.take": (lambda _: atos.Pool(np.int32, 8, device=CPU), lambda made: made.take(2)),
    "Pool.clear": (lambda _: atos.Pool(np.int32, 8, device=CPU), lambda made: made.clear()),
    "Pool.resize": (lambda _: atos.Pool(np.int32, 8, device=CPU), lambda made: made.resize(9)),
    "Queue": (lambda _: None, lambda _: Queue(8, device=CPU)),
    "Queue.push": (lambda _: queue(), lambda made: made.push([1, 2])),
    "Queue.peek": (lambda _: queue(), lambda made: made.peek()),
    "Queue.save": (lambda folder: (queue(), folder / "c"), lambda both: both[0].save(both[1], array=ARRAY)),
    "Queue.load": (lambda folder: written(queue(), folder / "d"), lambda path: Queue.load(path, device=CPU)),
    **{
        f"Queue.{name}": (lambda _: queue(), lambda made, name=name: getattr(made, name)(touch, np.zeros(3, np.uint32)))
        for name in ("launch_thread", "launch_warp", "launch_cta")
    },
    "bfs": (lambda _: None, lambda _: atos.bfs(GRAPH, 0, parents=True)),
    "BFSResult.reached": (lambda _: atos.bfs(GRAPH, 0), lambda found: found.num_reached),
    "BFSResult.num_levels": (lambda _: atos.bfs(GRAPH, 0), lambda found: found.num_levels),
    "sssp": (lambda _: None, lambda _: atos.sssp(GRAPH, 0, predecessors=True)),
    "verify_sssp": (lambda _: atos.sssp(GRAPH, 0), lambda found: atos.verify_sssp(GRAPH, 0, found.distance)),
    "shortest_path_lengths": (lambda _: None, lambda _: atos.shortest_path_lengths(GRAPH, [0, 1])),
    "verify_shortest_path_lengths": (
        lambda _: atos.shortest_path_lengths(GRAPH, 0),
        lambda found: atos.verify_shortest_path_lengths(GRAPH, 0, found.distance),
    ),
    "spmm": (lambda _: None, lambda _: atos.spmm(PAIRS, COLUMN)),
    "verify_spmm": (lambda _: atos.spmm(PAIRS, COLUMN), lambda found: atos.verify_spmm(PAIRS, COLUMN, found)),
    "label_spreading": (lambda _: None, lambda _: atos.label_spreading(PAIRS, LABELS)),
    "verify_label_spreading": (
        lambda _: atos.label_spreading(PAIRS, LABELS),
        lambda found: atos.verify_label_spreading(PAIRS, LABELS, found.spread),
    ),
    "manifold_ranking": (lambda _: None, lambda _: atos.manifold_ranking(PAIRS, SIMILAR, COLUMN, alpha=0.5)),
    "verify_manifold_ranking": (
        lambda _: atos.manifold_ranking(PAIRS, SIMILAR, COLUMN, alpha=0.5),
        lambda found: atos.verify_manifold_ranking(PAIRS, SIMILAR, COLUMN, found.x, alpha=0.5),
    ),
    "multimodal": (lambda _: None, lambda _: atos.multimodal(PAIRS, SIMILAR, COLUMN, alpha=[0.5])),
    "verify_multimodal": (
        lambda _: atos.multimodal(PAIRS, SIMILAR, COLUMN, alpha=[0.5]),
        lambda found: atos.verify_multimodal(PAIRS, SIMILAR, COLUMN, found.x, alpha=[0.5]),
    ),
    "belief_propagation": (lambda _: None, lambda _: atos.belief_propagation(PAIRS, *POTENTIALS)),
    "verify_belief_propagation": (
        lambda _: atos.belief_propagation(PAIRS, *POTENTIALS),
        lambda found: atos.verify_belief_propagation(PAIRS, *POTENTIALS, found.messages, found.marginals),
    ),
    "als": (lambda _: None, lambda _: atos.als(RATINGS, 2, iterations=1, device=CPU)),
    "verify_als": (
        lambda _: atos.als(RATINGS, 2, iterations=1, device=CPU),
        lambda found: atos.verify_als(RATINGS, found.users, found.items),
    ),
    "betweenness": (lambda _: None, lambda _: atos.betweenness(GRAPH)),
    "verify_betweenness": (
        lambda _: atos.betweenness(GRAPH),
        lambda found: atos.verify_betweenness(GRAPH, found.centrality),
    ),
    "closeness": (lambda _: None, lambda _: atos.closeness(GRAPH)),
    "verify_closeness": (
        lambda _: atos.closeness(GRAPH),
        lambda found: atos.verify_closeness(GRAPH, found.centrality),
    ),
    "eccentricity": (lambda _: None, lambda _: atos.eccentricity(GRAPH)),
    "EccentricityResult.diameter": (lambda _: atos.eccentricity(GRAPH), lambda found: found.diameter),
    "EccentricityResult.radius": (lambda _: atos.eccentricity(GRAPH), lambda found: found.radius),
    "EccentricityResult.center": (lambda _: atos.eccentricity(GRAPH), lambda found: found.center()),
    "EccentricityResult.periphery": (lambda _: atos.eccentricity(GRAPH), lambda found: found.periphery()),
    "verify_eccentricity": (
        lambda _: atos.eccentricity(GRAPH),
        lambda found: atos.verify_eccentricity(GRAPH, found.eccentricity),
    ),
    "diameter": (lambda _: None, lambda _: atos.diameter(GRAPH)),
    "verify_diameter": (
        lambda _: atos.diameter(GRAPH),
        lambda found: atos.verify_diameter(GRAPH, found.diameter, found.vertex),
    ),
    "pagerank": (lambda _: None, lambda _: atos.pagerank(GRAPH)),
    "color": (lambda _: None, lambda _: atos.color(GRAPH)),
    "connected_components": (lambda _: None, lambda _: atos.connected_components(GRAPH)),
    "verify_connected_components": (
        lambda _: atos.connected_components(GRAPH),
        lambda found: atos.verify_connected_components(GRAPH, found.label),
    ),
    "core_number": (lambda _: None, lambda _: atos.core_number(GRAPH)),
    "CoreResult.max_core": (lambda _: atos.core_number(GRAPH), lambda found: found.max_core),
    "VertexSetResult.num_members": (lambda _: atos.k_core(GRAPH, 2), lambda found: found.num_members),
    "k_core": (lambda _: None, lambda _: atos.k_core(GRAPH, 2)),
    "count_triangles": (lambda _: None, lambda _: atos.count_triangles(GRAPH)),
    "verify_triangles": (
        lambda _: atos.count_triangles(GRAPH),
        lambda found: atos.verify_triangles(GRAPH, found.triangles, found.total, found.clustering),
    ),
    "maximal_independent_set": (lambda _: None, lambda _: atos.maximal_independent_set(GRAPH, include=[0])),
    "verify_maximal_independent_set": (
        lambda _: atos.maximal_independent_set(GRAPH),
        lambda found: atos.verify_maximal_independent_set(GRAPH, found.members),
    ),
    "label_propagation": (lambda _: None, lambda _: atos.label_propagation(GRAPH)),
    "verify_label_propagation": (
        lambda _: atos.label_propagation(GRAPH),
        lambda found: atos.verify_label_propagation(GRAPH, found.label),
    ),
    "verify_core_number": (lambda _: atos.core_number(GRAPH), lambda found: atos.verify_core_number(GRAPH, found.core)),
    "verify_k_core": (lambda _: atos.k_core(GRAPH, 2), lambda found: atos.verify_k_core(GRAPH, 2, found.members)),
    "minimum_spanning_forest": (lambda _: None, lambda _: atos.minimum_spanning_forest(GRAPH)),
    "verify_minimum_spanning_forest": (
        lambda _: atos.minimum_spanning_forest(GRAPH),
        lambda found: atos.verify_minimum_spanning_forest(GRAPH, found.edges, found.edge_ids),
    ),
    "strongly_connected_components": (lambda _: None, lambda _: atos.strongly_connected_components(GRAPH)),
    "verify_strongly_connected_components": (
        lambda _: atos.strongly_connected_components(GRAPH),
        lambda found: atos.verify_strongly_connected_components(GRAPH, found.label),
    ),
    "verify_bfs": (lambda _: atos.bfs(GRAPH, 0), lambda found: atos.verify_bfs(GRAPH, 0, found.depth)),
    "verify_pagerank": (lambda _: atos.pagerank(GRAPH), lambda found: atos.verify_pagerank(GRAPH, found)),
    "verify_coloring": (lambda _: atos.color(GRAPH), lambda found: atos.verify_coloring(GRAPH, found.colors)),
    "tuned": (lambda _: None, lambda _: atos.tuned("bfs", GRAPH)),
}
SHORTAGES: dict[str, Callable[[], Exception]] = {  # made anew each time, since an error keeps what it went through
    "Python and NumPy": MemoryError,
    "the system": lambda: OSError(errno.ENOMEM, "Cannot allocate memory"),
    "threads": lambda: RuntimeError("can't start new thread"),
}


# Functions that make nothing and end at another: what fails must fail below them.
THIN = {
    function.__code__
    for function in (
        atos.empty, Array.__len__, Queue.peek, Queue.save, Queue.load.__func__, BFSResult.num_reached.fget,
        atos.distributed.ProcessGroup.__enter__, atos.distributed.ProcessGroup.__exit__,
    )
}  # fmt: skip


def fail_at(call: Callable[[Any], Any], prepared: Any, place: int, error: Exception) -> tuple[bool, BaseException | None]:
    """Call, with an error where the package begins its call of a function number `place`; return whether there were so many."""
    begun = 0

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal begun
        path = Path(frame.f_code.co_filename)
        # Callbacks from C report errors and go on, and what is released has nobody to raise to.
        if PACKAGE not in path.parents or path.name in ("host_memory.py", "callbacks.py", "errors.py"):
            return
        if frame.f_code.co_name in ("<lambda>", "<genexpr>", "__del__") or frame.f_code in THIN:
            return
        begun += 1
        if begun == place:
            raise error

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(prepared)
    except Exception as raised:
        return begun >= place, raised
    finally:
        sys.settrace(before)
    return begun >= place, None


@pytest.mark.parametrize("name", ENTRIES)
def test_memory_that_runs_out_at_any_call_within(tmp_path: Path, name: str) -> None:
    prepare, call = ENTRIES[name]
    call(prepare(tmp_path))  # compiled once
    found, place = 0, 1
    while True:
        shortage = list(SHORTAGES.values())[place % len(SHORTAGES)]
        reached, raised = fail_at(call, prepare(tmp_path), place, shortage())
        if not reached:
            break
        if raised is not None:
            assert isinstance(raised, atos.AtosError), (place, raised)
            found += isinstance(raised, DeviceMemoryError)
        place += 1 + place // 20  # the first ones all, of many some
    assert found


def test_every_public_call_is_tried() -> None:
    """All that make something; others look at what is there, or end at a function above."""
    tried = {word for name in ENTRIES for word in name.replace(",", "").split(".")}
    others = {"device", "devices", "release_memory", "task", "tune"}
    others |= {
        "accumulate",
        "fence",
        "pack",
        "unpack",
        "random",
        "random_bits",
        "load_cached",
        "local_array",
    }  # words of tasks; on the host, NumPy's arithmetic
    functions = {name for name in atos.__all__ if callable(getattr(atos, name)) and not isinstance(getattr(atos, name), type)}
    functions = {name for name in functions if not name.startswith("atomic_")}
    assert functions - others <= tried
    inherited = {"count", "index"}  # of a tuple
    methods = {name for name in dir(Graph) if not name.startswith("_") and callable(getattr(Graph, name))} - inherited
    assert methods | set(generate.__all__) <= tried


@pytest.mark.parametrize("said_by", SHORTAGES)
def test_what_is_a_shortage(said_by: str) -> None:
    shortage = SHORTAGES[said_by]()
    message = r"^the host has too little free memory for a thing, or .*\(ulimit -v\)"
    with pytest.raises(DeviceMemoryError, match=message) as caught, host_memory_for("a thing"):
        raise shortage
    assert caught.value.__cause__ is shortage
    assert isinstance(caught.value, MemoryError)


@pytest.mark.parametrize(
    "other", [OSError(errno.ENOSPC, "full"), RuntimeError("can't"), KeyboardInterrupt(), DeviceMemoryError("x")]
)
def test_what_is_none(other: BaseException) -> None:
    with pytest.raises(type(other)) as caught, host_memory_for("a thing"):
        raise other
    assert caught.value is other


def test_the_name_and_the_signature_of_a_function_stay() -> None:
    assert Graph.from_edges.__name__ == "from_edges"
    assert "symmetrize" in inspect.signature(Graph.from_edges).parameters


def test_a_thread_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("atos_py.compile.host_kernels.num_threads", lambda: 2)
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(DeviceMemoryError, match=r"for generate\.rmat, or this process may take no more.*start new thread"):
        generate.rmat(10, device=CPU)


def test_threads_begin_only_where_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would wait for ever for one that finds none."""
    begun: list[threading.Thread] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (begun.append(thread), start(thread))[1])
    wanted: list[int] = []

    def refuse(handle: int, size: int) -> None:
        wanted.append(size)
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    with parallel.threads(3) as pool:
        assert len(begun) == 3
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
    monkeypatch.setattr(parallel.mmap, "mmap", refuse)
    with pytest.raises(OSError, match="Cannot allocate"), parallel.threads(3):
        pass
    assert len(begun) == 3
    assert wanted[0] >= 3 << 20


def test_a_process_that_may_take_little_memory(tmp_path: Path) -> None:
    """Whatever the amount, nothing but this package's error comes out, and the same works when there is memory again."""
    code = """
import resource, sys
import numpy as np, scipy.sparse
import atos_py as atos

open("a.gr", "w").write("p sp 200000 1000000\\n" + "a 1 2 3\\n" * 10**6)
open("a.txt", "w").write("0 1 5\\n" * 10**6)
many = np.zeros(10**6, np.int64)
matrix = scipy.sparse.eye_array(10**6, format="csr")
graph = atos.generate.rmat(17, device="cpu")
found = atos.bfs(graph, 0)
array = atos.zeros(5 * 10**6, device="cpu")
calls = {
    "rmat": lambda: atos.generate.rmat(17, device="cpu"),
    "road": lambda: atos.generate.road(1500, device="cpu"),
    "a.gr": lambda: atos.Graph.load("a.gr", device="cpu"),
    "a.txt": lambda: atos.Graph.load("a.txt", device="cpu"),
    "from_edges": lambda: atos.Graph.from_edges(many, many, device="cpu"),
    "from_csr": lambda: atos.Graph.from_csr(matrix.indptr.astype(np.int32), matrix.indices, matrix.data, device="cpu"),
    "from_scipy": lambda: atos.Graph.from_scipy(matrix, device="cpu"),
    "to_scipy": graph.to_scipy,
    "simplify": lambda: graph.simplify(sort=True),
    "Queue": lambda: atos.Queue(10**7, device="cpu"),
    "zeros": lambda: atos.zeros(2 * 10**7, device="cpu"),
    "full": lambda: atos.full(2 * 10**7, 1, device="cpu"),
    "asarray": lambda: atos.asarray(many, dtype=np.float64, device="cpu"),
    "to_numpy": array.to_numpy,
    "verify_bfs": lambda: atos.verify_bfs(graph, 0, found.depth),
}
for call in calls.values():
    call()
def limit(size):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (size << 20) if size else -1, -1))
typed = 0
for size in (2, 8, 20, 40, 0):
    limit(size)
    for name, call in calls.items():
        try:
            call()
        except atos.DeviceMemoryError:
            typed += 1
            if not size:
                raise
        except BaseException as error:
            print(size, name, repr(error)[:200])
print(typed > 10)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
