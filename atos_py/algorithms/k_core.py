"""The k-core of a graph: one level of what finds core numbers (`core_number`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.array import empty
from ..arrays.array_library import as_library
from ..errors import VerificationError
from ..graph.graph import Graph
from ..operators.peeling import scan
from ..operators.vertex_map import vertex_map
from ..runtime.launch_options import LaunchOptions
from ..support.host_memory import host_memory_for
from ..support.validation import check_int
from .arguments import check_call, first_of, per_vertex
from .core_number import REST, find_serial_cores, peel_levels
from .registry import Algorithm, Option, register
from .vertex_set import VertexSetResult, describe_set

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of typing from Python 3.11 on

__all__ = ["k_core", "verify_k_core"]


@vertex_map
def mark_rest(v, core, members):  # type: ignore[no-untyped-def]
    """Mark what is left after the level."""
    members[v] = core[v] == REST


@host_memory_for("atos.k_core")
def k_core(graph: Graph, k: int, *, worker: str | None = None, **launch_options: Unpack[LaunchOptions]) -> VertexSetResult:
    """Return the k-core: the largest part of the graph in which each vertex has at least k edges to others of it.

    Parameters
    ----------
    graph : Graph
        As for `core_number`: directed or not, parallel edges count each, and loops do not.
    k : int
        The degree, at least 0.
    worker : {'thread', 'warp', 'cta'}, optional
        By default "cta".
    **launch_options : LaunchOptions
        As for `core_number`.

    Returns
    -------
    VertexSetResult

    Raises
    ------
    InvalidArgumentError
        If `k` is negative, or there is no such worker.
    LaunchConfigError
        If `barrier` is False, or `each_round` is given.

    See Also
    --------
    core_number : all cores at once.

    Examples
    --------
    >>> triangle_with_tail = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True)
    >>> atos.k_core(triangle_with_tail, 2).members.to_numpy()
    array([ True,  True,  True, False])
    """
    check_call(k_core, graph, worker, launch_options, rounds=True)
    level = min(check_int("k", k, 0, 2**62), REST) - 1
    core, launches = peel_levels("k_core", graph, level, level, worker, launch_options)
    members = empty(core.size, dtype=np.bool_, device=graph.device)
    launches.over_vertices(mark_rest, core.size, core, members)
    return VertexSetResult(as_library(members, graph.library), launches.total(scan.name, like=launches.runs[1]))


@host_memory_for("atos.verify_k_core")
def verify_k_core(graph: Graph, k: int, members: Any) -> None:
    """Prove that `members` marks the vertices of the k-core.

    Those are the vertices with a core number of at least k, and a serial algorithm finds the core numbers on the host, as for
    `verify_core_number`.

    Parameters
    ----------
    graph : Graph
        Directed or not, as for `core_number`.
    k : int
        The degree that `k_core` was given.
    members : array of bool
        One for each vertex.

    Raises
    ------
    VerificationError
        The message names the first vertex that is wrong.

    Examples
    --------
    >>> triangle_with_tail = atos.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], symmetrize=True)
    >>> atos.verify_k_core(triangle_with_tail, 2, [True, True, True, False])
    >>> atos.verify_k_core(triangle_with_tail, 2, [True, True, True, True])
    Traceback (most recent call last):
    atos_py.errors.VerificationError: ...
    """
    core = find_serial_cores(graph)
    found = per_vertex("members", members, core.size, "b")
    wrong = found != (core >= check_int("k", k, 0, 2**62))
    if (v := first_of(wrong)) >= 0:
        is_member = "is" if found[v] else "is not"
        raise VerificationError(f"vertex {v} {is_member} among the members of the {k}-core, but its core number is {core[v]}")


register(
    Algorithm(
        name="k_core",
        run=k_core,
        verify=lambda graph, result, options: verify_k_core(graph, options["k"], result.members),
        describe=describe_set,
        arrays=lambda result: {"members": result.members},
        help="find the k-core of a graph",
        description="""\
Finds the largest part of the graph in which each vertex has at least k edges to others of it, by peeling off what has fewer, in
one launch with rounds. A serial algorithm checks it.""",
        examples=("rmat:16:16 --k 10 --out members.npy",),
        options={"k": Option("the degree within the core", int)},
        defaults={"k": 2},
        launch_defaults=True,
    )
)
