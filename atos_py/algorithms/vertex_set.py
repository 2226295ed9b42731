"""Set of vertices, as the result of an algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.any_array import AnyArray
from ..arrays.array import to_host
from ..runtime.stats import LaunchStats
from ..support.host_memory import host_memory_for
from ..support.shown import ShownFields

__all__ = ["VertexSetResult", "describe_set"]


@dataclass(frozen=True, eq=False)
class VertexSetResult(ShownFields):
    """Result of `k_core` and `maximal_independent_set`.

    Attributes
    ----------
    members : Array, or an array of the library that the graph's arrays came from
        Whether each vertex is in the set, bool.
    stats : LaunchStats

    Examples
    --------
    >>> result = atos.k_core(atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True), 2)
    >>> print(result.members[:], result.num_members)
    [ True  True  True False] 3
    """

    members: AnyArray
    stats: LaunchStats

    @property
    @host_memory_for("VertexSetResult.num_members")
    def num_members(self) -> int:
        """Number of vertices in the set."""
        return int(np.count_nonzero(to_host(self.members)))


def describe_set(result: VertexSetResult) -> dict[str, Any]:
    """Return the size of a set, which a command prints."""
    return {"members": result.num_members}
