"""Lines of a text file to edges: the parser, and what it says of a line that it refuses."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compile.host_kernels import compile_kernel, returnable
from ..csr import EdgeChunk

__all__ = ["MAX_WIDE_ID", "ROUNDED", "BadLineError", "Layout", "explain", "parse_block", "quote"]

_MAX_DIGITS = 18  # so that a number of that many digits fits 64 bits
#: One more than the largest vertex id that a file may have whose vertices get other numbers.
MAX_WIDE_ID = 10**_MAX_DIGITS
_MOST_TENTH = (2**63 - 1) // 10
#: What is said of a whole number that is not one of int64 alone, or among weights of which some are not whole.
ROUNDED = "is a whole number that float64 would round; whole weights are exact if all of the file are, and fit int64"
_NO_BYTE = 256  # equal to no byte of a file, where 0 would be equal to a NUL


class Layout(NamedTuple):
    """Layout of the lines of a text file: columns, comments and the header."""

    columns: int  # 2, or 3 with a weight
    base: int  # id of the first vertex
    num_vertices: int
    promised: int | None  # number of edges that the header speaks of
    comments: bytes
    prefix: bytes = b""  # what every line with an edge starts with
    commas: bool = False
    weights: str = "auto"  # "int", "float", or whichever a chunk needs
    wide: bool = False  # ids of 64 bits, which vertices do not keep
    attributes: bool = False  # in place of the weights; see `parse_attributes`
    cure: str = ""  # what is said where there is a column too many, or a weight that is not whole


def _fits_int64(text: Any, at: int, end: int, sign: int) -> bool:  # pragma: no cover - compiled
    """Whether a number of any number of digits fits 64 bits, by steps of which none wraps."""
    value = 0
    while at < end:
        digit = text[at] - 48
        if value == _MOST_TENTH and digit == 8 and sign < 0:
            return at + 1 == end  # the least number
        if value > _MOST_TENTH or (value == _MOST_TENTH and digit > 7):
            return False
        value = value * 10 + digit
        at += 1
    return True


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
    points: bool,
    sources: Any,
    targets: Any,
    integers: Any,
    numbers: Any,
    hard: Any,
) -> tuple[int, int, int]:  # pragma: no cover - compiled
    """Read edges from `text`, which ends with a newline.

    Return how many there are, where a bad line starts or -1, and how many weights are hard. `integers` and `numbers`
    share their memory. With `points` an integer may end with a point and zeros. A hard weight is one whose digits and
    exponent are too many to be converted exactly here: its edge, start and end go to a row of `hard`.
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
            if at == token or at - token > _MAX_DIGITS or value < base or value - base >= num_vertices:
                return count, line, num_hard
            if column == 0:
                sources[count] = value - base
            else:
                targets[count] = value - base
            token = at
            # A carriage return is part of the end of a line, and between two numbers it is not a blank.
            while text[at] == 32 or text[at] == 9 or (text[at] == 13 and column + 1 == columns):
                at += 1
            if text[at] == comma:
                at += 1
                while text[at] == 32 or text[at] == 9:
                    at += 1
            if at == token and text[at] != 10:
                return count, line, num_hard
        if columns == 3:
            token = at
            sign = -1 if text[at] == 45 else 1
            if text[at] == 45 or text[at] == 43:
                at += 1
            value = 0
            first_digit = at
            while 48 <= text[at] <= 57:
                value = value * 10 + sign * (text[at] - 48)
                at += 1
            digits = at - first_digit
            end = at
            power = 1.0
            if floats and text[at] == 46:
                at += 1
                while 48 <= text[at] <= 57:
                    value = value * 10 + sign * (text[at] - 48)
                    power *= 10.0
                    digits += 1
                    at += 1
            if points and text[at] == 46:
                at += 1
                while text[at] == 48:
                    at += 1
            done = text[at] == 32 or text[at] == 9 or text[at] == 13 or text[at] == 10
            if not floats:
                if not done or digits == 0 or (digits > _MAX_DIGITS and not _fits_int64(text, first_digit, end, sign)):
                    return count, line, num_hard
                integers[count] = value
            elif done and 0 < digits <= 15 and (value != 0 or sign > 0):
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


class BadLineError(Exception):
    """A line that cannot be read: where it starts in its block."""

    def __init__(self, position: int) -> None:
        self.position = position


def quote(token: bytes) -> str:
    """Show bytes of a file, which may be anything, in a message."""
    return f"'{repr(token[:40])[2:-1]}{'...' if len(token) > 40 else ''}'"


def _number(token: bytes) -> float:
    """Convert a weight; the text must be ASCII, without the underscores and blanks that Python allows, and not NaN.

    OverflowError says that it is a whole number that float64 would round, or one beyond float64.
    """
    text = token.decode("ascii")
    value = float(text) if "_" not in text and text == text.strip() else np.nan
    if value != value:
        raise ValueError
    beyond = math.isinf(value) and b"n" not in token.lower()
    if beyond or (re.fullmatch(rb"[+-]?[0-9]+", token) and int(token) != value):
        raise OverflowError
    return value


