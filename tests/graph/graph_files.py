"""Graph files for tests: one of each format, and how they are read or refused."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from atos_py.errors import AtosError, GraphFormatError
from atos_py.graph.csr import check_csr
from atos_py.graph.io import load_csr, load_labeled


def npz_bytes(compress: bool = False, **arrays: object) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def scipy_bytes(matrix: object) -> bytes:
    buffer = io.BytesIO()
    scipy.sparse.save_npz(buffer, matrix)
    return buffer.getvalue()


CSR = {"indptr": np.array([0, 2, 3, 3]), "indices": np.array([1, 2, 0]), "weights": np.array([0.5, 1.0, -2.0])}
DENSE = np.array([[0, 1, 2], [3, 0, 0], [0, 4, 5]])

GOOD = {
    "a.gr": b"c comment\np sp 4 5\na 1 2 17\na 2 3 -4\na 3 4 0\na 4 1 123456789012\na 1 1 5\n",
    "a.mtx": b"%%MatrixMarket matrix coordinate real general\n% c\n4 4 4\n1 2 1.5\n2 3 -1e300\n3 4 7\n4 4 0.1\n",
    "b.mtx": b"%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 5\n3 1 -6\n",
    "c.mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
    "a.txt": b"# Nodes: 5\n0 1\n1,2\n% c\n2\t4\r\n4 0\n",
    "a.wel": b"0 1 2.5\n1 2 1e-3\n2 0 inf\n",
    "a.csv": b"source,target,weight\n0,1,5\n1,2,-7\n",
    "a.edges": b"# by networkx\n0 1 {'weight': 2}\n1 2 {}\n2 0 {'name': 'a {b', 'weight': 0.5}\n",
    "a.npz": npz_bytes(**CSR),
    "b.npz": npz_bytes(compress=True, **CSR),
    "c.npz": scipy_bytes(scipy.sparse.csr_array(DENSE)),
    "d.npz": scipy_bytes(scipy.sparse.coo_array(DENSE * 0.5)),
    "e.npz": gzip.compress(npz_bytes(**CSR)),
}


def read_or_refused(path: Path, **options: bool) -> None:
    """Load a file: a graph whose parts, and labels, fit each other, or an AtosError."""
    try:
        csr, labels = load_labeled(path, None, format=None, weights=True, **options)
    except AtosError as error:
        refusal = error
    else:
        check_csr(*csr)
        assert labels is None or (labels.size == csr.indptr.size - 1 and np.unique(labels).size == labels.size)
        return
    assert str(path) in str(refusal)
    assert getattr(refusal, "line", None) is None or refusal.line >= 1


Write = Callable[..., Path]


def malformed(path: Path) -> GraphFormatError:
    with pytest.raises(GraphFormatError) as caught:
        load_csr(path)
    error = caught.value
    assert error.path == str(path)
    assert str(path) in str(error)
    assert error.line is None or f"line {error.line}" in str(error)
    return error
