"""PageRank by workers that look for work
=======================================

Chen et al. 2022, Algorithm 3: a worker without work checks some vertices, and pushes those whose residual is too large.
``python examples/pagerank_idle.py [FILE]``
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib import pyplot as plt

import atos_py as atos

DAMPING, TOLERANCE = 0.85, 1e-4
GLANCE = 8  # vertices that each thread of an idle worker checks at a time


def take(v, graph, rank, residual, queued, limit, cursor):  # type: ignore[no-untyped-def]
    """Move the residual of v to its rank; return its degree, its first edge, and what each neighbor gets."""
    atos.atomic_exch(queued, v, 0)  # before the residual is taken: who adds to it later finds v unmarked
    r = atos.atomic_exch(residual, v, 0.0)
    atos.atomic_add(rank, v, r)
    degree = graph.indptr[v + 1] - graph.indptr[v]
    return degree, graph.indptr[v], DAMPING * r / max(degree, 1)


@atos.task(workload=take)
def pass_on(worker: atos.Worker, v, i, first, share, graph, rank, residual, queued, limit, cursor):  # type: ignore[no-untyped-def]
    """Add what vertex v passes on to the residual of neighbor i."""
    atos.atomic_add(residual, graph.indices[first + i], share)


def check(worker: atos.Worker, graph, rank, residual, queued, limit, cursor):  # type: ignore[no-untyped-def]
    """Push vertices above the limit: a part at a time, until some are found or the shared cursor has passed all of them."""
    n = rank.size
    part, checked, found = min(GLANCE * worker.size, n), 0, False
    while checked < n + part and not found:
        first = worker.max(atos.atomic_add(cursor, 0, part) if worker.rank == 0 else 0)
        for k in worker.split(range(first, first + part)):
            if abs(residual[k % n]) > limit and atos.atomic_exch(queued, k % n, 1) == 0:
                worker.push(k % n)
                found = True
        found, checked = worker.any(found), checked + part


arguments = [] if hasattr(sys, "ps1") else sys.argv[1:]  # in a notebook they are those of the kernel
graph = atos.Graph.load(arguments[0], weights=False).to_symmetric() if arguments else atos.generate.rmat(12, 16)
n, arrays = graph.num_vertices, {"dtype": np.float64, "device": graph.device}
rank, residual = atos.zeros(n, **arrays), atos.full(n, (1 - DAMPING) / n, **arrays)
queued, cursor = atos.zeros(n, dtype=np.int32, device=graph.device), atos.zeros(1, dtype=np.int64, device=graph.device)
limit = 0.1 * (1 - DAMPING) * TOLERANCE / n
stats = atos.Queue(2 * n, device=graph.device).launch_cta(pass_on, graph, rank, residual, queued, limit, cursor, idle=check)
result = rank.to_numpy() / rank.to_numpy().sum()  # what vertices without edges would pass on changes the scale alone
print(f"{graph}: error at most {atos.verify_pagerank(graph, result, TOLERANCE):.1e}, verified")
print(stats)
plt.loglog(np.sort(result)[::-1])
plt.gca().set(xlabel="vertices by rank", ylabel="rank")
plt.show()
