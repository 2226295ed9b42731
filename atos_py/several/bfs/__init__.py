"""Breadth-first search over the parts of a graph, on several devices or hosts: `algorithms.bfs` has the search on one."""
