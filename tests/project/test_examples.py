"""Every example runs as a script on every device and as a notebook, says what it found, draws it, and is short."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import notebooks
import pytest
from repository import ROOT

import atos_py as atos

EXAMPLES = {
    "a_star": ["A*: 1,717 seconds, verified", "no estimate: 1,717 seconds, verified"],
    "barnes_hut": ["4,000 bodies: forces to 0.", "verified"],
    "bfs": ["of 90,000 vertices reached", "verified"],
    "cholesky": ["384 x 384: error ", ", verified"],
    "coloring": ["natural", "random", "degree", "tasks for each vertex", "persistent, barrier"],
    "knapsack": ["130 things: value 42,320, verified"],
    "fork_join": ["Fibonacci number 25: 75,025, verified", "100,000 numbers sorted, verified", "tic-tac-toe: value 0, "],
    "isochrones": ["48% of the crossings within 15 minutes"],
    "mandelbrot": ["M steps instead of 60.0 M"],
    "mergesort": ["1,000,000 numbers sorted, verified", "sort, merge, piece"],
    "mesh_refinement": ["602 triangles, angles from 0.", "angles from 30.", "verified"],
    "multi_node": ["4,096 vertices, 96,878 directed edges, over cpu", "1, 1352, 1947, 36 vertices in the levels", "verified"],
    "onyx_beliefs": ["8 marginals of a tree, equal to those of all 6561 states"],
    "onyx_factors": ["9,000 ratings, root of the mean squared error 0.07"],
    "onyx_labels": ["100% of the labels are right"],
    "onyx_modalities": ["300 vertices and 2 modalities, equal to the closed form"],
    "onyx_ranking": ["300 vertices ranked in 3 features, equal to the closed form"],
    "pagerank_idle": ["error at most", "verified"],
    "pagerank": ["best:", "error at most", "gains most", "from damping 0.85 to 0.86"],
    "vertex_programs": ["BFS           verified", "16-core       verified", "widest paths  verified"],
    "survey_propagation": ["10,000 variables, 42,000 clauses: satisfied, verified"],
    "queens": ["10 queens: 724 solutions"],
    "quickstart": ["22,458 of 22,500 vertices reached, verified", "index 10 is out of range for array 'counts' of length 10"],
    "triangular_solve": ["k = 32: backward error ", ", verified", "with no factors: 14", "with IC(0): ", "with ILU(0): "],
    "uts": ["T1: 4,130,071 nodes, 3,305,118 of them leaves, down to depth 10, verified"],
}

WHOLE_PROGRAMS = {
    "barnes_hut",
    "cholesky",
    "fork_join",
    "mergesort",
    "mesh_refinement",
    "quickstart",
    "survey_propagation",
    "triangular_solve",
    "uts",
}  # several tasks, or a task with a hash of its own, or a tour; the others show one thing

CPU_ALONE = {"multi_node"}  # whatever GPUs there are


def in_gallery(name: str) -> str | None:
    """Return what an example printed in the gallery, which runs it on the CPU (`make docs`), if that is of these sources."""
    page, example = ROOT / "docs" / "gallery" / f"{name}.rst", ROOT / "examples" / f"{name}.py"
    sources = [example, *(path for path in (ROOT / "atos_py").rglob("*") if path.suffix in (".py", ".so"))]
    if not page.is_file() or page.stat().st_mtime <= max(path.stat().st_mtime for path in sources):
        return None
    return printed_on(page.read_text())


def printed_on(page: str) -> str:
    """Return what the program of a page of the gallery printed."""
    return "\n".join(re.findall(r"^ .. code-block:: none\n\n((?:    .*\n|\n)*)", page, re.MULTILINE))


def run(name: str, *arguments: object, device: str) -> str:
    """Run an example, unless the gallery has done so, and return what it prints."""
    if device == "cpu" and not arguments and (printed := in_gallery(name)) is not None:
        return printed
    command = [sys.executable, ROOT / "examples" / f"{name}.py", *map(str, arguments)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "ATOS_DEVICE": device}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_known_here():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_runs(device, name):
    if name in CPU_ALONE and device.kind != "cpu":
        pytest.skip("runs on CPU devices alone")
    printed = run(name, device=str(device))
    assert all(part in printed for part in EXAMPLES[name])
    assert str(device) in printed


@pytest.mark.part("notebooks")
@pytest.mark.parametrize("name", EXAMPLES)
def test_runs_as_a_notebook_and_draws(name, tmp_path):
    """In a kernel whose `sys.argv` is not the example's; every page of the gallery has a picture."""
    notebook = notebooks.notebook_of_example(name)
    notebooks.run(notebook, tmp_path)
    printed = notebooks.printed_by(notebook.cells)
    assert all(part in printed for part in EXAMPLES[name])
    assert "image/png" in notebooks.shown_by(notebook.cells)


def test_what_a_program_printed_is_found_on_its_page():
    page = """.. code-block:: Python

    print("one")

 .. code-block:: none

    cpu

    two

.. code-block:: Python

    print("three")

 .. code-block:: none

    four
"""
    assert [line for line in printed_on(page).splitlines() if line] == ["    cpu", "    two", "    four"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_is_short(name):
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < (260 if name in WHOLE_PROGRAMS else 70)


@pytest.mark.parametrize("name", ["coloring", "pagerank"])
def test_takes_a_file(device, name, tmp_path):
    path = tmp_path / "grid.npz"
    atos.generate.road(30, device="cpu").save(path)
    assert "900 vertices" in run(name, path, device=str(device))


def test_bfs_on_a_file(device, tmp_path):
    path = tmp_path / "path.gr"
    path.write_text("p sp 4 3\na 1 2 5\na 2 3 5\na 3 4 5\n")
    printed = run("bfs", path, "--source", 1, "--device", device, device="cpu")
    assert "3 of 4 vertices reached, the farthest over 2 edges" in printed
    assert str(device) in printed
