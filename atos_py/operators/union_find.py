"""Union-find for tasks: a forest in an array of parents, which threads link and shorten at the same time.

A root is its own parent. Of what `unite` links, a parent has a smaller number than its child: so a root is the smallest of its
tree, and no chain is a cycle. Whatever ancestor a thread reads, its way leads to the root. A link is one compare-and-swap on a
root, and nothing waits.

Sources: Patwary, Refsnes and Manne, "Multi-core spanning forest algorithms using the disjoint-set data structure", IPDPS 2012;
Jaiganesh and Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018 (ECL-CC).
"""

from __future__ import annotations

from ..compile.atomics import atomic_cas

__all__ = ["find_root", "root_of", "unite"]


def find_root(v, parent):  # type: ignore[no-untyped-def]
    """Return the root of v's tree, and halve the path to it; for tasks."""
    above = parent[v]
    while above != v:
        top = parent[above]
        if top == above:
            return above
        parent[v] = top  # race: an ancestor, whatever others have written there meanwhile
        v = top
        above = parent[v]
    return v


def root_of(v, parent):  # type: ignore[no-untyped-def]
    """Return the root of v's tree, and write nothing; for tasks that put roots in place of parents.

    Path halving would undo that: a thread that read v's parent before may store an ancestor in place of the root.
    """
    above = parent[v]
    while above != v:
        v = above
        above = parent[v]
    return v


def unite(root, v, parent):  # type: ignore[no-untyped-def]
    """Unite the trees of `root`, which is or was a root, and v; return the root of both; for tasks."""
    if parent[v] == root:  # as is most often so
        return root
    other = find_root(v, parent)
    while root != other:
        low = min(root, other)
        high = max(root, other)
        if atomic_cas(parent, high, high, low) == high:
            return low
        root = find_root(high, parent)  # another thread was faster
        other = low
    return root
