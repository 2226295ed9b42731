"""Archives of arrays: ours, and those of scipy.sparse.save_npz."""

from __future__ import annotations

import gzip
import io
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import GraphFormatError, InvalidArgumentError, UnsupportedTypeError
from ...support.atomic_files import open_regular, replacing
from ...support.host_memory import is_shortage
from ...support.validation import read_host_memory
from ..csr import CSR, EdgeChunk, EdgeList, check_csr, chunk_edges, csr_to_chunks
from ..labels import check_labels
from .plausible import explain_implausible
from .text import LARGEST_RATIO, is_gzip

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["read_npz", "save_npz"]

_PIECE_BYTES = 1 << 24
_EDGE_ARRAYS = "edge_arrays/"  # before the names of edge arrays


def read_npz(path: Path, edge_arrays: dict[str, NDArray[Any]] | None = None) -> tuple[EdgeList | CSR, NDArray[np.int64] | None]:
    """Read what `save_npz` or scipy.sparse.save_npz wrote: a graph, and labels of its vertices, if it has some.

    Its edge arrays, if it has some, are put into the dict `edge_arrays`, unchecked.
    """
    with open_regular(path, "graph file") as file:
        archive = _Archive(path, file)
        try:
            if "format" in archive.names:
                return _scipy_edges(archive), None
            weights = archive["weights"] if "weights" in archive.names else None
            csr = check_csr(archive["indptr"], archive["indices"], weights)
            labels = check_labels(archive["labels"], csr.indptr.size - 1) if "labels" in archive.names else None
            if edge_arrays is not None:
                names = [name for name in archive.order if name.startswith(_EDGE_ARRAYS)]
                edge_arrays |= {name.removeprefix(_EDGE_ARRAYS): archive[name] for name in names}
            return csr, labels
        except (InvalidArgumentError, UnsupportedTypeError) as error:
            raise GraphFormatError(path, None, str(error)) from error


class _Archive:
    """The arrays of a zip archive, each read only once what it promises is found possible."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        with self._trouble():
            self._size = os.fstat(file.fileno()).st_size
            if is_gzip(file):
                file = self._unpacked(file)
                self._size = len(file.getbuffer())
            if file.read(6) == b"\x93NUMPY":
                raise self._refusal("this is a single array, not an archive of a graph's arrays")
            self._zip = zipfile.ZipFile(file)
            self.order = [name.removesuffix(".npy") for name in self._zip.namelist()]
            self.names = set(self.order)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise self._refusal(f"not a graph: it has no array {name!r}")
        with self._trouble():
            info = self._zip.getinfo(f"{name}.npy")
            # What the directory of an archive says may be a lie, as may be what an array says of itself.
            if info.file_size > self._size * LARGEST_RATIO:
                raise self._refusal(f"it promises {info.file_size} bytes for {name!r}, more than it can hold")
            with self._zip.open(info) as member:
                version = np.lib.format.read_magic(member)
                if version > (2, 0):
                    raise self._refusal(f"array {name!r} is of version {version}, which has no use for numbers")
                read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read_header(member)
                if dtype.hasobject:
                    raise self._refusal(
                        f"array {name!r} holds pickled Python objects, and to load those would run code of the file"
                    )
                promised, there = math.prod(shape) * dtype.itemsize, info.file_size - member.tell()
                if promised != there:
                    raise self._refusal(f"array {name!r} promises {promised} bytes, but has {there}")
            with self._zip.open(info) as member:
                return np.lib.format.read_array(member, allow_pickle=False)

    def _refusal(self, reason: str) -> GraphFormatError:
        return GraphFormatError(self._path, None, reason)

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        """Turn what zipfile, gzip and NumPy raise over a malformed file, which may be nearly anything, into one error."""
        try:
            yield
        except GraphFormatError:
            raise
        except Exception as error:
            if is_shortage(error):  # which says nothing against the file
                raise
            raise self._refusal(str(error) or type(error).__name__) from error

    def _unpacked(self, file: BinaryIO) -> io.BytesIO:
        result = io.BytesIO()
        most = read_host_memory()
        with gzip.GzipFile(fileobj=file) as stream:
            while piece := stream.read(_PIECE_BYTES):
                if result.tell() + len(piece) > most:
                    raise self._refusal(f"it unpacks to more than the {most} bytes of memory that the host has")
                result.write(piece)
        result.seek(0)
        return result


def _scipy_edges(archive: _Archive) -> EdgeList | CSR:
    """Take the arrays of a file by scipy.sparse.save_npz, whose formats with explicit indices need no SciPy."""
    named, shape, data = archive["format"], archive["shape"], archive["data"]
    kind = named.item() if named.size == 1 and named.dtype.kind in "SU" else repr(named)
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else kind
    if shape.dtype.kind not in "iu" or shape.shape != (2,) or shape[0] != shape[1]:
        raise InvalidArgumentError(f"the matrix of a graph is square, but this one has shape {shape.tolist()!r:.80}")
    size = int(shape[0])
    weights = None if data.dtype == bool else data
    if kind in ("csr", "csc"):
        csr = check_csr(archive["indptr"], archive["indices"], weights)
        if csr.indptr.size - 1 != size:
            raise InvalidArgumentError(f"the matrix is {size} x {size}, but indptr speaks of {csr.indptr.size - 1}")
        if kind == "csr":
            return csr
        return EdgeList([EdgeChunk(c.targets, c.sources, c.weights) for c in csr_to_chunks(csr)], size, symmetric=False)
    if kind == "coo":
        rows = archive["row"]
        edges = chunk_edges(rows, archive["col"], weights, size)
        if reason := explain_implausible("the shape promises", size, rows.size):
            raise InvalidArgumentError(reason)
        return edges
    raise InvalidArgumentError(f"sparse format '{kind:.40}' cannot be read; convert the matrix with .tocsr() before saving it")


def save_npz(
    path: Path,
    csr: CSR,
    labels: NDArray[np.int64] | None = None,
    *,
    compress: bool = False,
    edge_arrays: Mapping[str, NDArray[Any]] = {},
) -> None:
    """Write a CSR, labels of its vertices, and other numbers of its edges by name, to an archive."""
    arrays = {"indptr": csr.indptr, "indices": csr.indices}
    if csr.weights is not None:
        arrays["weights"] = csr.weights
    if labels is not None:
        arrays["labels"] = labels
    arrays |= {_EDGE_ARRAYS + name: array for name, array in edge_arrays.items()}
    with replacing(path, "graph file") as file:
        (np.savez_compressed if compress else np.savez)(file, **arrays)  # type: ignore[arg-type]
