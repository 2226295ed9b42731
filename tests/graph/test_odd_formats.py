"""Files that other tools write a little differently: banners with one %, whole floats, attributes, headings, tables."""

from __future__ import annotations

import random
import sys

import networkx as nx
import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse
from graph_files import Write, malformed
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_csr import triples

import atos_py as atos
from atos_py.errors import GraphFormatError, MissingPackageError
from atos_py.graph.formats import text as text_files
from atos_py.graph.io import load_csr

pytestmark = pytest.mark.filterwarnings("ignore:the edges of")
MTX = "%MatrixMarket matrix coordinate {} general\n3 3 2\n"


class TestWholeFloats:
    """Weights such as 1.0 where a file says that they are whole: exact, or refused."""

    @pytest.mark.parametrize("shown", ["5.0", "5.", "+5.00", "-5.0", "9007199254740993.0", "-9223372036854775808.000"])
    def test_exact(self, write: Write, shown: str) -> None:
        expected = [(0, 1, int(shown.partition(".")[0])), (1, 2, 7)]
        assert triples(load_csr(write("a.mtx", MTX.format("integer") + f"1 2 {shown}\n2 3 7\n"))) == expected
        assert triples(load_csr(write("a.gr", f"p sp 3 2\na 1 2 {shown}\na 2 3 7\n"))) == expected

    @pytest.mark.parametrize(
        ("shown", "reason"),
        [
            ("5.5", "not a whole number"),
            ("5.01", "not a whole number"),
            (".0", "not a whole number"),
            ("5e0", "not a whole number"),
            ("5.0e1", "not a whole number"),
            ("5.0x", "not a whole number"),
            ("9223372036854775808.0", "does not fit int64"),
        ],
    )
    def test_refused(self, write: Write, shown: str, reason: str) -> None:
        for path in (
            write("a.mtx", MTX.format("integer") + f"2 3 7\n1 2 {shown}\n"),
            write("a.gr", f"c\np sp 3 2\na 2 3 7\na 1 2 {shown}\n"),
        ):
            error = malformed(path)
            assert (error.line, reason in error.reason) == (4, True), error.reason

    def test_an_edge_list_of_them_has_floats(self, write: Write) -> None:
        csr = load_csr(write("a.wel", "0 1 5.0\n1 0 7.0\n"))
        assert csr.weights is not None
        assert csr.weights.dtype == np.float64

    @given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["", ".", ".0", ".000000"])), max_size=20))
    @settings(deadline=None)
    def test_round_trip(self, tmp_path_factory: pytest.TempPathFactory, weights: list[tuple[int, str]]) -> None:
        path = tmp_path_factory.mktemp("whole") / "a.gr"
        arcs = "".join(f"a 1 1 {number}{zeros}\n" for number, zeros in weights)
        path.write_text(f"p sp 1 {len(weights)}\n{arcs}")
        assert triples(load_csr(path)) == [(0, 0, number) for number, _ in weights]


def test_a_banner_with_one_percent_sign(tmp_path):
    matrix = scipy.sparse.random_array((9, 9), density=0.3, rng=np.random.default_rng(1))
    scipy.io.mmwrite(tmp_path / "a.mtx", matrix)
    text = (tmp_path / "a.mtx").read_bytes()
    assert text.startswith(b"%%MatrixMarket")
    (tmp_path / "b.mtx").write_bytes(text[1:])
    assert triples(load_csr(tmp_path / "b.mtx")) == triples(load_csr(tmp_path / "a.mtx"))


