"""The backend of networkx: the same results as networkx's own functions, and networkx's own tests with the backend forced."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import ROOT

import _atos_networkx
from atos_py import nx_backend

tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]
# Of networkx, the test files of the functions that are dispatched.
THEIRS = [
    "centrality.tests.test_betweenness_centrality",
    "centrality.tests.test_closeness_centrality",
    "centrality.tests.test_harmonic_centrality",
    "coloring.tests.test_coloring",
    "components.tests.test_connected",
    "components.tests.test_strongly_connected",
    "components.tests.test_weakly_connected",
    "link_analysis.tests.test_pagerank",
    "shortest_paths.tests.test_generic",
    "shortest_paths.tests.test_unweighted",
    "tests.test_cluster",
    "tests.test_core",
    "tests.test_distance_measures",
    "shortest_paths.tests.test_weighted",
    "tests.test_dag",
    "tree.tests.test_mst",
    "tests.test_mis",
    "traversal.tests.test_bfs",
]
PLUGIN = """
import collections, functools, json
from atos_py import nx_backend

calls = collections.Counter()

def counted(name, function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        calls[name] += 1
        return function(*args, **kwargs)
    return call

for name in {names!r}:
    setattr(nx_backend, name, counted(name, getattr(nx_backend, name)))

def pytest_unconfigure():
    with open({path!r}, "w") as file:
        json.dump(calls, file)
"""


def register(directory: Path) -> dict[str, str]:
    """Return an environment in which networkx finds the backend, as if the package were installed."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    package = directory / "atos_py-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: atos_py\nVersion: 0\n")
    groups = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points[group].items()) for group in points]
    (package / "entry_points.txt").write_text("\n".join(groups))
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(directory), str(ROOT), os.environ.get("PYTHONPATH", "")])}


def test_what_is_told_is_there():
    functions = set(_atos_networkx.get_info()["functions"])
    helpers = {"AtosGraph", "can_run", "should_run", "convert_from_nx", "convert_to_nx"}
    assert functions == set(nx_backend.__all__) - helpers
    assert all(hasattr(nx, name) for name in functions)


def test_their_tests_with_the_backend_forced(tmp_path):
    forced = {"NETWORKX_TEST_BACKEND": "atos", "NETWORKX_FALLBACK_TO_NX": "True", "PYTEST_ADDOPTS": ""}
    environment = register(tmp_path) | forced
    functions = sorted(_atos_networkx.get_info()["functions"])
    (tmp_path / "count_calls.py").write_text(PLUGIN.format(names=functions, path=str(tmp_path / "calls")))
    files = [f"networkx.algorithms.{name}" for name in THEIRS]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "count_calls", "-p", "no:cacheprovider", "--pyargs", *files]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    summary = done.stdout.splitlines()[-1]
    assert done.returncode == 0, done.stdout
    passed = re.match(r"(\d+) passed", summary)
    assert passed, summary
    assert int(passed[1]) > 100
    calls = json.loads((tmp_path / "calls").read_text())
    assert sorted(calls) == functions  # none was left to networkx throughout


def test_by_name_and_not_on_import(tmp_path):
    """networkx alone does not import atos_py; a call by the backend's name does, and says why it cannot."""
    code = """
import sys
import networkx as nx
assert "atos" in nx.utils.backends.backends and "atos_py" not in sys.modules
graph = nx.path_graph(["a", "b", "c"])
assert nx.single_source_shortest_path_length(graph, "a", backend="atos") == {"a": 0, "b": 1, "c": 2}
assert "atos_py" in sys.modules
assert list(nx.bfs_edges(graph, "b", backend="atos")) == [("b", "a"), ("b", "c")]
try:
    nx.pagerank(graph, dangling={"a": -1}, backend="atos")
except NotImplementedError as error:
    print(error)
nx.config.backend_priority = ["atos"]
for length in (100, 10_000):
    graph = nx.path_graph(length)
    assert len(nx.descendants(graph, 0)) == length - 1
    assert ("atos" in graph.__networkx_cache__.get("backends", {})) == (length == 10_000)
"""
    code += "".join(re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "networkx.md").read_text(), re.MULTILINE | re.DOTALL))
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env=register(tmp_path), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "atos" in done.stdout


