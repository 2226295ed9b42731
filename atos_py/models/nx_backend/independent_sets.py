"""Maximal independent sets by networkx's name and parameters."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import numpy as np

from ...algorithms.maximal_independent_set import maximal_independent_set as find_set
from .graphs import AtosGraph

__all__ = ["has_no_seed", "maximal_independent_set"]


def has_no_seed(seed: Any) -> bool:
    """Return whether networkx was called without a seed: it then gives the generator of the module `random`."""
    return seed is None or seed is random or seed is getattr(random.random, "__self__", None)


def maximal_independent_set(G: AtosGraph, nodes: Any = None, seed: Any = None) -> list[Any]:  # noqa: N803
    """Return a set with the given nodes, or with one that chance chooses."""
    chance = random if seed is None else seed
    given = set(nodes) if nodes else {chance.choice(G.nodes)}
    if not given <= G.number.keys():
        raise nx.NetworkXUnfeasible(f"{given} is not a subset of the nodes of G")
    numbers = [G.number[node] for node in given]
    flags = np.zeros(len(G), bool)
    flags[numbers] = True
    if any(flags[G.indices[G.indptr[v] : G.indptr[v + 1]]].any() for v in numbers):
        raise nx.NetworkXUnfeasible(f"{given} is not an independent set of G")
    members = np.asarray(find_set(G.forward, seed=chance.getrandbits(63), include=numbers).members) & ~flags
    return [*given, *(G.nodes[v] for v in np.flatnonzero(members).tolist())]
