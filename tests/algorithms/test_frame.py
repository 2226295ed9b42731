"""The frame of algorithms: what is checked before them, and what becomes of their results and errors."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.algorithms import frame
from atos_py.algorithms.frame import algorithm
from atos_py.algorithms.registry import find_algorithms

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