graphs = st.builds(
    lambda kind, nodes, edges: (kind, nodes, edges),
    st.sampled_from(KINDS),
    st.permutations([f"node {i}" for i in range(9)]),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25),
)


def build(description):
    kind, nodes, edges = description
    graph = kind()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((f"node {u}", f"node {v}") for u, v in edges)
    return graph, nx_backend.convert_from_nx(graph)


@settings(max_examples=60, deadline=None)
@given(graphs, st.sampled_from([None, 0, 1, 1.5, 2, -1, float("inf")]))
def test_searches_are_the_same(description, cutoff):
    graph, ours = build(description)
    source = "node 0"
    for name in ("single_source_shortest_path_length", "single_target_shortest_path_length"):
        assert getattr(nx_backend, name)(ours, source, cutoff) == getattr(nx, name)(graph, source, cutoff)
    assert dict(nx_backend.all_pairs_shortest_path_length(ours, cutoff)) == dict(
        nx.all_pairs_shortest_path_length(graph, cutoff)
    )
    for name in ("bfs_edges", "bfs_predecessors", "bfs_successors"):
        expected = getattr(nx, name)(graph, source, depth_limit=cutoff)
        assert list(getattr(nx_backend, name)(ours, source, depth_limit=cutoff)) == list(expected), name
    assert list(nx_backend.bfs_tree(ours, source).edges) == list(nx.bfs_tree(graph, source).edges)
    assert nx_backend.descendants(ours, source) == nx.descendants(graph, source)
    assert nx_backend.ancestors(ours, source) == nx.ancestors(graph, source)
    for distance in (0, 1, 3, 2**32 - 1):
        assert nx_backend.descendants_at_distance(ours, source, distance) == nx.descendants_at_distance(graph, source, distance)
    for sources in (source, [source, "node 3"], []):
        assert list(nx_backend.bfs_layers(ours, sources)) == list(nx.bfs_layers(graph, sources))
    if not graph.is_directed():
        assert nx_backend.is_connected(ours) == nx.is_connected(graph)
        assert nx_backend.node_connected_component(ours, source) == nx.node_connected_component(graph, source)
        for module, given in ((nx_backend, ours), (nx, graph)):
            with pytest.raises(KeyError):
                module.node_connected_component(given, "nowhere")


@settings(max_examples=40, deadline=None)
@given(graphs)
def test_components_are_the_same(description):
    graph, ours = build(description)
    kinds = ("weakly_connected", "strongly_connected") if graph.is_directed() else ("connected",)
    for kind in kinds:
        for name in (f"{kind}_components", f"number_{kind}_components", f"is_{kind}"):
            found, expected = getattr(nx_backend, name)(ours), getattr(nx, name)(graph)
            if name == f"{kind}_components":
                found, expected = list(found), list(expected)
            assert found == expected, name


@settings(max_examples=40, deadline=None)
@given(graphs, st.sampled_from([None, 0, 1, 2.5, 3]))
def test_cores_are_the_same(description, k):
    graph, _ = build(description)
    if graph.is_multigraph():
        return  # networkx refuses it before it asks a backend
    loops = list(nx.selfloop_edges(graph))
    if loops:
        with pytest.raises(nx.NetworkXNotImplemented, match="self loops"):
            nx_backend.core_number(nx_backend.convert_from_nx(graph))
    graph.remove_edges_from(loops)
    nx.set_node_attributes(graph, {node: i for i, node in enumerate(graph)}, "number")
    ours = nx_backend.convert_from_nx(graph, preserve_node_attrs=True)
    cores = nx.core_number(graph)
    assert list(nx_backend.core_number(ours).items()) == list(cores.items())
    for given_cores in (None, cores):
        expected, found = nx.k_core(graph, k, given_cores), nx_backend.k_core(ours, k, given_cores)
        assert type(found) is type(graph)
        assert list(found.nodes(data=True)) == list(expected.nodes(data=True))
        assert list(found.edges) == list(expected.edges)