def parse_block(block: bytes, start: int, layout: Layout, capacity: int | None = None) -> EdgeChunk:
    """Parse a block of whole lines; raise BadLineError where one is not as it should be, or is an edge too many."""
    if not block.endswith(b"\n"):
        block += b"\n"
    if capacity is None:
        capacity = block.count(b"\n")
    text = np.frombuffer(block, np.uint8)
    comments = layout.comments.ljust(2, layout.comments[:1])
    id_type = np.uint64 if layout.wide else np.uint32
    sources, targets = returnable(capacity, id_type), returnable(capacity, id_type)
    weighted = layout.columns == 3
    integers = returnable(capacity if weighted else 0, np.int64)
    numbers = integers.view(np.float64)

    def attempt(floats: bool) -> tuple[int, int, int, NDArray[np.int64]]:
        hard = np.empty((capacity if floats else 0, 3), np.int64)
        count, bad, num_hard = compile_kernel(_parse_kernel)(
            text,
            start,
            ord(layout.prefix or b"\0"),
            comments[0],
            comments[1],
            ord(",") if layout.commas else _NO_BYTE,
            layout.base,
            layout.num_vertices,
            layout.columns,
            floats,
            layout.weights == "int",
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
        except (ValueError, OverflowError):
            raise BadLineError(block.rfind(b"\n", 0, first) + 1) from None
    if bad >= 0:
        raise BadLineError(bad)
    weights: NDArray[Any] | None = None
    if floats:
        weights = numbers[:count]
    elif weighted:
        weights = integers[:count]
        if not count or (weights.min() >= -(2**31) and weights.max() < 2**31):
            weights = returnable(count, np.int32)
            weights[:] = integers[:count]
    return EdgeChunk(sources[:count], targets[:count], weights)


def explain(line: bytes, layout: Layout) -> str:
    """Say what is wrong with a line that the parser refused."""
    fields = re.findall(rb"[^ \t,]+" if layout.commas else rb"[^ \t]+", line.strip(b" \t\r"))
    if layout.prefix:
        if not fields or fields[0] != layout.prefix:
            return (
                f"expected an edge, '{layout.prefix.decode()} SOURCE TARGET WEIGHT', or a comment, found {quote(line.strip())}"
            )
        fields = fields[1:]
    for token in fields[:2]:
        if not re.fullmatch(rb"[0-9]+", token):
            return f"vertex id {quote(token)} is not a whole number{_advise_on_id(token)}"
        digits = token.lstrip(b"0")[: _MAX_DIGITS + 1] or b"0"  # enough of them to be outside
        if not layout.base <= int(digits) < layout.base + layout.num_vertices:
            can_be_wide = layout.promised is None and not layout.wide and len(digits) <= _MAX_DIGITS
            advice = "; with renumber=True (--renumber) vertices get other numbers" if can_be_wide else ""
            return f"vertex id {quote(token)} is outside {layout.base}..{layout.base + layout.num_vertices - 1}{advice}"
        if len(token) > _MAX_DIGITS:
            return f"vertex id {quote(token)} has more than {_MAX_DIGITS} digits"
    if len(fields) != layout.columns:
        names = "source, target and weight" if layout.columns == 3 else "source and target"
        return f"expected {layout.columns} fields, {names}, found {len(fields)}{_advise_on_columns(len(fields), layout)}"
    if layout.columns == 3:
        token = fields[2]
        if layout.weights == "int":
            if not re.fullmatch(rb"[+-]?[0-9]+(\.0*)?", token):
                return f"weight {quote(token)} is not a whole number{layout.cure}"
            token = token.partition(b".")[0]
            digits = token.lstrip(b"+-").lstrip(b"0")[:20] or b"0"  # enough of them to be outside
            if not -(2**63) <= int(digits) * (-1 if token.startswith(b"-") else 1) < 2**63:
                return f"weight {quote(token)} does not fit int64"
        else:
            try:
                _number(token)
            except ValueError:
                return f"weight {quote(token)} is not a number"
            except OverflowError:
                return f"weight {quote(token)} {ROUNDED if re.fullmatch(rb'[+-]?[0-9]+', token) else 'is beyond float64'}"
    if layout.promised is not None:
        return f"the header promises {layout.promised} edges, and this is one more"
    return f"cannot read {quote(line.strip())}"


def _advise_on_id(token: bytes) -> str:
    """Say what to do about a vertex id that is none, where that is clear."""
    if re.fullmatch(rb"[0-9]+\.[0-9]*(e[+-]?[0-9]+)?", token):
        return "; numpy.savetxt writes whole numbers with fmt='%d'"
    if re.fullmatch(rb"[0-9]+;.*", token):
        return "; columns are separated by blanks or a comma"
    if re.fullmatch(rb"[A-Za-z_][\w.-]*", token):
        return "; pandas.factorize makes numbers of names"
    return ""


def _advise_on_columns(found: int, layout: Layout) -> str:
    """Say what to do about a line with another number of columns, where that is clear."""
    if layout.promised is not None:
        return layout.cure if layout.columns == 2 < found else ""
    if found > 3:
        return "; keep only these, as with awk '{print $1, $2, $3}'"
    if found == 3:
        return "; the first edge of the file has no weight, so no other may have one"
    return "; the first edge of the file has a weight, so each other needs one" if found == 2 else ""
