"""Whatever is handed to any public function, however odd, raises nothing but errors of this package."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import public_calls
import pytest
import test_bad_input
from public_calls import MASKED, RAGGED, alone, array, cpu, csr, dynamic, edges, keep, lowered, parts, pool, weighted

import atos_py as atos
from atos_py import acc, errors
from atos_py.errors import AtosError
from atos_py.graph import generate
from atos_py.graph.graph import Graph
from atos_py.runtime.queue import Queue


def search(**options: Any) -> Any:
    return atos.bfs(edges(), 0, **options)


def run_program(**options: Any) -> Any:
    return acc.programs.SSSP.run(edges(), np.zeros(2), **options)


def closed_run() -> atos.Run:
    run = cpu().start(keep, array())
    run.close()
    return run


class Odd:
    """A number, by what Python asks for; a function that cannot be a key."""

    __hash__ = None  # type: ignore[assignment]
    __index__ = __int__ = lambda self: 2

    def __call__(self, *args: Any) -> None: ...


JUNK = [
    float("nan"), -1, 1.5, True, 2**70, "x", b"x", None, [], [None], [[0, 1], [2]], {}, object(), Odd(), RAGGED, MASKED, int,
    np.array([]), np.array(2),
]  # fmt: skip

# One parameter each, which may also be happy with some of the junk.
SWEPT: dict[str, Callable[[Any], Any]] = {
    "device": atos.device,
    "Device": lambda junk: hash(atos.Device("cuda", junk)),
    "zeros": atos.zeros,
    "empty": lambda junk: atos.empty((2, junk)),
    "full": lambda junk: atos.full(3, junk, dtype=np.int32, device="cpu"),
    "full, dtype": lambda junk: atos.full(3, 1, dtype=junk, device="cpu"),
    "asarray": lambda junk: atos.asarray(junk, device="cpu"),
    "asarray, dtype": lambda junk: atos.asarray([1], dtype=junk, device="cpu"),
    "asarray, device": lambda junk: atos.asarray([1], device=junk),
    "Array, index": lambda junk: array()[junk],
    "Array, value": lambda junk: array().__setitem__(slice(None), junk),
    "Array, fill": lambda junk: array().fill(junk),
    "Experiment": lambda junk: atos.Experiment(work_sharing=junk),
    "Experiment, local_items": lambda junk: atos.Experiment(local_items=junk),
    "Experiment, push_buffer": lambda junk: atos.Experiment(push_buffer=junk),
    "Joins": lambda junk: atos.Joins(junk, device="cpu"),
    "Joins, dtype": lambda junk: atos.Joins(3, junk, device="cpu"),
    "Joins, combine": lambda junk: atos.Joins(3, combine="any" if junk is None else junk, device="cpu"),
    "Joins, max_capacity": lambda junk: atos.Joins(1, max_capacity=-1 if junk is None else junk, device="cpu"),
    "Joins, device": lambda junk: atos.Joins(1, device=junk),
    "Joins.open": lambda junk: atos.Joins(1, device="cpu").open(junk),
    "Joins.open, n": lambda junk: atos.Joins(1, device="cpu").open(1, n=-1 if junk is None else junk),
    "task, opens": lambda junk: atos.task(opens=junk),
    "Pool": lambda junk: atos.Pool(junk, 3, device="cpu"),
    "Pool, capacity": lambda junk: atos.Pool(np.int32, junk, max_capacity=100, device="cpu"),
    "Pool, max_capacity": lambda junk: atos.Pool(np.int32, 1, max_capacity=-1 if junk is None else junk, device="cpu"),
    "Pool, device": lambda junk: atos.Pool(np.int32, 1, device=junk),
    "Pool.take": lambda junk: pool().take(junk),
    "Pool.append": lambda junk: pool().append(junk),
    "Pool.append, fields": lambda junk: pool([("x", "i4")]).append(x=junk),
    "Pool.resize": lambda junk: pool().resize(junk),
    "nonzero": lambda junk: atos.nonzero(junk),
    "nonzero, dtype": lambda junk: atos.nonzero(array(), dtype=junk),
    "cumsum": lambda junk: atos.cumsum(junk),
    "sort": lambda junk: atos.sort(junk),
    "argsort": lambda junk: atos.argsort(junk),
    "sum": lambda junk: atos.sum(junk),
    "min": lambda junk: atos.min(junk),
    "max": lambda junk: atos.max(junk),
    "Queue": lambda junk: Queue(junk, device="cpu"),
    "Queue, dtype": lambda junk: Queue(3, dtype=junk, device="cpu"),
    "Queue, buckets": lambda junk: Queue(3, buckets=junk, device="cpu"),
    "Queue, delta": lambda junk: Queue(3, buckets=4, delta=junk, device="cpu"),
    "Queue.push, priority": lambda junk: Queue(3, buckets=4, device="cpu").push([1, 2], junk),
    "Queue, device": lambda junk: Queue(3, device=junk),
    "Queue, devices": lambda junk: Queue(3, devices=junk, owner=parts()),
    "Queue, owner": lambda junk: Queue(3, owner=0 if junk is None else junk),
    "over devices, push": lambda junk: Queue(3, owner=parts()).push(junk),
    "over devices, argument": lambda junk: Queue(3, owner=parts()).launch_warp(keep, junk),
    "push": lambda junk: cpu().push(junk),
    "push, records": lambda junk: cpu([], [("a", "i4"), ("b", "f4")]).push(junk),
    "push, one record": lambda junk: cpu([], [("a", "i4"), ("b", "f4")]).push((junk, junk)),
    "start, worker": lambda junk: cpu().start(keep, array(), worker=junk),
    "start, push": lambda junk: cpu().start(keep, array()).push(junk),
    "start, wait": lambda junk: closed_run().wait(junk),
    "resize": lambda junk: cpu().resize(junk),
    "Queue.load": Queue.load,
    "launch, task": lambda junk: cpu().launch_warp(junk),
    "launch, argument": lambda junk: cpu().launch_warp(keep, junk),
    **{
        f"launch, {option}": lambda junk, option=option: cpu().launch_thread(keep, array(), **{option: junk})
        for option in ("fetch_size", "num_blocks", "num_threads", "shared_memory", "trace", "stream", "device", "idle")
    },
    "task": atos.task,
    "task, workload": lambda junk: atos.task(workload=junk),
    "pack": lambda junk: atos.pack(junk, 1),
    "pack, id": lambda junk: atos.pack(np.float32([1, 2, 3]), junk),
    "pack, dtype": lambda junk: atos.pack(1, 1, junk),
    "unpack": lambda junk: atos.unpack(junk, np.int32),
    "unpack, dtype": lambda junk: atos.unpack(1, junk),
    "random": lambda junk: atos.random(junk, 1),
    "random, counter": lambda junk: atos.random(1, 2, junk),
    "random_bits": lambda junk: atos.random_bits(np.arange(3), junk),
    "Graph.load": Graph.load,
    "Graph.load, format": lambda junk: Graph.load("/nowhere.gr", format=junk),
    "Graph.load, devices": lambda junk: Graph.load("/nowhere.gr", devices=[junk]),
    "Graph.load, order": lambda junk: Graph.load("/nowhere.gr", devices=["cpu"], order=junk),
    "Graph.load, renumber": lambda junk: Graph.load("/nowhere.gr", renumber=junk),
    "Graph.load, simplify": lambda junk: Graph.load("/nowhere.gr", simplify=junk),
    "Graph.vertex_of": lambda junk: Graph.from_edges([0], [1], device="cpu").vertex_of(junk),
    "Graph.load, weights": lambda junk: Graph.load("/nowhere.gr", weights=junk),
    "from_edges, sources": edges,
    "from_edges, weights": lambda junk: edges(weights=junk),
    "from_edges, num_vertices": lambda junk: edges(n=junk),
    "from_csr, indptr": csr,
    "from_csr, indices": lambda junk: csr(indices=junk),
    "from_edges, edge_arrays": lambda junk: edges(edge_arrays=junk),
    "from_edges, an edge array": lambda junk: edges(edge_arrays={"a": junk}),
    "from_edge_index": Graph.from_edge_index,
    "from_scipy": Graph.from_scipy,
    "from_networkx": Graph.from_networkx,
    "from_networkx, weight": lambda junk: Graph.from_networkx(weighted(junk), device="cpu"),
    "from_networkx, name of weight": lambda junk: Graph.from_networkx(weighted(1), weight=junk, device="cpu"),
    "from_networkx, edge_arrays": lambda junk: Graph.from_networkx(weighted(1), edge_arrays=junk, device="cpu"),
    "Graph": lambda junk: Graph(junk, array(), None),
    "to": lambda junk: edges().to(junk),
    "transpose, return_edges": lambda junk: edges().transpose(return_edges=junk),
    "simplify, combine": lambda junk: edges().simplify(combine=junk),
    "with_weights": lambda junk: edges().with_weights(junk),
    "with_edge_arrays": lambda junk: edges().with_edge_arrays(a=junk),
    "subgraph": lambda junk: edges().subgraph(junk),
    "reorder": lambda junk: edges().reorder(junk),
    "DynamicGraph": atos.DynamicGraph,
    "DynamicGraph, undirected": lambda junk: dynamic(undirected=junk),
    "DynamicGraph, weights": lambda junk: dynamic(weights=junk),
    "insert_edges": lambda junk: dynamic().insert_edges(junk, [1]),
    "insert_edges, targets": lambda junk: dynamic().insert_edges([1], junk),
    "insert_edges, weights": lambda junk: dynamic(weights="f4").insert_edges([0], [1], junk),
    "delete_edges": lambda junk: dynamic().delete_edges(junk, [1]),
    "DynamicComponents": atos.DynamicComponents,
    "DynamicBFS": lambda junk: atos.DynamicBFS(junk, 0),
    "DynamicBFS, source": lambda junk: atos.DynamicBFS(dynamic(), junk),
    "partition": lambda junk: edges().partition(junk),
    "partition, device": lambda junk: edges().partition([junk]),
    "partition, order": lambda junk: edges().partition(["cpu"], junk),
    "partition, seed": lambda junk: edges().partition(["cpu"], "random", seed=junk),
    "full, partition": lambda junk: atos.full(2, 1, partition=0 if junk is None else junk),
    "full, shape of a partition": lambda junk: atos.full(junk, 1, partition=parts()),
    "full, placement": lambda junk: atos.full(2, 1, partition=parts(), placement=junk),
    "full, combine": lambda junk: atos.full(2, 1, partition=parts(), combine="" if junk is None else junk),
    "LoweredArray, index": lambda junk: lowered()[junk],
    "LoweredArray, value": lambda junk: lowered().__setitem__(0, junk),
    "LoweredArray, fill": lambda junk: lowered().fill(junk),
    "MirroredArray, index": lambda junk: atos.full(2, 1, partition=parts(), placement="mirrored")[junk],
    "OwnedArray, index": lambda junk: atos.full(2, 1, partition=parts(), placement="owned")[junk],
    "OwnedArray, value": lambda junk: atos.full(2, 1, partition=parts(), placement="owned").__setitem__(0, junk),
    "MirroredArray, value": lambda junk: atos.full(2, 1, partition=parts(), placement="mirrored").__setitem__(0, junk),
    "PartitionedArray, index": lambda junk: atos.full(2, 1, partition=parts())[junk],
    "PartitionedArray, value": lambda junk: atos.full(2, 1, partition=parts()).__setitem__(0, junk),
    "PartitionedArray, fill": lambda junk: atos.full(2, 1, partition=parts()).fill(junk),
    "distributed.init": lambda junk: atos.distributed.init(junk, junk),
    "distributed.zeros": atos.distributed.zeros,
    "distributed.init, job": lambda junk: alone(job=junk),
    "distributed.init, timeout": lambda junk: alone(timeout=junk),
    "reorder, seed": lambda junk: edges().reorder("random", seed=junk),
    "spmm": lambda junk: atos.spmm(edges(), junk),
    "label_spreading": lambda junk: atos.label_spreading(edges(), junk),
    "label_spreading, alpha": lambda junk: atos.label_spreading(edges(), [0, -1], alpha=junk),
    "als": lambda junk: atos.als(junk, 2, device="cpu"),
    "als, k": lambda junk: atos.als(([0], [0], [1.0]), junk, device="cpu"),
    "belief_propagation": lambda junk: atos.belief_propagation(edges(), junk, np.zeros((2, 2))),
    "belief_propagation, schedule": lambda junk: atos.belief_propagation(edges(), [[0, 1]] * 2, [[0, 1]] * 2, schedule=junk),
    "multimodal": lambda junk: atos.multimodal(edges(), np.ones((1, 1)), junk, alpha=[0.5]),
    "verify_spmm": lambda junk: atos.verify_spmm(edges(), np.ones((2, 1)), junk),
    "verify_label_spreading": lambda junk: atos.verify_label_spreading(edges(), [0, -1], junk),
    "verify_als": lambda junk: atos.verify_als(([0], [0], [1.0]), junk, np.ones((1, 2))),
    "verify_belief_propagation": lambda junk: atos.verify_belief_propagation(edges(), [[0, 1]] * 2, [[0, 1]] * 2, junk, junk),
    "verify_manifold_ranking": lambda junk: atos.verify_manifold_ranking(edges(), np.ones((1, 1)), np.ones((2, 1)), junk),
    "verify_multimodal": lambda junk: atos.verify_multimodal(edges(), np.ones((1, 1)), np.ones((2, 1)), junk, alpha=[0.5]),
    "manifold_ranking": lambda junk: atos.manifold_ranking(edges(), junk, np.zeros((2, 1))),
    "multimodal, alpha": lambda junk: atos.multimodal(edges(), [[1.0]], np.zeros((2, 1)), alpha=junk),
    "Maps, k": lambda junk: atos.features.Maps(edges(), junk, 0),
    "vertex_map": lambda junk: atos.features.Maps(edges(), 2, 0).vertex_map(junk),
    "edge_map, active": lambda junk: atos.features.Maps(edges(), 2, 0).edge_map(lambda f, u, v, e, d: None, active=junk),
    "fixed_point": lambda junk: atos.features.fixed_point(edges(), atos.zeros((2, 1), device="cpu"), junk, junk),
    "planted_ratings": lambda junk: atos.features.planted_ratings(3, junk, 3),
    "planted_partition": lambda junk: atos.features.planted_partition(9, junk),
    "uniform": lambda junk: generate.uniform(junk, 1),
    "uniform, num_edges": lambda junk: generate.uniform(9, junk),
    "uniform, directed": lambda junk: generate.uniform(9, 9, directed=junk),
    "bipartite": lambda junk: generate.bipartite(junk, 4, 3),
    "grid2d": lambda junk: generate.grid2d(2, junk),
    "grid3d": lambda junk: generate.grid3d(junk, 2, 2),
    "grid3d, periodic": lambda junk: generate.grid3d(2, 2, 2, periodic=junk),
    "kronecker": lambda junk: generate.kronecker(junk, 2),
    "kronecker, scale": lambda junk: generate.kronecker([[1, 2], [2, 1]], junk),
    "small_world": lambda junk: generate.small_world(9, junk, 0.5),
    "small_world, rewire": lambda junk: generate.small_world(9, 2, junk),
    "barabasi_albert": lambda junk: generate.barabasi_albert(9, junk),
    "random_weights": lambda junk: generate.random_weights(junk, 1, 2),
    "random_weights, low": lambda junk: generate.random_weights(edges(), junk, 2),
    "random_weights, high": lambda junk: generate.random_weights(edges(), 1.5, junk),
    "sample_edges": lambda junk: generate.sample_edges(junk, 0.5),
    "sample_edges, probability": lambda junk: generate.sample_edges(edges(), junk),
    "rmat": generate.rmat,
    "rmat, devices": lambda junk: generate.rmat(2, devices=junk),
    "rmat, order": lambda junk: generate.rmat(2, devices=["cpu"], order=junk),
    "rmat, edge_factor": lambda junk: generate.rmat(2, junk),
    "rmat, seed": lambda junk: generate.rmat(2, seed=junk),
    "rmat, b": lambda junk: generate.rmat(2, b=junk),
    "bfs": lambda junk: atos.bfs(junk, 0),
    "bfs, source": lambda junk: atos.bfs(edges(), junk),
    "bfs, parents": lambda junk: atos.bfs(edges(), 0, parents=junk),
    "bfs, worker": lambda junk: atos.bfs(edges(), 0, worker=junk),
    "bfs, capacity": lambda junk: atos.bfs(edges(), 0, capacity=junk),
    "bfs, target": lambda junk: atos.bfs(edges(), 0, target=junk),
    "bfs, cutoff": lambda junk: atos.bfs(edges(), 0, cutoff=junk),
    "betweenness": atos.betweenness,
    **{
        f"betweenness, {option}": lambda junk, option=option: atos.betweenness(edges(), **{"sources": 1} | {option: junk})
        for option in ("sources", "normalized", "seed", "worker", "num_blocks")
    },
    "closeness": atos.closeness,
    **{
        f"closeness, {option}": lambda junk, option=option: atos.closeness(edges(), **{"sources": 1} | {option: junk})
        for option in ("sources", "harmonic", "wf_improved", "seed", "worker")
    },
    "eccentricity": atos.eccentricity,
    "eccentricity, worker": lambda junk: atos.eccentricity(edges(), worker=junk),
    "diameter": atos.diameter,
    "diameter, worker": lambda junk: atos.diameter(edges(), worker=junk),
    "sssp": lambda junk: atos.sssp(junk, 0),
    "sssp, source": lambda junk: atos.sssp(edges(), junk),
    **{
        f"sssp, {option}": lambda junk, option=option: atos.sssp(edges(weights=[1]), 0, **{option: junk})
        for option in ("target", "cutoff", "predecessors", "delta", "worker")
    },
    "shortest_path_lengths": lambda junk: atos.shortest_path_lengths(junk, 0),
    "shortest_path_lengths, sources": lambda junk: atos.shortest_path_lengths(edges(), junk),
    "shortest_path_lengths, weighted": lambda junk: atos.shortest_path_lengths(edges(weights=[1]), 0, weighted=junk),
    "pagerank": atos.pagerank,
    **{
        f"pagerank, {option}": lambda junk, option=option: atos.pagerank(edges(), **{option: junk})
        for option in (
            "damping",
            "tolerance",
            "find",
            "dtype",
            "personalization",
            "weighted",
            "dangling",
            "start",
            "worker",
            "capacity",
        )
    },
    "color": atos.color,
    **{
        f"color, {option}": lambda junk, option=option: atos.color(edges(), **{option: junk})
        for option in ("order", "worker", "window", "patience", "shared_memory", "capacity")
    },
    "core_number": atos.core_number,
    "core_number, worker": lambda junk: atos.core_number(edges(), worker=junk),
    **{
        f"acc, {option}": lambda junk, option=option: run_program(**{option: junk})
        for option in [
            *("direction", "filter", "threshold", "fuse", "policy", "unique", "unroll", "monotone_stores"),
            *("rounds", "delta", "worker"),
        ]
    },
    "acc, start": lambda junk: run_program(start=junk),
    "acc, metadata": lambda junk: acc.programs.SSSP.run(edges(), junk),
    "k_core": lambda junk: atos.k_core(junk, 2),
    "k_core, k": lambda junk: atos.k_core(edges(), junk),
    "count_triangles": atos.count_triangles,
    "count_triangles, worker": lambda junk: atos.count_triangles(edges(), worker=junk),
    "verify_triangles": lambda junk: atos.verify_triangles(junk, [0, 0]),
    "verify_triangles, triangles": lambda junk: atos.verify_triangles(edges(), junk),
    "verify_triangles, clustering": lambda junk: atos.verify_triangles(edges(), [0, 0], 0, junk),
    "maximal_independent_set": atos.maximal_independent_set,
    **{
        f"maximal_independent_set, {option}": lambda junk, option=option: atos.maximal_independent_set(
            edges(), **{option: junk}
        )
        for option in ("seed", "include", "worker")
    },
    "verify_maximal_independent_set": lambda junk: atos.verify_maximal_independent_set(junk, [True, False]),
    "verify_maximal_independent_set, members": lambda junk: atos.verify_maximal_independent_set(edges(), junk),
    "label_propagation": atos.label_propagation,
    **{
        f"label_propagation, {option}": lambda junk, option=option: atos.label_propagation(edges(), **{option: junk})
        for option in ("seed", "max_steps", "worker", "shared_memory")
    },
    "verify_label_propagation": lambda junk: atos.verify_label_propagation(junk, [0, 0]),
    "verify_label_propagation, label": lambda junk: atos.verify_label_propagation(edges(), junk),
    "verify_core_number": lambda junk: atos.verify_core_number(junk, [0, 1]),
    "verify_core_number, core": lambda junk: atos.verify_core_number(edges(), junk),
    "verify_k_core": lambda junk: atos.verify_k_core(junk, 1, [True, False]),
    "verify_k_core, k": lambda junk: atos.verify_k_core(edges(), junk, [True, True]),
    "verify_k_core, members": lambda junk: atos.verify_k_core(edges(), 1, junk),
    "verify_bfs": lambda junk: atos.verify_bfs(junk, 0, [0, 1]),
    "verify_bfs, depth": lambda junk: atos.verify_bfs(edges(), 0, junk),
    "verify_bfs, parent": lambda junk: atos.verify_bfs(edges(), 0, [0, 1], junk),
    "verify_bfs, target": lambda junk: atos.verify_bfs(edges(), 0, [0, 1], target=junk),
    "verify_betweenness": lambda junk: atos.verify_betweenness(junk, [0.0, 0.0]),
    "verify_betweenness, centrality": lambda junk: atos.verify_betweenness(edges(), junk),
    "verify_closeness": lambda junk: atos.verify_closeness(junk, [0.0, 0.0]),
    "verify_closeness, centrality": lambda junk: atos.verify_closeness(edges(), junk),
    "verify_eccentricity": lambda junk: atos.verify_eccentricity(junk, [1, 0]),
    "verify_eccentricity, eccentricity": lambda junk: atos.verify_eccentricity(edges(), junk),
    "verify_diameter": lambda junk: atos.verify_diameter(junk, 1, 0),
    "verify_diameter, diameter": lambda junk: atos.verify_diameter(edges(), junk, 0),
    "verify_diameter, vertex": lambda junk: atos.verify_diameter(edges(), 1, junk),
    "verify_sssp": lambda junk: atos.verify_sssp(junk, 0, [0, 1]),
    "verify_sssp, distance": lambda junk: atos.verify_sssp(edges(), 0, junk),
    "verify_sssp, predecessor": lambda junk: atos.verify_sssp(edges(), 0, [0, 1], junk),
    "verify_sssp, cutoff": lambda junk: atos.verify_sssp(edges(), 0, [0, 1], cutoff=junk),
    "verify_shortest_path_lengths": lambda junk: atos.verify_shortest_path_lengths(junk, 0, [[0, 1]]),
    "verify_shortest_path_lengths, distance": lambda junk: atos.verify_shortest_path_lengths(edges(), 0, junk),
    "verify_shortest_path_lengths, sources": lambda junk: atos.verify_shortest_path_lengths(edges(), junk, [[0, 1]]),
    "verify_pagerank": lambda junk: atos.verify_pagerank(junk, [0.5, 0.5]),
    "verify_pagerank, result": lambda junk: atos.verify_pagerank(edges(), junk),
    "verify_pagerank, tolerance": lambda junk: atos.verify_pagerank(edges(), [0.5, 0.5], junk),
    "connected_components": atos.connected_components,
    "connected_components, worker": lambda junk: atos.connected_components(edges(), worker=junk),
    "verify_connected_components": lambda junk: atos.verify_connected_components(junk, [0, 0]),
    "verify_connected_components, label": lambda junk: atos.verify_connected_components(edges(), junk),
    "minimum_spanning_forest": atos.minimum_spanning_forest,
    "minimum_spanning_forest, worker": lambda junk: atos.minimum_spanning_forest(edges(), worker=junk),
    "verify_minimum_spanning_forest": lambda junk: atos.verify_minimum_spanning_forest(junk, [[0, 1]], [0]),
    "verify_minimum_spanning_forest, edges": lambda junk: atos.verify_minimum_spanning_forest(edges(), junk, [0]),
    "verify_minimum_spanning_forest, edge_ids": lambda junk: atos.verify_minimum_spanning_forest(edges(), [[0, 1]], junk),
    "strongly_connected_components": atos.strongly_connected_components,
    "strongly_connected_components, worker": lambda junk: atos.strongly_connected_components(edges(), worker=junk),
    "verify_strongly_connected_components": lambda junk: atos.verify_strongly_connected_components(junk, [0, 1]),
    "verify_strongly_connected_components, label": lambda junk: atos.verify_strongly_connected_components(edges(), junk),
    "verify_coloring": lambda junk: atos.verify_coloring(junk, [0, 1]),
    "verify_coloring, colors": lambda junk: atos.verify_coloring(edges(), junk),
    "tune, budget": lambda junk: atos.tune(search, space={"worker": ["cta"]}, budget=junk),
    "tune, space": lambda junk: atos.tune(search, space=junk, budget=1e-9),
    "tune, graph": lambda junk: atos.tune(search, graph=junk, space={"worker": ["cta"]}, budget=1e-9),
    "tuned": atos.tuned,
    "tuned, graph": lambda junk: atos.tuned("bfs", junk),
    "road": generate.road,
    "road, keep": lambda junk: generate.road(2, junk),
}


@pytest.mark.parametrize("call", SWEPT.values(), ids=SWEPT)
@pytest.mark.filterwarnings("ignore:Creating an ndarray from ragged")
def test_junk_raises_nothing_else(call):
    refused = 0
    for junk in JUNK:
        try:
            call(junk)
        except AtosError as error:
            refused += 1
            assert len(str(error)) > 20  # noqa: PT017 - what is refused differs
    assert refused >= 4


def test_every_public_name_is_tried():
    """The table and the sweep call everything but what is only returned, and what has a meaning in tasks only."""
    source = "".join(map(inspect.getsource, (public_calls, test_bad_input, sys.modules[__name__])))
    returned = {
        "UNREACHED",
        "ALSResult",
        "Array",
        "BFSResult",
        "BeliefResult",
        "BetweennessResult",
        "ClosenessResult",
        "ColoringResult",
        "ComponentsResult",
        "CoreResult",
        "DeviceStats",
        "DiameterResult",
        "EccentricityResult",
        "LabelResult",
        "LabelSpreadingResult",
        "LaunchOptions",
        "LaunchStats",
        "PageRankResult",
        "PreparedLaunch",
        "Race",
        "Run",
        "SSSPResult",
        "ShortestPathLengthsResult",
        "SpanningForestResult",
        "Task",
        "TriangleResult",
        "Tuning",
        "VertexSetResult",
        "WaitingCounters",
        "WaitingJoins",
        "devices",
        "linalg",
        "release_memory",
    }
    names = set(atos.__all__) - set(errors.__all__) - returned
    assert {name for name in names if name not in source} == set()


def test_absurd_sizes_take_no_memory():
    """In a process that the system would kill otherwise."""
    code = """
import atos_py as atos
from atos_py import generate
for call in (
    lambda: generate.rmat(31, 2**32), lambda: generate.rmat(31, 64), lambda: generate.road(65535, 1.0),
    lambda: atos.Graph.from_edges([0], [1], num_vertices=2**32 - 1),
):
    try:
        call()
    except atos.DeviceMemoryError as error:
        print("GiB that the host has" in str(error))
"""
    limit = "import resource; from atos_py.support import validation; validation.read_host_memory = lambda: 1 << 32\n"
    limit += "resource.setrlimit(resource.RLIMIT_DATA, (1 << 32, 1 << 32))\n"
    done = subprocess.run([sys.executable, "-c", limit + code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n" * 4), done.stderr
