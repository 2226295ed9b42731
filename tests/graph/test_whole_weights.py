"""Whole weights of any size: exact or refused, whichever way they come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.errors import AtosError, GraphFormatError, InvalidArgumentError

EDGES = [2**53, 2**53 + 1, 1234567890123456789, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64, 10**400]
numbers = st.one_of(
    st.sampled_from([sign * (x + d) for x in EDGES for sign in (1, -1) for d in (-1, 0, 1)]),
    st.integers(-(2**65), 2**65),
    st.integers(-9, 9),
)
mixed = st.lists(st.one_of(numbers, st.sampled_from([0.5, -1e300, 2.0])), min_size=1, max_size=5)


def same(found: Any, given: list[Any]) -> bool:
    return all(type(y)(x) == y if isinstance(y, float) else int(x) == y for x, y in zip(found, given, strict=True))


def as_text(name: str, weights: list[Any]) -> str:
    n = len(weights)
    of_mtx = "integer" if all(isinstance(w, int) for w in weights) else "real"
    header, base, prefix = {
        "a.txt": ("", 0, ""),
        "a.gr": (f"p sp {n + 1} {n}\n", 1, "a "),
        "a.mtx": (f"%%MatrixMarket matrix coordinate {of_mtx} general\n{n + 1} {n + 1} {n}\n", 1, ""),
    }[name]
    return header + "".join(f"{prefix}{v + base} {v + base + 1} {w}\n" for v, w in enumerate(weights))


@pytest.mark.parametrize("name", ["a.txt", "a.gr", "a.mtx"])
@pytest.mark.parametrize("weights", [True, np.int64, np.uint64])
@given(given=mixed, zeros=st.integers(0, 20))
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_from_text_files(tmp_path: Path, name: str, weights: Any, given: list[Any], zeros: int) -> None:
    path = tmp_path / name
    text = as_text(name, given)
    path.write_text(text.replace(" 1234567890123456789", f" {'0' * zeros}1234567890123456789"))
    try:
        found = atos.Graph.load(path, weights=weights, device="cpu")
    except (GraphFormatError, InvalidArgumentError):
        assert not all(isinstance(x, int) and 0 <= x < 2**63 for x in given)
    else:
        assert same(found.weights[:], given)


def test_all_of_int64_is_read(tmp_path: Path) -> None:
    whole = [2**63 - 1, -(2**63), 1234567890123456789, 0]
    for name in ("a.txt", "a.gr", "a.mtx"):
        path = tmp_path / name
        path.write_text(as_text(name, whole))
        assert atos.Graph.load(path, device="cpu").weights[:].tolist() == whole


def test_blocks_of_one_file_with_other_weights(tmp_path: Path) -> None:
    """Weights that are whole in one block of a file and not in another become floats, and none is rounded."""
    path, filler = tmp_path / "a.txt", "0 1 7\n" * 800_000  # more than a block
    path.write_text(f"0 1 {2**53 + 1}\n{filler}1 0 0.5\n")
    with pytest.raises(GraphFormatError, match=f"weight {2**53 + 1} is a whole number that float64 would round"):
        atos.Graph.load(path, device="cpu")
    path.write_text(f"0 1 {2**53 + 2}\n{filler}1 0 0.5\n")
    assert atos.Graph.load(path, device="cpu").weights[0] == 2**53 + 2


def test_floats_of_a_file_are_made_no_integers_where_they_may_be_rounded(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1 1234567890123456789.0\n")
    with pytest.raises(GraphFormatError, match="may be rounded, so none are made int64"):
        atos.Graph.load(tmp_path / "a.txt", weights=np.int64, device="cpu")


def of_networkx(weights: list[Any]) -> atos.Graph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(weights) + 1))
    graph.add_weighted_edges_from((v, v + 1, w) for v, w in enumerate(weights))
    return atos.Graph.from_networkx(graph, device="cpu")


def of_edges(weights: Any) -> atos.Graph:
    return atos.Graph.from_edges(range(len(weights)), range(1, len(weights) + 1), weights, device="cpu")


def of_rows(weights: list[Any]) -> atos.Graph:
    n = len(weights)
    return atos.Graph.from_csr([*range(n + 1), n], range(1, n + 1), weights, device="cpu")


@pytest.mark.parametrize("make", [of_edges, of_rows, of_networkx])
@given(given=mixed)
@settings(deadline=None, max_examples=100)
def test_from_numbers_of_python(make: Any, given: list[Any]) -> None:
    try:
        found = make(given)
    except AtosError:
        assert not all(isinstance(x, int) and -(2**63) <= x < 2**63 for x in given)
    else:
        assert same(found.weights[:], given)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_from_arrays_and_archives(tmp_path: Path, dtype: Any) -> None:
    whole = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 2**53 + 1], dtype)
    matrix = sp.coo_array((whole, ([0, 1, 2], [1, 2, 3])), shape=(4, 4))
    sp.save_npz(tmp_path / "b.npz", matrix.tocsr())
    of_edges(whole).save(tmp_path / "a.npz")
    graphs = [
        of_edges(whole),
        atos.Graph.from_scipy(matrix, device="cpu"),
        atos.Graph.load(tmp_path / "a.npz", device="cpu"),
        atos.Graph.load(tmp_path / "b.npz", device="cpu"),
    ]
    for graph in graphs:
        assert graph.weights.dtype == dtype
        assert graph.weights[:].tolist() == whole.tolist()


def test_the_message_names_the_number() -> None:
    with pytest.raises(InvalidArgumentError, match=rf"weights\[1\] is {2**63 + 1}, which NumPy rounds to .* pass an array"):
        of_edges([1, 2**63 + 1])
