"""Notebooks for tests: made of the examples as their pages offer them, or of cells, and run by a kernel of their own."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

__all__ = ["notebook_of_cells", "notebook_of_example", "printed_by", "run", "shown_by"]


def notebook_of_example(name: str) -> Any:
    """Return an example as the notebook that its page in the gallery offers."""
    nbformat, gallery = pytest.importorskip("nbformat"), pytest.importorskip("sphinx_gallery.gen_gallery")
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    path = ROOT / "examples" / f"{name}.py"
    _, blocks = split_code_and_text_blocks(str(path))
    made = jupyter_notebook(blocks, copy.deepcopy(gallery.DEFAULT_GALLERY_CONF), str(path.parent))
    return nbformat.reads(json.dumps(made), as_version=4)


def notebook_of_cells(cells: Sequence[str]) -> Any:
    """Return a notebook of cells with code."""
    v4 = pytest.importorskip("nbformat").v4
    return v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])


def run(notebook: Any, folder: Path, device: str = "cpu") -> None:
    """Run a notebook in a folder; an error in a cell is raised, and what the cells show is in the notebook."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "ATOS_DEVICE": device, "IPYTHONDIR": str(folder / "ipython")}
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}})
    client.execute(env=environment)


def printed_by(cells: Sequence[Any], stream: str = "stdout") -> str:
    """Return what some cells of a notebook that has run have printed."""
    return "".join(output.text for output in _outputs(cells) if output.output_type == "stream" and output.name == stream)


def shown_by(cells: Sequence[Any]) -> dict[str, Any]:
    """Return what some cells show beside that: the last of each kind, such as image/png."""
    return {kind: data for output in _outputs(cells) if "data" in output for kind, data in output.data.items()}


def _outputs(cells: Sequence[Any]) -> list[Any]:
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
