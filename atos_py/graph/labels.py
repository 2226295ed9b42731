"""Labels of vertices: the ids that they had in the file of a graph whose vertices were numbered anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidArgumentError
from ..support.host_memory import host_memory_for
from ..support.validation import as_integers, check_int
from .graph_arrays import GraphArrays
from .kept import kept

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing from Python 3.11 on

__all__ = ["LabeledRows", "check_labels"]


class LabeledRows(GraphArrays):
    """The rows of a graph whose vertices may have labels, which are kept as long as its arrays."""

    __slots__ = ()

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """The id that each vertex has in the file, if `Graph.load` has renumbered them; otherwise None.

        Graphs that are made of this one have the labels of their vertices too, and files that `Graph.save` writes.

        Examples
        --------
        >>> np.savetxt("far.txt", [[100009, 100000], [100000, 500000]], fmt="%d")
        >>> graph = atos.Graph.load("far.txt", renumber=True)
        >>> print(graph.num_vertices, graph.labels)
        3 [100000 100009 500000]
        >>> depth = atos.bfs(graph, graph.vertex_of(100009)).depth
        >>> print(dict(zip(graph.labels.tolist(), depth.tolist())))
        {100000: 1, 100009: 0, 500000: 2}
        """
        labels: NDArray[np.int64] | None = kept(self).get("labels")
        return labels

    @host_memory_for("Graph.vertex_of")
    def vertex_of(self, label: int) -> int:
        """Return the vertex with a label; without labels, vertices are called by their numbers.

        Raises
        ------
        InvalidArgumentError
            If there is none.

        Examples
        --------
        >>> np.savetxt("far.txt", [[7, 9]], fmt="%d")
        >>> atos.Graph.load("far.txt", renumber=True).vertex_of(9)
        1
        """
        if self.labels is None:
            return check_int("label", label, 0, self.num_vertices - 1)
        wanted = check_int("label", label, -(2**63), 2**63 - 1)
        found = np.flatnonzero(self.labels == wanted)
        if not found.size:
            raise InvalidArgumentError(f"no vertex has the label {wanted}: no edge of the file names it")
        return int(found[0])

    def _labeled(self, labels: NDArray[np.int64] | None) -> Self:
        """Return the graph, which has these labels from now on."""
        if labels is not None:
            labels.flags.writeable = False
            kept(self)["labels"] = labels
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy and pickle the labels too, and the edge arrays, which are among the attributes of a graph."""
        if not self._is_of_arrays() or self.labels is None:
            return super().__reduce_ex__(protocol)
        return _remade, (type(self), *self, self.labels), getattr(self, "__dict__", None) or None


def _remade(kind: type[LabeledRows], indptr: Any, indices: Any, weights: Any, labels: Any) -> LabeledRows:
    return kind(indptr, indices, weights)._labeled(labels)


def check_labels(labels: ArrayLike, num_vertices: int) -> NDArray[np.int64]:
    """Return labels that a file has, a different one for each vertex."""
    found = as_integers("labels", labels)
    if found.size != num_vertices:
        raise InvalidArgumentError(f"labels must have an entry for each of the {num_vertices} vertices (got {found.size})")
    if found.size and int(found.max()) >= 2**63:
        raise InvalidArgumentError(f"labels must be less than 2**63 (got {int(found.max())})")
    if np.unique(found).size != found.size:
        raise InvalidArgumentError("labels must be different for each vertex, but one is there twice")
    return found.astype(np.int64)
