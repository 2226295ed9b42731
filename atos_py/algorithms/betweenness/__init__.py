"""Betweenness centrality: of the shortest paths between two vertices, the part that leads through a third, over all pairs.

An item of the queue is a source, and a worker works it off with all of its threads: a breadth-first search that counts shortest
paths, level after level, and then the levels backwards, where each vertex adds up what it carries of the paths to all that lies
behind it. Many sources are under way at once, one for each worker, which has arrays of its own for all vertices and leaves them
as it found them.

A vertex gathers from those one level deeper, along its own edges, so that no edges are needed in the other direction, and no
atomic operations backwards. Vertices with many edges are taken by all threads of the worker, others by one.

Source: Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociology 2001; Madduri et al., "A faster parallel
algorithm and efficient multithreaded implementations for evaluating betweenness centrality on massive datasets", IPDPS 2009.
"""

from .api import BetweennessResult, accumulate, betweenness, verify_betweenness

__all__ = ["BetweennessResult", "accumulate", "betweenness", "verify_betweenness"]
