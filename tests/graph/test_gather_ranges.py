"""Ranges of about equal work: they cover all vertices, whatever the order of their degrees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.graph import gather_ranges
from atos_py.graph.gather_ranges import find_ranges, hubs_of, make_notes

VERTEX = gather_ranges._VERTEX_WORK


def graph_of(degrees, device):
    indptr = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    return atos.Graph.from_csr(indptr, np.zeros(indptr[-1], np.uint32), device=device)


def check(graph, ranges, notes):
    begins, offsets = ranges.begins[:].astype(np.int64), graph.indptr[:].astype(np.int64)
    assert (begins[0], begins[-1]) == (0, graph.num_vertices)
    assert (np.diff(begins) > 0).all()
    work = VERTEX * np.diff(begins) + np.diff(offsets[begins])
    assert work.max() <= 2 * notes.work + VERTEX + graph.max_degree
    return work


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 400)), min_size=1, max_size=300), st.booleans())
@settings(deadline=None, max_examples=60)
def test_random_degrees(degrees, is_sorted):
    graph = graph_of(sorted(degrees, reverse=True) if is_sorted else degrees, "cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gather_ranges, "_RANGE_SIZES", dict.fromkeys((True, False), (1, 8, 1)))
        patch.setattr(gather_ranges, "_GROUP", dict.fromkeys((True, False), 4))
        check(graph, find_ranges(graph)[0], make_notes(graph))


def test_vertices_in_the_order_of_their_degrees(device, monkeypatch):
    """No range has the work of several, and hubs are all found, by whatever kind of worker they are gathered."""
    monkeypatch.setitem(gather_ranges._LOW_AVERAGE_DEGREE, device.kind, 8)
    monkeypatch.setattr(gather_ranges.long_rows, "HUB_DEGREE", 500)
    graph = atos.generate.rmat(14, 16, device=device).reorder("degree")[0]
    ranges, notes = find_ranges(graph)[0], make_notes(graph)
    work = check(graph, ranges, notes)
    assert np.diff(ranges.begins[:].astype(np.int64)).max() > 8 * np.diff(ranges.begins[:].astype(np.int64)).min()
    assert work[work.size // 8 :].max() < 2 * work.mean()
    ranks = atos.pagerank(graph, find="gather", tolerance=1e-5)
    atos.verify_pagerank(graph, ranks, 1e-5)
    assert hubs_of(notes).shape == (0, 3)  # of notes that no task has made


def test_ranges_stay_as_large_where_degrees_are_alike():
    graph = atos.generate.road(300, 0.62, device="cpu")
    sizes = np.diff(find_ranges(graph)[0].begins[:].astype(np.int64))
    assert (sizes[:-1] % gather_ranges._GROUP[True] == 0).all()
    assert sizes[:-1].max() <= sizes[:-1].min() + 2 * gather_ranges._GROUP[True]
