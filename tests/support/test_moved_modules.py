"""Old names of modules give what the modules have now."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from atos_py import algorithms
from atos_py.support.moved_modules import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_gives_what_the_module_has_now(old: str) -> None:
    before, now = importlib.import_module(old), importlib.import_module(MOVED[old])
    assert now.__name__ == MOVED[old]
    assert before is now
    assert all(getattr(before, name) is getattr(now, name) for name in now.__all__)


def test_a_module_in_a_package_that_has_moved() -> None:
    from atos_py.models.nx_backend import graphs

    assert importlib.import_module("atos_py.nx_backend.graphs") is graphs
    assert importlib.import_module("atos_py.nx_backend").graphs is graphs


def test_what_is_left_of_a_folder_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout that was updated there may be an old folder with nothing but compiled files."""
    (tmp_path / "als" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "atos_py.algorithms.als", raising=False)
    assert importlib.import_module("atos_py.algorithms.als").__name__ == "atos_py.models.learning.als"


def test_what_there_never_was() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'atos_py\.models\.nx_backend\.nothing'"):
        importlib.import_module("atos_py.nx_backend.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'atos_py\.nx_backend2'"):
        importlib.import_module("atos_py.nx_backend2")
