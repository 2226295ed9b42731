"""Cache of tuned settings on disk, beside the compiled tasks: a setting for each task, device and signature of a graph."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ..compile.task import Task
from ..core.devices import Device
from ..core.devices import device as device_of
from ..errors import UnsupportedTypeError
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..graph.signature import graph_signature
from ..runtime.experiment import Experiment
from ..support.disk_cache import read_entry, write_entry
from ..support.host_memory import host_memory_for
from .machine import read_device_facts

__all__ = ["REMEMBERED", "remember", "tuned"]

REMEMBERED = (bool, int, float, str, Experiment)
_FORMAT = 2
_read_facts = functools.cache(read_device_facts)


@host_memory_for("atos.tuned")
def tuned(
    task: Task | Callable[..., Any] | str, graph: Graph | None = None, *, device: Device | str | None = None
) -> dict[str, Any]:
    """Return the options that `tune` found best for a task on graphs like this one and on this device.

    Parameters
    ----------
    task : Task, callable or str
        The `task` that `tune` was given; ``atos.bfs``, ``atos.pagerank`` and ``atos.color``, or their names, for the
        ready-made algorithms.
    graph : Graph, optional
        The graph to run on. A setting counts if it was found on a graph of about the same size, mean degree and skew of
        degrees, which is undirected if this one is.
    device : Device or str, optional
        The graph's unless given; without a graph the best there is.

    Returns
    -------
    dict
        ``atos.bfs(graph, 0, **atos.tuned(atos.bfs, graph))``. Empty if nothing is remembered: then the launch's defaults hold,
        or what a ready-made algorithm chooses by the degrees of its graph.

    Examples
    --------
    >>> graph = atos.generate.road(30)
    >>> atos.bfs(graph, 0, **atos.tuned(atos.bfs, graph)).num_levels > 1
    True
    """
    key = _make_key(task, graph, device)
    parts = read_entry(_name_entry(key))
    if parts and (found := _check_entry(parts[0], key)) is not None:
        return found
    return {}


def remember(
    task: Task | Callable[..., Any] | str, graph: Graph | None, device: Device | str | None, best: dict[str, Any]
) -> None:
    """Keep the best options; a cache directory that cannot be written to only means that they are not kept."""
    key = _make_key(task, graph, device)
    write_entry(_name_entry(key), [json.dumps({"key": key, "best": best}, default=asdict).encode()])


def _make_key(task: Task | Callable[..., Any] | str, graph: Graph | None, device: Device | str | None) -> dict[str, Any]:
    if graph is not None:
        check_graph(graph)
    on = graph.device if graph is not None and device is None else device_of(device)
    facts = _read_facts(on)
    return {
        "format": _FORMAT,
        "task": _name_task(task),
        "device": [on.kind, facts["name"], facts["processors"]],
        "shape": None if graph is None else [*graph_signature(graph), graph.is_symmetric()],
    }


def _name_task(task: Task | Callable[..., Any] | str) -> str:
    if isinstance(task, str):
        return task
    function = task.body if isinstance(task, Task) else task
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name:
        raise UnsupportedTypeError(f"name a task, a function, or a string (got {task!r})")
    return name if module.startswith("atos_py.") else f"{module}.{name}"


def _name_entry(key: dict[str, Any]) -> str:
    return "tuned-" + hashlib.sha256(json.dumps(key).encode()).hexdigest()[:40]


def _check_entry(content: bytes, key: dict[str, Any]) -> dict[str, Any] | None:
    """Return the options of an entry if it is what `remember` writes under this key, otherwise None."""
    try:
        entry = json.loads(content)
        best = {name: Experiment(**each) if isinstance(each, dict) else each for name, each in entry["best"].items()}
        fits = entry["key"] == key and all(isinstance(value, REMEMBERED) for value in best.values())
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return best if fits else None