@settings(max_examples=40, deadline=None)
@given(graphs, st.sampled_from([None, "node 1", [], ["node 3", "nowhere", "node 0"]]))
def test_triangles_are_the_same(description, nodes):
    graph, ours = build(description)
    for name in ("triangles", "clustering"):
        if nx_backend.can_run(name, (graph, nodes), {}) is True and not graph.is_directed():
            found, expected = getattr(nx_backend, name)(ours, nodes), getattr(nx, name)(graph, nodes)
            assert found == expected
            assert not isinstance(found, dict) or list(found) == list(expected)
    for wrong, message in ((7, "Node 7 is not in the graph"), ([[]], "not a valid node")):
        for module, of in ((nx_backend, ours), (nx, nx.Graph(graph))):
            with pytest.raises(nx.NetworkXError, match=message):
                module.triangles(of, wrong)


@settings(max_examples=40, deadline=None)
@given(graphs, st.sampled_from([None, ["node 1"], {"node 2", "node 3"}, ["nowhere"]]), st.booleans())
def test_independent_sets_are_some(description, nodes, seeded):
    graph, ours = build(description)
    if graph.is_directed():
        return  # networkx refuses it before it asks a backend
    options = {"nodes": nodes, "seed": random.Random(1)} if seeded else {"nodes": nodes}
    try:
        expected = nx.maximal_independent_set(graph, nodes, seed=1)
    except nx.NetworkXUnfeasible:
        if nodes is not None:
            with pytest.raises(nx.NetworkXUnfeasible, match="is not a"):
                nx_backend.maximal_independent_set(ours, **options)
        return  # otherwise a node with a loop was the random one
    try:
        found = nx_backend.maximal_independent_set(ours, **options)
    except nx.NetworkXUnfeasible:
        assert nodes is None
        return
    assert len(found) == len(set(found))
    assert set(nodes or expected[:0]) <= set(found)
    assert all(not set(graph[u]) & set(found) - {u} for u in found)
    assert all(set(graph[u]) & set(found) for u in set(graph) - set(found))


def test_a_core_without_the_graph_it_was_made_of():
    ours = nx_backend.convert_from_nx(nx.disjoint_union(nx.complete_graph(4), PATH))
    gc.collect()
    assert sorted(nx_backend.k_core(ours).edges) == sorted(nx.complete_graph(4).edges)


def outcome(function, *args, **options):
    """Return the result of a function of networkx, in order if there are weights, or the type and text of its error."""
    try:
        found = function(*args, **options)
    except nx.NetworkXException as error:
        return type(error), str(error)
    if isinstance(found, dict):
        return list(found.items()) if options["weight"] or "cutoff" in options else found
    if isinstance(found, tuple) and isinstance(found[0], dict):
        return [list(part.items()) for part in found]
    return found if isinstance(found, (int, float, tuple)) else dict(found)


COSTS = st.lists(st.sampled_from([0, 0, 1, 2, 2, 3, 0.5, 0.1, None]), min_size=25, max_size=25)


