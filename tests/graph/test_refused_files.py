"""Graph files that a search or a reader of the code found, each as a test of its own: what is refused, and in which words."""

from __future__ import annotations

import gzip
import io
import os
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from graph_files import CSR, npz_bytes

import atos_py as atos
from atos_py.errors import GraphFormatError, InvalidArgumentError, MissingFileError
from atos_py.graph.csr import check_csr
from atos_py.graph.formats import npz
from atos_py.graph.formats import text as text_files
from atos_py.graph.io import load_csr, read_edges, save_csr

pytestmark = pytest.mark.filterwarnings("ignore:the edges of")  # name few of the vertices


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(GraphFormatError) as caught:
        load_csr(path)
    return caught.value.reason


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"0 " + b"9" * 5000 + b"\n", "is outside 0..4294967294"),  # more digits than int() takes
        ("a.txt", b"0 " + b"0" * 5000 + b"1\n", "has more than 18 digits"),
        ("a.txt", b"0 1 " + b"9" * 5000 + b"x\n", "is not a number"),
        ("a.gr", b"p sp " + b"9" * 5000 + b" 1\n", "more than the 4294967295 possible"),
        ("a.gr", b"p sp 3 " + b"9" * 5000 + b"\n", "more than the"),
        ("a.gr", b"p sp 2 1\na 1 2 " + b"9" * 5000 + b"\n", "weight '9+...' does not fit int64"),
        ("a.txt", b"0 1 " + b"9" * 5000 + b"\n", "weight '9+...' is a whole number that float64 would round"),
        ("a.txt", b"0 1 1e400\n", "weight '1e400' is beyond float64"),
        ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 -\n", "weight '-' is not a number"),
        ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n-2 -2 1\n", "number of rows, '-2', is not a whole number"),
        ("a.txt", "0 \u0661\n".encode(), "is not a whole number"),  # a digit, but none of ours
        ("a.txt", "\ufeff0 1\n".encode("utf-16-le"), "is text in UTF-16 or UTF-32"),
        ("a.gr", "\ufeffp sp 2 1\n".encode("utf-16-be"), "is text in UTF-16 or UTF-32"),
        ("a.mtx", "%%MatrixMarket".encode("utf-16-le"), "is text in UTF-16 or UTF-32"),
        ("a.mtx", "%%MatrixMarket".encode("utf-16-be"), "is text in UTF-16 or UTF-32"),
        ("a.txt", "0 1\n".encode("utf-32"), "is text in UTF-16 or UTF-32"),
        ("a.txt", b"0 1\r1 2\r", "lines end with a carriage return alone"),
        ("a.txt", b"# a\r0 1 5\r1 2 5\r", "lines end with a carriage return alone"),
        ("a.gr", b"c a\rp sp 2 1\ra 1 2 3\r", "lines end with a carriage return alone"),
        (
            "a.txt",
            b"0.000000e+00 1 5\n",
            r"'0.000000e\+00' is not a whole number; numpy.savetxt writes whole numbers with fmt='%d'",
        ),
        ("a.gr", b"p sp 12 1\na 1\x002 5\n", r"vertex id '1\\x002' is not a whole number"),
        ("a.gr", b"p sp 12 1\na 1 2\x005\n", r"vertex id '2\\x005' is not a whole number"),
        ("a.gr", b"p sp 12 1\na 1 2 5\x00\n", r"weight '5\\x00' is not a whole number"),
        ("a.gr", b"p sp 12 1\na 1 2\r5\n", r"vertex id '2\\r5' is not a whole number"),
        ("b.mtx", b"%%MatrixMarket matrix coordinate pattern general\n12 12 1\n1\x002\n", r"vertex id '1\\x002' is not"),
        ("a.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1.5\x0c\n", r"weight '1.5\\x0c' is not a number"),
        ("a.txt", b"0 1 \x1c5\n", r"weight '\\x1c5' is not a number"),
        ("a.txt", b"0 1 5\n1 2\r7\n", r"vertex id '2\\r7' is not a whole number"),
        ("a.txt", b"0\r1\n", r"vertex id '0\\r1' is not a whole number"),
        ("a.txt", b"0 1\n\x0c\n1 2\n", r"vertex id '\\x0c' is not a whole number"),
        ("a.txt", b"0 1\n\x00\x00\x00", r"vertex id '\\x00\\x00\\x00' is not a whole number"),
        ("a.txt", b"0 1\r\n\x1a", r"vertex id '\\x1a' is not a whole number"),
        ("a.txt", b"\x1f\x8b", "gzip stream is broken"),
        ("a.txt", b"\x1f\x8b\x08" + bytes(30), "gzip stream is broken"),
        ("a.npz", b"\x1f\x8b\x08" + bytes(30), "invalid|EOF|Compressed|CRC|end-of-stream"),
        ("a.npz", b"\x93NUMPY", "single array"),
        ("a.npz", npz_bytes(indptr=np.array([0, 1])), "no array 'indices'"),
        ("a.npz", npz_bytes(indptr=np.array([0, 1]), indices=np.array([0]), weights=np.array([np.nan])), "is NaN"),
        ("a.npz", npz_bytes(indptr=np.array([0, 1]), indices=np.array([-1])), r"indices\[0\] is -1"),
        ("a.npz", npz_bytes(indptr=np.array([0, 2, 1]), indices=np.array([0])), "must not decrease"),
        ("a.npz", npz_bytes(indptr=np.array([0.0, 1.0]), indices=np.array([0])), "must be integers"),
        ("a.npz", npz_bytes(format=np.array("csr"), shape=np.array([1.0, 1.0]), data=np.array([1])), "square"),
        ("a.npz", npz_bytes(format=np.array(3), shape=np.array([1, 1]), data=np.array([1])), "cannot be read"),
        ("a.npz", npz_bytes(format=np.array(b"\xff\xfe"), shape=np.array([1, 1]), data=np.array([1])), "cannot be read"),
    ],
)
def test_found(tmp_path, name, content, reason):
    assert re.search(reason, refused(tmp_path / name, content))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.wel", b"# a lone\rcarriage return\n0 1 5\n"),
        ("a.wel", b"# a\r0 1\n0 1 5\n"),
        ("a.wel", b"\xef\xbb\xbf0 1 5\n"),
        ("a.wel", b"\xef\xbb\xbf# marked as UTF-8\r\n\r\n0,1,5\r\n"),
        ("a.wel", b"0\t1 , 5\r\r\n\n\r"),
        ("a.wel", b"0 1 5\r"),
        ("a.wel", b"# \0\x0c\x1a\n0 1 5"),
        ("a.gr", b"\xef\xbb\xbfc a\rb\r\np sp 2 1\r\na 1 2 5\r\n"),
        ("a.mtx", b"\xef\xbb\xbf%%MatrixMarket matrix coordinate integer general\r\n% a\rb\r\n2 2 1\r\n1 2 5\r\n"),
    ],
)
def test_what_windows_and_old_tools_leave_in_text(tmp_path, name, content):
    for path, written in ((tmp_path / name, content), (tmp_path / f"{name}.gz", gzip.compress(content))):
        path.write_bytes(written)
        edges = read_edges(path)
        assert [tuple(map(np.ndarray.tolist, chunk)) for chunk in edges.chunks] == [([0], [1], [5])]


