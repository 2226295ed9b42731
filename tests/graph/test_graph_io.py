"""Reading and writing graph files of any format: archives, limits and options."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from graph_files import Write, malformed
from hypothesis import given, settings
from hypothesis import strategies as st
from test_csr import arrays, assert_same, edge_lists, triples

from atos_py.errors import GraphFormatError, InvalidArgumentError, MissingFileError, UnsupportedTypeError
from atos_py.graph.csr import EdgeList, build_csr, check_csr, chunk_edges
from atos_py.graph.formats import plausible
from atos_py.graph.formats import text as text_files
from atos_py.graph.io import load_csr, read_edges, save_csr

pytestmark = pytest.mark.filterwarnings("ignore:the edges of")  # name few of the vertices


class TestImplausible:
    """A number of vertices that asks for more than 1 GiB of offsets needs an edge for every 64 vertices."""

    MTX = "%%MatrixMarket matrix coordinate pattern general\n% comment\n"

    @pytest.mark.parametrize(
        ("name", "content", "line", "reason"),
        [
            ("a.gr", f"c\np sp {2**28} 1\na 1 2 3\n", 2, f"header promises {2**28} vertices, whose row offsets take 1.0 GiB"),
            ("a.gr", f"p sp {2**32 - 1} 0\n", 1, f"{2**32 - 1} vertices, whose row offsets take 16.0 GiB, for no more than 0"),
            ("a.mtx", MTX + f"{2**28} {2**28} 1\n1 1\n", 3, f"header promises {2**28} vertices"),
            ("a.txt", f"0 1\n# c\n{2**32 - 2} 3\n1 2\n", 3, f"id '{2**32 - 2}' makes {2**32 - 1} vertices"),
            ("a.txt", f"0 {2**28} 1\n\n2 {2**28 + 5} 1.5\n1 1 1e-400", 3, f"id '{2**28 + 5}' makes {2**28 + 6} vertices"),
            ("a.txt", f"0 {2**28}\n1 x\n", 2, "vertex id 'x'"),
        ],
    )
    def test_refused(self, write: Write, name: str, content: str, line: int, reason: str) -> None:
        path = write(name, content)
        error = malformed(path)
        assert reason in error.reason
        assert error.line == line
        with pytest.raises(GraphFormatError):
            read_edges(path)

    def test_line_in_a_later_block(self, write: Write, tiny_blocks: None) -> None:
        lines = [f"{i} {i * i % 977}" for i in range(400)]
        lines[57], lines[300] = f"{2**28} 0", f"0 {2**29}"
        error = malformed(write("a.txt", "\n".join(lines)))
        assert error.line == 301
        assert "for no more than 400 edges" in error.reason

    def test_where_the_limit_lies(self, monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
        # 2**28 - 1 vertices take 1 GiB just so, and are not loaded here: reading the edges is enough.
        assert read_edges(write("a.gr", f"p sp {2**28 - 1} 0\n")).num_vertices == 2**28 - 1
        assert read_edges(write("a.txt", f"0 {2**28 - 2}\n")).num_vertices == 2**28 - 1
        monkeypatch.setattr(plausible, "_MAX_IDLE_OFFSETS", 1 << 10)
        for num_vertices, num_edges, refused in ((255, 1, False), (256, 3, True), (256, 4, False), (257, 4, True)):
            edges = "1 1\n" * num_edges
            for path in (
                write("a.mtx", self.MTX + f"{num_vertices} {num_vertices} {num_edges}\n" + edges),
                write("a.txt", "1 1\n" * (num_edges - 1) + f"1 {num_vertices - 1}"),
            ):
                if refused:
                    malformed(path)
                else:
                    assert load_csr(path).indptr.size == num_vertices + 1

    def test_scipy(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        scipy.sparse.save_npz(path, scipy.sparse.coo_array(([1], ([0], [1])), shape=(2**30, 2**30)))
        assert f"shape promises {2**30} vertices" in malformed(path).reason

    @pytest.mark.parametrize("kind", ["csr", "csc"])
    @pytest.mark.parametrize("claimed", [2, 4, 2**30])
    def test_scipy_shape_against_offsets(self, tmp_path: Path, kind: str, claimed: int) -> None:
        path = tmp_path / "a.npz"
        offsets, ids, data = np.array([0, 1, 2, 3]), np.array([2, 1, 0]), np.ones(3)
        np.savez(path, format=kind.encode(), shape=(claimed, claimed), indptr=offsets, indices=ids, data=data)
        assert f"the matrix is {claimed} x {claimed}, but indptr speaks of 3" in malformed(path).reason

    def test_what_was_saved_is_read_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plausible, "_MAX_IDLE_OFFSETS", 1 << 10)
        csr = build_csr(chunk_edges([0], [999], None, 1000).chunks, 1000)
        save_csr(tmp_path / "a.npz", csr)
        assert_same(load_csr(tmp_path / "a.npz"), csr)


class TestArchives:
    def test_truncated_gzip(self, tmp_path: Path) -> None:
        random = np.random.default_rng(0)
        text = "".join(f"{u} {v}\n" for u, v in random.integers(0, 10**6, (50_000, 2)).tolist()).encode()
        whole = gzip.compress(text)
        path = tmp_path / "a.txt.gz"
        path.write_bytes(whole[: len(whole) // 2])
        error = malformed(path)
        assert "gzip stream is broken" in error.reason
        assert error.line is not None
        assert 20_000 < error.line < 30_000

    def test_corrupt_gzip(self, tmp_path: Path) -> None:
        whole = bytearray(gzip.compress(b"".join(b"%d %d\n" % (i, i * i % 977) for i in range(9999))))
        whole[-6] ^= 1  # in the checksum
        path = tmp_path / "a.txt.gz"
        path.write_bytes(whole)
        assert "gzip stream is broken" in malformed(path).reason

    def test_a_bad_line_before_the_break_is_what_counts(self, tmp_path: Path) -> None:
        whole = gzip.compress(b"0 1\nbad line\n" + b"".join(b"%d %d\n" % (i, i * i % 977) for i in range(9999)))
        path = tmp_path / "a.txt.gz"
        path.write_bytes(whole[:-20])
        assert malformed(path).line == 2

    def test_names_do_not_decide_whether_it_is_gzip(self, tmp_path: Path) -> None:
        unpacked, packed = tmp_path / "a.txt.gz", tmp_path / "a.txt"
        unpacked.write_bytes(b"0 1\n")
        packed.write_bytes(gzip.compress(b"0 1\n"))
        assert triples(load_csr(unpacked)) == triples(load_csr(packed)) == [(0, 1)]

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError, match=r"nowhere\.gr'"):
            load_csr(tmp_path / "nowhere.gr")
        with pytest.raises(FileNotFoundError):
            load_csr(tmp_path / "nowhere.npz")
        (tmp_path / "folder.gr").mkdir()
        with pytest.raises(MissingFileError, match="directory"):
            load_csr(tmp_path / "folder.gr")

    def test_unknown_ending(self, tmp_path: Path) -> None:
        path = tmp_path / "graph.data.gz"
        path.write_bytes(b"0 1\n")
        with pytest.raises(InvalidArgumentError, match=r"known endings are \.gr"):
            load_csr(path)
        with pytest.raises(InvalidArgumentError, match="must be one of dimacs"):
            load_csr(path, format="gml")
        assert triples(load_csr(path, format="edge-list")) == [(0, 1)]


class TestNpz:
    @given(graph=edge_lists(), weighted=st.booleans(), zipped=st.booleans(), compress=st.booleans())
    @settings(deadline=None)
    def test_round_trip(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        graph: tuple[int, list[tuple[int, int, int]]],
        weighted: bool,
        zipped: bool,
        compress: bool,
    ) -> None:
        num_vertices, edges = graph
        sources, targets, weights = arrays(edges)
        csr = build_csr(chunk_edges(sources, targets, weights if weighted else None, num_vertices).chunks, num_vertices)
        folder = tmp_path_factory.mktemp("npz")
        path = folder / "a.npz"
        save_csr(path, csr, compress=compress)
        assert [file.name for file in folder.iterdir()] == ["a.npz"]
        if zipped:
            path = folder / "a.npz.gz"
            path.write_bytes(gzip.compress((folder / "a.npz").read_bytes()))
        assert_same(load_csr(path), csr)

    @pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
    @pytest.mark.parametrize("dtype", [bool, np.int64, np.float32])
    def test_scipy(self, tmp_path: Path, kind: str, dtype: type) -> None:
        dense = np.triu(np.random.default_rng(0).integers(0, 3, (20, 20))).astype(dtype)
        scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.coo_array(dense).asformat(kind))
        csr = load_csr(tmp_path / "a.npz", sort=True)
        expected = scipy.sparse.csr_array(dense)
        np.testing.assert_array_equal(csr.indptr, expected.indptr)
        np.testing.assert_array_equal(csr.indices, expected.indices)
        if csr.weights is None:
            assert dtype is bool
        else:
            assert csr.weights.dtype == dtype
            np.testing.assert_array_equal(csr.weights, expected.data)

    def test_malformed(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        path.write_bytes(b"")
        malformed(path)
        path.write_bytes(b"PK\x03\x04 and then nothing")
        malformed(path)
        path.write_bytes(gzip.compress(bytes(9999))[:20])
        malformed(path)
        with path.open("wb") as file:
            np.save(file, np.arange(3))
        assert "single array" in malformed(path).reason
        np.savez(path, indptr=np.arange(3))
        assert "indices" in malformed(path).reason
        np.savez(path, indptr=np.array([0, 1]), indices=np.array([7]))
        assert "indices[0] is 7" in malformed(path).reason
        np.savez(path, indptr=np.array([0, 1]), indices=np.array([{}]))
        assert "pickle" in malformed(path).reason
        scipy.sparse.save_npz(path, scipy.sparse.csr_array((2, 3)))
        assert "square" in malformed(path).reason
        scipy.sparse.save_npz(path, scipy.sparse.dia_array(np.eye(3)))
        assert "'dia'" in malformed(path).reason
        whole = tmp_path / "whole.npz"
        save_csr(whole, check_csr(np.arange(1001), np.arange(1000)))
        path.write_bytes(whole.read_bytes()[:3000])
        malformed(path)

    def test_an_array_too_large_to_be_true(self, tmp_path: Path) -> None:
        import zipfile

        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (2**58,)})
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("indptr.npy", header.getvalue())
            archive.writestr("indices.npy", header.getvalue())
        malformed(path)

    def test_save_wants_npz(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"ends in \.npz"):
            save_csr(tmp_path / "a.gr", check_csr([0], []))


class TestOptions:
    TEXT = "0 1 5\n1 0 3\n1 0 2\n2 2 9\n0 3 1\n0 2 1\n"

    def test_weights(self, write: Write) -> None:
        path = write("a.txt", self.TEXT)
        assert load_csr(path, weights=False).weights is None
        for dtype in ("f4", "f8", "u4", "i8"):
            csr = load_csr(path, weights=dtype)
            assert csr.weights is not None
            assert csr.weights.dtype == dtype
        assert load_csr(write("b.txt", "0 1\n"), weights="f4").weights is None

    def test_lossy_weights(self, write: Write) -> None:
        with pytest.raises(InvalidArgumentError, match="not whole numbers"):
            load_csr(write("a.txt", "0 1 1.5\n"), weights="i4")
        with pytest.raises(InvalidArgumentError, match="from -1 to -1 do not fit uint32"):
            load_csr(write("b.txt", "0 1 -1\n"), weights="u4")
        with pytest.raises(UnsupportedTypeError, match="complex"):
            load_csr(write("c.txt", "0 1 1\n"), weights=complex)

    def test_all_at_once(self, write: Write, tmp_path: Path) -> None:
        path = write("a.txt", self.TEXT)
        expected = [(0, 1, 2), (0, 2, 1), (0, 3, 1), (1, 0, 2), (2, 0, 1), (3, 0, 1)]
        assert triples(load_csr(path, symmetrize=True, deduplicate=True, remove_loops=True)) == expected
        save_csr(tmp_path / "a.npz", load_csr(path))
        assert triples(load_csr(tmp_path / "a.npz", symmetrize=True, deduplicate=True, remove_loops=True)) == expected
        assert triples(load_csr(path, sort=True))[:3] == [(0, 1, 5), (0, 2, 1), (0, 3, 1)]

    def test_read_edges(self, write: Write) -> None:
        edges = read_edges(write("a.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n"))
        assert isinstance(edges, EdgeList)
        assert edges.symmetric
        assert edges.num_vertices == 2


class TestFuzz:
    @given(
        st.sampled_from(
            [
                ("dimacs", "p sp 99 {}\n"),
                ("matrix-market", "%%MatrixMarket matrix coordinate real general\n99 99 {}\n"),
                ("edge-list", ""),
            ]
        ),
        st.integers(0, 3),
        st.lists(st.text("0123456789 \t,.-+einfa#%c\r\n\x0b_\xff", max_size=12), max_size=6),
        st.integers(16, 64),
    )
    @settings(deadline=None, max_examples=500)
    def test_anything_is_read_or_refused_in_order(
        self, tmp_path_factory: pytest.TempPathFactory, kind: tuple[str, str], promised: int, lines: list[str], block: int
    ) -> None:
        format, head = kind
        text = (head.format(promised) + "\n".join(lines)).encode("latin-1")
        path = tmp_path_factory.mktemp("fuzz") / "a.txt"
        path.write_bytes(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_files, "_BLOCK_BYTES", max(block, len(head)))
            try:
                edges = read_edges(path, format=format)
            except GraphFormatError as error:
                refusal = error
            else:
                assert all(ids.max(initial=0) < edges.num_vertices for chunk in edges.chunks for ids in chunk[:2])
                return
        assert refusal.line is None or 1 <= refusal.line <= text.count(b"\n") + 1
        assert "cannot read" not in refusal.reason or format == "edge-list"


class TestRealData:
    @pytest.mark.parametrize(
        ("name", "num_vertices", "num_edges", "weighted"),
        [
            ("USA-road-d.NY.gr.gz", 264_346, 730_100, True),
            ("soc-Slashdot0902.txt.gz", 82_168, 948_464, False),
            ("city-NewYork_0_1024-4n.mtx.gz", 792_676, 2 * 1_575_314, False),
        ],
    )
    def test_counts(self, data_dir: Path, name: str, num_vertices: int, num_edges: int, weighted: bool) -> None:
        if not (data_dir / name).exists():
            pytest.skip(f"no {name} here")
        csr = load_csr(data_dir / name)
        assert csr.indptr.size - 1 == num_vertices
        assert csr.indices.size == num_edges
        assert (csr.weights is not None) == weighted
        check_csr(*csr)


def test_importing_does_not_import_numba() -> None:
    code = "import sys, atos_py.graph.io, atos_py.graph.generate; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
