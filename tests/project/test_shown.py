"""What people see of the objects of the package, in text and in notebooks: right, at once, and also while a launch runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import atos_py as atos
from atos_py.arrays import shown
from atos_py.errors import DeviceFaultError
from atos_py.support.shown import Shown, ShownFields


def row(name: str, value: object) -> str:
    return f"<tr><th>{name}</th><td>{value}</td></tr>"


@pytest.mark.parametrize("readonly", [False, True])
def test_small_arrays_with_all_elements(device, readonly):
    array = atos.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), device=device, readonly=readonly)
    end = ", readonly=True)" if readonly else ")"
    assert repr(array) == f"Array([[0, 1, 2],\n       [3, 4, 5]], dtype=int16, device='{device}'{end}"
    table = array._repr_html_()
    assert row("size", "12 bytes") in table
    assert row("in tasks", "read-only" if readonly else "read and written") in table
    assert "[[0, 1, 2],\n [3, 4, 5]]</pre>" in table


def test_long_arrays_with_the_first_and_last_elements(device):
    array = atos.asarray(np.arange(1000), device=device)
    assert repr(array) == f"Array([  0,   1,   2, ..., 997, 998, 999], shape=(1000,), dtype=int64, device='{device}')"
    assert repr(atos.zeros(0, device=device)) == f"Array([], shape=(0,), dtype=float32, device='{device}')"


def test_large_arrays_on_a_gpu_are_not_copied(device):
    array = atos.zeros(shown._MOST_FROM_GPU + 1, dtype=np.int8, device=device)
    elements = "[0, 0, 0, ..., 0, 0, 0], " if device.kind == "cpu" else ""
    assert repr(array) == f"Array({elements}shape=(65537,), dtype=int8, device='{device}')"
    assert ("elements" in array._repr_html_()) == (device.kind == "cpu")


def test_arrays_that_cannot_be_read(monkeypatch):
    def fail(_):
        raise DeviceFaultError("gone")

    monkeypatch.setattr(atos.Array, "__array__", fail)
    monkeypatch.setattr(shown.np, "asarray", fail)
    assert repr(atos.zeros(3, device="cpu")) == "Array(shape=(3,), dtype=float32, device='cpu')"


def test_graphs_and_their_parts(device):
    graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], [4, 5, 6], device=device)
    table = graph._repr_html_()
    nbytes = 4 * graph.indptr.dtype.itemsize + 3 * 4 + 3 * graph.weights.dtype.itemsize
    expected = {"vertices": 3, "directed edges": 3, "weights": "int64", "size": f"{nbytes} bytes", "device": device}
    assert all(row(name, value) in table for name, value in expected.items())
    parts = atos.generate.road(30, 1.0, device="cpu").partition(["cpu:0", "cpu:1"])
    assert row("directed edges", "3,480") in parts._repr_html_()
    assert row("device", "cpu, cpu:1") in parts._repr_html_()
    over = atos.full(900, 1, partition=parts)
    assert row("array", "&lt;atos array shape=(900,) dtype=int64 over cpu, cpu:1&gt;") in over._repr_html_()
    assert row("directed edges", "3, both directions of each edge") not in atos.DynamicGraph(graph)._repr_html_()
    assert row("directed edges", "3") in atos.DynamicGraph(graph)._repr_html_()


def test_a_graph_of_other_parts():
    graph = atos.generate.road(3, 1.0, device="cpu")._replace(indptr="none")
    assert "none" in graph._repr_html_()


def test_pools_and_joins(device):
    pool = atos.Pool([("corner", np.int32, 3), ("bad", np.bool_)], 10, max_capacity=2000, device=device)
    assert row("elements in use", f"0 of at most {pool.max_capacity:,}") in pool._repr_html_()
    assert row("field corner", "int32[3]") in pool._repr_html_()
    assert row("field bad", "bool") in pool._repr_html_()
    joins = atos.Joins(10, np.float32, combine="max", device=device)
    assert row("combine", "&#x27;max&#x27;") in joins._repr_html_()
    assert row("dtype", "float32") in joins._repr_html_()


def test_queues(device):
    queue = atos.Queue(2000, max_capacity=5000, device=device)
    queue.push([1, 2])
    table = queue._repr_html_()
    expected = {
        "items waiting": 2,
        "room": "2,000 items now, 5,000 at most",
        "dtype": "uint32, 4 bytes",
        "order": "oldest first",
    }
    assert all(row(name, value) in table for name, value in expected.items())
    adapts = atos.Queue(10, buckets=4, device=device)._repr_html_()
    assert row("order", "lowest priority first, in 4 buckets of a width that adapts") in adapts
    fixed = atos.Queue(10, buckets=8, delta=2.5, device=device)._repr_html_()
    assert row("order", "lowest priority first, in 8 buckets 2.5 wide") in fixed


@atos.task
def mark(worker, v, seen):
    atos.atomic_add(seen, 0, 1)


@atos.task
def count_up(worker, v, steps):
    """Take some milliseconds, one worker after the other."""
    for k in range(steps.size):
        steps[k] += 1
    if v > 0:
        worker.push(v - 1)


def test_a_queue_in_a_function_that_is_told_of_progress(device):
    queue, texts = atos.Queue(10, device=device), []
    steps = atos.zeros(1 << (20 if device.kind == "cpu" else 12), dtype=np.int64, device=device)
    queue.push(400)
    queue.launch_thread(count_up, steps, progress=lambda *_: texts.append(repr(queue)), num_blocks=1)
    assert set(texts) == {f"<atos queue in a launch, with room for 10 items of uint32 on {device}>"}


def test_a_queue_during_the_launch_of_another_thread(device):
    seen, queue = atos.zeros(1, dtype=np.int64, device=device), atos.Queue(1000, device=device)
    with queue.start(mark, seen, worker="thread") as run:
        run.push([1, 2, 3])
        text, table = repr(queue), queue._repr_html_()
    assert text == f"<atos queue in a launch, with room for 1,000 items of uint32 on {device}>"
    assert row("items waiting", "not known during a launch") in table
    assert run.wait().tasks_run == seen[0] == 3
    assert repr(queue) == f"<atos queue 0 of 1,000 items of uint32 on {device}>"


def test_results(device):
    graph = atos.generate.road(30, 1.0, device=device)
    result = atos.bfs(graph, 0)
    table = result._repr_html_()
    assert "<caption>BFSResult</caption>" in table
    assert row("parent", "None") in table
    assert f"[ 0,  1,  2, ..., 56, 57, 58], shape=(900,), dtype=uint32, device=&#x27;{device}&#x27;)" in table
    assert "&lt;LaunchStats " in table


def test_every_result_is_shown_as_a_table():
    results = [getattr(atos, name) for name in atos.__all__ if name.endswith("Result")]
    assert len(results) > 8
    assert all(dataclasses.is_dataclass(thing) and issubclass(thing, ShownFields) for thing in results)
    others = atos.Array, atos.PartitionedArray, atos.MirroredArray, atos.Graph, atos.Queue, atos.Pool, atos.Joins, atos.Tuning
    assert all(issubclass(thing, Shown) for thing in others)


def test_a_tuning():
    pytest.importorskip("matplotlib")
    table = [
        {
            "fetch_size": 4,
            "milliseconds": 1.5,
            "least": 1.25,
            "runs": 3,
            "tasks_run": 7,
            "worker_size": 1,
            "fetched": 4,
            "skipped": "",
        },
        {"fetch_size": 8, "milliseconds": None, "least": None, "runs": 0, "tasks_run": None, "worker_size": None}
        | {"fetched": None, "skipped": "too large"},
    ]
    tuning = atos.Tuning({"fetch_size": 4}, 1.5, table, 2.0, False)
    assert repr(tuning) == "<Tuning best: fetch_size=4, 1.500 ms; 2 settings in 2.0 s, not finished>"
    assert row("best", "fetch_size=4: 1.500 ms") in tuning._repr_html_()
    assert "1 settings run, 1 cannot run" in tuning._repr_html_()
    figure = tuning.plot("BFS", "a grid")
    assert figure.axes[0].get_title() == "BFS on a grid: ms"
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert (
        repr(dataclasses.replace(tuning, best={}, finished=True))
        == "<Tuning best: all as it is, 1.500 ms; 2 settings in 2.0 s>"
    )