@settings(max_examples=30, deadline=None)
@given(graphs, COSTS, st.booleans(), st.data())
def test_weighted_paths_are_the_same(description, weights, whole, data):
    """With the same choice among paths of one length, and in the same order."""
    graph, _ = build(description)
    for (*_, attributes), weight in zip(graph.edges(data=True), weights, strict=False):
        if weight is not None:  # otherwise it is 1
            attributes["cost"] = int(2 * weight) if whole else weight
    ours = nx_backend.convert_from_nx(graph, edge_attrs={"cost": 1})
    target, cutoff = data.draw(st.sampled_from(["node 0", "node 3", "nowhere"])), data.draw(st.sampled_from([None, 0, 2.5, -1]))
    for weight in ("cost", None):
        for name, options in (
            ("single_source_dijkstra", {"cutoff": cutoff}),
            ("single_source_dijkstra", {"cutoff": cutoff, "target": target}),
            ("single_source_dijkstra_path", {"cutoff": cutoff}),
            ("single_source_dijkstra_path_length", {"cutoff": cutoff}),
            ("shortest_path_length", {}),
            ("shortest_path_length", {"target": target}),
        ):
            assert nx_backend.can_run(name, (graph, "node 0"), options | {"weight": weight}) is True
            expected = outcome(getattr(nx, name), graph, "node 0", weight=weight, **options)
            assert outcome(getattr(nx_backend, name), ours, "node 0", weight=weight, **options) == expected, (name, options)
        to_one = nx_backend.shortest_path_length(ours, target="node 0", weight=weight)
        assert to_one == nx.shortest_path_length(graph, target="node 0", weight=weight)
        pairs = outcome(nx_backend.shortest_path_length, ours, weight=weight)
        assert pairs == outcome(nx.shortest_path_length, graph, weight=weight)


def test_a_graph_that_was_converted_with_all_attributes_has_weights():
    """As networkx may hand over one that it keeps from another call."""
    graph = nx.DiGraph([(0, 1, {"cost": 5}), (1, 2, {"cost": 7}), (0, 2, {"cost": 13}), (2, 0)])
    ours = nx_backend.convert_from_nx(graph, preserve_edge_attrs=True)
    for ends in ({"source": 0}, {"target": 2}):
        assert nx_backend.shortest_path_length(ours, weight="cost", **ends) == nx.shortest_path_length(
            graph, weight="cost", **ends
        )


weights = st.sampled_from([-1, 0.0, 0.5, 1, 2**70, Fraction(1, 3), float("inf")])


@settings(max_examples=60, deadline=None)
@given(graphs, st.lists(weights, min_size=25, max_size=25), st.booleans())
def test_spanning_trees_are_the_same(description, values, attributes):
    graph, ours = build((KINDS[2 * (description[0] in KINDS[2:])], *description[1:]))
    if attributes:
        graph.graph["name"] = "some"
        graph.nodes["node 3"]["color"] = "red"
        for (*_, given), value in zip(graph.edges(data=True), values, strict=False):
            given |= {"cost": value, "other": 7}
        ours = nx_backend.convert_from_nx(graph, preserve_edge_attrs=True)
    for options in ({}, {"data": False}, {"keys": False}, {"keys": False, "data": False}):
        expected = list(nx.minimum_spanning_edges(graph, weight="cost", **options))
        assert list(nx_backend.minimum_spanning_edges(ours, weight="cost", **options)) == expected
    tree, expected = nx_backend.minimum_spanning_tree(ours, "cost"), nx.minimum_spanning_tree(graph, "cost")
    assert nx.utils.graphs_equal(tree, expected)
    assert (type(tree), tree.graph, list(tree)) == (type(graph), graph.graph, list(graph))


def test_spanning_trees_and_nan():
    graph = nx.Graph([(0, 1, {"weight": float("nan")}), (1, 2, {"weight": 2})])
    ours = nx_backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    with pytest.raises(ValueError, match=r"NaN found as an edge weight\. Edge \(0, 1, {'weight': nan}\)"):
        list(nx_backend.minimum_spanning_edges(ours))
    assert list(nx_backend.minimum_spanning_edges(ours, data=False, ignore_nan=True)) == [(1, 2)]


@settings(max_examples=40, deadline=None)
@given(graphs, st.booleans())
def test_betweenness_is_the_same(description, normalized):
    graph, ours = build(description)
    found = nx_backend.betweenness_centrality(ours, normalized=normalized)
    assert found == pytest.approx(nx.betweenness_centrality(graph, normalized=normalized))


