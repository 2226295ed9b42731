"""Making a form of an algorithm: the checks of its call, and what is done with parts that one device has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

from ..algorithms.arguments import check_options
from ..algorithms.forms import add_form
from ..arrays.array import asarray
from ..arrays.ownership import Ownership
from ..arrays.partitioned import PartitionedArray
from ..graph.graph import Graph
from ..graph.partition import Partition
from ..runtime.stats import DeviceStats, LaunchStats

__all__ = ["form"]

_Form = Callable[..., Any]


def form(algorithm: Callable[..., Any], of: type, *, rounds: bool = False) -> Callable[[_Form], _Form]:
    """Make a function the form of an algorithm for graphs of a type, `Partition` or `HostPartition`.

    The form is called with the graph, with the arguments that the signature of the algorithm has, by their names, and with the
    options of launches. Parts that one device has, as ``devices="auto"`` makes of a graph that fits one GPU, are the graph
    itself, and run as fast: the vertices have their ids there. The result has arrays over the parts, as from several devices.
    """
    signature = inspect.signature(algorithm)

    def decorate(function: _Form) -> _Form:
        @functools.wraps(function)
        def call(parts: Any, *args: Any, **options: Any) -> Any:
            if of is Partition and parts.ownership.is_alone:
                rows = Graph._make((parts.indptr, parts.indices, parts.weights))
                return _as_parts(algorithm(rows, *args, **options), parts.ownership)
            check_options(algorithm, options, rounds)
            bound = signature.bind(parts, *args, **options)
            bound.apply_defaults()
            return function(parts, SimpleNamespace(**bound.arguments), bound.arguments["launch_options"])

        add_form(algorithm.__name__, of, call)
        return call

    return decorate


def _as_parts(result: Any, ownership: Ownership) -> Any:
    """Return the result of a graph as that of its parts on one device."""
    changed: dict[str, Any] = {}
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, LaunchStats):
            of_device = value.tasks_run, value.tasks_pushed, value.num_workers, value.grown, value.trace
            changed[field.name] = replace(value, devices=(DeviceStats(str(ownership.local), *of_device),))
        elif getattr(value, "shape", None) == (ownership.size,):
            changed[field.name] = PartitionedArray._of_one(asarray(value), ownership)
    return replace(result, **changed)
