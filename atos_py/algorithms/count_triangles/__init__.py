"""Triangles, each found at the end of smaller degree of its edges (`orientation`).

The first launch divides the rows of the graph: each neighbor comes before or after the vertex in the order by degree. These
rows are kept with the graph. The second launch intersects, for each edge, the rows of later neighbors of its two ends: what
they share makes a triangle with both. A worker puts such a row of x into a hash table in its scratch memory, and looks up the
rows of all neighbors of x, before or after it, whose rows are shorter. So each edge takes as many steps as its shorter row is
long. The table counts how often each vertex was found, so that a triangle takes no atomic operation on global memory. A row
that is too long for the table is cut into parts. Where the row of the earlier end is short, one thread looks for all its pairs
by binary search. The third launch divides by the numbers of pairs of neighbors: the clustering coefficients.

Sources: Schank and Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005; Pandey et al., "TRUST:
triangle counting reloaded on GPUs", IEEE TPDS 32 (2021).
"""

from .api import TriangleResult, count_in_rows, count_triangles, verify_triangles

__all__ = ["TriangleResult", "count_in_rows", "count_triangles", "verify_triangles"]
