"""Functions of label and belief propagation for Figure 7.4 of the thesis on Onyx: folded, in launches of their own, by hand.

The two functions of a fold hand numbers on by an array in memory, which is needed where each has a launch of its own. By hand
they are one function, and the numbers stay in scratch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import asarray, zeros
from ...compile.atomics import atomic_add
from ...errors import VerificationError
from ...graph.graph import Graph
from ..learning.features import Maps, together
from ..linalg.vectors import logsumexp, normalize
from .onyx_algorithms import UNLIKE, K, features_of, total_of

__all__ = ["FOLDS", "edge_maps", "vertex_maps"]

_SHARE = 0.5  # of what a vertex receives in its new labels
FOLDS = "unfolded", "folded", "by hand"


class Labels(NamedTuple):
    """What vertices have received, handed on, and their labels before and after."""

    received: Any
    shares: Any
    x: Any
    new: Any


class Messages(NamedTuple):
    """Beliefs, messages as logarithms, what is handed on, and the sums of messages."""

    belief: Any
    messages: Any
    weighed: Any
    total: Any


def share_received(team, v, d):  # type: ignore[no-untyped-def]
    """Divide what a vertex has received by its sum."""
    row = team.scratch(np.float32, K)
    for f in team.split(K):
        row[f] = d.received[v, f]
    normalize(team, row, K)
    for f in team.split(K):
        d.shares[v, f] = row[f]


def mix_labels(team, v, d):  # type: ignore[no-untyped-def]
    """Mix these shares with the labels of the vertex."""
    row = team.scratch(np.float32, K)
    for f in team.split(K):
        row[f] = np.float32(_SHARE) * d.shares[v, f] + np.float32(1 - _SHARE) * d.x[v, f]
    normalize(team, row, K)
    for f in team.split(K):
        d.new[v, f] = row[f]


def propagate(team, v, d):  # type: ignore[no-untyped-def]
    """Do both by hand."""
    row = team.scratch(np.float32, K)
    for f in team.split(K):
        row[f] = d.received[v, f]
    normalize(team, row, K)
    for f in team.split(K):
        row[f] = np.float32(_SHARE) * row[f] + np.float32(1 - _SHARE) * d.x[v, f]
    normalize(team, row, K)
    for f in team.split(K):
        d.new[v, f] = row[f]


def weigh_message(team, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Weigh the labels of the source by those of the target."""
    for x in team.split(K):
        d.weighed[edge, x] = weight_of_label(d, u, edge, x)


def deliver_message(team, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Normalize a message, and add it to the sum of the target."""
    row = team.scratch(np.float32, K)
    for x in team.split(K):
        row[x] = d.weighed[edge, x]
    norm = logsumexp(team, row, K)
    for x in team.split(K):
        atomic_add(d.total, (v, x), row[x] - norm)


def send_at_once(team, u, v, edge, d):  # type: ignore[no-untyped-def]
    """Do both by hand."""
    row = team.scratch(np.float32, K)
    for x in team.split(K):
        row[x] = weight_of_label(d, u, edge, x)
    norm = logsumexp(team, row, K)
    for x in team.split(K):
        atomic_add(d.total, (v, x), row[x] - norm)


def weight_of_label(d, u, edge, x):  # type: ignore[no-untyped-def]
    """Return the logarithm of the weight of a label in the message along an edge."""
    total = np.float32(0)
    for y in range(K):
        total += math.exp(d.belief[u, y] - d.messages[edge, y]) * np.float32(1.0 if x == y else UNLIKE)
    return math.log(total)


def _map(call: Callable[..., Any], fold: str, two: tuple[Any, Any], one: Any) -> None:
    if fold == "unfolded":
        for function in two:
            call(function)
    else:
        call(*(two if fold == "folded" else (one,)))


def vertex_maps(graph: Graph, fold: str) -> float:
    """Run the vertex functions of label propagation once, and prove the labels; return the milliseconds of the launches."""
    given = features_of(graph, 2 * K)
    received, x = given[:, :K], given[:, K:]
    empty = functools.partial(zeros, (graph.num_vertices, K), dtype=np.float32, device=graph.device)
    on_device = functools.partial(asarray, device=graph.device)
    data = Labels(on_device(received.copy()), empty(), on_device(x.copy()), empty())
    maps = Maps(graph, K, data)
    _map(maps.vertex_map, fold, (together(share_received), together(mix_labels)), together(propagate))
    mixed = _SHARE * received / received.sum(axis=1, keepdims=True) + (1 - _SHARE) * x
    _check("labels", data.new, mixed / mixed.sum(axis=1, keepdims=True))
    return total_of(maps.runs)


def edge_maps(graph: Graph, fold: str) -> float:
    """Run the edge functions of belief propagation once, and prove the sums; return the milliseconds of the launches."""
    n, m, device = graph.num_vertices, graph.num_edges, graph.device
    belief = features_of(graph, K)
    messages = np.log(np.tile(np.linspace(0.5, 1, K, dtype=np.float32), (m, 1)))
    empty = functools.partial(zeros, dtype=np.float32, device=device)
    data = Messages(asarray(belief, device=device), asarray(messages, device=device), empty((m, K)), empty((n, K)))
    maps = Maps(graph, K, data)
    _map(maps.edge_map, fold, (together(weigh_message), together(deliver_message)), together(send_at_once))
    sources = np.repeat(np.arange(n), np.diff(np.asarray(graph.indptr)))
    sent = np.log(np.exp(belief[sources] - messages) @ np.where(np.eye(K, dtype=bool), 1.0, UNLIKE))
    sent -= np.log(np.exp(sent).sum(axis=1, keepdims=True))
    targets = np.asarray(graph.indices)
    total = np.stack([np.bincount(targets, sent[:, x], minlength=n) for x in range(K)], axis=1)
    _check("sums of messages", data.total, total)
    return total_of(maps.runs)


def _check(what: str, found: Any, expected: Any) -> None:
    if not np.allclose(np.asarray(found), expected, rtol=1e-3, atol=1e-4):
        worst = float(np.abs(np.asarray(found) - expected).max())
        raise VerificationError(f"the {what} are not those of the formula: one differs by {worst}")
