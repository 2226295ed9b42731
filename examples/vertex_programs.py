"""
Vertex programs
===============

Graph algorithms as three small functions, in the model of SIMD-X: five programs of ``acc.programs``, and one of our own.
An arrow is a round: ``>`` if active vertices push along their edges, ``<`` if others pull from them.
"""

import sys

import numpy as np
from matplotlib import pyplot as plt

import atos_py as atos
from atos_py import acc

arguments = [] if hasattr(sys, "ps1") else sys.argv[1:]  # in a notebook they are those of the kernel
graph = atos.generate.rmat(int(arguments[0]) if arguments else 12)
weighted = graph.with_weights(atos.generate.random_weights(graph, 1, 64))
source = int(graph.degrees().argmax())
print(f"{graph.num_vertices:,} vertices, {graph.num_edges:,} directed edges, on {graph.device}")

depth, bfs = acc.programs.bfs(graph, source, direction="auto")
atos.verify_bfs(graph, source, depth)
distance, sssp = acc.programs.sssp(weighted, source)
atos.verify_sssp(weighted, source, distance)
label, components = acc.programs.connected_components(graph, direction="auto")
atos.verify_connected_components(graph, label)
members, k_core = acc.programs.k_core(graph, 16)
atos.verify_k_core(graph, 16, members)
rank, pagerank = acc.programs.pagerank(graph)
atos.verify_pagerank(graph, rank, 2e-4)

# The widest path to each vertex: the least weight on it is as large as possible.
widest = acc.Program(lambda m_v, weight, m_u: min(m_v, weight), acc.MAX)
width = atos.zeros(graph.num_vertices, dtype=np.float32)
width[source] = np.inf
stats = widest.run(weighted, width, start=source, direction="auto")
ends = np.repeat(np.arange(graph.num_vertices), graph.degrees()), graph.indices.to_numpy()
found = width.to_numpy()
assert (found[ends[1]] >= np.minimum(found[ends[0]], weighted.weights.to_numpy())).all()  # no edge would widen a path

runs = {"BFS": bfs, "SSSP": sssp, "components": components, "16-core": k_core, "PageRank": pagerank, "widest paths": stats}
for name, run in runs.items():
    ways = "".join("<" if way == "pull" else ">" for way in run.directions)
    ballots = run.filters.count("ballot")
    print(f"{name:13} verified: {len(run.frontiers):2} rounds {ways}, {ballots} by ballot, {run.milliseconds:.2f} ms")
    plt.semilogy(np.maximum(run.frontiers, 1), ".-", label=name)
plt.gca().set(xlabel="round", ylabel="active vertices")
plt.legend()
plt.show()
