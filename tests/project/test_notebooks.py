"""In a notebook: values of cells are tables and pictures, a bar shows a launch, and the line of a mistake is named."""

from __future__ import annotations

import notebooks
import pytest

HEAD = """
import numpy as np
import atos_py as atos

@atos.task
def spin(worker, v, out):
    x = np.uint32(v + 1)
    for _ in range(1_000_000):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
        x ^= x << np.uint32(5)
    out[v] = x
"""
BAR = """
queue, out = atos.Queue(200), atos.zeros(200, dtype=np.uint32)
queue.push(range(200))
queue.launch_thread(spin, out, progress=True).tasks_run
"""
WRONG = """
@atos.task
def wrong(worker, v, out):
    out[v] = no_such_name

queue.push(0)
try:
    queue.launch_thread(wrong, out)
except atos.TaskCompileError as error:
    print(error)
"""
CELLS = {
    "head": HEAD,
    "graph": "graph = atos.generate.road(100)\ngraph",
    "result": "result = atos.bfs(graph, 0, trace=1)\nresult",
    "array": "result.depth",
    "queue": "atos.Queue(10)",
    "kept": "figure = result.stats.plot()",
    "plot": "result.stats.plot()",
    "tuning": "atos.tune(lambda **o: atos.bfs(graph, 0, **o), space={'fetch_size': (32, 128)}, budget=1).plot()",
    "inline": "%matplotlib inline\nfigure",
    "bar": BAR,
    "wrong": WRONG,
}


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The cells of a notebook that has run, by name."""
    pytest.importorskip("matplotlib")
    notebook = notebooks.notebook_of_cells(list(CELLS.values()))
    notebooks.run(notebook, tmp_path_factory.mktemp("notebook"))
    return {name: [cell] for name, cell in zip(CELLS, notebook.cells, strict=True)}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("graph", ["<caption>Graph</caption>", "<td>10,000</td>"]),
        ("result", ["<caption>BFSResult</caption>", "LaunchStats"]),
        ("array", ["<td>(10000,)</td>", "<td>uint32</td>"]),
        ("queue", ["<td>oldest first</td>"]),
    ],
)
def test_tables(cells, name, parts):
    shown = notebooks.shown_by(cells[name])
    assert all(part in shown["text/html"] for part in parts)
    assert "<table" not in shown["text/plain"]


@pytest.mark.parametrize("name", ["plot", "tuning", "inline"])
def test_pictures_show_themselves_once(cells, name):
    outputs = cells[name][0].outputs
    assert ["image/png" in output.get("data", {}) for output in outputs] == [True]
    assert notebooks.printed_by(cells[name], "stderr") == ""


def test_a_figure_that_is_kept_is_not_shown(cells):
    assert cells["kept"][0].outputs == []


def test_a_bar_shows_a_launch(cells):
    pytest.importorskip("tqdm")
    said = notebooks.printed_by(cells["bar"], "stderr")
    assert "spin: " in said
    assert " waiting" in said
    assert notebooks.shown_by(cells["bar"])["text/plain"] == "200"


def test_the_line_of_a_mistake_is_named(cells):
    said = notebooks.printed_by(cells["wrong"])
    assert "no_such_name" in said
    assert "out[v] = no_such_name" in said
