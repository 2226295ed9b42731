"""Graph files that are wrong by accident or on purpose: each is read or refused with an AtosError, in little time and memory.

`test_mutated_files` searches, and goes on as long as you like with ``python tests/graph/test_hostile_files.py SECONDS``. What
it and others found is in test_refused_files.py.
"""

from __future__ import annotations

import gzip
import random
import re
import sys
import time
from pathlib import Path

import hypothesis.extra.numpy
import numpy as np
import pytest
from graph_files import GOOD, npz_bytes, read_or_refused
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atos_py.errors import GraphFormatError
from atos_py.graph.io import read_edges

pytestmark = pytest.mark.filterwarnings("ignore:the edges of")  # name few of the vertices

TOKENS = [b"-1", b"nan", b"inf", b"1e999", b"0x10", b"18446744073709551616", b"9" * 30, b"0" * 40 + b"1", b"9" * 5000]
TOKENS += [b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b"\x0b", b"\x0c", b"\x1a", b"\x1c", b"\r\n"]
TOKENS += [b"\n", b"\r", b" ", b",", b"%", b"#", b"a ", b"p sp 4 1", b"%%MatrixMarket", b"PK\x05\x06"]
TOKENS += [
    b"\x1f\x8b",
    b"\xff" * 8,
    b"\x7f\xff\xff\xff",
    b"4294967295",
    b"4294967296",
    b"1_0",
    b"+1",
    b"1.",
    b".",
    "\u0661".encode(),
]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Change a few places of a file."""
    for _ in range(chance.choice([0, 1, 1, 2, 3, 8])):
        at = chance.randint(0, len(content))
        end = min(len(content), at + chance.choice([0, 1, 1, 2, 4, 20]))
        kind = chance.randrange(5)
        if kind == 0 and at < len(content):
            content = content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + chance.choice(TOKENS) + content[end:]
        elif kind == 2:
            content = content[:at] + content[end:]
        elif kind == 3:
            content = content[:at] + content[at:end] * 2 + content[end:]
        else:
            content = content[:at] + chance.randbytes(chance.choice([1, 2, 4, 8])) + content[end:]
    return content


def search(seed: int, folder: Path) -> None:
    """Load one mutated file."""
    chance = random.Random(seed)
    name = chance.choice(sorted(GOOD))
    content = mutated(GOOD[name], chance)
    if chance.random() < 0.3:
        content = gzip.compress(content)
        if chance.random() < 0.5:
            content = mutated(content, chance)
    if chance.random() < 0.1:
        name = chance.choice(sorted(GOOD))  # another format
    path = folder / name
    path.write_bytes(content)
    switches = "symmetrize", "simplify", "deduplicate", "sort", "renumber"
    read_or_refused(path, **{name: chance.random() < 0.3 for name in switches})


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@given(st.integers(0, 2**64))
@settings(deadline=None, max_examples=600)
def test_mutated_files(fuzzed, seed):
    search(seed, fuzzed)


@given(st.sampled_from(sorted(GOOD)), st.binary(max_size=200), st.integers(0, 40))
@settings(deadline=None, max_examples=200)
def test_arbitrary_bytes(fuzzed, name, content, kept):
    path = fuzzed / name
    path.write_bytes(GOOD[name][:kept] + content)
    read_or_refused(path)


TEXTS = ["a.gr", "a.mtx", "c.mtx", "a.txt", "a.wel", "a.csv"]


def plain_edges(name: str, content: bytes) -> list[tuple[float, ...]]:
    """Read the edges in a slow and plain way: numbers of ASCII digits, between spaces, tabs and, in edge lists, commas."""
    comments, separators = {".gr": (b"c", b" \t"), ".mtx": (b"%", b" \t")}.get(Path(name).suffix, (b"#%", b" \t,"))
    lines = [line.strip(separators + b"\r") for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    if Path(name).suffix == ".mtx":
        lines = lines[1:]  # the banner, before which there may be any white space
    lines = [line for line in lines if line and line[0] not in comments]
    edges: list[tuple[float, ...]] = []
    names = re.split(b"[ \t,]+", lines[0]) if comments == b"#%" and lines else []
    if names and all(re.match(rb"[\v\f]*[A-Za-z_:~\"']", name) for name in names):
        lines = lines[1:]  # headings
    for line in lines[0 if comments == b"#%" else 1 :]:
        fields = re.split(b"[" + separators + b"]+", line.removeprefix(b"a") if name == "a.gr" else line)
        numbers = [field for field in fields if field]
        assert len(numbers) in (2, 3)
        assert all(re.fullmatch(rb"[0-9]+", number) for number in numbers[:2])
        assert all(re.fullmatch(rb"[-+.0-9a-zA-Z]+", number) for number in numbers[2:])
        base = comments != b"#%"
        edges.append((int(numbers[0]) - base, int(numbers[1]) - base, *map(float, numbers[2:])))
    return edges


@example(551_646_858_763)  # a form feed before what would be a comment
@example(45464)  # a vertical tab before the banner
@given(st.integers(0, 2**64))
@settings(deadline=None, max_examples=3000)
def test_what_is_read_is_what_is_written(fuzzed, seed):
    """A mutated text file that is not refused gives the edges that a plain reader sees in it."""
    chance = random.Random(seed)
    name = chance.choice(TEXTS)
    path, content = fuzzed / name, mutated(GOOD[name], chance)
    path.write_bytes(content)
    try:
        edges = read_edges(path)
    except GraphFormatError:
        return
    found = [
        (int(u), int(v)) if chunk.weights is None else (int(u), int(v), float(chunk.weights[i]))
        for chunk in edges.chunks
        for i, (u, v) in enumerate(zip(chunk.sources, chunk.targets, strict=True))
    ]
    assert found == plain_edges(name, content)


members = st.one_of(
    hypothesis.extra.numpy.arrays(
        st.sampled_from(["i4", "i8", "u8", ">i4", "f4", "f8", "?", "c8", "U3", "S3", "M8[s]", "i4,i4", "f2"]),
        hypothesis.extra.numpy.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5),
    ),
    st.lists(st.integers(-1, 5), max_size=6).map(lambda values: np.array(values, np.int64)),
    st.sampled_from([np.array("csr"), np.array(b"coo"), np.array("csc"), np.array([3, 3]), np.array([2**40, 2**40])]),
)


@given(st.dictionaries(st.sampled_from(["indptr", "indices", "weights", "format", "shape", "data", "row", "col"]), members))
@settings(deadline=None, max_examples=250)
def test_archives_of_anything(fuzzed, arrays):
    path = fuzzed / "a.npz"
    path.write_bytes(npz_bytes(**arrays))
    read_or_refused(path)


if __name__ == "__main__":
    import tempfile

    end, seed = time.monotonic() + float(sys.argv[1]), random.SystemRandom().getrandbits(48)
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() < end:
            seed += 1
            started = time.monotonic()
            try:
                search(seed, Path(directory))
            except Exception as error:
                print(seed, type(error), error)
            if time.monotonic() - started > 1:
                print(seed, "took", time.monotonic() - started)
    print("last seed", seed)
