"""Groups of vertices with one label each, renamed to the smallest vertex of each group, and counted; two vertex maps."""

from __future__ import annotations

from ...compile.atomics import atomic_min
from ...operators.vertex_map import vertex_map, vertex_sums

__all__ = ["find_smallest", "rename"]


@vertex_map
def find_smallest(v, label, smallest):  # type: ignore[no-untyped-def]
    """Find the smallest vertex with each label."""
    atomic_min(smallest, label[v], v)


@vertex_sums
def rename(v, label, smallest):  # type: ignore[no-untyped-def]
    """Replace a label by the smallest vertex that has it; count that vertex."""
    found = smallest[label[v]]
    label[v] = found
    return (1.0 if found == v else 0.0,)
