"""Checks of arguments that several algorithms take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.array import to_host
from ..compile.program import check_worker
from ..errors import InvalidArgumentError, LaunchConfigError, UnsupportedTypeError
from ..graph.csr import CSR
from ..graph.graph_arrays import check_graph
from ..runtime.launch_options import check_launch_options
from ..support.splitmix64 import splitmix64
from ..support.validation import as_host_array, check_int, list_parameters

__all__ = [
    "check_cutoff",
    "check_no_each_round",
    "check_options",
    "check_sources",
    "check_target",
    "choose_sources",
    "ends_of",
    "first_of",
    "hash_of_seed",
    "largest_whole",
    "per_vertex",
    "rows_on_host",
]

_KINDS = {"iu": "integers", "f": "floats", "b": "bool"}


def rows_on_host(graph: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the offsets and targets of a `Graph` or `CSR`, on the host."""
    if not isinstance(graph, CSR):
        check_graph(graph)
    return np.asarray(graph.indptr), np.asarray(graph.indices)


def ends_of(indptr: NDArray[Any], indices: NDArray[Any], edge: int) -> tuple[int, int]:
    """Return the source and the target of an edge, by its number, as a message names them."""
    return int(np.searchsorted(indptr, edge, side="right")) - 1, int(indices[edge])


def first_of(flags: NDArray[np.bool_]) -> int:
    """Return the first vertex that is flagged, or -1: the one that a verifier names."""
    return int(np.argmax(flags)) if flags.any() else -1


def check_options(algorithm: Callable[..., Any], options: Mapping[str, Any], rounds: bool = False) -> None:
    """Raise unless an algorithm is given options that there are, with a worker or None.

    An option is the algorithm's own or one of its launches. With `rounds`, these must not take away the rounds in which it
    proceeds, or the function between them.
    """
    name = algorithm.__name__
    if options:
        check_launch_options(name, options, list_parameters(algorithm))
        if options.get("worker") is not None:
            check_worker(options["worker"])
    if rounds:
        if not options.get("barrier", True):
            raise LaunchConfigError(f"{name} proceeds in rounds, which take barriers (got barrier=False); leave it out")
        check_no_each_round(name, options)


def check_no_each_round(name: str, options: Mapping[str, Any]) -> None:
    """Raise if a function between rounds is given to an algorithm that has its own."""
    if options.get("each_round") is not None:
        raise LaunchConfigError(f"{name} has a function between rounds of its own (got each_round); leave it out")


def check_sources(sources: ArrayLike, num_vertices: int, name: str = "sources") -> NDArray[Any]:
    """Return the vertices that are named, one or more of them, each once and in ascending order."""
    if type(sources) is int and 0 <= sources < num_vertices:
        return np.array([sources])
    given = as_host_array(name, to_host(sources))
    if not given.size or given.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{name} must be one or more vertex ids (got {sources!r:.80})")
    vertices = given.reshape(-1)
    if not (vertices[1:] > vertices[:-1]).all():  # sorting millions of them takes seconds
        vertices = np.unique(vertices)
    if int(vertices[0]) < 0 or int(vertices[-1]) >= num_vertices:
        outside = int(vertices[0] if vertices[0] < 0 else vertices[-1])
        one = name.removesuffix("s")
        raise InvalidArgumentError(f"{one} {outside} is not a vertex: there are {num_vertices}, numbered from 0")
    return vertices


def choose_sources(sources: ArrayLike | None, n: int, seed: int) -> NDArray[np.uint32]:
    """Return the vertices that paths begin at: all, so many that the hash of a seed chooses, or those named; ascending."""
    if sources is None:
        return np.arange(n, dtype=np.uint32)
    if as_host_array("sources", to_host(sources)).ndim == 0:
        k = min(check_int("sources", sources, 1, 2**63), n)
        hashes = splitmix64(np.arange(n, dtype=np.uint64) ^ hash_of_seed(seed))
        return np.sort(np.argsort(hashes, kind="stable")[:k]).astype(np.uint32)
    return check_sources(sources, n).astype(np.uint32)


def check_target(target: Any, num_vertices: int) -> int | None:
    """Return the vertex at which a search may end, or None if there is none."""
    if target is None:
        return None
    vertex = check_int("target", target, -(2**63), 2**64)
    if not 0 <= vertex < num_vertices:
        raise InvalidArgumentError(f"target {vertex} is not a vertex: there are {num_vertices}, numbered from 0")
    return vertex


def check_cutoff(cutoff: Any) -> int | float | None:
    """Return the distance up to which a search goes, or None if there is none: a number that is no NaN, maybe infinite."""
    if cutoff is None:
        return None
    if isinstance(cutoff, (bool, np.bool_)) or not isinstance(cutoff, (int, float, np.integer, np.floating)):
        raise UnsupportedTypeError(f"cutoff must be a number (got {cutoff!r:.80})")
    if cutoff != cutoff:
        raise InvalidArgumentError("cutoff must be a distance, and is NaN; for all distances leave it out")
    return cutoff.item() if isinstance(cutoff, np.generic) else cutoff


def largest_whole(cutoff: int | float | None, most: int) -> int:
    """Return the largest integer up to `most` that is not above a cutoff; -1 if that is negative."""
    return most if cutoff is None or cutoff >= most else math.floor(max(cutoff, -1))


def hash_of_seed(seed: Any) -> np.uint64:
    """Return the hash of a seed of 64 bits, signed or not, from which tasks make those of vertices."""
    return splitmix64(np.array([check_int("seed", seed, -(2**63), 2**64 - 1) % 2**64], np.uint64))[0]  # type: ignore[no-any-return]


def per_vertex(name: str, values: Any, num_vertices: int, kinds: str = "iu") -> NDArray[Any]:
    """Return numbers that a verifier was given, one for each vertex, on the host and in its byte order.

    `kinds` are those of NumPy: "iu" for integers, "f" for floats, "b" for bool.
    """
    found = np.ascontiguousarray(as_host_array(name, to_host(values)))
    found = found.astype(found.dtype.newbyteorder("="), copy=False)
    if found.dtype.kind not in kinds:
        raise UnsupportedTypeError(f"{name} must be an array of {_KINDS[kinds]}, not {found.dtype}")
    if found.shape != (num_vertices,):
        raise InvalidArgumentError(f"{name} must have one entry for each of {num_vertices} vertices (got shape {found.shape})")
    return found
