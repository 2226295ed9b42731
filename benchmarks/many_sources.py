"""Time searches from many sources, closeness and eccentricities, and print a table in Markdown.

    python benchmarks/many_sources.py rmat:22:16 USA-road-d.NY.gr.gz road:1000:0.62 --device cuda
    python benchmarks/many_sources.py rmat:16:16 grid2d:256:256 --device cpu --one-by-one

Sources are chosen at random from the largest component. "Levels alone" is a search that stores no distances, "matrix" is
`atos.shortest_path_lengths`, whose result stays on the device. "Slowest alone" is the slowest of `atos.bfs` from one of the 64
sources, each the fastest of three. `--one-by-one` takes the 64 sources one after the other by `atos.bfs`, too. Times are
medians in ms: of whole calls, and of their kernels in parentheses. The matrix of 64 sources is compared with `atos.bfs` from
each source. Each row is printed when it is there, with the seconds since the program began. With `--verify` the matrix,
closeness, eccentricities and the diameter are verified on the host, which takes long on large graphs. Eccentricities come with
the number of searches. On a GPU, ATOS_TIER=best has all launches run the best kernel of a task.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import atos_py as atos
from atos_py.algorithms.bit_notes import BitNotes
from atos_py.algorithms.bit_search import BitSearches
from atos_py.graph.spec import SPEC_HELP, graph_of


def sources_of(graph: atos.Graph, count: int, seed: int) -> Any:
    """Return vertices of the largest component, at random."""
    label = np.asarray(atos.connected_components(graph).label)
    (members,) = np.nonzero(label == np.bincount(label).argmax())
    return np.random.default_rng(seed).choice(members, count, replace=count > members.size)


def levels_alone(graph: atos.Graph, sources: Any) -> atos.LaunchStats:
    """Search without storing distances."""
    searches = BitSearches("levels", graph, len(sources), {}, None)
    for _, batch in searches.batches(sources):
        searches.run(batch, BitNotes())
    return searches.finish()


def timed(call: Callable[[], Any], repeat: int) -> tuple[str, Any]:
    """Return the median of calls after a first one, with that of their kernels, and the last result."""
    call()
    whole, kernels, result = [], [], None
    for _ in range(repeat):
        begin = time.perf_counter()
        result = call()
        whole.append((time.perf_counter() - begin) * 1e3)
        stats = result if isinstance(result, atos.LaunchStats) else result.stats
        kernels.append(stats.milliseconds)
    return f"{statistics.median(whole):.2f} ({statistics.median(kernels):.2f})", result


def slowest_alone(graph: atos.Graph, sources: Any) -> str:
    """Return the time of the slowest source, each by itself."""
    times = []
    for source in map(int, sources):
        runs = []
        for _ in range(3):
            begin = time.perf_counter()
            stats = atos.bfs(graph, source).stats
            runs.append(((time.perf_counter() - begin) * 1e3, stats.milliseconds))
        times.append((min(run[0] for run in runs), min(run[1] for run in runs)))
    return f"{max(each[0] for each in times):.2f} ({max(each[1] for each in times):.2f})"


def one_by_one(graph: atos.Graph, sources: Any, repeat: int) -> str:
    """Return the time of searches from all sources, one after the other."""
    whole, kernels = [], []
    for _ in range(repeat + 1):
        begin = time.perf_counter()
        kernels.append(sum(atos.bfs(graph, int(source)).stats.milliseconds for source in sources))
        whole.append((time.perf_counter() - begin) * 1e3)
    return f"{statistics.median(whole[1:]):.2f} ({statistics.median(kernels[1:]):.2f})"


def rows_of(graph: atos.Graph, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the rows of a graph: what was called, and what it took."""
    many = sources_of(graph, 256, options.seed)
    few, repeat = many[:64], options.repeat
    yield "64 sources, levels alone", timed(lambda: levels_alone(graph, few), repeat)[0]
    text, found = timed(lambda: atos.shortest_path_lengths(graph, few), repeat)
    yield "64 sources, matrix", text
    rows_found = found.distance.to_numpy()
    for source, row in zip(few, rows_found, strict=True):
        assert np.array_equal(row, np.asarray(atos.bfs(graph, int(source)).depth)), source
    if options.verify:
        atos.verify_shortest_path_lengths(graph, few, found.distance)
    del found, rows_found
    yield "256 sources, levels alone", timed(lambda: levels_alone(graph, many), repeat)[0]
    if 4 * 256 * graph.num_vertices <= options.most_bytes:
        yield "256 sources, matrix", timed(lambda: atos.shortest_path_lengths(graph, many), repeat)[0]
    yield "one source, slowest alone", slowest_alone(graph, few)
    if options.one_by_one:
        yield "64 sources, one by one", one_by_one(graph, few, repeat)
    for harmonic in (False, True):
        name = "harmonic closeness" if harmonic else "closeness"
        text, near = timed(lambda way=harmonic: atos.closeness(graph, few, harmonic=way), repeat)
        yield f"{name}, 64 sources", text
        if options.verify:
            atos.verify_closeness(graph, near.centrality, few, harmonic=harmonic)
    text, widest = timed(lambda: atos.diameter(graph), repeat)
    yield "diameter", f"{text}, {widest.searches} searches: {widest.diameter}"
    text, far = timed(lambda: atos.eccentricity(graph), repeat)
    yield "eccentricity", f"{text}, {far.searches} searches"
    if options.verify:
        atos.verify_diameter(graph, widest.diameter, widest.vertex)
        atos.verify_eccentricity(graph, far.eccentricity)


def main() -> None:
    """Print a column for each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=SPEC_HELP)
    parser.add_argument("--device", default=None)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one-by-one", action="store_true", help="time 64 searches one after the other, too")
    parser.add_argument("--verify", action="store_true", help="verify closeness, eccentricities and the diameter")
    parser.add_argument("--most-bytes", type=float, default=16e9, help="of a matrix; larger ones are left out")
    options = parser.parse_args()
    columns, begin = {}, time.perf_counter()
    for name in options.graphs:
        graph = graph_of(name, device=options.device).with_weights(None)
        column = columns[f"{name}, {graph.num_vertices:,} vertices, {graph.num_edges:,} edges"] = {}
        print(f"{name} on {graph.device}: {time.perf_counter() - begin:.0f} s", flush=True)
        for row, text in rows_of(graph, options):
            column[row] = text
            print(f"{row}: {text} ({time.perf_counter() - begin:.0f} s)", flush=True)
    print("\n| ms |", " | ".join(columns), "|")
    print("|", " | ".join(["---"] * (len(columns) + 1)), "|")
    for row in dict.fromkeys(row for column in columns.values() for row in column):
        print(f"| {row} |", " | ".join(column.get(row, "") for column in columns.values()), "|")


if __name__ == "__main__":
    main()
