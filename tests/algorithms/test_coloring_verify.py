"""The verifier of colorings: it accepts what is right, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coloring import PATH, graphs

import atos_py as atos
from atos_py.algorithms.coloring import verify_coloring
from atos_py.errors import VerificationError


@pytest.mark.parametrize(
    ("colors", "message"),
    [
        ([0, 0, 1, 0], r"edge 0 -> 1 \(number 0\) joins two vertices of color 0"),
        ([0, 1, 1, 0], r"edge 1 -> 2 .* joins two vertices of color 1"),
        ([0, 1, 4, 0], r"colors\[2\] is 4, but colors lie in 0..3, the largest degree"),
        ([0, -1, 2, 0], r"colors\[1\] is -1, but colors lie in 0..3"),
    ],
)
def test_verifier_names_the_first_fault(colors, message):
    verify_coloring(PATH, np.array([0, 1, 0, 0]))
    with pytest.raises(VerificationError, match=message):
        verify_coloring(PATH, np.array(colors))


def test_verifier_counts_both_directions():
    star = atos.Graph.from_edges([1, 2, 3], [0, 0, 0], device="cpu")
    verify_coloring(star, np.array([3, 0, 1, 2]))
    with pytest.raises(VerificationError, match=r"colors\[0\] is 4, but colors lie in 0..3"):
        verify_coloring(star, np.array([4, 0, 1, 2]))


@given(graphs(), st.data())
@settings(deadline=None, max_examples=200)
def test_verifier_accepts_exactly_colorings(graph, data):
    n = graph.num_vertices
    colors = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), np.int64)
    ends = graph.to_scipy().tocoo()
    proper = bool((colors[ends.row] != colors[ends.col])[ends.row != ends.col].all())
    symmetric = (graph.to_scipy() != graph.to_scipy().T).nnz == 0 and graph.is_symmetric()
    degrees = graph.degrees() + (0 if symmetric else np.bincount(np.asarray(graph.indices), minlength=n))
    if proper and colors.max(initial=0) <= max(degrees.max(initial=0), graph.max_degree):
        verify_coloring(graph, colors)
    else:
        with pytest.raises(VerificationError):
            verify_coloring(graph, colors)
