"""What `test_sanitizer.py` runs under compute-sanitizer: every worker in every schedule, on graphs that suit its pace."""

from __future__ import annotations

import itertools

import atos_py as atos


@atos.task(workload=lambda item, graph, seen: graph.indptr[item + 1] - graph.indptr[item])
def spread(worker, item, i, graph, seen):  # type: ignore[no-untyped-def]
    """Visit what has not been seen: a nested task, which shares long items."""
    v = graph.indices[graph.indptr[item] + i]
    if atos.atomic_exch(seen, v, 1) == 0:
        worker.push(v)


def main() -> None:
    hub = atos.Graph.from_edges([0] * 9000, range(1, 9001), symmetrize=True, device="cuda")
    road = atos.generate.road(30, device="cuda")
    for worker, persistent, barrier in itertools.product(("thread", "warp", "cta"), (True, False), (False, True)):
        options = {"worker": worker, "persistent": persistent, "barrier": barrier, "num_blocks": 4}
        for graph in (hub, road):
            atos.verify_bfs(graph, 0, atos.bfs(graph, 0, **options).depth)
        atos.verify_coloring(road, atos.color(road, **options).colors)
        seen = atos.zeros(9001, device="cuda")
        seen[0] = 1
        # Between kernels it grows. Memory that comes while a kernel runs is unknown to memcheck.
        queue = atos.Queue(9001 if persistent else 100, max_capacity=9001, device="cuda")
        queue.push(0)
        del options["worker"]
        queue.launch(spread, hub, seen, worker=worker, **options)
        assert int(seen.to_numpy().sum()) == 9001
    atos.verify_pagerank(road, atos.pagerank(road))
    atos.verify_coloring(road, atos.color(road).colors)


if __name__ == "__main__":
    main()
