"""Features: vectors of k numbers on the vertices and edges of a graph, and maps of functions over them.

Source: L. Vaz, "Onyx" (thesis, 2021).
"""

from .active_set import ActiveSet
from .change_driven import FixedPoint, fixed_point
from .functions import together
from .labels import propagate_labels
from .maps import Maps
from .synthetic import planted_partition, planted_ratings, potts_grid, similarity_graphs

__all__ = [
    "ActiveSet",
    "FixedPoint",
    "Maps",
    "fixed_point",
    "planted_partition",
    "planted_ratings",
    "potts_grid",
    "propagate_labels",
    "similarity_graphs",
    "together",
]