@settings(max_examples=40, deadline=None)
@given(graphs, st.booleans())
def test_closeness_is_the_same(description, wf_improved):
    graph, ours = build(description)
    found = nx_backend.closeness_centrality(ours, wf_improved=wf_improved)
    assert found == pytest.approx(nx.closeness_centrality(graph, wf_improved=wf_improved))
    assert nx_backend.harmonic_centrality(ours) == pytest.approx(nx.harmonic_centrality(graph))


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_eccentricities_are_the_same(description):
    graph, ours = build(description)
    for name in ("eccentricity", "diameter", "radius", "center", "periphery"):
        if nx_backend.can_run(name, (graph,), {}) is not True:
            continue
        try:
            expected = getattr(nx, name)(graph)
        except nx.NetworkXError as error:
            with pytest.raises(nx.NetworkXError, match=f"^{re.escape(str(error))}$"):
                getattr(nx_backend, name)(ours)
        else:
            assert getattr(nx_backend, name)(ours) == expected


@settings(max_examples=25, deadline=None)
@given(graphs, st.sampled_from([0.0, 0.5, 0.85]), st.booleans(), st.booleans())
def test_ranks_are_the_same(description, alpha, personal, warm):
    graph, ours = build(description)
    some = {node: i for i, node in enumerate(graph)} | {"no node": 7}
    options = {"personalization": some if personal else None, "nstart": some if warm else None, "alpha": alpha}
    exact = nx.pagerank(graph, tol=1e-12, max_iter=1000, **options)
    assert nx_backend.can_run("pagerank", (graph,), options) is True
    found = nx_backend.pagerank(ours, tol=1e-8, **options)
    assert list(found) == list(exact)
    assert sum(abs(found[node] - exact[node]) for node in exact) <= 1.1e-8 * len(graph)


@settings(max_examples=25, deadline=None)
@given(graphs, st.booleans(), st.data())
def test_ranks_by_weights_are_the_same(description, sinks, data):
    graph, _ = build(description)
    for *_, attributes in graph.edges(data=True):
        weight = data.draw(st.none() | st.sampled_from([0, 1, 2.5]))
        attributes |= {} if weight is None else {"cost": weight}
    some = {node: i for i, node in enumerate(graph)} | {"no node": 7} if sinks and len(graph) > 1 else None
    exact = nx.pagerank(graph, tol=1e-12, max_iter=1000, weight="cost", dangling=some)
    assert nx_backend.can_run("pagerank", (graph,), {"weight": "cost", "dangling": some}) is True
    ours = nx_backend.convert_from_nx(graph, edge_attrs={"cost": 1})
    found = nx_backend.pagerank(ours, tol=1e-8, weight="cost", dangling=some)
    assert sum(abs(found[node] - exact[node]) for node in exact) <= 1.1e-8 * len(graph)
    plain = nx_backend.pagerank(ours, tol=1e-8, weight=None)
    exact = nx.pagerank(graph, tol=1e-12, max_iter=1000, weight=None)
    assert sum(abs(plain[node] - exact[node]) for node in exact) <= 1.1e-8 * len(graph)


@settings(max_examples=25, deadline=None)
@given(graphs)
def test_colorings_are_some(description):
    graph, ours = build(description)
    colors = nx_backend.greedy_color(ours, "random_sequential")
    assert all(colors[u] != colors[v] for u, v in graph.edges() if u != v)
    assert max(colors.values()) <= max(len(set(nx.all_neighbors(graph, node)) - {node}) for node in graph)


@settings(max_examples=40, deadline=None)
@given(graphs)
def test_there_and_back(description):
    graph, ours = build(description)
    back = nx_backend.convert_to_nx(ours)
    assert type(back) is type(graph)
    assert list(back) == list(graph)
    np.testing.assert_array_equal(nx.to_numpy_array(back), nx.to_numpy_array(graph))
    assert len(ours) == len(graph)
    assert "node 1" in ours
    assert ["not hashed"] not in ours


@settings(max_examples=40, deadline=None)
@given(graphs, st.sets(st.integers(0, 24)))
def test_views_are_as_their_copies(description, chosen):
    graph, _ = build(description)
    edges = [edge for i, edge in enumerate(graph.edges) if i in chosen]
    for view in (
        graph.edge_subgraph(edges),
        graph.subgraph([f"node {i}" for i in chosen]),
        graph.reverse(copy=False) if graph.is_directed() else graph,
    ):
        ours, copied = nx_backend.convert_from_nx(view), nx.create_empty_copy(view)
        copied.add_edges_from(view.edges)
        back = nx_backend.convert_to_nx(ours)
        assert list(back) == list(view)
        assert nx.utils.edges_equal(list(back.edges()), list(copied.edges()), directed=graph.is_directed())


