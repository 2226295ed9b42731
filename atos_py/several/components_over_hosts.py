"""Connected components over several hosts: labels are lowered along edges, in rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.connected_components import ComponentsResult, connected_components
from ..arrays.filled import full
from ..compile.task import task
from ..graph.host_partition import HostPartition
from .forms import form
from .over_hosts import check_undirected, edges_with_value, lower_along_edges

__all__ = ["components_over_hosts"]


@task(workload=edges_with_value)
def lower_label(worker, v, i, first, label, parts, labels):  # type: ignore[no-untyped-def]
    """Lower the label of a neighbor."""
    worker.push_min(labels, parts.indices[first + i], label)


@form(connected_components, HostPartition)
def components_over_hosts(parts: HostPartition, given: Any, options: Any) -> ComponentsResult:
    """Return the labels of components, how many there are, and the statistics; see `connected_components`."""
    check_undirected("connected_components", parts)
    n, own = parts.num_vertices, parts.places.own
    label = full(n, n, dtype=np.uint32, partition=parts, combine="min")
    label[:] = everyone = np.arange(n, dtype=np.uint32)
    _, stats = lower_along_edges("connected_components", parts, label, lower_label, everyone, given.worker, options)
    with label._on_host() as values:
        smallest = np.count_nonzero(values[own] == parts.original[own])
    count = int(parts.places.hosts.messages.total(np.array([smallest]))[0])
    return ComponentsResult(label, count, stats)  # type: ignore[arg-type]
