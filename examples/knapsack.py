"""Knapsack by branch and bound
============================

This program packs things of the largest total value into a knapsack that holds half of their weight.

They are sorted by value per weight. An item is a decision on the first `depth` of them. Its task packs the next ones as long as
there is room; each iteration of the inner loop leaves out one of these. What cannot beat the best packing so far, even if a
part of a thing could be packed (Dantzig's bound), is not pushed. The deepest items run first: in order of arrival they would
fill the memory.
"""

from __future__ import annotations

import numpy as np

import atos_py as atos

WEIGHTS = np.sort(np.random.default_rng(0).integers(1, 1001, 130))
VALUES = WEIGHTS + 100  # which follow the weights: a hard case. By value per weight, the lightest come first
NODE = np.dtype([("depth", np.uint16), ("room", np.uint16), ("value", np.uint32)])


def pack(node, weight, value, best):
    """Pack what fits next; `weight[k]` and `value[k]` are sums over the first k things."""
    low, high, limit = np.int64(node.depth), weight.size - 1, weight[node.depth] + node.room
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if weight[middle] <= limit else (low, middle - 1)
    packed, room = node.value + value[low] - value[node.depth], limit - weight[low]
    atos.atomic_max(best, 0, packed)
    return 0 if low + 1 == weight.size else low - node.depth + 1, low, packed, room


@atos.task(workload=pack)
def leave_out(worker: atos.Worker, node, i, last, packed, room, weight, value, best):
    """Leave one thing out, and push that if a part of the `last` one, which did not fit, could make it better."""
    k, taken = node.depth + i, np.int64(node.depth)
    w, v = weight[k + 1] - weight[k], value[k + 1] - value[k]
    if (room + w) * (value[last + 1] - value[last]) >= (best[0] + 1 - packed + v) * (weight[last + 1] - weight[last]):
        worker.push((k + 1, node.room - weight[k] + weight[taken], node.value + value[k] - value[taken]), -k)


def main() -> None:
    """Pack the things, verify the result by dynamic programming, and draw the best value for each size of a knapsack."""
    from matplotlib import pyplot as plt

    room, sums = int(WEIGHTS.sum()) // 2, [np.concatenate([[0], np.cumsum(of)]) for of in (WEIGHTS, VALUES)]
    best, queue = atos.zeros(1, dtype=np.int64), atos.Queue(1 << 14, dtype=NODE, buckets=16, delta=1)
    queue.push((0, room, 0), 0)
    stats = queue.launch_cta(leave_out, *(atos.asarray(of, readonly=True) for of in sums), best)
    table = np.zeros(room + 1, np.int64)
    for weight, value in zip(WEIGHTS, VALUES, strict=True):
        table[weight:] = np.maximum(table[weight:], table[:-weight] + value)
    assert best[0] == table[room]
    print(f"{len(WEIGHTS)} things: value {best[0]:,}, verified; a queue for {queue.capacity:,} items", stats, sep="\n")
    plt.plot(table)
    plt.plot(room, best[0], "o", label=f"by tasks: {best[0]:,}")
    plt.gca().set(xlabel="room", ylabel="value of the best packing")
    plt.legend()
    plt.show()


if __name__ == "__main__":
    main()
