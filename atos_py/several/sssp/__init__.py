"""Shortest paths over the parts of a graph, on several devices or hosts: `algorithms.sssp` has the search on one device."""