@pytest.mark.parametrize(
    ("name", "content", "line", "cure"),
    [
        ("a.mtx", MTX.format("pattern") + "1 2\n2 3 7\n", 4, "FIELD pattern in line 1 says that entries have no values"),
        ("a.mtx", MTX.format("integer") + "1 2 0.5\n", 3, "with FIELD real in line 1"),
        ("a.txt", "% sym weighted\n1 2 1 1082\n", 2, r"found 4; keep only these, as with awk '{print \$1, \$2, \$3}'"),
        ("a.txt", "0 1\n1 2 5\n", 2, "the first edge of the file has no weight"),
        ("a.txt", "0 1 5\n1 2\n", 2, "each other needs one"),
        ("a.csv", "source;target\n0;1\n", 1, "vertex id 'source;target'"),
        ("a.csv", "0;1\n", 1, "columns are separated by blanks or a comma"),
        ("a.txt", "alice bob\nbob carol\n", 2, "pandas.factorize makes numbers of names"),
        ("a.txt", "0 123456789012345678\n", 1, "renumber=True"),
        ("a.csv", ",source,target\n0,1,2\n", 1, "write the table with index=False"),
        ("a.csv", "source,target,,weight\n0,1,5\n", 1, "heading 3 is empty"),
        ("a.csv", "source,target,\n0,1,5\n", 1, "heading 3 is empty"),
        ("a.csv", "# c\nid,source,target\n0,1,2\n", 2, "heading 'source' is number 2 of id, source, target; the columns are"),
        ("a.csv", "target,source\n1,2\n", 1, "heading 'target' is number 1"),
        ("a.csv", "source,target,weight,time\n1,2,3,4\n", 1, "there are 4 headings"),
        ("a.csv", "source,weight\n1,2\n", 1, "heading 'weight' is number 2"),
        ("a.csv", "source,target,weight\n1,2\n", 2, "expected 3 fields"),
        ("a.csv", "source,target\n1,2\nsource,target\n", 3, "vertex id 'source' is not a whole number"),
        ("a.csv", "source,target\n", None, "the file has no edges"),
        ("a.txt", "0 1 {}\n1 2 {'weight': 'heavy'}\n", 2, "attribute 'weight' is 'heavy', which is not a number"),
        ("a.txt", "0 1 {}\n1 2 {'weight': True}\n", 2, "attribute 'weight' is True"),
        ("a.txt", "0 1 {'weight': np.float64(2.5)}\n", 1, "write_weighted_edgelist"),
        ("a.txt", "0 1 {'weight': open('a')}\n", 1, "no dictionary of Python's own words"),
        ("a.txt", "0 1 {'weight': " + "(" * 9999 + "}\n", 1, "no dictionary of Python's own words"),
        ("a.txt", "0 1 {'weight', 2}\n", 1, "no dictionary of Python's own words"),
        ("a.txt", "0 1 {'weight': 9007199254740993}\n1 2 {'weight': 0.5}\n", 1, "that float64 would round"),
        ("a.txt", "# {}\n\n0 1 {}\n1 2 3 {}\n", 4, r"expected 'SOURCE TARGET \{ATTRIBUTES\}', .*found '1 2 3 \{\}'"),
        ("a.txt", "0 1 {'weight': 2}\r\n1 b {}\r\n", 2, "vertex id 'b'"),
    ],
)
def test_the_rest_is_refused_with_the_cure(write, name, content, line, cure):
    path = write(name, content)
    with pytest.raises(GraphFormatError, match=cure) as caught:
        load_csr(path)
    assert caught.value.line == line


def graph_of(seed: int, weight: str) -> nx.DiGraph:
    chance = random.Random(seed)
    graph = nx.gnp_random_graph(chance.randint(2, 12), 0.5, seed, directed=True)
    for *_, data in graph.edges(data=True):
        if weight != "none" and chance.random() < 0.7:
            data["weight"] = chance.randint(-9, 2**60) if weight == "whole" else chance.uniform(-1e9, 1e9)
        if chance.random() < 0.5:
            data[chance.choice(["name", "weights", "a 'weight': 3", "{"])] = chance.choice(
                ["it's", 'a "b"', "{", "\\d", [1, (2,)], {"weight": 7}]
            )
    return graph