def test_leading_zeros_of_a_header_count_for_nothing(tmp_path):
    path = tmp_path / "a.gr"
    path.write_bytes(b"p sp " + b"0" * 5000 + b"2 " + b"0" * 40 + b"1\na 1 2 3\n")
    assert load_csr(path).indptr.tolist() == [0, 1, 1]


def header(shape: object, descr: object = "<i8") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def zipped(compression: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def lying_directory() -> bytes:
    """Return an archive whose directory and array agree on 2**40 bytes that are not there."""
    content = zipped(indptr=header((2**37,)) + bytes(64), indices=header((1,)) + bytes(8))
    at = content.index(b"PK\x01\x02") + 24  # uncompressed size, 32 bits
    return content[:at] + struct.pack("<I", 2**32 - 2) + content[at + 4 :]


class Code:
    """What a pickle could run."""

    def __reduce__(self):
        return os.system, ("touch planted",)


LIES = {
    "a.npz": zipped(indptr=header((2**60,)), indices=header((2**60,))),
    "b.npz": zipped(indptr=header((2**36,)) + bytes(8), indices=header((1,)) + bytes(8)),
    "c.npz": lying_directory(),
    "d.npz": zipped(indptr=header((0, 2**60)), indices=header((0,))),
    "a.gr": b"p sp 3 %d\na 1 2 3\n" % 2**60,
    "b.gr": gzip.compress(b"p sp 4294967295 %d\na 1 2 3\n" % 10**4),
    "a.mtx": b"%%%%MatrixMarket matrix coordinate pattern general\n3 3 %d\n1 1\n" % 2**60,
    "a.txt": b"0 4294967294\n",
    "b.txt": gzip.compress(b"a" * 10**8),
    "c.txt": gzip.compress(b"\n" * 10**8),
    "e.npz": gzip.compress(bytes(10**8)),
    "f.npz": zipped(zipfile.ZIP_DEFLATED, indptr=header((10**7,)) + bytes(8 * 10**7), indices=header((1,)) + bytes(8)),
}


def test_lies_take_no_memory(tmp_path):
    """Headers that promise 2^60 edges, and archives that swell, in a process that gets little memory."""
    for name, content in LIES.items():
        (tmp_path / name).write_bytes(content)
    code = """
import os, resource, sys
import atos_py as atos
from atos_py.graph.io import load_csr
os.chdir(sys.argv[1])
open("good.txt", "w").write("0 1\\n")
load_csr("good.txt")  # the parser is compiled before memory is counted
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
for name in sys.argv[2:]:
    try:
        load_csr(name)
        print(name, "was read")
    except atos.GraphFormatError:
        pass
"""
    command = [sys.executable, "-c", code, str(tmp_path), *LIES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_an_archive_that_unpacks_to_more_than_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "read_host_memory", lambda: 10**6)
    assert "unpacks to more than the 1000000 bytes" in refused(tmp_path / "a.npz", gzip.compress(bytes(10**7)))


def test_what_does_not_fit_the_memory(tmp_path, monkeypatch):
    """Is an AtosError too, but says nothing against the file."""
    (tmp_path / "a.txt").write_text("0 1\n")

    def build(*args, **options):
        raise MemoryError("Unable to allocate 16 GiB")

    monkeypatch.setattr("atos_py.graph.io.build_csr", build)
    with pytest.raises(atos.DeviceMemoryError, match=r"memory for graph file '.*a\.txt', .*: Unable to allocate 16 GiB"):
        load_csr(tmp_path / "a.txt")


def test_pickles_are_not_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planted = np.array([Code()])
    assert "pickled Python objects" in refused(tmp_path / "a.npz", npz_bytes(indptr=planted, indices=planted))
    buffer = io.BytesIO()
    np.save(buffer, planted)
    assert "single array" in refused(tmp_path / "b.npz", buffer.getvalue())
    assert not (tmp_path / "planted").exists()


def test_encrypted_and_exotic_archives(tmp_path):
    good = bytearray(npz_bytes(**CSR))
    encrypted = bytearray(good)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := encrypted.find(signature, at + 1)) >= 0:
            encrypted[at + offset] |= 1
    assert "encrypted" in refused(tmp_path / "a.npz", bytes(encrypted))
    exotic = bytearray(good)
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = -1
        while (at := exotic.find(signature, at + 1)) >= 0:
            exotic[at + offset] = 97
    assert "compression method" in refused(tmp_path / "b.npz", bytes(exotic))


