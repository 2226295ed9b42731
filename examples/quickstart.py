"""Quickstart
==========

A tour of atos_py, a screen a step: each step is a cell of the notebook. It needs no GPU; where there is one, everything below
runs there.
"""

# sphinx_gallery_thumbnail_number = 2

import numpy as np
from matplotlib import pyplot as plt

import atos_py as atos

atos.device()  # where arrays and queues are, unless told otherwise

# %%
# **1. An algorithm.** A graph is made by a generator, from a file (``atos.Graph.load``), or from arrays of other libraries. At
# the end of a cell a notebook shows it as a table.
graph = atos.generate.road(150, keep=0.8)
graph

# %%
# Breadth-first search is ready-made. The depth of a vertex is its distance from vertex 0 in edges.
result = atos.bfs(graph, 0, trace=20)
result

# %%
# A certificate proves that each depth is right, and `stats` says what the search took.
atos.verify_bfs(graph, 0, result.depth)
print(f"{result.num_reached:,} of {graph.num_vertices:,} vertices reached, verified, on {graph.device}")
result.stats

# %%
# With `trace`, the launch has recorded how it went: tasks per second, items that waited, idle workers.
result.stats.plot(least_tasks=result.num_reached)

# %%
# **2. A task.** The same search as a program of ours. A *task* is a Python function that Numba compiles for the GPU or the CPU.
# It runs once for each *item* of a queue. Here an item is a vertex v, and the inner loop goes over the edges of v: the function
# `degree` says how many there are, and the scheduler spreads them over the threads of a worker.


def degree(v, graph, depth):
    """Return the length of the inner loop for vertex v."""
    return graph.indptr[v + 1] - graph.indptr[v]


@atos.task(workload=degree)
def visit(worker, v, i, graph, depth):
    """Lower the depth of neighbor i of vertex v, and push the neighbor if that was news."""
    neighbor = graph.indices[graph.indptr[v] + i]
    if atos.atomic_min(depth, neighbor, depth[v] + 1) > depth[v] + 1:  # returns the value before
        worker.push(neighbor)


# %%
# **3. Arrays and a queue.** Tasks read and write arrays on the device. `atos.UNREACHED` stands for "no path so far".
depth = atos.full(graph.num_vertices, atos.UNREACHED, dtype=np.uint32)
depth[0] = 0
depth

# %%
# The queue begins with one item, and grows by itself.
queue = atos.Queue(capacity=1000)
queue.push(0)
queue

# %%
# **4. A launch.** Workers take items until nothing is left to do. A "cta" worker is a thread block of a GPU, and a thread on a
# CPU. The first launch compiles the task, which `call` in the table shows.
stats = queue.launch_cta(visit, graph, depth)
stats

# %%
# Both programs have found the same depths.
assert np.array_equal(depth, result.depth)
depth[:10]

# %%
# **5. A picture.** `to_numpy` copies an array to the host, for matplotlib or anything else. The graph is a grid of 150 x 150
# crossings.
found = depth.to_numpy()
plt.imshow(np.where(found == atos.UNREACHED, np.nan, found).reshape(150, 150))
plt.colorbar(label="depth")
plt.show()

# %%
# **6. Mistakes.** A task that writes beyond an array is stopped by ``debug=True``, and the error names the line.


@atos.task
def overrun(worker, v, counts):
    """Count in a place that is not there."""
    counts[v + 10] = 1


queue.push(0)
try:
    queue.launch_thread(overrun, atos.zeros(10, dtype=np.int32), debug=True)
except atos.TaskError as error:
    print(type(error).__name__, error, sep=": ")

# %%
# **7. Faster.** `tune` tries options of a launch, and returns the best. A short budget finds less.
tuning = atos.tune(lambda **options: atos.bfs(graph, 0, **options), space={"fetch_size": (8, 32, 128)}, budget=2)
tuning

# %%
# Go on with the tutorial: ``docs/tutorial.md``.