@example(3, "whole", " ", True)
@given(st.integers(0, 10**6), st.sampled_from(["none", "whole", "real"]), st.sampled_from([" ", ",", ", "]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_what_networkx_writes(tmp_path_factory, seed, weight, delimiter, tiny):
    """The edges of `write_edgelist` are those of `from_networkx`, whatever other attributes there are."""
    graph = graph_of(seed, weight)
    if not graph.number_of_edges():
        return
    path = tmp_path_factory.mktemp("networkx") / "a.edges"
    nx.write_edgelist(graph, path, delimiter=delimiter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_BLOCK_BYTES", 256 if tiny else 4 << 20)
        read = atos.Graph.load(path, device="cpu", sort=True)
    graph.add_nodes_from(range(read.num_vertices))
    named = nx.DiGraph()
    named.add_nodes_from(range(read.num_vertices))
    named.add_edges_from(graph.edges(data=True))
    expected = atos.Graph.from_networkx(named, device="cpu").simplify(sort=True)
    assert read.sources.tolist() == expected.sources.tolist()
    assert read.indices.tolist() == expected.indices.tolist()
    found, wanted = (None if each.weights is None else each.weights.tolist() for each in (read, expected))
    assert found == wanted


@pytest.mark.parametrize(
    "names", [["source", "target", "weight"], ["FromNodeId", "ToNodeId"], ["id_1", "id_2"], ["a", "b", "cost"]]
)
@pytest.mark.parametrize("quoting", [0, 2])
def test_what_pandas_writes(tmp_path, names, quoting):
    numbers = np.random.default_rng(0).integers(0, 9, (20, len(names)))
    pandas.DataFrame(numbers, columns=names).to_csv(tmp_path / "a.csv", index=False, quoting=quoting)
    rows = sorted(map(tuple, numbers.tolist()), key=lambda row: row[0])
    assert triples(load_csr(tmp_path / "a.csv")) == rows
    pandas.DataFrame(numbers, columns=names).to_csv(tmp_path / "b.csv")
    with pytest.raises(GraphFormatError, match="write the table with index=False"):
        load_csr(tmp_path / "b.csv")


class TestParquet:
    @pytest.mark.parametrize("weights", [None, np.arange(5) - 2, np.arange(5) / 4, np.arange(5, dtype="f4")])
    @pytest.mark.parametrize("dtype", ["int64", "uint32", "int8"])
    def test_a_table(self, tmp_path, weights, dtype):
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        columns = {"source": np.array([0, 3, 1, 2, 2], dtype), "target": np.array([1, 0, 2, 2, 0], dtype)}
        columns |= {} if weights is None else {"weight": weights}
        parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
        found = atos.Graph.load(tmp_path / "a.parquet", device="cpu")
        expected = atos.Graph.from_edges(*columns.values(), device="cpu")
        assert repr(found) == repr(expected)
        assert triples(found._on_host()) == triples(expected._on_host())
        far = {"source": [10**12, 5], "target": [5, 10**17]}
        parquet.write_table(pyarrow.table(far), tmp_path / "b.parquet")
        assert atos.Graph.load(tmp_path / "b.parquet", renumber=True).labels.tolist() == [5, 10**12, 10**17]
        with pytest.raises(GraphFormatError, match=r"vertex id '1000000000000' is outside 0\.\.4294967294; with renumber=True"):
            load_csr(tmp_path / "b.parquet")

    @pytest.mark.parametrize(
        ("columns", "reason"),
        [
            ({"source": [0], "target": ["a"]}, "column 'target' is of type string, and not of numbers"),
            ({"source": [0, None], "target": [1, 2]}, "column 'source' has 1 rows without a value"),
            ({"source": [0.0], "target": [1]}, "sources must be integers, not float64"),
            ({"source": [-1], "target": [1]}, r"sources\[0\] is -1"),
            ({"target": [0], "source": [1]}, "heading 'target' is number 1"),
            ({"source": [0], "target": [1], "weight": [float("nan")]}, r"weights\[0\] is NaN"),
            ({"source": [0]}, "there are 1 headings"),
            ({"source": np.zeros(0, int), "target": np.zeros(0, int)}, "the table has no rows"),
            ({"source": [0], "target": [2**30]}, "makes 1073741825 vertices, whose row offsets take 4.0 GiB"),
        ],
    )
    def test_refused(self, tmp_path, columns, reason):
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
        with pytest.raises(GraphFormatError, match=reason):
            load_csr(tmp_path / "a.parquet")

    def test_no_parquet_at_all(self, tmp_path):
        pytest.importorskip("pyarrow.parquet")
        for content in (b"", b"PAR1", b"PAR1" + bytes(40) + b"PAR1", b"0 1\n"):
            (tmp_path / "a.parquet").write_bytes(content)
            with pytest.raises(GraphFormatError):
                load_csr(tmp_path / "a.parquet")

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        (tmp_path / "a.parquet").write_bytes(b"PAR1")
        with pytest.raises(MissingPackageError, match=r"reading \.parquet needs PyArrow: python -m pip install pyarrow"):
            load_csr(tmp_path / "a.parquet")


def test_halves_and_other_orders_of_bytes(tmp_path):
    """Weights of 16 bits are kept in 32, exactly, and numbers of other machines are read as what they are."""
    offsets, ids, weights = np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([0.5, 65504.0])
    np.savez(tmp_path / "a.npz", indptr=offsets.astype(">i4"), indices=ids.astype(">u8"), weights=weights.astype(">f2"))
    read = atos.Graph.load(tmp_path / "a.npz", device="cpu")
    made = atos.Graph.from_csr(offsets.astype(">i8"), ids.astype(">i2"), weights.astype("f2"), device="cpu")
    assert triples(read._on_host()) == triples(made._on_host()) == [(0, 1, 0.5), (1, 2, 65504.0)]
    assert read.weights.dtype == made.weights.dtype == np.float32
