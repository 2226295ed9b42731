"""Text files, gzipped or not: blocks of lines that threads parse while the next ones are read, and what headers promise."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...compile.host_kernels import num_threads, threads
from ...errors import GraphFormatError
from ...support.atomic_files import open_regular
from ..csr import EdgeChunk
from ..weights import find_rounded
from .attributes import explain_attributes, parse_attributes
from .lines import ROUNDED, BadLineError, Layout, explain, parse_block, quote
from .plausible import explain_implausible

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["LARGEST_RATIO", "Text", "header_count", "header_lines", "is_gzip", "open_text"]

LARGEST_RATIO = 1032  # by which deflate shrinks at most
_BLOCK_BYTES = 4 << 20


class Text(NamedTuple):
    """A text file opened for reading: its first block, and all of them."""

    path: str
    first: bytes
    rest: Iterator[tuple[int, bytes]]
    size_limit: int  # most bytes that the file can hold

    def edges(self, layout: Layout, start: int = 0) -> list[EdgeChunk]:
        """Read the edges, from a place in the first block on."""

        def all_blocks() -> Iterator[tuple[int, bytes, int]]:
            yield 1, self.first, start
            for line, block in self.rest:
                yield line, block, 0

        return _parse_blocks(self.path, all_blocks(), layout)

    def max_edges(self, line_bytes: int) -> int:
        """Return how many edges of at least so many bytes a line the file can hold."""
        return self.size_limit // line_bytes + 1


@contextlib.contextmanager
def open_text(path: Path) -> Iterator[Text]:
    """Open a text file, which may be gzipped."""
    with open_regular(path, "graph file") as file:
        size = os.fstat(file.fileno()).st_size
        zipped = is_gzip(file)
        stream: BinaryIO = gzip.GzipFile(fileobj=file) if zipped else file  # type: ignore[assignment]
        blocks = _blocks(str(path), stream)
        _, first = next(blocks, (1, b""))
        if not first:
            raise GraphFormatError(path, None, "the file is empty")
        yield Text(str(path), first, blocks, size * LARGEST_RATIO if zipped else size)


def is_gzip(stream: BinaryIO) -> bool:
    """Tell by content, since browsers unpack some downloads and leave their names; a name alone makes no archive."""
    magic = stream.read(2)
    stream.seek(0)
    return magic == b"\x1f\x8b"


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
    rest: bytes | None = None
    while True:
        read, error = _read(stream)
        data = _checked_start(path, read) if rest is None else rest + read
        ended = len(read) < _BLOCK_BYTES and error is None
        cut = len(data) if ended else data.rfind(b"\n") + 1  # the last line may lack its end
        if not cut and len(data) >= _BLOCK_BYTES:
            raise GraphFormatError(path, line, f"no end of line in {len(data)} bytes; this is not a text file")
        block, rest = data[:cut], data[cut:]
        if block:
            yield line, block
            line += block.count(b"\n")
        if error is not None:
            raise GraphFormatError(path, line, f"the gzip stream is broken here: {error}") from error
        if ended:
            return


def _checked_start(path: str, data: bytes) -> bytes:
    """Return the start of a file without the mark that says UTF-8; refuse other encodings and ends of lines by their names."""
    every_other_is_nul = (data[0:4:2] == b"\0\0") != (data[1:4:2] == b"\0\0")
    if every_other_is_nul or data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise GraphFormatError(path, 1, "this is text in UTF-16 or UTF-32; convert it, as with iconv -f UTF-16 -t UTF-8")
    if b"\n" not in data and b"\r" in data.rstrip():
        raise GraphFormatError(
            path, 1, "lines end with a carriage return alone, as on old Macs; convert them, as with tr '\\r' '\\n'"
        )
    return data.removeprefix(b"\xef\xbb\xbf")


def _parse_blocks(path: str, blocks: Iterable[tuple[int, bytes, int]], layout: Layout) -> list[EdgeChunk]:
    """Parse blocks, each given with its first line and where to start in it, with one thread reading ahead of the others.

    Where no header says how many vertices there are, the largest id has to be plausible.
    """
    chunks: list[EdgeChunk] = []
    total = 0
    largest = -1
    place_of_largest: tuple[int, bytes, int, int] | None = None  # block and number of the edge
    parse = parse_attributes if layout.attributes else parse_block
    pending: deque[tuple[int, bytes, int, Future[EdgeChunk]]] = deque()

    def collect() -> None:
        nonlocal total, largest, place_of_largest
        line, block, start, future = pending.popleft()
        try:
            chunk = future.result()
            total += chunk.sources.size
            if layout.promised is not None and total > layout.promised:
                # Parsing again with no room for the edge that is too many finds its line.
                parse(block, start, layout, capacity=layout.promised - (total - chunk.sources.size))
        except BadLineError as bad:
            end = block.find(b"\n", bad.position)
            explained = explain_attributes if layout.attributes else explain
            reason = explained(block[bad.position : end if end >= 0 else len(block)], layout)
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
    with threads(num_threads()) as pool:
        while True:
            try:
                line, block, start = next(source)
            except StopIteration:
                break
            except GraphFormatError as error:
                broken = error  # but a bad line before that place is the fault to name
                break
            pending.append((line, block, start, pool.submit(parse, block, start, layout)))
            last = line + block.count(b"\n") - block.endswith(b"\n")
            if len(pending) > 2 * num_threads():
                collect()
        while pending:
            collect()
    if broken is not None:
        raise broken
    if layout.promised is not None and total < layout.promised:
        raise GraphFormatError(path, last, f"the header promises {layout.promised} edges, but the file ends after {total}")
    if (rounded := find_rounded([chunk.weights for chunk in chunks if chunk.weights is not None])) is not None:
        raise GraphFormatError(path, None, f"weight {rounded} {ROUNDED}")
    if (
        place_of_largest is not None
        and not layout.wide
        and (reason := explain_implausible(f"vertex id '{largest}' makes", largest + 1, total))
    ):
        line, block, start, edge = place_of_largest
        try:
            parse(block, start, layout, capacity=edge)  # which stops at the line of that edge
        except BadLineError as bad:
            raise GraphFormatError(path, line + block.count(b"\n", 0, bad.position), reason) from None
    return chunks


def header_lines(path: str, block: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield the lines at the start of a file: number from 1, stripped content, and where the next one starts."""
    number, start = 1, 0
    while start < len(block):
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        yield number, block[start:end].strip(b" \t\r"), end + 1
        number, start = number + 1, end + 1
    raise GraphFormatError(path, number - 1, "the file ends where its header was expected")


def header_count(path: str, line: int, what: str, token: bytes, limit: int) -> int:
    """Return the number that a header speaks of, if it is one of at most `limit`."""
    if not re.fullmatch(rb"[0-9]+", token):
        raise GraphFormatError(path, line, f"the number of {what}, {quote(token)}, is not a whole number")
    count = int(token.lstrip(b"0")[:30] or b"0")  # enough of it to be beyond any limit
    if count > limit:
        raise GraphFormatError(path, line, f"the header promises {quote(token)[1:-1]} {what}, more than the {limit} possible")
    return count