WEIGHTED = nx.DiGraph([(0, 1, {"weight": 2.5})])
ODD = nx.Graph([(0, 1, {"less": -1, "far": float("inf"), "big": 2**60, "word": "a"})])
PATH, ARC = nx.path_graph(3), nx.path_graph(3, nx.DiGraph)


@pytest.mark.parametrize(
    ("name", "args", "options", "reason"),
    [
        ("bfs_edges", (PATH, 0), {"sort_neighbors": sorted}, "order"),
        ("bfs_tree", (ARC, 0), {"reverse": True}, "predecessors"),
        *(
            ("betweenness_centrality", (PATH,), option, "by edges")
            for option in ({"k": 2}, {"weight": "w"}, {"endpoints": True})
        ),
        *(("closeness_centrality", (PATH,), option, "all nodes") for option in ({"u": 1}, {"distance": "w"})),
        *(("harmonic_centrality", (PATH,), {option: [1]}, "all nodes") for option in ("nbunch", "sources")),
        *(("eccentricity", (PATH,), {option: 1}, "all nodes") for option in ("v", "sp", "weight")),
        ("diameter", (PATH,), {"e": {}}, "all nodes"),
        ("center", (PATH,), {}, "order"),
        ("periphery", (nx.cycle_graph(4), None, True), {}, "order"),
        ("radius", (nx.Graph(),), {}, "without nodes"),
        ("greedy_color", (PATH,), {}, "certain order"),
        ("greedy_color", (PATH, "random_sequential"), {"interchange": True}, "interchange"),
        ("minimum_spanning_tree", (PATH,), {"algorithm": "prim"}, "Kruskal"),
        ("minimum_spanning_edges", (PATH, "boruvka"), {}, "Kruskal"),
        ("minimum_spanning_tree", (ARC,), {}, "undirected"),
        ("shortest_path_length", (WEIGHTED, 0), {"weight": "weight", "method": "bellman-ford"}, "Dijkstra"),
        ("shortest_path_length", (WEIGHTED, 0), {"method": "SPAM"}, "Dijkstra"),
        ("single_source_dijkstra", (WEIGHTED, 0), {"weight": lambda u, v, data: 1}, "attribute"),
        ("single_source_dijkstra", (WEIGHTED, 0), {"cutoff": "3"}, "number"),
        *(("single_source_dijkstra", (ODD, 0), {"weight": name}, "at least 0") for name in ("less", "far", "big", "word")),
        ("pagerank", (nx.DiGraph([(0, 1, {"weight": -2.5})]),), {}, "weights"),
        ("pagerank", (nx.DiGraph([(0, 1, {"weight": "heavy"})]),), {}, "weights"),
        ("clustering", (PATH,), {"weight": "weight"}, "without weights"),
        ("clustering", (ARC,), {}, "undirected graphs"),
        ("clustering", (nx.MultiGraph(PATH),), {}, "multigraphs"),
        ("triangles", (nx.MultiGraph(PATH), 0), {}, "multigraphs"),
        ("maximal_independent_set", (PATH,), {"seed": random.Random(1)}, "seed"),
        ("pagerank", (PATH,), {"alpha": 1}, "alpha"),
        ("pagerank", (PATH,), {"dangling": {7: 1}}, "positive sum"),
        ("pagerank", (PATH,), {"dangling": {0: -1}}, "negative"),
        ("pagerank", (PATH,), {"tol": 1e-14}, "rounding"),
        ("pagerank", (PATH,), {"personalization": {0: -1}}, "negative"),
        ("pagerank", (PATH,), {"nstart": {7: 1}}, "positive sum"),
    ],
)
def test_what_is_left_to_networkx(name, args, options, reason):
    assert reason in nx_backend.can_run(name, args, options)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("betweenness_centrality", (PATH,), {"k": 3, "normalized": False}),
        ("closeness_centrality", (PATH,), {"wf_improved": False}),
        ("harmonic_centrality", (PATH,), {}),
        ("eccentricity", (PATH,), {}),
        ("diameter", (PATH,), {"usebounds": True}),
        ("center", (nx.cycle_graph(4),), {}),
        ("periphery", (PATH,), {}),
        ("bfs_edges", (PATH, 0, True), {}),
        ("pagerank", (WEIGHTED,), {}),
        ("pagerank", (WEIGHTED,), {"weight": None}),
        ("single_source_dijkstra", (WEIGHTED, 0), {}),
        ("single_source_dijkstra", (nx_backend.convert_from_nx(WEIGHTED, edge_attrs={"weight": 1}), 0), {}),
        ("shortest_path_length", (WEIGHTED, 0), {"method": "bellman-ford"}),
        ("pagerank", (WEIGHTED,), {"weight": "cost"}),
        ("greedy_color", (PATH,), {"strategy": "random_sequential"}),
        ("is_connected", (PATH,), {}),
        ("minimum_spanning_tree", (PATH, "cost"), {}),
        ("clustering", (PATH, 1), {}),
        ("triangles", (nx.MultiGraph(PATH),), {}),
        ("maximal_independent_set", (PATH, [1], random._inst), {}),
    ],
)
def test_what_is_taken(name, args, options):
    assert nx_backend.can_run(name, args, options) is True


