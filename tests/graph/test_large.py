"""Graphs whose edges are numbered in 64 bits: more than 2**31 of them on a GPU; and their dtypes, everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos
from atos_py.graph import generate

DEGREE = 33
VERTICES = 1 << 26
# A thread for each edge; atos has no part in it.
CHECKS = r"""
extern "C" __global__ void make(unsigned *indices, long long edges, unsigned mask) {
  const long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (e >= edges) return;
  unsigned long long z = e * 0x9E3779B97F4A7C15ull + 1;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  indices[e] = (unsigned)(z >> 31) & mask;
}
extern "C" __global__ void follow(const unsigned *indices, long long edges, int degree, const unsigned *depth,
                                  unsigned char *has_parent, unsigned long long *wrong) {
  const long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (e >= edges) return;
  const unsigned from = depth[e / degree], to = depth[indices[e]];
  if (from == 0xFFFFFFFFu) return;
  if (to > from + 1) atomicAdd(wrong, 1ull);
  if (to == from + 1) has_parent[indices[e]] = 1;
}
extern "C" __global__ void hand_on(const unsigned *indices, long long edges, int degree, const double *rank, double *next) {
  const long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (e < edges) atomicAdd(&next[indices[e]], rank[e / degree] / degree);
}
"""


@pytest.mark.gpu
def test_more_than_two_billion_edges():
    cupy = pytest.importorskip("cupy")
    edges = DEGREE * VERTICES
    assert edges > 2**31
    if atos.device("cuda").memory[0] < 20 << 30:
        pytest.skip("needs 20 GB of free memory")
    module = cupy.RawModule(code=CHECKS)
    blocks, threads = ((edges + 255) // 256,), (256,)

    def run(name, *args):
        module.get_function(name)(blocks, threads, args)

    indices = cupy.empty(edges, cupy.uint32)
    run("make", indices, np.int64(edges), np.uint32(VERTICES - 1))
    indptr = cupy.arange(VERTICES + 1, dtype=cupy.int64) * DEGREE
    graph = atos.Graph.from_csr(indptr, indices)
    assert (graph.num_vertices, graph.num_edges) == (VERTICES, edges)
    assert (graph.indptr.dtype, graph.indices.pointer) == (np.int64, indices.data.ptr)

    source = VERTICES - 1  # whose edges are the last
    for options in ({}, {"worker": "warp"}, {"barrier": True}, {"persistent": False}):
        depth = atos.bfs(graph, source, **options).depth
        has_parent, wrong = cupy.zeros(VERTICES, cupy.uint8), cupy.zeros(1, cupy.uint64)
        run("follow", indices, np.int64(edges), np.int32(DEGREE), depth, has_parent, wrong)
        assert int(wrong[0]) == 0
        assert int(depth[source]) == 0
        reached = depth != atos.UNREACHED
        assert int(cupy.count_nonzero(depth == 0)) == 1
        assert bool((has_parent[reached & (depth > 0)] == 1).all())
        assert int(cupy.count_nonzero(reached)) > 0.99 * VERTICES

    tolerance, damping = 1e-3, 0.85
    rank = atos.pagerank(graph, damping, tolerance).rank.astype(cupy.float64)
    assert abs(float(rank.sum()) - 1) < tolerance
    received = cupy.zeros(VERTICES, cupy.float64)
    run("hand_on", indices, np.int64(edges), np.int32(DEGREE), rank, received)
    expected = damping * received + (1 - damping) / VERTICES  # no vertex is without edges
    assert float(cupy.abs(expected - rank).sum()) / (1 - damping) < tolerance


@pytest.mark.parametrize("options", [{}, {"barrier": True}, {"persistent": False}], ids=str)
def test_offsets_of_64_bits(device, options):
    """Small graphs have 32-bit offsets unless they are made to have others; nothing else may change."""
    narrow = generate.rmat(9, 8, device=device)
    wide = narrow._replace(indptr=atos.asarray(narrow.indptr, dtype=np.int64, readonly=True))
    assert (narrow.indptr.dtype, wide.indptr.dtype) == (np.int32, np.int64)
    found = atos.bfs(wide, 1, parents=True, **options)
    atos.verify_bfs(narrow, 1, found.depth, found.parent)
    atos.verify_pagerank(narrow, atos.pagerank(wide, **options))
    atos.verify_coloring(narrow, atos.color(wide, **options).colors)


def test_large_ids_are_kept(device):
    """Ids of 64 bits come in as long as they are vertices; those above 2**31 are no negative numbers."""
    graph = atos.Graph.from_edges(np.array([0, 1], np.int64), np.array([1, 2], np.uint64), device=device)
    assert atos.bfs(graph, np.int64(0)).depth.to_numpy().tolist() == [0, 1, 2]
    with pytest.raises(atos.InvalidArgumentError, match=r"targets\[0\] is 4294967296, but vertex ids"):
        atos.Graph.from_edges([0], [2**32], device=device)
    high = 2**31 + 5
    distance = atos.zeros(4, dtype=np.uint32, device=device)
    queue = atos.Queue(8, dtype=np.uint32, device=device)
    queue.push([high, 2**32 - 1])
    queue.launch_thread(note_high, distance)
    assert distance.to_numpy().tolist() == [5, 2**31 - 1, 0, 0]


@atos.task
def note_high(worker, v, distance):
    distance[0 if v < 3_000_000_000 else 1] = v - 2_147_483_648
