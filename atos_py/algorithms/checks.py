"""Checks of arguments that several algorithms take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..array import to_host
from ..errors import InvalidArgumentError
from ..program import WORKERS

__all__ = ["check_worker", "vertices_of"]


def check_worker(worker: str) -> None:
    """Raise unless there is such a kind of worker."""
    if worker not in WORKERS:
        raise InvalidArgumentError(f"worker must be one of {', '.join(WORKERS)} (got {worker!r})")


def vertices_of(sources: ArrayLike, num_vertices: int) -> NDArray[Any]:
    """Return the vertices that are named, one or more of them, each once and in ascending order."""
    vertices = np.unique(np.asarray(to_host(sources)))
    if not vertices.size or vertices.dtype.kind not in "iu":
        raise InvalidArgumentError(f"sources must be one or more vertex ids (got {sources!r})")
    if int(vertices[0]) < 0 or int(vertices[-1]) >= num_vertices:
        outside = int(vertices[0] if vertices[0] < 0 else vertices[-1])
        raise InvalidArgumentError(f"source {outside} is not a vertex: there are {num_vertices}, numbered from 0")
    return vertices
