"""Simplified and symmetric graphs: the same on every device, with a rule for the weights of parallel edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_arrays import array
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import linked
from small_graphs import graphs, triples

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec
from atos_py.graph import derived
from atos_py.graph.edge_passes import write_offset
from atos_py.graph.simplify import combine_run, mark_runs, simplify_on_gpu, write_keys, write_runs
from atos_py.graph.transpose import transpose_on_gpu, turn_round
from atos_py.graph.weights import COMBINE, check_combine

RULES = {"min": min, "max": max, "sum": sum, "first": lambda weights: weights[0]}
OPTIONS = ("symmetrize", "deduplicate", "remove_loops", "sort")


@given(graphs(), st.tuples(*[st.booleans()] * 4), st.sampled_from(COMBINE))
@settings(deadline=None, max_examples=200)
def test_what_comes_out(graph: atos.Graph, chosen: tuple[bool, ...], rule: str) -> None:
    options = dict(zip(OPTIONS, chosen, strict=True))
    expected = []
    for u, v, *weight in triples(graph):
        if not (options["remove_loops"] and u == v):
            expected.append((u, v, *weight))
            if options["symmetrize"] and u != v:
                expected.append((v, u, *weight))
    expected.sort(key=lambda edge: edge[:2] if options["sort"] or options["deduplicate"] else edge[:1])
    if options["deduplicate"]:
        runs: dict[tuple[float, ...], list[float]] = {}
        for u, v, *weight in expected:
            runs.setdefault((u, v), []).extend(weight)
        expected = [(*ends, *([RULES[rule](weights)] if weights else [])) for ends, weights in runs.items()]
    found = graph.simplify(**options, combine=rule)
    assert triples(found) == expected
    # A GPU makes the same: by these tasks, and by what CuPy is asked for, done by NumPy.
    for one, other in zip(simplify_on_gpu(graph, options, check_combine(rule)), found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_what_gpus_do_with_weights_of_every_dtype(dtype: str) -> None:
    """By the tasks for them: a number too large for float64 stays what it is."""
    large = 2**30 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    weights = np.array([3, 2, 1, 2**31 - 1, large, 7], dtype)
    graph = atos.Graph.from_edges([1, 1, 0, 0, 1, 0], [0, 0, 1, 2, 0, 1], weights, device="cpu")
    transpose = graph.transpose()
    for one, other in zip(transpose_on_gpu(graph, with_edges=False), transpose, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())
    for rule in COMBINE:
        options = dict.fromkeys(OPTIONS, True)
        try:
            expected = graph.simplify(**options, combine=rule)
        except atos.AtosError:  # a sum that does not fit
            continue
        for one, other in zip(simplify_on_gpu(graph, options, check_combine(rule)), expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())


@pytest.mark.parametrize("rule", COMBINE)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_weights_of_every_dtype(device: atos.Device, rule: str, dtype: str) -> None:
    weights = np.array([3, 2, 1, 2**31 - 1, 2**30, 7], dtype)
    graph = atos.Graph.from_edges([1, 1, 0, 0, 1, 0], [0, 0, 1, 2, 0, 1], weights, device=device)
    simple = graph.simplify(deduplicate=True, combine=rule)
    assert simple.device == device
    wide = {"int32": "int64"}.get(dtype, dtype) if rule == "sum" else dtype
    assert simple.weights.dtype == wide
    groups = [weights[[2, 5]], weights[[3]], weights[[0, 1, 4]]]
    expected = [RULES[rule](group.astype(wide)) for group in groups]
    assert simple.weights[:].tolist() == expected
    both = graph.simplify(symmetrize=True, deduplicate=True, combine=rule)
    assert both.weights[0] == both.weights[2] == RULES[rule](weights[[0, 1, 2, 4, 5] if rule != "first" else [2]].astype(wide))


INTEGERS = [0, 1, 5, 2**31, 2**62, 2**63 - 1]


@given(st.sampled_from(["int64", "uint64"]), st.data())
@settings(deadline=None, max_examples=100)
def test_sums_of_integers_are_exact_or_refused(dtype: str, data: st.DataObject) -> None:
    """Whatever wraps on the way; on a GPU by the same rule."""
    choices = [*INTEGERS, 2**63, 2**64 - 1] if dtype == "uint64" else [*INTEGERS, *[-x for x in INTEGERS], -(2**63)]
    weights = data.draw(st.lists(st.sampled_from(choices), min_size=1, max_size=6))
    # A row before and a row after, whose own sums fit, and an edge of the same row on either side.
    ends = [(1, 0), (1, 0), (2, 1), *[(2, 3)] * len(weights), (2, 4), (3, 0), (3, 0)]
    given_weights = np.array([7, 7, 9, *weights, 9, 7, 7], dtype)
    graph = atos.Graph.from_edges(*np.array(ends).T, given_weights, device="cpu")
    options = {**dict.fromkeys(OPTIONS, False), "deduplicate": True}
    for simplify in (
        lambda: graph.simplify(**options, combine="sum").weights,
        lambda: simplify_on_gpu(graph, options, check_combine("sum"))[2],
    ):
        if np.iinfo(dtype).min <= sum(weights) <= np.iinfo(dtype).max:
            assert simplify()[:].tolist() == [14, 9, sum(weights), 9, 14]
        else:
            with pytest.raises(atos.InvalidArgumentError, match=f"edges from 2 to 3 have a sum that {dtype} does not hold"):
                simplify()


def test_sums_of_finite_floats_are_finite_or_refused() -> None:
    huge = atos.Graph.from_edges([0, 0], [1, 1], [1.7e308, 1.7e308], device="cpu")
    with pytest.raises(atos.InvalidArgumentError, match="have a sum that float64 does not hold"):
        huge.simplify(deduplicate=True, combine="sum")
    infinite = atos.Graph.from_edges([0, 0], [1, 1], [1.0, np.inf], device="cpu")
    assert infinite.simplify(deduplicate=True, combine="sum").weights[0] == np.inf


def test_large_graphs(device: atos.Device) -> None:
    random = np.random.default_rng(1)
    ends = random.integers(0, 300, (2, 20_000))
    graph = atos.Graph.from_edges(*ends, random.integers(1, 99, 20_000), 300, device=device)
    matrix = graph.to_scipy()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    total = graph.simplify(deduplicate=True, remove_loops=True, combine="sum").to_scipy()
    assert (total != matrix).nnz == 0


def test_symmetric_graphs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 2, 1], [5, 6, 7, 4], device="cpu")
    symmetric = graph.to_symmetric()
    assert triples(symmetric) == [(0, 1, 5), (1, 0, 5), (1, 2, 4), (2, 1, 4), (2, 2, 7)]
    light = graph._replace(weights=None).to_symmetric()
    assert light.weights is None
    monkeypatch.setattr(derived, "simplify_rows", None)
    assert graph.to_symmetric() == symmetric
    monkeypatch.setattr("atos_py.graph.symmetry.run_gather", None)
    assert symmetric.is_symmetric()  # without a look at it
    assert symmetric.to_symmetric() is symmetric


def test_refused() -> None:
    graph = atos.Graph.from_edges([0, 0], [1, 1], [np.inf, -np.inf], device="cpu")
    with pytest.raises(atos.InvalidArgumentError, match=r"combine must be one of min, max, sum, first \(got 'mean'\)"):
        graph.simplify(deduplicate=True, combine="mean")
    with pytest.raises(atos.InvalidArgumentError, match="infinite with both signs"):
        graph.simplify(deduplicate=True, combine="sum")


I8, I4, U4, U8 = (array(dtype) for dtype in ("i8", "i4", "u4", "u8"))


@pytest.mark.part("programs")
@pytest.mark.parametrize(
    ("task", "args"),
    [
        (write_keys, (I8, U4, 1, 0, 1, U8)),
        (mark_runs, (None, U8, 1, I8, I8)),
        (mark_runs, (I8, U8, 1, I8, I8)),
        (write_runs, (None, U8, I8, I8, I8, U4, 1, 1, U4, U4, None)),
        (write_runs, (I8, U8, I8, I8, I8, U4, 1, 1, U4, U4, I8)),
        (combine_run, (2, I8, I8, 1, array("i4", readonly=True), array("i8", readonly=True), I8, I8)),
        (write_offset, (U4, I8)),
        (turn_round, (I8, I8, U4, None, U4, U4, I8)),
        (turn_round, (I8, I8, U4, I4, U4, U4, I4)),
        (turn_round, (I8, I8, U4, U8, U4, U4, U8)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_tasks_for_gpus_spill_nothing(task: atos.Task, args: tuple[Any, ...]) -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    link = pytest.importorskip("atos_py.compile.linker")
    if not any(link.CORE_DIR.glob("core_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    found = linked(ProgramSpec(task, None, tuple(map(describe, (9, *args))), np.dtype("u4")))
    assert (found.spill_bytes, found.stack_bytes) == (0, 0)
