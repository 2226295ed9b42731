"""The unbalanced trees of the example: those that Python's own hashes make, and the numbers that are known."""

from __future__ import annotations

import hashlib
import math
from itertools import count

import numpy as np
import pytest
from repository import load_example

import atos_py as atos

uts = load_example("uts")
WIDE, NARROW = uts.Tree(0, 3.0, 5), uts.Tree(0, 60.0, chance=0.24, many=4)


def children(tree, node, depth):
    """Return how many children a node has, by its 20 bytes."""
    u = (int.from_bytes(node[16:], "big") & 0x7FFFFFFF) / 2**31
    if tree.max_depth == 0:
        return int(tree.children) if depth == 0 else tree.many * (u < tree.chance)
    return min(int(math.log(1 - u) / math.log(1 - 1 / (1 + tree.children))), 100) if depth < tree.max_depth else 0


def counted(tree):
    """Return the numbers of nodes and of leaves, and the depth, of a tree made level by level."""
    level, nodes, leaves = [hashlib.sha1(bytes(16) + tree.seed.to_bytes(4, "big"), usedforsecurity=False).digest()], 0, 0
    for depth in count():
        numbers = [children(tree, node, depth) for node in level]
        nodes, leaves = nodes + len(level), leaves + numbers.count(0)
        level = [
            hashlib.sha1(node + i.to_bytes(4, "big"), usedforsecurity=False).digest()
            for node, number in zip(level, numbers, strict=True)
            for i in range(number)
        ]
        if not level:
            return nodes, leaves, depth


@pytest.mark.parametrize("tree", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("schedule", [{}, {"barrier": True}, {"persistent": False}], ids=str)
def test_any_worker_and_schedule(tree, device, worker, schedule):
    counts, queue = atos.asarray(uts.first_counts(), device=device), atos.Queue(16, dtype=uts.NODE, device=device)
    queue.push(uts.root_of(tree))
    stats = queue.launch(uts.visit, tree, counts, worker=worker, **schedule)
    nodes, leaves, depth = counted(tree)
    assert nodes > 1000
    assert counts.to_numpy().tolist() == [nodes, leaves, depth]
    assert stats.tasks_run == nodes - leaves


def test_t3_has_the_published_numbers(device):
    counts, queue = atos.asarray(uts.first_counts(), device=device), atos.Queue(1 << 16, dtype=uts.NODE, device=device)
    queue.push(uts.root_of(uts.TREES["T3"]))
    queue.launch_warp(uts.visit, uts.TREES["T3"], counts)
    assert counts.to_numpy().tolist() == [uts.KNOWN["T3"], 3_599_034, 1572]


def test_hashes_are_those_of_python():
    words = np.arange(5, dtype=np.uint32) * 0x9E3779B9
    found = atos.zeros(5, dtype=np.uint32, device="cpu")

    @atos.task
    def store(worker, node, found):
        found[0], found[1], found[2], found[3], found[4] = uts.hash_of(node, 77)

    queue = atos.Queue(1, dtype=uts.NODE, device="cpu")
    queue.push([(*words.tolist(), 0)])
    queue.launch_thread(store, found)
    expected = hashlib.sha1(words.astype(">u4").tobytes() + (77).to_bytes(4, "big"), usedforsecurity=False).digest()
    assert found.to_numpy().astype(">u4").tobytes() == expected
