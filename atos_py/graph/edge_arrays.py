"""Numbers of edges beside their weights, by name, which stay with the edges in every graph that is made of a graph."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays.array import Array, asarray, to_host
from ..arrays.compute import compute
from ..arrays.import_external import is_on_gpu
from ..arrays.primitives import min as least
from ..core.devices import Device
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.remembered import Remembered
from ..support.validation import check_bool
from .csr import CSR, EdgeList, build_csr, indptr_dtype
from .graph_arrays import GraphArrays, SameArrays
from .kept import kept
from .labels import LabeledRows
from .weights import check_weights, weight_dtype

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing from Python 3.11 on

__all__ = [
    "GraphEdgeArrays",
    "build_with_arrays",
    "check_arrays",
    "edge_numbers",
    "kept_arrays",
    "number_edges",
    "take_edges",
    "turn_arrays",
]

_TAKEN = ("source", "target", "weight")  # of the columns of `to_pandas_edgelist`


class GraphEdgeArrays(SameArrays, LabeledRows):
    """A graph whose edges may have numbers beside the weights. It has no `__slots__`, so that a graph has room for these."""

    _edge_arrays: Mapping[str, Array] = MappingProxyType({})

    @property
    def edge_arrays(self) -> Mapping[str, Array]:
        """Numbers of the edges beside `weights`, by name: arrays in the order of `indices`, which `with_edge_arrays` gives.

        `transpose`, `simplify`, `to_symmetric`, `subgraph`, `largest_component`, `reorder`, `to`, `save` and
        `generate.sample_edges` keep them with their edges; `partition` leaves them out. A task takes one as an argument of its
        own, and an algorithm takes one as the weights, by `with_weights`.

        Examples
        --------
        >>> roads = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], edge_arrays={"minutes": [5, 9, 3], "toll": [0.5, 0, 0]})
        >>> for name, array in roads.transpose().edge_arrays.items():
        ...     print(name, array[:])
        minutes [5 9 3]
        toll [0.5 0.  0. ]
        >>> print(atos.sssp(roads.with_weights(roads.edge_arrays["minutes"]), 0).distance[:])
        [0 5 8]
        """
        return MappingProxyType(dict(self._edge_arrays))

    @host_memory_for("Graph.with_edge_arrays")
    def with_edge_arrays(self, /, **arrays: ArrayLike | Array | None) -> Self:
        """Return the graph with more `edge_arrays`, or with others under the same names; it shares rows and weights.

        Parameters
        ----------
        **arrays : array of numbers, of shape (num_edges,), or None
            By name, in the order of the edges, and of the types of weights: smaller integers and bool become int32 or uint32.
            They are checked, and copied only where dtype, layout or device require it: do not change them afterwards. None
            takes the array of that name off.

        Raises
        ------
        InvalidArgumentError
            If there are too few or too many numbers, one is NaN, there is no array to take off, or the name is "source",
            "target" or "weight".
        UnsupportedTypeError
            If they are no integers or floats of at most 64 bits.

        Examples
        --------
        >>> graph = atos.Graph.from_edges([0, 1], [1, 2]).with_edge_arrays(lanes=[2, 1], length=[80.5, 20])
        >>> print(list(graph.edge_arrays), graph.edge_arrays["lanes"][:], list(graph.with_edge_arrays(lanes=None).edge_arrays))
        ['lanes', 'length'] [2 1] ['length']
        """
        found = dict(self._edge_arrays)
        for name, given in arrays.items():
            if given is None:
                if found.pop(name, None) is None:
                    raise InvalidArgumentError(f"the graph has no edge array {name!r:.80} to take off (it has {list(found)})")
            else:
                check_names([name])
                found[name] = edge_numbers(name, given, self.indices)
        return self._carrying(found)

    @classmethod
    def _on(cls, csr: CSR, device: Device | str | None, library: str | None = None) -> Self:
        """Return the graph of a checked CSR."""
        parts = [None if part is None else asarray(part, device=device, readonly=True) for part in csr]
        for part in parts:
            if part is not None:
                part.library = library
        return cls(*parts)  # type: ignore[arg-type]

    @classmethod
    def _built(
        cls,
        edges: EdgeList,
        arrays: Mapping[str, NDArray[Any]],
        device: Device | str | None,
        library: str | None = None,
        *,
        deduplicate: bool = False,
        **ways: Any,
    ) -> Any:
        """Return the graph of checked edges, and of arrays of their numbers."""
        if not arrays:
            return cls._on(build_csr(edges.chunks, edges.num_vertices, deduplicate=deduplicate, **ways), device, library)
        csr, sorted_arrays = build_with_arrays(edges, arrays, **ways)
        graph: Any = cls._on(csr, "cpu", library).with_edge_arrays(**sorted_arrays)
        return (graph.simplify(deduplicate=True) if check_bool("deduplicate", deduplicate) else graph).to(device)

    def _carrying(self, arrays: Mapping[str, Array]) -> Self:
        """Return the graph with these edge arrays, which are as they must be, and no others; labels are kept with its rows."""
        made = type(self)._make(self)
        if arrays:
            made._edge_arrays = arrays
        return made

    def _bare(self) -> Self:
        """Return the graph without edge arrays."""
        return type(self)._make(self) if self._edge_arrays else self

    def _ids(self) -> tuple[int, ...]:
        return (*super()._ids(), *(hash(name) for name in self._edge_arrays), *map(id, self._edge_arrays.values()))


def check_names(names: Any) -> list[str]:
    """Return names of edge arrays; raise if one is taken, or is no text that a table or a file may show."""
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise UnsupportedTypeError(f"the name of an edge array is printable text (got {name!r:.80})")
        if name in _TAKEN:
            instead = "; weights are given by with_weights" if name == "weight" else ""
            raise InvalidArgumentError(f"{name!r} cannot be the name of an edge array, since tables of edges have it{instead}")
    return list(names)


def check_arrays(arrays: Any, edges: EdgeList) -> dict[str, NDArray[Any]]:
    """Return arrays of numbers of edges on the host, by name; raise unless there is a number for each edge."""
    if arrays is None:
        return {}
    if not isinstance(arrays, Mapping):
        raise UnsupportedTypeError(f"edge_arrays is a dict of arrays by name (got {arrays!r:.80})")
    count = sum([chunk.sources.size for chunk in edges.chunks])
    return {name: check_weights(to_host(arrays[name]), count, name) for name in check_names(arrays)}


def edge_numbers(name: str, given: Any, indices: Array) -> Array:
    """Return a number for each edge as a read-only array on the device of `indices`; `name` is what they are to errors."""
    if is_on_gpu(given):
        found = asarray(given, device=indices.device, readonly=True)
        right = found.shape == indices.shape and found.dtype == weight_dtype(found.dtype, name)
        if right and not (found.dtype.kind == "f" and found.size and np.isnan(least(found))):
            return found
    # The check on the host names the number that is wrong.
    return asarray(check_weights(to_host(given), indices.size, name), device=indices.device, readonly=True)


def number_edges(graph: GraphArrays) -> GraphArrays:
    """Return the graph with the number of each edge as its weight, by which a graph made of this one tells its edges."""
    (numbers,) = compute(lambda xp, indices: (xp.arange(indices.size, dtype=indptr_dtype(indices.size)),), graph.indices)
    return GraphArrays(graph.indptr, graph.indices, numbers)


def take_edges(array: Array, edges: Array) -> Array:
    """Return what an array has for some edges, by their numbers, as a read-only array."""
    (made,) = compute(lambda xp, values, places: (values[places],), array, edges)
    made.readonly = True
    return made


def kept_arrays(graph: GraphEdgeArrays, what: str, make: Callable[[str, Array], Array]) -> dict[str, Array]:
    """Return what becomes of each edge array of a graph: made once, and kept as long as graph and array."""
    table: Remembered[Array] = kept(graph).setdefault(what, Remembered())
    made = {}
    for name, array in graph._edge_arrays.items():
        found = table.get(array)
        made[name] = table.set(array, make(name, array)) if found is None else found
    return made


def turn_arrays(graph: GraphEdgeArrays, turned: GraphArrays, edges: Array) -> dict[str, Array]:
    """Return the edge arrays of the transpose, whose edges have these numbers; of the transpose's transpose, the first ones."""
    origins: Remembered[weakref.ref[Array]] = kept(graph).setdefault("origins of arrays", Remembered())
    back: Remembered[weakref.ref[Array]] = kept(turned).setdefault("origins of arrays", Remembered())

    def turn(name: str, array: Array) -> Array:
        made = take_edges(array, edges)
        back.set(made, weakref.ref(array))
        return made

    made = {}
    for name, array in graph._edge_arrays.items():
        reference = origins.get(array)
        origin = None if reference is None else reference()
        made[name] = kept_arrays(graph._carrying({name: array}), "turned arrays", turn)[name] if origin is None else origin
    return made


def build_with_arrays(edges: EdgeList, arrays: Mapping[str, NDArray[Any]], **ways: bool) -> tuple[CSR, dict[str, NDArray[Any]]]:
    """Return edges as a CSR, made in the `ways` of `build_csr`, and arrays of numbers of the edges in the order of the CSR."""
    chunks, count = [], 0
    total = sum([chunk.sources.size for chunk in edges.chunks])
    for chunk in edges.chunks:
        numbers = np.arange(count, count + chunk.sources.size, dtype=indptr_dtype(total))
        chunks.append(chunk._replace(weights=numbers))
        count += chunk.sources.size
    csr = build_csr(chunks, edges.num_vertices, **ways)  # type: ignore[arg-type]
    order = csr.weights
    assert order is not None
    parts = [chunk.weights for chunk in edges.chunks if chunk.weights is not None]
    weights = np.concatenate(parts)[order] if parts else None
    return csr._replace(weights=weights), {name: array[order] for name, array in arrays.items()}
