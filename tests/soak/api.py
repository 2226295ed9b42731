"""Random sequences of public calls, each compared with Python's own lists, dicts and arrays: a state machine of hypothesis.

``python tests/soak/api.py FOLDER SECONDS SEED DEVICE`` runs it in blocks, each with the next seed. The file `count` of the
folder says how many steps went well. Hypothesis prints the shortest sequence that fails, after the command for its block.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

import atos_py as atos
from atos_py.errors import AtosError, PoolFullError, QueueFullError

ITEMS, CELLS, VERTICES = 64, 12, 9
EXAMPLES, STEPS = 10, 60  # of a block: sequences, and steps in each at most

items = st.lists(st.integers(0, ITEMS - 1), max_size=8)
vertex = st.integers(0, VERTICES - 1)
pairs = st.lists(st.tuples(vertex, vertex), max_size=8)
cell = st.integers(-CELLS - 2, CELLS + 2)
slices = st.builds(slice, st.none() | cell, st.none() | cell, st.sampled_from([None, 1, 2, 3, -1]))
junk = st.sampled_from([-1, ITEMS**9, 1.5, "x", None, [[1], [1, 2]], float("nan"), b"", object()])


@atos.task
def halve(worker, v, seen):  # type: ignore[no-untyped-def]
    """Count an item, and push half of it, down to 0."""
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)
        if v > 0:
            worker.push(v // 2)


@atos.task
def keep(worker, v, seen):  # type: ignore[no-untyped-def]
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)


def halves(v: int) -> Counter[int]:
    """Return the items that `halve` runs for one item."""
    found = Counter([v])
    while v > 0:
        v //= 2
        found[v] += 1
    return found


class Calls(RuleBasedStateMachine):
    """A queue, an array, a pool and a graph whose edges change, each with what stands for it in Python."""

    device: Any = "cpu"
    steps = 0  # of all sequences

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "saved"
        self.seen, self.ran = atos.zeros(ITEMS, dtype=np.int32, device=self.device), np.zeros(ITEMS, np.int64)
        self.array, self.cells = atos.zeros(CELLS, dtype=np.int32, device=self.device), np.zeros(CELLS, np.int32)
        self.pool: Any = atos.Pool(np.int32, 2, max_capacity=6, device=self.device)
        self.values: list[int] = []
        self.waiting: list[int] = []

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(
        capacity=st.integers(1, 20),
        grows=st.booleans(),
        undirected=st.booleans(),
        buckets=st.sampled_from([2, 4, 64]),
        delta=st.sampled_from([1, 0.3, "auto"]),
    )
    def begin(self, capacity: int, grows: bool, undirected: bool, buckets: int, delta: Any) -> None:
        self.queue = atos.Queue(capacity, max_capacity=None if grows else capacity, device=self.device)
        self.graph = atos.DynamicGraph(VERTICES, undirected=undirected, device=self.device)
        self.edges: list[tuple[int, int]] = []
        self.urgent = atos.Queue(capacity, buckets=buckets, delta=delta, device=self.device)
        self.ranked: list[tuple[int, float]] = []

    # --- The queue

    @rule(items=items)
    def push(self, items: list[int]) -> None:
        if len(self.waiting) + len(items) > self.queue.max_capacity:
            with pytest.raises(QueueFullError):
                self.queue.push(items)
        else:
            self.queue.push(items)
            self.waiting += items

    @rule(junk=junk)
    def push_what_is_no_item(self, junk: Any) -> None:
        with pytest.raises(AtosError):
            self.queue.push(junk)

    @rule()
    def clear(self) -> None:
        self.queue.clear()
        self.waiting = []

    @rule(room=st.integers(0, 20))
    def resize(self, room: int) -> None:
        self.queue.resize(max(1, len(self.waiting) + room))

    @rule(
        worker=st.sampled_from(["thread", "warp", "cta"]),
        persistent=st.booleans(),
        barrier=st.booleans(),
        fetch_size=st.sampled_from([1, 3, 32]),
    )
    def launch(self, **options: Any) -> None:
        """Run all items; a queue that is full goes on with what it still has."""
        for item in self.waiting:
            for each, times in halves(item).items():
                self.ran[each] += times
        while True:
            try:
                self.queue.launch(halve, self.seen, num_blocks=2, **options)
                break
            except QueueFullError as error:
                assert error.lost == 0  # noqa: PT017
                self.queue.resize(max(2 * error.pending, self.queue.capacity))
        self.waiting = []

    @rule()
    def save_and_load(self) -> None:
        """Go on with the queue of a checkpoint, which also has the counters."""
        self.queue.save(self.path, seen=self.seen)
        self.seen.fill(-1)
        most = self.queue.max_capacity
        self.queue = atos.Queue.load(self.path, device=self.device, seen=self.seen)
        self.queue.max_capacity = max(most, self.queue.capacity)

    @invariant()
    def the_queue_is_a_list(self) -> None:
        Calls.steps += 1
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.waiting)
            assert self.queue.peek().tolist() == self.waiting
            assert np.array_equal(self.seen.to_numpy(), self.ran)

    # --- A queue with priorities

    @rule(
        pairs=st.lists(
            st.tuples(st.integers(0, ITEMS - 1), st.sampled_from([-1.5, 0, 0.1, 3, 1e30, np.inf, -np.inf])), max_size=5
        )
    )
    def push_with_priorities(self, pairs: list[tuple[int, float]]) -> None:
        self.urgent.push([item for item, _ in pairs], [priority for _, priority in pairs])
        self.ranked += pairs

    @rule(worker=st.sampled_from(["thread", "cta"]), persistent=st.booleans(), barrier=st.booleans())
    def launch_with_priorities(self, **options: Any) -> None:
        self.urgent.launch(keep, self.seen, num_blocks=2, **options)
        for item, _ in self.ranked:
            self.ran[item] += 1
        self.ranked = []

    @rule()
    def save_and_load_with_priorities(self) -> None:
        self.urgent.save(self.path)
        self.urgent = atos.Queue.load(self.path, device=self.device)

    @invariant()
    def the_queue_with_priorities_is_sorted(self) -> None:
        if hasattr(self, "urgent"):
            assert self.urgent.peek().tolist() == [item for item, _ in sorted(self.ranked, key=lambda pair: pair[1])]

    # --- The array

    @rule(key=slices | cell, value=st.integers(-(2**31), 2**31 - 1))
    def write(self, key: Any, value: int) -> None:
        """Write one number to cells, or be refused as by NumPy, or because of a step that is negative."""
        try:
            self.array[key] = value
        except AtosError:
            assert isinstance(key, slice) or not -CELLS <= key < CELLS
            return
        self.cells[key] = value

    @rule(key=slices | cell)
    def read(self, key: Any) -> None:
        try:
            found = self.array[key]
        except AtosError:
            assert isinstance(key, slice) or not -CELLS <= key < CELLS
            return
        assert np.asarray(found).tolist() == self.cells[key].tolist()

    @rule(other=st.integers(-3, 3))
    def compare(self, other: int) -> None:
        assert (self.array > other).tolist() == (self.cells > other).tolist()
        assert (self.array == self.array.copy()).all()

    @rule()
    def work_on_arrays(self) -> None:
        array, cells = self.array, self.cells
        assert int(array.sum()) == cells.sum(dtype=np.int64)
        assert (int(array.min()), int(array.max())) == (cells.min(), cells.max())
        assert atos.sort(array).tolist() == np.sort(cells).tolist()
        assert cells[np.asarray(atos.argsort(array))].tolist() == np.sort(cells).tolist()
        assert atos.nonzero(array).tolist() == np.flatnonzero(cells).tolist()
        assert array.astype(np.float64).tolist() == cells.astype(np.float64).tolist()

    @invariant()
    def the_array_is_one_of_numpy(self) -> None:
        assert self.array.to_numpy().tolist() == self.cells.tolist()

    # --- The pool

    @rule(values=st.lists(st.integers(-9, 9), max_size=4))
    def append(self, values: list[int]) -> None:
        if len(self.values) + len(values) > self.pool.max_capacity:
            with pytest.raises(PoolFullError):
                self.pool.append(values)
        else:
            assert self.pool.append(values) == len(self.values)
            self.values += values

    @rule(more=st.integers(0, 6))
    def change_the_pool(self, more: int) -> None:
        self.pool.resize(max(1, len(self.values) + more))

    @precondition(lambda self: len(self.values) > 8)
    @rule()
    def clear_the_pool(self) -> None:
        self.pool.clear()
        self.values = []

    @invariant()
    def the_pool_is_a_list(self) -> None:
        assert self.pool.values.tolist() == self.values

    # --- The graph

    @rule(pairs=pairs)
    def insert(self, pairs: list[tuple[int, int]]) -> None:
        self.graph.insert_edges([u for u, _ in pairs], [v for _, v in pairs])
        self.edges += pairs
        if self.graph.undirected:
            self.edges += [(v, u) for u, v in pairs if u != v]

    @rule(pairs=pairs)
    def delete(self, pairs: list[tuple[int, int]]) -> None:
        gone = {*pairs, *((v, u) for u, v in pairs if self.graph.undirected)}
        kept = [edge for edge in self.edges if edge not in gone]
        assert self.graph.delete_edges([u for u, _ in pairs], [v for _, v in pairs]) == len(self.edges) - len(kept)
        self.edges = kept

    @rule(u=st.sampled_from([-1, VERTICES, 2**40]))
    def insert_what_is_no_edge(self, u: int) -> None:
        with pytest.raises(AtosError):
            self.graph.insert_edges([0, u], [0, 0])

    @rule(source=vertex)
    def search(self, source: int) -> None:
        """Compare depths with those of a search in Python."""
        depth, level = {source: 0}, [source]
        while level:
            level = [v for v in {v for u, v in self.edges if u in level} if v not in depth]
            depth |= dict.fromkeys(level, max(depth.values()) + 1)
        found = np.asarray(atos.bfs(self.graph.to_graph(), source).depth)
        assert {v: int(d) for v, d in enumerate(found) if v in depth} == depth
        assert len({*found[[v not in depth for v in range(VERTICES)]].tolist()}) <= 1

    @rule()
    def derive_graphs(self) -> None:
        """Change the graph as a whole, and write and read it."""
        graph = self.graph.to_graph()
        assert edges_of(graph) == Counter(self.edges)
        assert edges_of(graph.transpose()) == Counter((v, u) for u, v in self.edges)
        both = {*self.edges, *((v, u) for u, v in self.edges)}
        for symmetrize, edges in ((False, {*self.edges}), (True, both)):
            simple = graph.simplify(symmetrize=symmetrize, deduplicate=True, remove_loops=True)
            assert edges_of(simple) == Counter((u, v) for u, v in edges if u != v)
        assert graph.is_symmetric() == ({*self.edges} == both)
        path = self.path.with_suffix(".npz")
        graph.save(path)
        assert edges_of(atos.Graph.load(path, device=self.device)) == Counter(self.edges)

    @invariant()
    def the_graph_has_its_edges(self) -> None:
        if hasattr(self, "graph"):
            assert self.graph.num_edges == len(self.edges)


def edges_of(graph: atos.Graph) -> Counter[tuple[int, int]]:
    """Return how often a graph has each of its edges."""
    sources = np.repeat(np.arange(graph.num_vertices), np.asarray(graph.degrees()))
    return Counter(zip(sources.tolist(), graph.indices.tolist(), strict=True))


def run_block(number: int, device: str) -> int:
    """Run sequences that a seed draws; return how many steps they have."""
    before, how = Calls.steps, settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, database=None)
    Calls.device = device
    run_state_machine_as_test(seed(number)(Calls), settings=settings(how, suppress_health_check=list(HealthCheck)))
    return Calls.steps - before


def main() -> None:
    """Run blocks until the time is over."""
    folder, seconds, number, device = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        print(f"again: python tests/soak/api.py {tempfile.gettempdir()} 0.001 {number} {device}", flush=True)
        count += run_block(number, device)
        (folder / "count").write_text(str(count))
        number += 1


if __name__ == "__main__":
    main()
