"""The arrays of a graph on one device: their sizes and place, and the check that something is a graph."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ..arrays.array import Array
from ..core.devices import Device
from ..errors import UnsupportedTypeError
from ..support.shown import Shown, format_bytes
from .csr import CSR
from .graph_input import describe_kind, way_to_graph

__all__ = ["GraphArrays", "SameArrays", "check_graph"]


class SameArrays(Shown):
    """Base class of graphs and their parts, tuples that are equal if their arrays are the very same.

    What the arrays hold is not looked at: a tuple would ask for the truth of ``array == other``, which compares elements.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._ids() == other._ids()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._ids())

    def _ids(self) -> tuple[int, ...]:
        return tuple(map(id, cast("tuple[Any, ...]", self)))

    def _shown(self) -> dict[str, object]:
        parts: Any = self
        if not isinstance(parts.indptr, Array) or not isinstance(parts.indices, Array):  # after `_replace` or `_make`
            return {"parts": repr(self)}
        arrays = [each for each in parts if isinstance(each, Array)]
        devices = getattr(parts, "devices", (parts.indptr.device,))
        return {
            "vertices": f"{parts.num_vertices:,}",
            "directed edges": f"{parts.num_edges:,}",
            "weights": "none" if parts.weights is None else parts.weights.dtype,
            "indptr, indices": f"{parts.indptr.dtype}, {parts.indices.dtype}",
            "size": format_bytes(sum(each.nbytes for each in arrays)),
            "device": ", ".join(map(str, devices)),
        }


class GraphArrays(NamedTuple):
    """The rows of a CSR in arrays of one device, as tasks take them. `Graph` says what they are, and makes them."""

    indptr: Array
    indices: Array
    weights: Array | None

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return self.indptr.shape[0] - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges; an undirected edge counts twice."""
        return self.indices.shape[0]

    @property
    def device(self) -> Device:
        """The device that has the arrays of the graph."""
        return self.indptr.device

    @property
    def library(self) -> str | None:
        """The library whose arrays results are: "cupy", "torch" or "jax"; None if they are atos arrays."""
        return self.indices.library

    def _on_host(self) -> CSR:
        return CSR(*(None if part is None else np.asarray(part) for part in self))  # type: ignore[arg-type]

    def _is_of_arrays(self) -> bool:
        """Whether the parts are what they must be, which those of one by `_replace` or `_make` may not be."""
        indptr, indices, weights = self
        return isinstance(indptr, Array) and isinstance(indices, Array) and (weights is None or isinstance(weights, Array))


def check_graph(value: Any) -> None:
    """Raise unless it is a graph of this package, and whole."""
    if not isinstance(value, GraphArrays):
        raise UnsupportedTypeError(f"graph must be an atos.Graph (got {describe_kind(value)}); {way_to_graph(value)}")
    if not value._is_of_arrays():
        raise UnsupportedTypeError(
            f"the parts of a graph are arrays of atos (got {value!r:.200}); make one with Graph.from_csr(indptr, indices)"
        )
