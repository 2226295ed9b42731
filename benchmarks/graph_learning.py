"""Time graph learning: products with dense matrices, sums over edges, factorisation, beliefs, label spreading.

    python benchmarks/graph_learning.py --device cuda
    python benchmarks/graph_learning.py --device cpu

Every result is checked once: rows of products and of least-squares problems in float64, beliefs against sweeps in NumPy, fixed
points by their certificates. Times in ms, and those of the processor in brackets, are the least of ``--repeat`` runs, in turns
with those of the peer, if it can be imported: PyTorch's ``torch.sparse.mm`` on a GPU; SciPy, ``implicit`` with
``use_cg=False``, and scikit-learn's ``LabelSpreading`` on a CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import os
import time
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse
import scipy.special
from numpy.typing import NDArray

import atos_py as atos
from atos_py import features
from atos_py.graph.spec import graph_of
from atos_py.models.learning.feature_gather import feature_gather

SIZES: dict[str, dict[str, Any]] = {
    "cuda": {
        "graphs": ("rmat:22:16", "road:4900:0.62"),
        "features": (4, 16, 64),
        "ratings": (138_000, 27_000, 20_000_000),
        "factors": (32, 64, 128),
        "side": 1000,
        "spreading": ("rmat:20:16", 8),
    },
    "cpu": {
        "graphs": ("rmat:17:16", "road:1000:0.62"),
        "features": (4, 16, 64),
        "ratings": (6_000, 4_000, 1_000_000),
        "factors": (32,),
        "side": 100,
        "spreading": ("rmat:17:16", 8),
    },
}
STATES, SWEEPS = 8, 62  # sweeps in launches of 2, 4, 8, 16 and 32 rounds
REGULARIZATION, CONFIDENCE = 1.0, 40.0
ALPHA, TOLERANCE = 0.8, 1e-4

Sums = namedtuple("Sums", "weights x total")
Spread = namedtuple("Spread", "degree seeds")


def peer(name: str) -> Any:
    """Return a module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@contextlib.contextmanager
def recorded() -> Iterator[list[Any]]:
    """Collect what all launches return."""
    runs: list[Any] = []
    with contextlib.ExitStack() as stack:
        for name in ("launch_thread", "launch_warp", "launch_cta"):
            original = getattr(atos.Queue, name)

            def launch(*args: Any, _original: Any = original, **options: Any) -> Any:
                runs.append(_original(*args, **options))
                return runs[-1]

            stack.enter_context(mock.patch.object(atos.Queue, name, launch))
        yield runs


def milliseconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Time one call: by the clock, and of the processor, all threads together."""
    begin = time.perf_counter(), time.process_time()
    call()
    return 1e3 * (time.perf_counter() - begin[0]), 1e3 * (time.process_time() - begin[1])


def least(times: list[tuple[float, float]]) -> str:
    """Return the least time by the clock, and of the processor in brackets."""
    return "{:.2f} ({:.2f})".format(*np.min(times, axis=0)) if times else "-"


def timed(ours: Callable[[], Any], theirs: Callable[[], tuple[float, float]] | None, repeat: int) -> tuple[float, str, str]:
    """Return the least times of our kernels, of our whole call, and of a peer, which times itself; in turns."""
    kernels, calls, peers = [], [], []
    for _ in range(repeat + 1):
        with recorded() as runs:
            calls.append(milliseconds(ours))
        kernels.append(sum(stats.milliseconds for stats in runs))
        if theirs is not None:
            peers.append(theirs())
    return min(kernels[1:]), least(calls[1:]), least(peers)


def row(*cells: Any) -> None:
    """Print a row of a table."""
    print(" | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells), flush=True)


def head(*names: str) -> None:
    """Print the head of a table."""
    print("", " | ".join(names), " | ".join(["---"] * len(names)), sep="\n", flush=True)


def check_rows(host: atos.Graph, x: NDArray[Any], y: atos.Array, rounding: float = 1e-5) -> None:
    """Check some rows of a product in float64: random ones, and that of most edges."""
    indptr, indices, weights = (np.asarray(part) for part in (host.indptr, host.indices, host.weights))
    rows = np.random.default_rng(0).integers(0, host.num_vertices, 500)
    for v in (*rows, np.diff(indptr).argmax()):
        edges = slice(indptr[v], indptr[v + 1])
        parts = weights[edges, None].astype(np.float64) * x[indices[edges]]
        error = np.abs(parts.sum(0) - y[v])
        assert (error <= rounding * np.abs(parts).sum(0) + 1e-30).all(), f"row {v} of a product is wrong by {error.max():.1e}"


def torch_product(host: atos.Graph, x: NDArray[Any]) -> Callable[[], tuple[float, float]] | None:
    """Return a call that times cuSPARSE, by PyTorch, or None."""
    torch = peer("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    warnings.filterwarnings("ignore", "Sparse CSR")
    parts = (np.asarray(part) for part in (host.indptr, host.indices, host.weights))
    rows, columns, values = (
        torch.from_numpy(part.astype(kind)).cuda() for part, kind in zip(parts, ("i4", "i4", "f4"), strict=True)
    )
    matrix, dense = torch.sparse_csr_tensor(rows, columns, values, (host.num_vertices,) * 2), torch.from_numpy(x).cuda()

    def call() -> tuple[float, float]:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.sparse.mm(matrix, dense)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)), np.nan

    return call


def scipy_product(host: atos.Graph, x: NDArray[Any]) -> Callable[[], tuple[float, float]]:
    """Return a call that times SciPy, which takes one thread."""
    matrix = host.to_scipy().astype(np.float32)
    return lambda: milliseconds(lambda: matrix @ x)


def send(f, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Add a feature of the source, weighted, to that of the target."""
    atos.atomic_add(d.total, (v, f), d.weights[edge] * d.x[u, f])