def test_small_graphs_are_better_left_to_networkx():
    assert "fewer than" in nx_backend.should_run("pagerank", (PATH,), {})
    assert nx_backend.should_run("pagerank", (nx.path_graph(10_000),), {}) is True


def test_wrong_arguments_raise_what_networkx_does():
    ours = nx_backend.convert_from_nx(PATH)
    with pytest.raises(nx.NodeNotFound, match="Source 9 is not in G"):
        nx_backend.single_source_shortest_path_length(ours, 9)
    with pytest.raises(nx.NodeNotFound, match="Target 9 is not in G"):
        nx_backend.single_target_shortest_path_length(ours, 9)
    for name in ("bfs_edges", "bfs_layers"):
        with pytest.raises(nx.NetworkXError, match="The node 9 is not in the graph"):
            list(getattr(nx_backend, name)(ours, [9] if name == "bfs_layers" else 9))
    with pytest.raises(nx.NetworkXError, match="The node 9 is not in the graph"):
        nx_backend.ancestors(ours, 9)
    with pytest.raises(nx.NetworkXPointlessConcept):
        nx_backend.is_connected(nx_backend.convert_from_nx(nx.Graph()))
    for name in ("is_weakly_connected", "is_strongly_connected"):
        with pytest.raises(nx.NetworkXPointlessConcept):
            getattr(nx_backend, name)(nx_backend.convert_from_nx(nx.DiGraph()))
    assert list(nx_backend.connected_components(nx_backend.convert_from_nx(nx.Graph()))) == []
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx_backend.pagerank(ours, max_iter=0)
    with pytest.raises(ZeroDivisionError):
        nx_backend.pagerank(ours, personalization={9: 1})
    assert nx_backend.pagerank(nx_backend.convert_from_nx(nx.Graph())) == {}


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
@pytest.mark.parametrize("options", [{}, {"personalization": {}}, {"dangling": {}}, {"tol": 0.0}, {"max_iter": 0}])
def test_the_empty_graph_has_no_ranks(kind, options):
    assert nx.pagerank(kind(), **options, backend="atos") == nx.pagerank(kind(), **options) == {}


@pytest.mark.parametrize("weight", [1e-310, 1e-300])
def test_weights_near_the_end_of_float64_are_left_to_networkx(weight):
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, weight), (1, 0, 1.0)])
    assert nx_backend.can_run("pagerank", (graph,), {}) == "weights have to be 0 or from 1e-280 to 2**63"