def test_what_is_no_regular_file(tmp_path):
    """A pipe to which nobody writes is not waited for, and an endless device is not read."""
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.gr").symlink_to("/dev/zero")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "dangling.mtx").symlink_to("nowhere")
    for name in ("pipe.txt", "zero.gr", "folder.npz", "loop.txt", "dangling.mtx"):
        with pytest.raises(MissingFileError, match=name):
            load_csr(tmp_path / name)
    (tmp_path / "good.txt").write_text("0 1\n")
    (tmp_path / "link.txt").symlink_to("good.txt")
    assert load_csr(tmp_path / "link.txt").indices.tolist() == [1]


def test_names_that_are_none():
    for name in (3, None, b"a.txt", io.BytesIO(b"0 1"), ["a.txt"]):
        for function in (load_csr, read_edges, atos.Graph.load):
            with pytest.raises(atos.UnsupportedTypeError, match="a file is named by a str or a path"):
                function(name)
    with pytest.raises(MissingFileError, match="null byte"):
        load_csr("a\0b.txt")
    with pytest.raises(MissingFileError, match="too long"):
        load_csr("a" * 5000 + ".txt")
    for format in ("gml", 3, [], b"npz"):
        with pytest.raises(InvalidArgumentError, match="format must be one of dimacs, matrix-market, edge-list, npz"):
            load_csr("a.txt", format=format)
    with pytest.raises(InvalidArgumentError, match="is no text file"):
        read_edges("a.npz")


def test_saving_where_it_cannot_be(tmp_path):
    csr = check_csr([0, 1], [0])
    for path, reason in ((tmp_path / "nowhere" / "a.npz", "No such file"), ("/proc/a.npz", "graph file '/proc/a.npz'")):
        with pytest.raises(atos.FileWriteError, match=reason):
            save_csr(path, csr)
    with pytest.raises(atos.UnsupportedTypeError):
        save_csr(3, csr)
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(atos.FileWriteError, match="directory"):
        save_csr(tmp_path / "folder.npz", csr)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npz"]


def test_a_graph_in_tiny_blocks_and_tiny_gzip_members(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 16)
    path = tmp_path / "a.txt"
    path.write_bytes(b"".join(gzip.compress(line) for line in (b"", b"0 1\n", b"", b"1 ", b"2\n")))
    assert load_csr(path).indices.tolist() == [1, 2]