def time_products(device: str, sizes: dict[str, Any], repeat: int) -> None:
    """Time `atos.spmm`, and sums by an edge map, float32 with float32 weights."""
    peer_name = "PyTorch" if device == "cuda" else "SciPy"
    head("graph", "k", "spmm: kernels", "whole call", peer_name, "kernels, an edge at a time", "edge map: kernels")
    one_by_one = functools.partial(feature_gather, pipelined=False)
    for spec in sizes["graphs"]:
        graph = graph_of(f"{spec}@0.0-1.0", device=device)
        host = graph.to("cpu")
        for k in sizes["features"]:
            x = np.random.default_rng(k).random((graph.num_vertices, k), np.float32)
            dense = atos.asarray(x, device=device, readonly=True)
            theirs = (torch_product if device == "cuda" else scipy_product)(host, x)
            times = timed(lambda dense=dense, graph=graph: atos.spmm(graph, dense), theirs, repeat)  # type: ignore[misc]
            check_rows(host, x, atos.spmm(graph, dense))
            with mock.patch("atos_py.models.learning.spmm.feature_gather", one_by_one):
                unpipelined, *_ = timed(lambda dense=dense, graph=graph: atos.spmm(graph, dense), None, max(2, repeat // 3))  # type: ignore[misc]
            total = atos.zeros(x.shape, device=device)
            maps = features.Maps(graph, k, Sums(graph.weights, dense, total))
            by_edges = []
            for _ in range(max(2, repeat // 3)):
                total[:] = 0
                maps.edge_map(send)
                by_edges.append(maps.runs[-1].milliseconds)
            # Edges and weights are the same both ways. Atomics add up 160,000 numbers one by one, in float32.
            check_rows(host, x, total, 1e-3)
            row(spec, k, *times, unpipelined, min(by_edges))


def make_ratings(num_users: int, num_items: int, count: int, rank: int = 8) -> scipy.sparse.csr_array:
    """Return ratings of popular items by active users, with planted factors and noise of 0.5."""
    random = np.random.default_rng(0)
    active, popular = np.cumsum(random.lognormal(size=num_users)), np.cumsum(1 / np.arange(10.0, num_items + 10))
    users = np.searchsorted(active, random.random(3 * count // 2) * active[-1])
    items = np.searchsorted(popular, random.random(3 * count // 2) * popular[-1])
    pairs = np.unique(users * num_items + items)
    pairs = pairs[random.random(pairs.size) < count / pairs.size]
    users, items = pairs // num_items, pairs % num_items
    left = (0.6 * random.standard_normal((num_users, rank)) / rank**0.5).astype(np.float32)
    right = random.standard_normal((num_items, rank)).astype(np.float32)
    values = (3.5 + 0.5 * random.standard_normal(pairs.size)).astype(np.float32)
    for first in range(0, pairs.size, 1 << 20):
        part = slice(first, first + (1 << 20))
        values[part] += np.einsum("ek,ek->e", left[users[part]], right[items[part]])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=num_users))])
    return scipy.sparse.csr_array((values, items.astype(np.int32), indptr), shape=(num_users, num_items))


def check_factors(ratings: scipy.sparse.csr_array, found: Any) -> None:
    """Check the factors of some items, which are the last ones found, with NumPy in float64."""
    columns = ratings.tocsc()
    users, items = found.users.to_numpy().astype(np.float64), found.items.to_numpy()
    for item in np.random.default_rng(0).integers(0, ratings.shape[1], 50):
        rated = slice(columns.indptr[item], columns.indptr[item + 1])
        left = users[columns.indices[rated]]
        values = columns.data[rated].astype(np.float64)
        matrix, right = left.T @ left + REGULARIZATION * np.eye(left.shape[1]), left.T @ values
        size = np.abs(matrix) @ np.abs(items[item]) + np.abs(left.T) @ np.abs(values)
        error = np.abs(matrix @ items[item] - right)
        assert (error <= 1e-4 * size + 1e-30).all(), f"the equations of item {item} are off by {error.max():.1e}"


def time_factors(device: str, sizes: dict[str, Any], repeat: int) -> None:
    """Time an iteration of alternating least squares, explicit, over both sides."""
    ratings = make_ratings(*sizes["ratings"])
    held_out = np.random.default_rng(1).random(ratings.nnz) < 0.05
    users = np.repeat(np.arange(ratings.shape[0]), np.diff(ratings.indptr))
    train, test = ((users[keep], ratings.indices[keep], ratings.data[keep]) for keep in (~held_out, held_out))
    matrix = scipy.sparse.csr_array((train[2], train[:2]), ratings.shape)
    print(f"\n{matrix.nnz:,} ratings by {ratings.shape[0]:,} users of {ratings.shape[1]:,} items")
    head("factors", "an iteration: kernels", "whole call", "RMSE of held-out ratings after 5 iterations")
    for k in sizes["factors"]:
        calls, found = {1: np.inf, 5: np.inf}, None
        for iterations in (1, 1, 1, 5, 5):  # the first one compiles
            with recorded() as runs:
                begin = time.perf_counter()
                found = atos.als(matrix, k, regularization=REGULARIZATION, iterations=iterations, device=device)
                calls[iterations] = min(calls[iterations], 1e3 * (time.perf_counter() - begin))
        kernels = [stats.milliseconds for stats in runs]
        check_factors(matrix, found)
        best = min(sum(kernels[first : first + 2]) for first in range(0, len(kernels), 2))
        row(k, best, (calls[5] - calls[1]) / 4, found.rmse(*test))


def numpy_sweeps(graph: atos.Graph, unary: NDArray[Any], pairwise: NDArray[Any], sweeps: int) -> NDArray[Any]:
    """Return the marginals after some sweeps of belief propagation, by NumPy."""
    indices, n, k = np.asarray(graph.indices), *unary.shape
    sources, back = np.repeat(np.arange(n), graph.degrees()), np.asarray(graph.reverse_edges())
    messages, potentials = np.full((indices.size, k), -np.log(k)), np.exp(pairwise)  # what comes to v along (v, u)

    def beliefs() -> NDArray[Any]:
        return unary + scipy.sparse.csr_array((np.ones(indices.size), (sources, np.arange(indices.size)))) @ messages

    for _ in range(sweeps):
        sent = np.log(scipy.special.softmax(beliefs()[sources] - messages, axis=1) @ potentials)
        messages[back] = sent - scipy.special.logsumexp(sent, axis=1, keepdims=True)
    return scipy.special.softmax(beliefs(), axis=1)


def time_beliefs(device: str, sizes: dict[str, Any], repeat: int) -> None:
    """Time a sweep of belief propagation on a Potts grid."""
    side = sizes["side"]
    graph, unary, pairwise = features.potts_grid(side, STATES, coupling=0.8, device=device)
    found = atos.belief_propagation(graph, unary, pairwise, tolerance=1e-30, max_sweeps=2)
    expected = numpy_sweeps(graph.to("cpu"), unary, pairwise, 2)
    error = float(np.abs(atos.asarray(found.marginals).to_numpy() - expected).max())
    assert error < 1e-4, f"beliefs differ from NumPy's by {error:.1e}"
    sweeps, calls = [], []
    for _ in range(max(2, repeat // 3)):
        calls.append(milliseconds(lambda: atos.belief_propagation(graph, unary, pairwise, tolerance=1e-30, max_sweeps=SWEEPS)))
        found = atos.belief_propagation(graph, unary, pairwise, tolerance=1e-30, max_sweeps=SWEEPS)
        sweeps.append(found.runs[4].milliseconds / 32)
    head("Potts grid", "states", "a sweep: kernels", f"whole call of {SWEEPS} sweeps, with the copies of the potentials")
    row(f"{side} x {side}", STATES, min(sweeps), least(calls))


def coefficient(f, v, u, edge, d):  # type: ignore[no-untyped-def]
    """Return by how much the features of a neighbor count: a share of their mean."""
    return ALPHA / d.degree[v]


def add_seed(f, v, total, d):  # type: ignore[no-untyped-def]
    """Return the new feature of a vertex."""
    return total + (1 - ALPHA) * d.seeds[v, f]


def time_changes(device: str, sizes: dict[str, Any], repeat: int) -> None:
    """Count the edge operations of a fixed point, by changes and by computing all sums anew, at the same bound."""
    head("graph, labels on 1 %", "driven by changes", "edge operations", "iterations", "kernels", "bound of the error")
    for graph in (
        atos.generate.grid2d(sizes["side"], sizes["side"], device=device),
        graph_of(sizes["graphs"][0], device=device),
    ):
        n, x = graph.num_vertices, {}
        seeds = np.random.default_rng(0).random((n, 4)) < 0.01
        data = Spread(
            *(atos.asarray(part, device=device, readonly=True) for part in (graph.degrees(), seeds.astype(np.float32)))
        )
        for change_driven in (False, True):
            options: Any = {"contraction": ALPHA, "tolerance": TOLERANCE, "change_driven": change_driven}
            for _ in range(2):  # the first one compiles
                start = atos.asarray(seeds.astype(np.float32), device=device)
                found = features.fixed_point(graph, start, coefficient, add_seed, data, **options)
            assert found.converged
            x[change_driven] = found.x.to_numpy()
            kernels = sum(stats.milliseconds for stats in found.runs)
            cells = f"{found.edge_operations:,}", found.iterations, kernels, f"{found.error_bound:.1e}"
            row(f"{n:,} vertices", change_driven, *cells)
        assert np.abs(x[True] - x[False]).max() <= 2 * TOLERANCE


def objective(ratings: scipy.sparse.csr_array, users: NDArray[Any], items: NDArray[Any]) -> float:
    """Return what implicit alternating least squares lowers: over all pairs, by confidence, and the squares of the factors."""
    users, items = users.astype(np.float64), items.astype(np.float64)
    rows = np.repeat(np.arange(ratings.shape[0]), np.diff(ratings.indptr))
    predicted = np.einsum("ek,ek->e", users[rows], items[ratings.indices])
    everywhere = ((users.T @ users) * (items.T @ items)).sum()
    there = (1 + CONFIDENCE * ratings.data) * (1 - predicted) ** 2 - predicted**2
    return float(everywhere + there.sum() + REGULARIZATION * ((users**2).sum() + (items**2).sum()))


def time_implicit(device: str, sizes: dict[str, Any], repeat: int) -> None:
    """Time implicit alternating least squares against `implicit`, from the same start, with the same objective."""
    implicit, threadpools = peer("implicit.als"), peer("threadpoolctl")
    ratings, iterations = make_ratings(*sizes["ratings"]), 5
    ratings.data = np.abs(ratings.data)
    head("factors", f"{iterations} iterations: kernels", "whole call", "implicit, use_cg=False", "objective", "its objective")
    for k in sizes["factors"]:
        found: dict[str, Any] = {}

        def ours(k: int = k, found: dict[str, Any] = found) -> None:
            options: Any = {"regularization": REGULARIZATION, "implicit": True, "alpha": CONFIDENCE, "device": device}
            found["ours"] = atos.als(ratings, k, iterations=iterations, **options)

        def theirs(k: int = k, found: dict[str, Any] = found) -> tuple[float, float]:
            options: Any = {"use_native": True, "use_cg": False, "use_gpu": False, "iterations": iterations}
            start = atos.random(0, np.arange(ratings.shape[1])[:, None], np.arange(k)) / np.sqrt(k)
            confidence = scipy.sparse.csr_matrix(
                (1 + CONFIDENCE * ratings.data, ratings.indices, ratings.indptr), ratings.shape
            )
            with threadpools.threadpool_limits(1, "blas"):  # as it asks for: its own threads share the rows
                model = implicit.AlternatingLeastSquares(factors=k, regularization=REGULARIZATION, alpha=1, **options)
                model.user_factors, model.item_factors = np.zeros((ratings.shape[0], k), np.float32), start.astype(np.float32)
                found["theirs"] = model
                return milliseconds(lambda: model.fit(confidence, show_progress=False))

        times = timed(ours, theirs if implicit and threadpools else None, max(2, repeat // 2))
        value = objective(ratings, found["ours"].users.to_numpy(), found["ours"].items.to_numpy())
        other = found.get("theirs")
        expected = objective(ratings, other.user_factors, other.item_factors) if other else value
        assert abs(value - expected) <= 1e-3 * expected, f"the objective is {value}, and that of implicit {expected}"
        row(k, *times, f"{value:.6e}", f"{expected:.6e}")


def time_spreading(device: str, sizes: dict[str, Any], repeat: int) -> None:
    """Time label spreading against scikit-learn's, which gets the tolerance with which its error is at most ours."""
    sklearn = peer("sklearn.semi_supervised")
    warnings.filterwarnings("ignore", "max_iter=")
    spec, classes = sizes["spreading"]
    graph, random = graph_of(spec, device=device), np.random.default_rng(0)
    n = graph.num_vertices
    labels = np.where(random.random(n) < 0.01, random.integers(0, classes, n), -1)
    labels[np.flatnonzero(graph.degrees() > 0)[:classes]] = np.arange(classes)
    matrix = graph.to_scipy().astype(np.float64)
    degrees = np.maximum(matrix.sum(1), 1)
    normalized = scipy.sparse.diags_array(degrees**-0.5) @ matrix @ scipy.sparse.diags_array(degrees**-0.5)
    seeds = (labels[:, None] == np.arange(classes)).astype(np.float64)
    steps = [seeds]  # of scikit-learn
    while len(steps) < 2 or np.abs(steps[-1] - steps[-2]).max() > 1e-13:
        steps = [*steps[-2:], ALPHA * (normalized @ steps[-1]) + (1 - ALPHA) * seeds]
    found: dict[str, Any] = {}

    def ours() -> None:
        found["ours"] = atos.label_spreading(graph, labels, alpha=ALPHA, tolerance=1e-3)

    def theirs() -> tuple[float, float]:
        model = sklearn.LabelSpreading(kernel=lambda *_: matrix, alpha=ALPHA, max_iter=iterations, tol=0)
        with np.errstate(invalid="ignore"):
            return milliseconds(lambda: model.fit(np.zeros((n, 1)), labels))

    ours()
    exact = steps[-1]
    error = float(np.linalg.norm(atos.asarray(found["ours"].spread).to_numpy() - exact))
    step, iterations = seeds, 0
    while np.linalg.norm(step - exact) > error:
        step, iterations = ALPHA * (normalized @ step) + (1 - ALPHA) * seeds, iterations + 1
    times = timed(ours, theirs if sklearn else None, max(2, repeat // 2))
    head("graph", "classes", "label spreading: kernels", "whole call", "scikit-learn", "iterations", "its iterations", "error")
    row(spec, classes, *times, found["ours"].iterations, iterations, f"{error:.1e}")


PARTS: dict[str, Callable[[str, dict[str, Any], int], None]] = {
    "products": time_products,
    "factors": time_factors,
    "beliefs": time_beliefs,
    "changes": time_changes,
    "implicit": time_implicit,
    "spreading": time_spreading,
}


def main() -> None:
    """Print tables, in ms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--only", nargs="*", choices=PARTS, help="parts; on a GPU all but the last two, whose peers are for CPUs"
    )
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    sizes = SIZES[options.device]
    for part in options.only or list(PARTS)[: 4 if options.device == "cuda" else None]:
        begin = time.perf_counter()
        PARTS[part](options.device, sizes, options.repeat)
        print(f"({part}: {time.perf_counter() - begin:.0f} s in all)", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("ATOS_TIER", "best")  # first launches wait for the kernels that are timed
    main()
