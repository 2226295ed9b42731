"""Reading graphs from text: DIMACS, Matrix Market and lists of edges."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from graph_files import Write, malformed
from hypothesis import given, settings
from hypothesis import strategies as st
from test_csr import edge_lists, triples

from atos_py.graph.formats import text as text_files
from atos_py.graph.io import load_csr

pytestmark = pytest.mark.filterwarnings("ignore:the edges of")  # name few of the vertices


class TestDimacs:
    GOOD = "c a comment\nc\np sp 4 3\na 1 2 17\nc another\na 4 4 0\r\na  2\t1  -3 \n"

    def test_reads(self, write: Write) -> None:
        csr = load_csr(write("a.gr", self.GOOD))
        assert triples(csr) == [(0, 1, 17), (1, 0, -3), (3, 3, 0)]
        assert csr.weights is not None
        assert csr.weights.dtype == np.int32

    def test_last_line_may_lack_its_end(self, write: Write) -> None:
        assert triples(load_csr(write("a.gr", self.GOOD.rstrip()))) == triples(load_csr(write("b.gr", self.GOOD)))

    def test_weights_beyond_32_bits(self, write: Write) -> None:
        csr = load_csr(write("a.gr", "p sp 2 2\na 1 2 3000000000\na 2 1 -999999999999999999\n"))
        assert csr.weights is not None
        assert csr.weights.dtype == np.int64
        assert csr.weights.tolist() == [3000000000, -999999999999999999]

    def test_no_arcs(self, write: Write) -> None:
        csr = load_csr(write("a.gr", "p sp 2 0\n"))
        assert csr.indptr.tolist() == [0, 0, 0]
        assert csr.weights is not None

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            ("", None, "empty"),
            ("c only\nc comments\n", 2, "header was expected"),
            ("a 1 2 3\n", 1, "expected the header 'p sp VERTICES ARCS', found 'a 1 2 3'"),
            ("p edge 2 1\n", 1, "expected the header"),
            ("p sp two 1\n", 1, "number of vertices, 'two', is not a whole number"),
            ("p sp 2 -1\n", 1, "number of arcs, '-1', is not"),
            (f"p sp 2 {2**60}\na 1 2 3\n", 1, f"promises {2**60} arcs, more than"),
            (f"p sp {2**60} 1\na 1 2 3\n", 1, f"promises {2**60} vertices, more than the 4294967295 possible"),
            ("p sp 2 2\na 1 2 3\n", 2, "promises 2 edges, but the file ends after 1"),
            ("p sp 2 2\na 1 2 3", 2, "promises 2 edges, but the file ends after 1"),
            ("p sp 2 1\na 1 2 3\n\na 2 1 3\na 2 2 3\n", 4, "promises 1 edges, and this is one more"),
            ("p sp 2 1\na 1 3 3\n", 2, "vertex id '3' is outside 1..2"),
            ("p sp 2 1\nc\na 0 1 3\n", 3, "vertex id '0' is outside 1..2"),
            ("p sp 2 1\na 1 x 3\n", 2, "vertex id 'x' is not a whole number"),
            ("p sp 2 1\na 1 -1 3\n", 2, "vertex id '-1' is not a whole number"),
            ("p sp 2 1\na 1 2\n", 2, "expected 3 fields, source, target and weight, found 2"),
            ("p sp 2 1\na 1 2 3 4\n", 2, "found 4"),
            ("p sp 2 1\na 1 2 3.5\n", 2, "weight '3.5' is not a whole number"),
            ("p sp 2 1\na 1 2 12345678901234567890\n", 2, "does not fit int64"),
            ("p sp 2 1\nb 1 2 3\n", 2, "expected an edge, 'a SOURCE TARGET WEIGHT', or a comment, found 'b 1 2 3'"),
            ("p sp 2 1\na1 2 3\n", 2, "expected an edge"),
            (b"p sp 2 1\na 1 \xff\xfe 3\n", 2, r"vertex id '\xff\xfe' is not"),
        ],
    )
    def test_malformed(self, write: Write, content: str | bytes, line: int | None, reason: str) -> None:
        error = malformed(write("a.gr", content))
        assert reason in error.reason
        assert error.line == line


class TestMatrixMarket:
    HEAD = "%%MatrixMarket matrix coordinate "

    @pytest.mark.parametrize("field", ["pattern", "integer", "real"])
    @pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
    def test_against_scipy(self, write: Write, field: str, symmetry: str) -> None:
        if (field, symmetry) == ("pattern", "skew-symmetric"):
            return
        random = np.random.default_rng(3)
        dense = np.where(random.random((30, 30)) < 0.2, random.integers(-9, 10, (30, 30)), 0)
        if symmetry != "general":
            lower = np.tril(dense, -1 if symmetry == "skew-symmetric" else 0)
            dense = lower + (np.tril(lower, -1).T if symmetry == "symmetric" else -lower.T)
        matrix = scipy.sparse.coo_array(dense / 7 if field == "real" else dense)
        buffer = io.BytesIO()
        scipy.io.mmwrite(buffer, matrix, field=field, symmetry=symmetry, comment="by scipy")
        csr = load_csr(write("a.mtx", buffer.getvalue()), sort=True)
        expected = scipy.sparse.csr_array(matrix)
        expected.sort_indices()
        np.testing.assert_array_equal(csr.indptr, expected.indptr)
        np.testing.assert_array_equal(csr.indices, expected.indices)
        if csr.weights is None:
            assert field == "pattern"
        else:
            assert csr.weights.dtype == (np.float64 if field == "real" else np.int32)
            buffer.seek(0)
            reread = scipy.sparse.csr_array(scipy.io.mmread(buffer))
            reread.sort_indices()
            np.testing.assert_array_equal(csr.weights, reread.data)

    def test_the_largest_negative_number_has_a_positive_one(self, write: Write) -> None:
        csr = load_csr(write("a.mtx", self.HEAD + "integer skew-symmetric\n3 3 1\n2 1 -2147483648\n"))
        assert csr.weights is not None
        assert sorted(csr.weights.tolist()) == [-(2**31), 2**31]

    def test_symmetric_keeps_one_of_each_loop(self, write: Write) -> None:
        banner = "%%MatrixMarket MATRIX Coordinate Pattern Symmetric\n"
        csr = load_csr(write("a.mtx", banner + "% c\n\n3 3 2\n1 1\n3 1\n"))
        assert triples(csr) == [(0, 0), (0, 2), (2, 0)]

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            ("3 3 1\n1 1\n", 1, "expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY', found '3 3 1'"),
            ("%%MatrixMarket matrix array real general\n", 1, "format 'array' cannot be read as a graph, only coordinate"),
            (HEAD + "complex general\n", 1, "field 'complex' cannot be read as a graph"),
            (HEAD + "real hermitian\n", 1, "symmetry 'hermitian' cannot"),
            (HEAD + "pattern skew-symmetric\n", 1, "cannot be skew-symmetric"),
            (HEAD + "pattern general\n% c\n", 2, "header was expected"),
            (HEAD + "pattern general\n3 3\n", 2, "expected the size line"),
            (HEAD + "pattern general\n3 4 1\n1 1\n", 2, "square, but this one is 3 x 4"),
            (HEAD + f"pattern general\n3 3 {2**60}\n1 1\n", 2, f"promises {2**60} entries, more than"),
            (HEAD + "pattern general\n3 3 2\n1 1\n", 3, "promises 2 edges, but the file ends after 1"),
            (HEAD + "pattern general\n3 3 1\n1 1\n1 2\n", 4, "promises 1 edges, and this is one more"),
            (HEAD + "pattern general\n3 3 1\n1 4\n", 3, "vertex id '4' is outside 1..3"),
            (HEAD + "pattern general\n3 3 1\n1 1 1\n", 3, "expected 2 fields, source and target, found 3"),
            (HEAD + "real general\n3 3 1\n1 1 one\n", 3, "weight 'one' is not a number"),
            (HEAD + "real general\n3 3 1\n1 1 nan\n", 3, "weight 'nan' is not a number"),
            (HEAD + "real general\n3 3 1\n1 1 1_0\n", 3, "weight '1_0' is not a number"),
            (HEAD + "integer general\n3 3 1\n1 1 1.5\n", 3, "weight '1.5' is not a whole number"),
            (HEAD + "integer skew-symmetric\n3 3 1\n2 2 1\n", None, "entry (2, 2) is on the diagonal"),
        ],
    )
    def test_malformed(self, write: Write, content: str, line: int | None, reason: str) -> None:
        error = malformed(write("a.mtx", content))
        assert reason in error.reason
        assert error.line == line


class TestEdgeList:
    @pytest.mark.parametrize("name", ["a.txt", "a.el", "a.wel", "a.edges", "a.TXT"])
    def test_ids_stay_as_they_are(self, write: Write, name: str) -> None:
        csr = load_csr(write(name, "# Nodes: 2\n% or this\n\n5\t2\n  0 5\r\n5 0\n"))
        assert csr.indptr.size == 7
        assert triples(csr) == [(0, 5), (5, 2), (5, 0)]

    @pytest.mark.parametrize("separator", [" ", "\t", ",", ", ", " , "])
    def test_separators_and_weights(self, write: Write, separator: str) -> None:
        content = "".join(separator.join(row) + "\n" for row in (["0", "1", "7"], ["1", "0", "-2"]))
        assert triples(load_csr(write("a.txt", content))) == [(0, 1, 7), (1, 0, -2)]

    def test_one_fraction_makes_floats(self, write: Write, tiny_blocks: None) -> None:
        rows = [(i, i + 1, f"{i}") for i in range(50)]
        rows[40] = (40, 41, "0.1")
        csr = load_csr(write("a.txt", "".join(f"{u} {v} {w}\n" for u, v, w in rows)))
        assert csr.weights is not None
        assert csr.weights.dtype == np.float64
        assert csr.weights.tolist() == [float(w) for _, _, w in rows]

    @given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30), st.sampled_from(["r", ".17e", ".3f", ".12f"]))
    @settings(deadline=None)
    def test_floats_are_read_exactly(self, tmp_path_factory: pytest.TempPathFactory, weights: list[float], form: str) -> None:
        shown = [repr(w) if form == "r" else format(w, form) for w in weights]
        path = tmp_path_factory.mktemp("floats") / "a.txt"
        path.write_text("".join(f"0 0 {text}\n" for text in shown))
        csr = load_csr(path)
        assert csr.weights is not None
        expected = np.array([float(text) for text in shown])
        np.testing.assert_array_equal(csr.weights, expected)
        np.testing.assert_array_equal(np.signbit(csr.weights), np.signbit(expected))

    @given(graph=edge_lists(), weighted=st.booleans(), zipped=st.booleans(), block=st.integers(8, 200))
    @settings(deadline=None)
    def test_round_trip(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        graph: tuple[int, list[tuple[int, int, int]]],
        weighted: bool,
        zipped: bool,
        block: int,
    ) -> None:
        _, edges = graph
        if not edges:
            return
        used = [edge if weighted else edge[:2] for edge in edges]
        text = "".join(" ".join(map(str, edge)) + "\n" for edge in used).encode()
        path = tmp_path_factory.mktemp("round") / ("a.el.gz" if zipped else "a.el")
        path.write_bytes(gzip.compress(text) if zipped else text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_files, "_BLOCK_BYTES", max(block, 16))
            csr = load_csr(path)
        assert triples(csr) == sorted(used, key=lambda edge: edge[0])

    @pytest.mark.parametrize(
        ("content", "line", "reason"),
        [
            ("# nothing\n", None, "no edges"),
            ("0 1\n1\n", 2, "expected 2 fields, source and target, found 1"),
            ("0 1\n1 2 3\n", 2, "found 3"),
            ("0 1 5\n1 2\n", 2, "expected 3 fields, source, target and weight, found 2"),
            ("0 1 5 9\n", 1, "expected 3 fields, source, target and weight, found 4"),
            ("0 1\n\n1 b\n", 3, "vertex id 'b' is not a whole number"),
            ("0 1\n1,,2\n", 2, ""),
            ("0 1\n4294967295 0\n", 2, "vertex id '4294967295' is outside 0..4294967294"),
            (f"0 {10**30}\n", 1, "is outside"),
            ("0 1.0\n", 1, "vertex id '1.0' is not a whole number"),
            ("0 1 x\n", 1, "weight 'x' is not a number"),
            ("0 1 nan\n", 1, "weight 'nan' is not a number"),
            ("0 1\n1 2 # no\n", 2, "expected 2 fields"),
            ("0 1\n\x00\x00\n", 2, r"vertex id '\x00\x00' is not"),
            (b"\x7fELF\xff\xff\n", 1, r"vertex id '\x7fELF\xff\xff' is not"),
        ],
    )
    def test_malformed(self, write: Write, content: str | bytes, line: int | None, reason: str) -> None:
        error = malformed(write("a.txt", content))
        assert reason in error.reason
        assert error.line == line

    def test_non_utf8_comments_are_nobodys_business(self, write: Write) -> None:
        assert triples(load_csr(write("a.txt", b"# M\xfcller\n0 1\n"))) == [(0, 1)]

    @pytest.mark.parametrize("bad", [0, 57, 200, 399])
    def test_line_numbers_across_blocks(self, write: Write, tiny_blocks: None, bad: int) -> None:
        lines = [f"{i} {i + 1}" for i in range(400)]
        lines[bad] = "oops 1"
        lines[-1] = "worse 2" if bad != 399 else lines[-1]
        assert malformed(write("a.txt", "\n".join(lines))).line == bad + 1

    def test_not_text(self, tmp_path: Path, tiny_blocks: None) -> None:
        path = tmp_path / "a.txt"
        path.write_bytes(bytes(1000))
        assert "not a text file" in malformed(path).reason
