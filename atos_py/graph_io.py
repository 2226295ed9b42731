"""Graph files: reading edges or a CSR from them, writing a CSR to one.

Three steps, each usable alone::

    file ──► EdgeList (chunks of parsed edges) ──► build_csr ──► CSR

Blocks of a text file are parsed by threads while the next ones are read; see `atos_py.csr` for what follows.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .csr import (
    CSR,
    MAX_VERTICES,
    EdgeChunk,
    EdgeList,
    build_csr,
    check_csr,
    chunk_edges,
    convert_weights,
    edges_of,
    indptr_dtype,
    weight_dtype,
)
from .errors import GraphFormatError, InvalidArgumentError, MissingFileError
from .parallel import compiled, num_threads, returnable

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["load_csr", "read_edges", "save_csr"]

# A file that wants more bytes of row offsets than this must have an edge for every so many vertices.
_MAX_IDLE_OFFSETS = 1 << 30
_MAX_VERTICES_PER_EDGE = 64


def _doubt(what: str, num_vertices: int, num_edges: int) -> str | None:
    """Say why a file's number of vertices is not to be believed, since one wrong digit could take all the memory there is."""
    size = (num_vertices + 1) * indptr_dtype(num_edges).itemsize
    if size <= _MAX_IDLE_OFFSETS or num_edges * _MAX_VERTICES_PER_EDGE >= num_vertices:
        return None
    return (
        f"{what} {num_vertices} vertices, whose row offsets take {size / 2**30:.1f} GiB, for no more than {num_edges} edges; "
        "if that is meant, give the edges and num_vertices to Graph.from_edges"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Text files

_BLOCK_BYTES = 4 << 20
_NEWLINE = ord("\n")
_MAX_DIGITS = 18  # so that a number of that many digits fits 64 bits
_EXACT_DIGITS = 15  # integers and powers of ten of so many digits are exact in float64, so their quotient is rounded right


class _Layout(NamedTuple):
    """How the lines of a text file are to be read."""

    columns: int  # 2, or 3 with a weight
    base: int  # id of the first vertex
    num_vertices: int
    promised: int | None  # number of edges that the header speaks of
    comments: bytes
    prefix: bytes = b""  # what every line with an edge starts with
    commas: bool = False
    weights: str = "auto"  # "int", "float", or whichever a chunk needs


def _parse_kernel(
    text: Any,
    start: int,
    prefix: int,
    comment: int,
    other_comment: int,
    comma: int,
    base: int,
    num_vertices: int,
    columns: int,
    floats: bool,
    sources: Any,
    targets: Any,
    integers: Any,
    numbers: Any,
    hard: Any,
) -> tuple[int, int, int]:  # pragma: no cover - compiled
    """Read edges from `text`, which ends with a newline.

    Return how many there are, where a bad line starts or -1, and how many weights are hard. `integers` and `numbers`
    share their memory. A hard weight is one whose digits and exponent are too many to be converted exactly here: its
    edge, start and end go to a row of `hard`.
    """
    at = start
    count = 0
    num_hard = 0
    while at < text.size:
        line = at
        while text[at] == 32 or text[at] == 9 or text[at] == 13:
            at += 1
        if text[at] == 10:
            at += 1
            continue
        if text[at] == comment or text[at] == other_comment:
            while text[at] != 10:
                at += 1
            at += 1
            continue
        if prefix != 0:
            if text[at] != prefix or (text[at + 1] != 32 and text[at + 1] != 9):
                return count, line, num_hard
            at += 1
            while text[at] == 32 or text[at] == 9:
                at += 1
        if count == sources.size:
            return count, line, num_hard
        for column in range(2):
            token = at
            value = 0
            while 48 <= text[at] <= 57:
                value = value * 10 + (text[at] - 48)
                at += 1
            if at == token or at - token > 18 or value < base or value - base >= num_vertices:
                return count, line, num_hard
            if column == 0:
                sources[count] = value - base
            else:
                targets[count] = value - base
            token = at
            while text[at] == 32 or text[at] == 9 or text[at] == 13:
                at += 1
            if text[at] == comma:
                at += 1
                while text[at] == 32 or text[at] == 9:
                    at += 1
            if at == token and text[at] != 10:
                return count, line, num_hard
        if columns == 3:
            token = at
            negative = text[at] == 45
            if negative or text[at] == 43:
                at += 1
            value = 0
            digits = 0
            while 48 <= text[at] <= 57:
                value = value * 10 + (text[at] - 48)
                digits += 1
                at += 1
            power = 1.0
            if floats and text[at] == 46:
                at += 1
                while 48 <= text[at] <= 57:
                    value = value * 10 + (text[at] - 48)
                    power *= 10.0
                    digits += 1
                    at += 1
            done = text[at] == 32 or text[at] == 9 or text[at] == 13 or text[at] == 10
            if negative:
                value = -value
            if not floats:
                if not done or digits == 0 or digits > 18:
                    return count, line, num_hard
                integers[count] = value
            elif done and 0 < digits <= 15 and (value != 0 or not negative):
                numbers[count] = value / power
            else:
                while text[at] != 32 and text[at] != 9 and text[at] != 13 and text[at] != 10:
                    at += 1
                hard[num_hard, 0] = count
                hard[num_hard, 1] = token
                hard[num_hard, 2] = at
                num_hard += 1
            while text[at] == 32 or text[at] == 9 or text[at] == 13:
                at += 1
        if text[at] != 10:
            return count, line, num_hard
        at += 1
        count += 1
    return count, -1, num_hard


class _BadLineError(Exception):
    """A line that cannot be read: where it starts in its block."""

    def __init__(self, position: int) -> None:
        self.position = position


def _quote(token: bytes) -> str:
    """Show bytes of a file, which may be anything, in a message."""
    return f"'{repr(token[:40])[2:-1]}{'...' if len(token) > 40 else ''}'"


def _number(token: bytes) -> float:
    """Convert a weight; the text must be ASCII, without the underscores that Python allows, and not NaN."""
    value = float(token.decode("ascii")) if b"_" not in token else np.nan
    if value != value:
        raise ValueError
    return value


def _parse(block: bytes, start: int, layout: _Layout, capacity: int | None = None) -> EdgeChunk:
    """Parse a block of whole lines; raise _BadLineError where one is not as it should be, or is an edge too many."""
    if not block.endswith(b"\n"):
        block += b"\n"
    if capacity is None:
        capacity = block.count(b"\n")
    text = np.frombuffer(block, np.uint8)
    comments = layout.comments.ljust(2, layout.comments[:1])
    sources, targets = returnable(capacity, np.uint32), returnable(capacity, np.uint32)
    weighted = layout.columns == 3
    integers = returnable(capacity if weighted else 0, np.int64)
    numbers = integers.view(np.float64)

    def attempt(floats: bool) -> tuple[int, int, int, NDArray[np.int64]]:
        hard = np.empty((capacity if floats else 0, 3), np.int64)
        count, bad, num_hard = compiled(_parse_kernel)(
            text,
            start,
            ord(layout.prefix or b"\0"),
            comments[0],
            comments[1],
            ord(",") if layout.commas else 0,
            layout.base,
            layout.num_vertices,
            layout.columns,
            floats,
            sources,
            targets,
            integers,
            numbers,
            hard,
        )
        return count, bad, num_hard, hard

    floats = weighted and layout.weights == "float"
    count, bad, num_hard, hard = attempt(floats)
    if bad >= 0 and weighted and layout.weights == "auto":
        floats = True
        count, bad, num_hard, hard = attempt(floats)
    for edge, first, end in hard[:num_hard].tolist():
        try:
            numbers[edge] = _number(block[first:end])
        except ValueError:
            raise _BadLineError(block.rfind(b"\n", 0, first) + 1) from None
    if bad >= 0:
        raise _BadLineError(bad)
    weights: NDArray[Any] | None = None
    if floats:
        weights = numbers[:count]
    elif weighted:
        weights = integers[:count]
        if not count or (weights.min() >= -(2**31) and weights.max() < 2**31):
            weights = returnable(count, np.int32)
            weights[:] = integers[:count]
    return EdgeChunk(sources[:count], targets[:count], weights)


def _explain(line: bytes, layout: _Layout) -> str:
    """Say what is wrong with a line that the parser refused."""
    fields = re.findall(rb"[^ \t\r,]+" if layout.commas else rb"[^ \t\r]+", line)
    if layout.prefix:
        if not fields or fields[0] != layout.prefix:
            return (
                f"expected an edge, '{layout.prefix.decode()} SOURCE TARGET WEIGHT', or a comment, found {_quote(line.strip())}"
            )
        fields = fields[1:]
    for token in fields[:2]:
        if not re.fullmatch(rb"[0-9]+", token):
            return f"vertex id {_quote(token)} is not a whole number"
        if not layout.base <= int(token) < layout.base + layout.num_vertices:
            return f"vertex id {_quote(token)} is outside {layout.base}..{layout.base + layout.num_vertices - 1}"
    if len(fields) != layout.columns:
        names = "source, target and weight" if layout.columns == 3 else "source and target"
        return f"expected {layout.columns} fields, {names}, found {len(fields)}"
    if layout.columns == 3:
        token = fields[2]
        if layout.weights == "int":
            if not re.fullmatch(rb"[+-]?[0-9]+", token):
                return f"weight {_quote(token)} is not a whole number"
            if len(token.lstrip(b"+-")) > _MAX_DIGITS:
                return f"weight {_quote(token)} has more than {_MAX_DIGITS} digits"
        else:
            try:
                _number(token)
            except ValueError:
                return f"weight {_quote(token)} is not a number"
    if layout.promised is not None:
        return f"the header promises {layout.promised} edges, and this is one more"
    return f"cannot read {_quote(line.strip())}"


def _read(stream: BinaryIO) -> tuple[bytes, Exception | None]:
    """Read a block's worth of bytes, and what stopped that early: a broken archive still gives what it has up to the break."""
    pieces: list[bytes] = []
    missing = _BLOCK_BYTES
    try:
        while missing and (piece := stream.read1(missing)):  # type: ignore[attr-defined]
            pieces.append(piece)
            missing -= len(piece)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        return b"".join(pieces), error
    return b"".join(pieces), None


def _blocks(path: str, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the file in blocks of whole lines, each with the number of its first line."""
    line = 1
    rest = b""
    while True:
        read, error = _read(stream)
        data = rest + read
        cut = len(data) if not read and error is None else data.rfind(b"\n") + 1
        if not cut and len(data) >= _BLOCK_BYTES:
            raise GraphFormatError(path, line, f"no end of line in {len(data)} bytes; this is not a text file")
        block, rest = data[:cut], data[cut:]
        if block:
            yield line, block
            line += block.count(b"\n")
        if error is not None:
            raise GraphFormatError(path, line, f"the gzip stream is broken here: {error}") from error
        if not read:
            return


def _parse_blocks(path: str, blocks: Iterable[tuple[int, bytes, int]], layout: _Layout) -> list[EdgeChunk]:
    """Parse blocks, each given with its first line and where to start in it, with one thread reading ahead of the others.

    Where no header says how many vertices there are, the largest id has to be plausible.
    """
    chunks: list[EdgeChunk] = []
    total = 0
    largest = -1
    place_of_largest: tuple[int, bytes, int, int] | None = None  # block and number of the edge
    pending: deque[tuple[int, bytes, int, Future[EdgeChunk]]] = deque()

    def collect() -> None:
        nonlocal total, largest, place_of_largest
        line, block, start, future = pending.popleft()
        try:
            chunk = future.result()
            total += chunk.sources.size
            if layout.promised is not None and total > layout.promised:
                # Parsing again with no room for the edge that is too many finds its line.
                _parse(block, start, layout, capacity=layout.promised - (total - chunk.sources.size))
        except _BadLineError as bad:
            end = block.find(b"\n", bad.position)
            reason = _explain(block[bad.position : end if end >= 0 else len(block)], layout)
            raise GraphFormatError(path, line + block.count(b"\n", 0, bad.position), reason) from None
        if layout.promised is None and chunk.sources.size:
            top, edge = max((int(ids.max()), int(ids.argmax())) for ids in (chunk.sources, chunk.targets))
            if top > largest:
                largest, place_of_largest = top, (line, block, start, edge)
        if chunk.sources.size or not chunks:  # one without edges still tells whether they have weights
            chunks.append(chunk)

    last = 1
    broken: GraphFormatError | None = None
    source = iter(blocks)
    with ThreadPoolExecutor(num_threads()) as pool:
        while True:
            try:
                line, block, start = next(source)
            except StopIteration:
                break
            except GraphFormatError as error:
                broken = error  # but a bad line before that place is the fault to name
                break
            pending.append((line, block, start, pool.submit(_parse, block, start, layout)))
            last = line + block.count(b"\n") - block.endswith(b"\n")
            if len(pending) > 2 * num_threads():
                collect()
        while pending:
            collect()
    if broken is not None:
        raise broken
    if layout.promised is not None and total < layout.promised:
        raise GraphFormatError(path, last, f"the header promises {layout.promised} edges, but the file ends after {total}")
    if place_of_largest is not None and (reason := _doubt(f"vertex id '{largest}' makes", largest + 1, total)):
        line, block, start, edge = place_of_largest
        try:
            _parse(block, start, layout, capacity=edge)  # which stops at the line of that edge
        except _BadLineError as bad:
            raise GraphFormatError(path, line + block.count(b"\n", 0, bad.position), reason) from None
    return chunks


def _header_lines(path: str, block: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield the lines at the start of a file: number from 1, stripped content, and where the next one starts."""
    number, start = 1, 0
    while start < len(block):
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        yield number, block[start:end].strip(), end + 1
        number, start = number + 1, end + 1
    raise GraphFormatError(path, number - 1, "the file ends where its header was expected")


def _header_count(path: str, line: int, what: str, token: bytes, limit: int) -> int:
    if not re.fullmatch(rb"[0-9]+", token):
        raise GraphFormatError(path, line, f"the number of {what}, {_quote(token)}, is not a whole number")
    count = int(token[:30])
    if count > limit:
        raise GraphFormatError(path, line, f"the header promises {_quote(token)[1:-1]} {what}, more than the {limit} possible")
    return count


class _Text(NamedTuple):
    """A text file opened for reading: its first block, and all of them."""

    path: str
    first: bytes
    rest: Iterator[tuple[int, bytes]]
    size_limit: int  # most bytes that the file can hold

    def edges(self, layout: _Layout, start: int = 0) -> list[EdgeChunk]:
        def all_blocks() -> Iterator[tuple[int, bytes, int]]:
            yield 1, self.first, start
            for line, block in self.rest:
                yield line, block, 0

        return _parse_blocks(self.path, all_blocks(), layout)

    def max_edges(self, line_bytes: int) -> int:
        """Return how many edges of at least so many bytes a line the file can hold."""
        return self.size_limit // line_bytes + 1


def _read_dimacs(text: _Text) -> EdgeList:
    for number, line, start in _header_lines(text.path, text.first):  # noqa: B007 - the header is where this loop ends
        if line and not line.startswith(b"c"):
            break
    fields = line.split()
    if len(fields) != 4 or fields[:2] != [b"p", b"sp"]:
        raise GraphFormatError(text.path, number, f"expected the header 'p sp VERTICES ARCS', found {_quote(line)}")
    num_vertices = _header_count(text.path, number, "vertices", fields[2], MAX_VERTICES)
    promised = _header_count(text.path, number, "arcs", fields[3], text.max_edges(len("a 1 1 0\n")))
    if reason := _doubt("the header promises", num_vertices, promised):
        raise GraphFormatError(text.path, number, reason)
    layout = _Layout(3, 1, num_vertices, promised, b"c", prefix=b"a", weights="int")
    return EdgeList(text.edges(layout, start), num_vertices, symmetric=False)


def _read_matrix_market(text: _Text) -> EdgeList:
    lines = _header_lines(text.path, text.first)
    number, line, start = next(lines)
    banner = line.lower().split()
    if len(banner) != 5 or banner[:2] != [b"%%matrixmarket", b"matrix"]:
        raise GraphFormatError(
            text.path, 1, f"expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY', found {_quote(line)}"
        )
    kind, field, symmetry = banner[2:]
    for name, found, known in (
        ("format", kind, (b"coordinate",)),
        ("field", field, (b"pattern", b"integer", b"unsigned-integer", b"real", b"double")),
        ("symmetry", symmetry, (b"general", b"symmetric", b"skew-symmetric")),
    ):
        if found not in known:
            readable = ", ".join(word.decode() for word in known)
            raise GraphFormatError(text.path, 1, f"{name} {_quote(found)} cannot be read as a graph, only {readable}")
    if field == b"pattern" and symmetry == b"skew-symmetric":
        raise GraphFormatError(text.path, 1, "a pattern has no signs, so it cannot be skew-symmetric")
    for number, line, start in lines:  # noqa: B007 - the size line is where it ends
        if line and not line.startswith(b"%"):
            break
    fields = line.split()
    if len(fields) != 3:
        raise GraphFormatError(text.path, number, f"expected the size line 'ROWS COLUMNS ENTRIES', found {_quote(line)}")
    num_vertices = _header_count(text.path, number, "rows", fields[0], MAX_VERTICES)
    num_columns = _header_count(text.path, number, "columns", fields[1], MAX_VERTICES)
    if num_vertices != num_columns:
        raise GraphFormatError(
            text.path, number, f"the matrix of a graph is square, but this one is {num_vertices} x {num_columns}"
        )
    weighted = field != b"pattern"
    shortest = len("1 1 0\n") if weighted else len("1 1\n")
    promised = _header_count(text.path, number, "entries", fields[2], text.max_edges(shortest))
    if reason := _doubt("the header promises", num_vertices, promised):
        raise GraphFormatError(text.path, number, reason)
    weights = "float" if field in (b"real", b"double") else "int"
    layout = _Layout(3 if weighted else 2, 1, num_vertices, promised, b"%", weights=weights)
    chunks = text.edges(layout, start)
    if symmetry == b"skew-symmetric":
        for chunk in list(chunks):
            if (chunk.sources == chunk.targets).any():
                at = int(np.argmax(chunk.sources == chunk.targets))
                entry = int(chunk.sources[at]) + 1
                raise GraphFormatError(
                    text.path, None, f"entry ({entry}, {entry}) is on the diagonal of a skew-symmetric matrix"
                )
            chunks.append(EdgeChunk(chunk.targets, chunk.sources, None if chunk.weights is None else -chunk.weights))
    return EdgeList(chunks, num_vertices, symmetric=symmetry == b"symmetric")


def _read_edge_list(text: _Text) -> EdgeList:
    columns = 2
    for line in text.first.splitlines():
        fields = line.replace(b",", b" ").split()
        if fields and fields[0][:1] not in (b"#", b"%"):
            columns = 3 if len(fields) >= 3 else 2  # what else a line may hold, the parser refuses with the line's number
            break
    layout = _Layout(columns, 0, MAX_VERTICES, None, b"#%", commas=True)
    chunks = text.edges(layout)
    largest = max(int(ids.max(initial=0)) for chunk in chunks for ids in (chunk.sources, chunk.targets))
    if not any(chunk.sources.size for chunk in chunks):
        raise GraphFormatError(text.path, None, "the file has no edges, so nothing says how many vertices there are")
    return EdgeList(chunks, largest + 1, symmetric=False)


_READERS: dict[str, Callable[[_Text], EdgeList]] = {
    "dimacs": _read_dimacs,
    "matrix-market": _read_matrix_market,
    "edge-list": _read_edge_list,
}
_FORMATS = {
    ".gr": "dimacs",
    ".mtx": "matrix-market",
    ".txt": "edge-list",
    ".el": "edge-list",
    ".wel": "edge-list",
    ".edges": "edge-list",
    ".npz": "npz",
}


def _format_of(path: Path, format: str | None) -> str:
    if format is None:
        suffix = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
        format = _FORMATS.get(suffix.lower())
        if format is None:
            known = ", ".join(_FORMATS)
            raise InvalidArgumentError(
                f"the name of '{path}' does not tell its format; known endings are {known}, each also with .gz; or give format="
            )
    if format != "npz" and format not in _READERS:
        raise InvalidArgumentError(f"format must be one of {', '.join([*_READERS, 'npz'])} (got '{format}')")
    return format


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise MissingFileError(f"cannot read graph file '{path}': {error.strerror}") from error


def _is_gzip(path: Path, stream: BinaryIO) -> bool:
    """Tell by content, since browsers unpack some downloads and leave their names; a name alone makes no archive."""
    magic = stream.read(2)
    stream.seek(0)
    return magic == b"\x1f\x8b"


# ---------------------------------------------------------------------------------------------------------------------
# Whole files


def read_edges(path: str | os.PathLike[str], *, format: str | None = None) -> EdgeList:
    """Read a text file of edges; see `Graph.load` for what it may be."""
    path = Path(path)
    reader = _READERS[_format_of(path, format)]
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        zipped = _is_gzip(path, file)
        stream: BinaryIO = gzip.GzipFile(fileobj=file) if zipped else file  # type: ignore[assignment]
        blocks = _blocks(str(path), stream)
        _, first = next(blocks, (1, b""))
        if not first:
            raise GraphFormatError(path, None, "the file is empty")
        # Deflate shrinks by a factor of 1032 at most.
        return reader(_Text(str(path), first, blocks, size * 1032 if zipped else size))


def _read_npz(path: Path) -> EdgeList | CSR:
    """Read what `save_csr` or scipy.sparse.save_npz wrote."""
    with _open(path) as file:
        source: BinaryIO = file
        try:
            if _is_gzip(path, file):
                source = io.BytesIO(gzip.GzipFile(fileobj=file).read())
            loaded = np.load(source, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                raise GraphFormatError(path, None, "this is a single array, not an archive of a graph's arrays")
            with loaded as archive:
                if "format" in archive:
                    return _scipy_edges(archive)
                return check_csr(archive["indptr"], archive["indices"], archive.get("weights"))
        except KeyError as error:
            raise GraphFormatError(path, None, f"not a graph: {error.args[0]}") from error
        except (EOFError, OSError, ValueError, TypeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
            if isinstance(error, GraphFormatError):
                raise
            raise GraphFormatError(path, None, str(error)) from error


def _scipy_edges(archive: Any) -> EdgeList | CSR:
    """Take the arrays of a file by scipy.sparse.save_npz, whose formats with explicit indices need no SciPy."""
    kind = archive["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    shape = tuple(archive["shape"].tolist())
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InvalidArgumentError(f"the matrix of a graph is square, but this one has shape {shape}")
    data = archive["data"]
    weights = None if data.dtype == bool else data
    if kind in ("csr", "csc"):
        csr = check_csr(archive["indptr"], archive["indices"], weights)
        if csr.indptr.size - 1 != shape[0]:
            raise InvalidArgumentError(f"the matrix is {shape[0]} x {shape[1]}, but indptr speaks of {csr.indptr.size - 1}")
        if kind == "csr":
            return csr
        return EdgeList([EdgeChunk(c.targets, c.sources, c.weights) for c in edges_of(csr)], shape[0], symmetric=False)
    if kind == "coo":
        edges = chunk_edges(archive["row"], archive["col"], weights, shape[0])
        if reason := _doubt("the shape promises", shape[0], archive["row"].size):
            raise InvalidArgumentError(reason)
        return edges
    raise InvalidArgumentError(f"sparse format '{kind}' cannot be read; convert the matrix with .tocsr() before saving it")


def load_csr(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    weights: bool | DTypeLike = True,
    symmetrize: bool = False,
    deduplicate: bool = False,
    remove_loops: bool = False,
    sort: bool = False,
) -> CSR:
    """Read a graph file; see `Graph.load`."""
    path = Path(path)
    dtype = None if isinstance(weights, bool) else weight_dtype(weights)
    format = _format_of(path, format)
    graph = _read_npz(path) if format == "npz" else read_edges(path, format=format)
    changes = symmetrize or deduplicate or remove_loops or sort
    if isinstance(graph, CSR):
        if weights is False:
            graph = graph._replace(weights=None)
        if changes:
            graph = EdgeList(list(edges_of(graph)), graph.indptr.size - 1, symmetric=False)
    if isinstance(graph, EdgeList):
        chunks = graph.chunks
        if weights is False:
            chunks[:] = [chunk._replace(weights=None) for chunk in chunks]
        graph = build_csr(
            chunks,
            graph.num_vertices,
            symmetrize=symmetrize or graph.symmetric,
            deduplicate=deduplicate,
            remove_loops=remove_loops,
            sort=sort,
        )
    if dtype is not None and graph.weights is not None:
        graph = graph._replace(weights=convert_weights(graph.weights, dtype))
    return graph


def save_csr(path: str | os.PathLike[str], csr: CSR, *, compress: bool = False) -> None:
    """Write a CSR to an .npz archive, which appears under its name only once it is whole."""
    path = Path(path)
    if path.suffix != ".npz":
        raise InvalidArgumentError(f"a graph is saved to a file that ends in .npz (got '{path}')")
    arrays = {"indptr": csr.indptr, "indices": csr.indices}
    if csr.weights is not None:
        arrays["weights"] = csr.weights
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            (np.savez_compressed if compress else np.savez)(file, **arrays)  # type: ignore[arg-type]
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
