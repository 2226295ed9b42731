"""Plausibility checks of the sizes that a file states, before memory is taken for them."""

from __future__ import annotations

from ..csr import indptr_dtype

__all__ = ["explain_implausible"]

# A file that wants more bytes of row offsets than this must have an edge for every so many vertices.
_MAX_IDLE_OFFSETS = 1 << 30
_MAX_VERTICES_PER_EDGE = 64


def explain_implausible(what: str, num_vertices: int, num_edges: int) -> str | None:
    """Say why a file's number of vertices is not to be believed, since one wrong digit could take all the memory there is."""
    size = (num_vertices + 1) * indptr_dtype(num_edges).itemsize
    if size <= _MAX_IDLE_OFFSETS or num_edges * _MAX_VERTICES_PER_EDGE >= num_vertices:
        return None
    return (
        f"{what} {num_vertices} vertices, whose row offsets take {size / 2**30:.1f} GiB, for no more than {num_edges} edges; "
        "if that is meant, give the edges and num_vertices to Graph.from_edges; renumber=True (--renumber) leaves out vertices"
        " without edges"
    )
