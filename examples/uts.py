"""Unbalanced tree search
======================

This program counts the nodes of a tree that nobody knows before: each child is a hash of its parent, and the hash says how many
children there are. ``python examples/uts.py [T1 | T3 | T1L | T3L]``

The trees are those of UTS, of which the numbers of nodes are known (Olivier et al., UTS: An Unbalanced Tree Search Benchmark,
LCPC 2006). In T1 and T1L a node has 4 children on average, down to some depth. In T3 and T3L most nodes are leaves, and a few
have thousands of descendants. An item is a node that has children: the 20 bytes of its hash, and its depth. The inner loop of
an item runs over the node's children.
"""

from __future__ import annotations

import hashlib
import math
import sys
from typing import Any, NamedTuple

import numpy as np

import atos_py as atos

NODE = np.dtype([(name, np.uint32) for name in "abcde"] + [("depth", np.uint32)])
START = 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0
WORD = 0xFFFFFFFF


class Tree(NamedTuple):
    """A tree: how many children the root has, or any node on average, and how the others get some."""

    seed: int
    children: float
    max_depth: int = 0  # 0: a node has `many` children with probability `chance`, or none
    chance: float = 0.0
    many: int = 0


TREES = {
    "T1": Tree(19, 4.0, 10),
    "T1L": Tree(29, 4.0, 13),
    "T3": Tree(42, 2000.0, chance=0.124875, many=8),
    "T3L": Tree(7, 2000.0, chance=0.200014, many=5),
}
KNOWN = {"T1": 4_130_071, "T1L": 102_181_082, "T3": 4_112_897, "T3L": 111_345_631}


def rotate(x, k):
    """Rotate a word of 32 bits to the left."""
    return ((x << k) | (x >> (32 - k))) & WORD


def hash_of(node, i):
    """Return the hash (SHA-1, RFC 3174) of a node's 20 bytes, and of 4 bytes that have the number of a child."""
    w = atos.local_array(np.uint32, 16)
    w[0], w[1], w[2], w[3], w[4], w[5] = node.a, node.b, node.c, node.d, node.e, i
    w[6], w[15] = 0x80000000, 8 * 24
    a, b, c, d, e = START
    for t in range(80):
        if t >= 16:
            w[t & 15] = rotate(w[(t - 3) & 15] ^ w[(t - 8) & 15] ^ w[(t - 14) & 15] ^ w[t & 15], 1)
        if t < 20:
            f = ((b & c) | ((b ^ WORD) & d)) + 0x5A827999
        elif t < 40:
            f = (b ^ c ^ d) + 0x6ED9EBA1
        elif t < 60:
            f = ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
        else:
            f = (b ^ c ^ d) + 0xCA62C1D6
        a, b, c, d, e = (rotate(a, 5) + f + e + w[t & 15]) & WORD, a, rotate(b, 30), c, d
    return (a + START[0]) & WORD, (b + START[1]) & WORD, (c + START[2]) & WORD, (d + START[3]) & WORD, (e + START[4]) & WORD


def num_children(word, depth, tree):
    """Return how many children a node has: the last word of its hash is a random number."""
    u = (word & 0x7FFFFFFF) / 2147483648.0
    if tree.max_depth == 0:
        return int(tree.children) if depth == 0 else tree.many if u < tree.chance else 0
    if depth >= tree.max_depth:
        return 0
    return min(int(math.log(1.0 - u) / math.log(1.0 - 1.0 / (1.0 + tree.children))), 100)


def children_of(node, tree, counts):
    """Return the length of the inner loop: one iteration per child."""
    return num_children(node.e, node.depth, tree)


@atos.task(workload=children_of)
def visit(worker: atos.Worker, node, i, tree, counts):
    """Count a child, and push it if it has children."""
    a, b, c, d, e = hash_of(node, i)
    atos.accumulate(counts, 0, 1)
    if num_children(e, node.depth + 1, tree) > 0:
        worker.push((a, b, c, d, e, node.depth + 1))
    else:
        atos.accumulate(counts, 1, 1)
        atos.atomic_max(counts, 2, node.depth + 1)


# %%
# The search begins with the root, which is the hash of a seed.
def root_of(tree: Tree) -> list[tuple[int, ...]]:
    """Return the items that a search begins with."""
    words = hashlib.sha1(bytes(16) + tree.seed.to_bytes(4, "big"), usedforsecurity=False).digest()
    return [(*np.frombuffer(words, ">u4").tolist(), 0)]


def first_counts() -> np.ndarray:
    """Return the numbers of nodes and of leaves, and the depth, before a search: the root alone."""
    return np.array([1, 0, 0])


def search(tree: Tree, **launch_options: Any) -> tuple[int, int, int, atos.LaunchStats]:
    """Return the numbers of nodes and of leaves, the depth, and the statistics of the launch."""
    counts, queue = atos.asarray(first_counts()), atos.Queue(capacity=1 << 20, dtype=NODE)
    queue.push(root_of(tree))
    stats = queue.launch_warp(visit, tree, counts, **launch_options)
    nodes, leaves, depth = counts.to_numpy().tolist()
    return nodes, leaves, depth, stats


def main(name: str = "T1") -> None:
    """Count, compare with the known number, print the statistics, and draw how many nodes waited."""
    from matplotlib import pyplot as plt

    nodes, leaves, depth, stats = search(TREES[name], trace=20)
    assert nodes == KNOWN[name], f"{KNOWN[name]:,} are known"
    print(f"{name}: {nodes:,} nodes, {leaves:,} of them leaves, down to depth {depth:,}, verified", stats, sep="\n")
    plt.fill_between(stats.trace["milliseconds"], stats.trace["waiting"])
    plt.gca().set(xlabel="time (ms)", ylabel="nodes in the queue")
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*[] if hasattr(sys, "ps1") else sys.argv[1:])
