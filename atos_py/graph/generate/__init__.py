"""Random and regular graphs, and random weights, the same on every machine.

Every random number is a hash of the seed and of the number of the edge that it belongs to (`splitmix64`), so a graph depends
on its parameters alone, not on how the work was spread over threads, and no generator has to be passed along.
"""

from .edge_weights import random_weights
from .grids import grid2d, grid3d, road
from .random_edges import bipartite, small_world, uniform
from .sampling import sample_edges
from .scale_free import barabasi_albert, kronecker, rmat

__all__ = [
    "barabasi_albert",
    "bipartite",
    "grid2d",
    "grid3d",
    "kronecker",
    "random_weights",
    "rmat",
    "road",
    "sample_edges",
    "small_world",
    "uniform",
]
