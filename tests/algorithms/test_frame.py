"""The frame of algorithms: what is checked before them, and what becomes of their results and errors."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.algorithms import frame
from atos_py.algorithms.frame import algorithm
from atos_py.algorithms.registry import find_algorithms

SECTIONS = "Parameters", "Raises"
SECTIONS_OF_NUMPYDOC = "Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples"
GRAPH = atos.Graph.from_edges([0, 1], [1, 2])


@dataclass(frozen=True)
class Result:
    degree: Any
    total: int
    stats: Any = None


@algorithm(rounds=True)
def degrees(graph, shift=0, *, worker=None, **launch_options):
    """Return degrees."""
    if shift > 1:
        raise MemoryError
    if shift:
        raise ValueError(shift)
    return Result(atos.asarray(np.asarray(graph.degrees())), graph.num_edges)


def test_the_function_is_called_with_what_it_takes():
    assert degrees(GRAPH).degree.to_numpy().tolist() == [1, 1, 0]
    assert degrees(graph=GRAPH, worker="warp", barrier=True, timeout=1.0).total == 2
    assert list(inspect.signature(degrees).parameters) == ["graph", "shift", "worker", "launch_options"]
    assert degrees.__doc__ == "Return degrees."


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"worker": "block"}, atos.InvalidArgumentError, "worker must be one of"),
        ({"shiftt": 1}, atos.UnsupportedTypeError, "degrees has no option 'shiftt'; did you mean 'shift'"),
        ({"barrier": False}, atos.LaunchConfigError, "degrees proceeds in rounds"),
        ({"each_round": print}, atos.LaunchConfigError, "a function between rounds of its own"),
    ],
)
def test_what_it_does_not_take_is_refused_before_anything_is_done(options, error, words):
    with pytest.raises(error, match=words):
        degrees(GRAPH, 1, **options)


def test_no_graph_is_refused():
    with pytest.raises(atos.UnsupportedTypeError):
        degrees([[1], [0]])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'graph'"):
        degrees()


def test_short_memory_names_the_algorithm_and_other_errors_pass():
    with pytest.raises(atos.DeviceMemoryError, match=r"too little free memory for atos\.degrees"):
        degrees(GRAPH, 2)
    with pytest.raises(ValueError, match="1"):
        degrees(GRAPH, 1)


def test_arrays_of_the_result_are_of_the_library_of_the_graph(monkeypatch):
    monkeypatch.setattr(atos.Graph, "library", "torch")
    monkeypatch.setattr(frame, "as_library", lambda array, library: (library, array.to_numpy().tolist()))
    assert degrees(GRAPH) == Result(("torch", [1, 1, 0]), 2)


def test_all_algorithms_have_the_frame():
    assert all(entry.run.__wrapped__.__code__ is degrees.__wrapped__.__code__ for entry in find_algorithms().values())


@pytest.mark.parametrize("entry", find_algorithms().values(), ids=lambda entry: entry.name)
def test_docstrings_describe_the_worker_and_each_option_that_the_algorithm_takes(entry):
    text = inspect.getdoc(entry.run)
    parameters, errors = (text.split(f"{section}\n{'-' * len(section)}\n")[1].split("\n\nReturns\n")[0] for section in SECTIONS)
    documented = re.findall(r"^(?:\*\*)?(\w+) : ", parameters, re.MULTILINE)
    assert sorted(documented) == sorted(inspect.signature(entry.run).parameters)
    taken = re.findall(r"^    - `(\w+)` \(.+\): .+", parameters, re.MULTILINE)
    refused = {"barrier", "each_round"} if "The launch has rounds" in parameters else set()
    assert sorted(taken) == sorted(set(atos.LaunchOptions.__annotations__) - refused)
    assert re.search(r"^LaunchTimeoutError\n    If .*`timeout`", errors, re.MULTILINE)
    named = re.findall(r"^\w.*$", errors.partition("\n\n")[0], re.MULTILINE)
    assert len(named) == len(set(named)) >= 5
    assert f"\n\nReturns\n-------\n{inspect.signature(entry.run).return_annotation}\n" in text
    assert "{launch_" not in text


def test_docstrings_say_which_options_take_the_rounds_away():
    said = {entry.name for entry in find_algorithms().values() if "Also if `barrier` is False" in inspect.getdoc(entry.run)}
    assert {"core_number", "label_propagation"} <= said
    assert not {"bfs", "k_core"} & said


@pytest.mark.parametrize("entry", find_algorithms().values(), ids=lambda entry: entry.name)
def test_verifiers_describe_their_errors_in_the_order_of_sections(entry):
    module = inspect.getmodule(inspect.unwrap(entry.run)).__name__.removesuffix(".api")
    names = [each for each in atos.__all__ if each.startswith("verify_") and getattr(atos, each).__module__.startswith(module)]
    (name,) = names if len(names) == 1 else [f"verify_{entry.name}"]
    text = inspect.getdoc(getattr(atos, name))
    sections = re.findall(r"^(\w[\w ]+)\n---", text, re.MULTILINE)
    assert [each for each in SECTIONS_OF_NUMPYDOC if each in sections] == sections
    for error in ("VerificationError", "UnsupportedTypeError, InvalidArgumentError", "DeviceMemoryError"):
        assert text.count(f"\n{error}\n    ") == 1


def test_without_docstrings_nothing_is_filled_in():
    code = "import atos_py as atos; print(atos.bfs.__doc__, atos.verify_bfs.__doc__)"
    told = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["None", "None"]
