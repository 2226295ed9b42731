"""Breadth-first search that pushes level by level: right on any graph, each vertex once, also beyond the rounds that it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_limits import linked

import atos_py as atos
from atos_py.algorithms.bfs import UNREACHED, pushed_levels
from atos_py.algorithms.bfs import api as driver
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec

GPUS = [str(device) for device in atos.devices() if device.kind == "cuda"]
DEVICES = [
    ["cpu:0", "cpu:1", "cpu:2"],
    pytest.param((GPUS * 2)[:2], marks=[pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="needs a GPU")]),
]


@pytest.fixture(autouse=True)
def _any_graph_has_many_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "has_many_edges", lambda graph: True)


def checked(graph: atos.Graph, where: Any, source: Any, **options: Any) -> atos.BFSResult:
    """Push from a source over a graph, or its parts, and prove the depths; on one device each vertex is a task once."""
    found, is_whole = atos.bfs(where, source, direction="push", **options), isinstance(where, atos.Graph)
    atos.verify_bfs(graph, source, found.depth.to_numpy(), cutoff=options.get("cutoff"))
    assert found.stats.task == ("try_first" if is_whole else "push_level")
    if "cutoff" not in options:
        assert found.stats.rounds == (found.num_levels if is_whole else 2 * found.num_levels + 1)
        assert not is_whole or found.stats.tasks_run == np.count_nonzero(found.depth.to_numpy() != UNREACHED)
    assert not found.stats.stopped
    return found


@st.composite
def searches(draw: st.DrawFn, over: bool) -> tuple[atos.Graph, Any]:
    n = draw(st.integers(1, 9)) * (96 if over else 10)  # a word of bits is of one of three devices
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = rng.integers(0, n, (2, draw(st.integers(0, 3 * n))))
    graph = atos.Graph.from_edges(*ends, num_vertices=n, symmetrize=draw(st.booleans()), device="cpu")
    return graph, draw(st.one_of(st.integers(0, n - 1), st.lists(st.integers(0, n - 1), min_size=1, max_size=12)))


@pytest.mark.parametrize("parts", [1, 3])
def test_random_graphs(parts):
    @given(searches(parts > 1), st.one_of(st.none(), st.integers(1, 4)), st.sampled_from(["keep", "random", "degree"]))
    @settings(deadline=None, max_examples=60)
    def check(search, cutoff, order):
        graph, source = search
        where = graph if parts == 1 else graph.partition([f"cpu:{k}" for k in range(parts)], order)
        checked(graph, where, source, **({} if cutoff is None else {"cutoff": cutoff}))

    check()


def test_one_device(device):
    graph = atos.generate.rmat(12, 16, device=device)
    for source in (int(graph.degrees().argmax()), [0, 5, 77], np.arange(30)):
        alone = {"num_blocks": 1, "experiment": atos.Experiment(push_buffer=0)}
        for options in ({}, {"cutoff": 1}, {"cutoff": 2}, {"fetch_size": 1}, alone):
            checked(graph, graph, source, **options)
        tree = atos.bfs(graph, source, direction="push", parents=True)
        atos.verify_bfs(graph, source, tree.depth, tree.parent)


@pytest.mark.parametrize("devices", DEVICES)
def test_several_devices(devices):
    graph = atos.generate.rmat(12, 16, device="cpu")
    for order in ("keep", "random"):
        parts = graph.partition(devices, order)
        for source in (int(graph.degrees().argmax()), [0, 5, 77]):
            checked(graph, parts, source)
            checked(graph, parts, source, cutoff=2)
            tree = atos.bfs(parts, source, direction="push", parents=True)
            atos.verify_bfs(graph, source, tree.depth.to_numpy(), tree.parent.to_numpy())


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("degree", [511, 512, 513, 1024, 1025, 5000])
def test_long_rows_over_devices(devices, degree):
    """Two hubs, of which the second one is not a source, and other rows beside them."""
    leaves = np.arange(64, 64 + degree - 1)
    others = np.random.default_rng(degree).integers(2, 64 + degree, (2, 300))
    ends = np.concatenate([[0], np.repeat([0, 1], degree - 1), others[0]]), np.concatenate([[1], leaves, leaves, others[1]])
    n = -(-(64 + degree) // 192) * 192  # a word of bits is of one of two devices, or of three
    graph = atos.Graph.from_edges(*ends, num_vertices=n, symmetrize=True, device="cpu")
    for order in ("keep", "random", "degree"):
        for source in (0, 5, [1, 70]):
            checked(graph, graph.partition(devices, order), source)


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("levels", [63, 64, 65, 66, 200])
def test_what_is_deeper_goes_without_rounds(device, levels, over):
    """Along a path of so many levels, from which others leave at each vertex."""
    path = np.arange(levels)
    ends, targets = np.repeat(path, 3), np.concatenate([path[:, None] + levels * np.arange(1, 4)], axis=None)
    n = -(-4 * levels // 64) * 64  # a word of bits is of one device
    graph = atos.Graph.from_edges([*path[:-1], *ends], [*path[1:], *targets], None, n, symmetrize=True, device=device)
    devices = [str(device)] * 2 if device.kind == "cuda" else ["cpu:0", "cpu:1"]
    result = atos.bfs(graph.partition(devices, "random") if over else graph, 0, direction="push")
    atos.verify_bfs(graph, 0, result.depth.to_numpy())
    assert (result.num_levels, result.num_reached, result.stats.stopped) == (levels + 1, 4 * levels, False)
    goes_on = levels + 1 > pushed_levels.MOST_LEVELS
    assert (result.stats.launches, "visit" in result.stats.task) == (1 + goes_on, goes_on)


def test_a_schedule_of_ones_own_is_kept(device):
    graph = atos.generate.rmat(8, 16, device=device)
    for options in ({"worker": "warp"}, {"persistent": True}, {"barrier": True}, {"target": 3}, {"cutoff": 0}):
        assert not atos.bfs(graph, 0, direction="push", **options).stats.task.startswith("try_first")

    def between_rounds(worker, graph, depth):
        pass

    for options in ({"each_round": between_rounds, "barrier": True}, {"idle": between_rounds}):
        assert atos.bfs(graph, 0, direction="push", **options).stats.task == "visit"
    one_way = atos.Graph.from_edges([0, 1, 2], [1, 2, 3], device=device)
    assert atos.sssp(one_way, 0).stats.task == "try_first"  # without weights, and no edge has its reverse
    assert atos.sssp(one_way, 0).distance[:].tolist() == [0, 1, 2, 3]


@pytest.mark.part("programs")
def test_registers():
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    if not any(link.CORE_DIR.glob("core_*.fatbin")):
        pytest.skip("the core was built without GPU support")
    graph = atos.generate.road(4, 1.0, device="cpu")._replace(weights=None)
    depth, tried = (atos.zeros(k, dtype=np.uint32, device="cpu") for k in (16, 1))
    kinds, end = tuple(map(describe, (graph, depth, tried, 9))), pushed_levels.end_level
    found = linked(ProgramSpec(pushed_levels.try_first, None, kinds, np.dtype("u4"), each_round=end), 48)
    assert (found.stack_bytes, found.spill_bytes) == (0, 0)
    assert found.registers <= 48  # 46; with 40 it would spill, since a spilled item has a ticket
