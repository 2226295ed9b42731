"""Operators: load-balanced passes over vertices and edges, each a task that runs a user's small functions.

An operator is made from plain functions of a vertex or an edge, which are compiled into it: no call is left. It takes the rows
of a graph as `indptr` and `indices`, and what else the functions need as further arguments of the launch.
"""
