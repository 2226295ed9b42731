"""Eccentricities, the diameter and the radius, exactly, by bounds from a few searches instead of one from each vertex.

The eccentricity of a vertex is the largest distance from it to a vertex that it reaches. All that is searched so far gives a
lower and an upper bound for each vertex, and the search ends when they meet. A step searches up to three times:

1. From a *center*: a vertex of small lower bound. It has few vertices that are far away.
2. From its *fringe*: the vertices farthest from it, 64 of them at once by bits (`bit_search`), where the last level at which a
   vertex gets a new bit is its largest distance to any of them. If all vertices farther from the center than k are searched, no
   vertex w that has the distance d to the center has an eccentricity above d + k, or above its largest distance to one of
   those that are searched.
3. If seven eighths of the open vertices are left, from 32 vertices that have the most neighbors, and 32 open ones. It tells how
   far each of the 64 is from the vertices that are not searched yet. One more search brings the least sum of that and the
   distance to one of the 64 to all vertices, as an upper bound. Where this settles few vertices too, there are searches from 64
   open ones; after each further step in a row that was so slow, from twice as many. So graphs that bounds say little of take
   hardly more than twice as long as a search from each vertex.

The last 64 open vertices of a part take one search together.

Each step settles at least its center, so that there is an end, and bounds hold in any order. Components of an undirected graph
have nothing to do with each other: a search starts in all of them at once. Those of up to 64 vertices take one search.

`bounds` has the steps, `api` the calls, `verify` the proof of a result.

Sources: Takes and Kosters, "Determining the diameter of small world networks", CIKM 2011, for the bounds; Crescenzi et al., "On
computing the diameter of real-world undirected graphs", Theoretical Computer Science 2013, for the fringe; Dragan, Habib and
Viennot, "Revisiting radius, diameter, and all eccentricity computation in graphs through certificates", 2018, for the centers.
"""

from .api import DiameterResult, EccentricityResult, diameter, eccentricity
from .verify import verify_diameter, verify_eccentricity

__all__ = [
    "DiameterResult",
    "EccentricityResult",
    "diameter",
    "eccentricity",
    "verify_diameter",
    "verify_eccentricity",
]
