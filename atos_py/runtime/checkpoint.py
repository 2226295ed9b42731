r"""A queue and the arrays that its tasks work on, in a file, so that a run that was killed goes on from there.

====================  ===================================================================================================
bytes                 content
====================  ===================================================================================================
8                     magic, ``b"\x89ATOS\r\n\x1a"``, which a transfer as text would spoil
4                     version of the format, little-endian as all numbers are: 1, or 2 if the queue has buckets or kinds
4                     length of the header
...                   header, JSON: ``capacity``, ``dtype``, ``pending``, ``level``, ``tasks_run``, ``tasks_pushed``, and
                      ``arrays``, a list of ``name``, ``dtype`` and ``shape``; in version 2 also ``buckets`` and ``delta``, or
                      null, and ``kinds``, the name of the task of each kind of items, or null
...                   the pending items, oldest first, or those of the lowest priority if there are ``buckets``
...                   if there are ``buckets``, the priorities of these items, each a float64
...                   if there are ``kinds``, the kind of each, a byte
...                   the arrays, in the order of the header, each C-contiguous
32                    SHA-256 of all that is before
====================  ===================================================================================================

A queue over several devices is written as one of one device: items, and elements of arrays over the parts of a graph, by the
ids of vertices. So it can be read for other devices, or for one. Of several processes the first one writes what is in all of
them, and each reads the file by itself.

Nothing in it is code, and nothing is believed before the checksum and the sizes are found right.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array, asarray
from ..arrays.join_kinds import JoinKinds
from ..arrays.join_layout import explain_stray
from ..arrays.joins import ArrayForm, Joins
from ..arrays.partitioned import PartitionedArray
from ..compile.codegen import ITEM_BYTES, stored_bytes
from ..core.library import lib
from ..core.process_group import ProcessGroup, all_succeed, whole
from ..errors import AtosError, CheckpointError, InvalidArgumentError, UnsupportedTypeError
from ..support.atomic_files import as_path, open_regular, replacing
from ..support.host_memory import host_memory_for

__all__ = ["QueueSnapshot", "QueueState", "load", "save"]

_Q = TypeVar("_Q")

_MAGIC = b"\x89ATOS\r\n\x1a"
_VERSION, _VERSION_WITH_MORE = 1, 2
_FIXED_BYTES = len(_MAGIC) + 8
_CHECKSUM_BYTES = 32
_MAX_HEADER_BYTES = 1 << 24
_PIECE_BYTES = 1 << 24
_MAX_KINDS = lib.ATOS_MAX_KINDS + 1  # with that of items for the first task, whichever it is
_MAX_DIMENSIONS = 64  # of an array of NumPy
# One number; NumPy makes records of longer ones, and parses some of them as Python.
_DTYPE = re.compile(r"[<>|=]?[A-Za-z]\d{0,4}")


class QueueState(NamedTuple):
    """State of a queue between launches: the fields of the core's `atos_queue_state`."""

    pending: int
    level: int
    tasks_run: int
    tasks_pushed: int


class QueueOptions(NamedTuple):
    """Options of a queue in a checkpoint, named as the parameters of `Queue`."""

    capacity: int
    dtype: np.dtype[Any]
    buckets: Any = None
    delta: Any = "auto"
    take: Any = "oldest"


class QueueSnapshot(NamedTuple):
    """The items and the state of a queue at one moment, with priorities if it has buckets.

    `numbers` are the kinds of the items, which `kinds` names.
    """

    options: QueueOptions
    items: NDArray[Any]
    priorities: NDArray[np.float64] | None
    kinds: tuple[str | None, ...] | None
    numbers: NDArray[np.uint8]
    state: QueueState


class _Header(NamedTuple):
    """Contents of the header of a file, checked."""

    options: QueueOptions
    kinds: tuple[str | None, ...] | None
    state: QueueState
    arrays: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
    checksum: bytes = b""

    @property
    def body_bytes(self) -> int:
        """Bytes between the header and the checksum; Python's integers do not overflow."""
        arrays = sum(dtype.itemsize * math.prod(shape) for dtype, shape in self.arrays.values())
        return self.state.pending * (self.options.dtype.itemsize + self.priority_bytes + self.kind_bytes) + arrays

    @property
    def priority_bytes(self) -> int:
        """Bytes of an item's priority."""
        return 0 if self.options.buckets is None else 8

    @property
    def kind_bytes(self) -> int:
        """Bytes of an item's kind."""
        return 0 if self.kinds is None else 1


# ---------------------------------------------------------------------------------------------------------------------
# Saving


def save(
    read: Callable[[], QueueSnapshot],
    state_now: Callable[[], QueueState],
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    group: ProcessGroup | None = None,
) -> None:
    """Write a queue, which `read` returns, and arrays to a file; see `Queue.save`. All processes of a group call this."""
    with whole(group), host_memory_for("Queue.save"):
        path = as_path(path)
        wrapped: dict[str, Array | PartitionedArray] = {}
        for name, value in arrays.items():
            wrapped |= value._saved(name) if isinstance(value, Joins) else {name: _wrap_array(name, value)}
        if group is not None:
            group.agree(f"a checkpoint to be written to {str(path)!r}, with arrays {sorted(wrapped)}")
            snapshot = read()
            with all_succeed(group):
                if group.rank == 0:
                    with replacing(path, "checkpoint") as file:
                        _write(file, snapshot, wrapped)
            return
        with replacing(path, "checkpoint") as file:
            while True:
                snapshot = read()
                file.seek(0)
                file.truncate()
                _write(file, snapshot, wrapped)
                # A launch in another thread may have run meanwhile; items and arrays have to be of one moment.
                if state_now() == snapshot.state:
                    return


def _write(file: BinaryIO, queue: QueueSnapshot, arrays: Mapping[str, Array | PartitionedArray]) -> None:
    digest = hashlib.sha256()

    def put(data: bytes | memoryview) -> None:
        digest.update(data)
        file.write(data)

    options = queue.options
    has_more = options.buckets is not None or queue.kinds is not None or options.take != "oldest"
    header = json.dumps(
        {
            "capacity": options.capacity,
            "dtype": _describe_dtype(options.dtype),
            **({"buckets": options.buckets, "delta": options.delta, "kinds": queue.kinds} if has_more else {}),
            **({"take": options.take} if options.take != "oldest" else {}),
            **queue.state._asdict(),
            "arrays": [{"name": name, "dtype": array.dtype.str, "shape": list(array.shape)} for name, array in arrays.items()],
        }
    ).encode()
    version = _VERSION_WITH_MORE if has_more else _VERSION
    put(_MAGIC + version.to_bytes(4, "little") + len(header).to_bytes(4, "little") + header)
    put(_view_bytes(queue.items))
    if queue.priorities is not None:
        put(_view_bytes(queue.priorities))
    if queue.kinds is not None:
        put(_view_bytes(queue.numbers))
    for array in arrays.values():
        for flat, part in _split(array):
            put(_view_bytes(flat[part]))
    file.write(digest.digest())


def _describe_dtype(dtype: np.dtype[Any]) -> Any:
    """Return a dtype of items as JSON has it: a record keeps the places of its fields."""
    if dtype.names is None:
        return dtype.str
    fields = [dtype.fields[name] for name in dtype.names]  # type: ignore[index]
    return {
        "names": list(dtype.names),
        "formats": [field[0].str if field[0].subdtype is None else [field[0].base.str, field[0].shape[0]] for field in fields],
        "offsets": [field[1] for field in fields],
        "itemsize": dtype.itemsize,
    }


def _view_bytes(values: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _split(array: Array | PartitionedArray) -> Iterator[tuple[Array | PartitionedArray, slice]]:
    """Yield an array as one of one dimension, with parts of it that are small enough to be copied at once.

    One over several devices is a single part, in the order of ids.
    """
    if isinstance(array, PartitionedArray):
        yield array, slice(0, len(array))
        return
    flat = Array(array.pointer, (array.size,), array.dtype, array.device, readonly=array.readonly, owner=array)
    step = _PIECE_BYTES // array.dtype.itemsize
    for first in range(0, array.size, step):
        yield flat, slice(first, first + step)


def _wrap_array(name: str, value: Any) -> Array | PartitionedArray:
    """Return an array over the memory of `value`."""
    if name in ("device", "owner"):
        raise InvalidArgumentError(f"an array of a checkpoint cannot be called {name!r}, which is an option of Queue.load")
    if isinstance(value, (Array, PartitionedArray)):
        return value
    if hasattr(value, "__cuda_array_interface__") or getattr(value, "__dlpack_device__", lambda: (1, 0))()[0] != 1:
        return asarray(value)
    if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack_device__"):
        raise UnsupportedTypeError(f"{name!r} must be an array made by atos.asarray, NumPy or the like (got {value!r:.80})")
    if not np.asarray(value).flags.c_contiguous:
        raise InvalidArgumentError(f"array {name!r} is not C-contiguous; pass numpy.ascontiguousarray(...)")
    return asarray(value, device="cpu")


# ---------------------------------------------------------------------------------------------------------------------
# Loading


def load(
    make: Callable[[QueueOptions], _Q],
    restore: Callable[[_Q, QueueSnapshot], None],
    path: str | os.PathLike[str],
    arrays: Mapping[str, Any],
    group: ProcessGroup | None = None,
) -> _Q:
    """Make a queue with its options, restore its items from a file, and fill arrays; see `Queue.load`.

    All processes of a group call this.
    """
    with whole(group), host_memory_for("Queue.load"), contextlib.ExitStack() as opened:
        path, joins = as_path(path), {name: value for name, value in arrays.items() if isinstance(value, Joins)}
        targets = {name: _wrap_array(name, value) for name, value in arrays.items() if name not in joins}
        if group is not None:
            group.agree(f"a checkpoint to be read from {str(path)!r}, with arrays {sorted(targets)}")
        with all_succeed(group), _reading(path):
            file = opened.enter_context(open_regular(path, "checkpoint"))
            header = _read_header(path, file)
            used = {name: header.arrays.get(f"{name}.words", (None, (0,)))[1][0] for name in joins}
            forms = {each: form for name, value in joins.items() for each, form in value._forms(name, used[name]).items()}
            _check_targets(header, {**targets, **forms})
        if group is not None:
            group.agree(f"a checkpoint whose checksum is {header.checksum.hex()}")
        try:
            queue = make(header.options)
        except (InvalidArgumentError, UnsupportedTypeError) as error:
            raise CheckpointError(path, f"its header makes no sense: {error}") from error
        with all_succeed(group), _reading(path):
            saved = _read_queue(path, file, header)
            for name in joins:
                words, items = (_read_ahead(path, file, header, f"{name}.{field}") for field in ("words", "item"))
                stored = stored_bytes(header.options.dtype.itemsize, header.kinds is not None)
                if stray := explain_stray(words, items, header.kinds, stored - 1):
                    raise CheckpointError(path, f"of {name!r}, {stray}")
        restore(queue, saved)
        for name, value in joins.items():
            targets |= value._make_room(name, used[name])
        with all_succeed(group), _reading(path):  # nobody goes on while another still fills what both have
            _fill(path, file, header, targets)
        for value in joins.values():
            value._find_free(JoinKinds() if header.kinds is None else JoinKinds(header.kinds, stored - 1))
        return queue


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise `CheckpointError` where the system cannot read a file."""
    try:
        yield
    except OSError as error:
        if isinstance(error, AtosError):
            raise
        raise CheckpointError(path, f"it cannot be read: {error.strerror}") from error


def _read_queue(path: Path, file: BinaryIO, header: _Header) -> QueueSnapshot:
    """Read the items, their priorities and their kinds."""
    items = np.empty(header.state.pending, header.options.dtype)
    _read_into(path, file, _view_bytes(items))
    priorities = None
    if header.options.buckets is not None:
        priorities = np.empty(header.state.pending, np.float64)
        _read_into(path, file, _view_bytes(priorities))
    numbers = np.zeros(header.state.pending, np.uint8)
    if header.kinds is not None:
        _read_into(path, file, _view_bytes(numbers))
        if numbers.max(initial=0) >= len(header.kinds):
            raise CheckpointError(path, f"an item is of kind {numbers.max()} of {len(header.kinds)}")
    return QueueSnapshot(header.options, items, priorities, header.kinds, numbers, header.state)


def _read_ahead(path: Path, file: BinaryIO, header: _Header, name: str) -> NDArray[Any]:
    """Read one of the arrays, of a file that is at the first of them, and leave the file there."""
    begin, values = file.tell(), np.empty(*reversed(header.arrays[name]))
    before = list(header.arrays.values())[: list(header.arrays).index(name)]
    file.seek(sum(each.itemsize * math.prod(lengths) for each, lengths in before), os.SEEK_CUR)
    _read_into(path, file, _view_bytes(values))
    file.seek(begin)
    return values


def _fill(path: Path, file: BinaryIO, header: _Header, targets: Mapping[str, Array | PartitionedArray]) -> None:
    """Read the arrays, each into its target."""
    for name in header.arrays:
        for flat, part in _split(targets[name]):
            piece = np.empty((len(range(*part.indices(flat.shape[0]))), *flat.shape[1:]), flat.dtype)
            _read_into(path, file, _view_bytes(piece))
            flat[part] = piece


def _read_header(path: Path, file: BinaryIO) -> _Header:
    """Check the whole file, and leave it at its first item."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(_FIXED_BYTES)
    if start[: len(_MAGIC)] != _MAGIC[: len(start)] or not start:
        raise CheckpointError(path, "this is not a checkpoint of a queue")
    if size < _FIXED_BYTES + _CHECKSUM_BYTES:
        raise CheckpointError(path, f"it is truncated: {size} bytes are too few for a checkpoint")
    version, length = (int.from_bytes(start[at : at + 4], "little") for at in (len(_MAGIC), len(_MAGIC) + 4))
    if version not in (_VERSION, _VERSION_WITH_MORE):
        known = f"{_VERSION} and {_VERSION_WITH_MORE}"
        raise CheckpointError(path, f"it is of version {version}, and this package reads versions {known}; use the other one")
    digest = hashlib.sha256(start)
    left = size - _FIXED_BYTES - _CHECKSUM_BYTES
    while left:
        piece = file.read(min(left, _PIECE_BYTES))
        if not piece:
            raise CheckpointError(path, "it was truncated while it was read")
        digest.update(piece)
        left -= len(piece)
    if file.read(_CHECKSUM_BYTES) != digest.digest():
        raise CheckpointError(path, "its checksum is wrong: it is truncated or altered; go back to an earlier one")
    file.seek(_FIXED_BYTES)
    if length > min(_MAX_HEADER_BYTES, size - _FIXED_BYTES - _CHECKSUM_BYTES):
        raise CheckpointError(path, f"its header cannot have {length} bytes")
    try:
        header = _parse_header(json.loads(file.read(length)), version)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CheckpointError(path, f"its header makes no sense: {error}") from error
    if header.body_bytes != size - _FIXED_BYTES - _CHECKSUM_BYTES - length:
        raise CheckpointError(path, f"its header speaks of {header.body_bytes} bytes of items and arrays, which are not there")
    return header._replace(checksum=digest.digest())


def _parse_header(given: Any, version: int) -> _Header:
    """Check the header of a file, which may say anything."""
    described: Any = given["dtype"]
    if isinstance(described, str):
        dtype = _parse_dtype(described)
    else:
        record: Any = {key: described[key] for key in ("names", "offsets", "itemsize")}
        dtype = np.dtype(record | {"formats": list(map(_parse_field, described["formats"]))})
    state = QueueState(*(_parse_count(given[field]) for field in QueueState._fields))
    if state.level > state.pending:
        raise ValueError(f"a level of {state.level} of {state.pending} items")
    arrays = {str(entry["name"]): (_parse_dtype(entry["dtype"]), _parse_shape(entry["shape"])) for entry in given["arrays"]}
    options = QueueOptions(_parse_count(given["capacity"]), dtype)
    kinds = None
    if version == _VERSION_WITH_MORE:
        if given["buckets"] is not None:
            options = options._replace(buckets=_parse_count(given["buckets"]), delta=given["delta"])
        if given.get("take", "oldest") not in ("oldest", "newest"):
            raise ValueError("it takes neither the oldest nor the newest items first")
        options = options._replace(take=given.get("take", "oldest"))
        kinds = _parse_kinds(given["kinds"])
    if kinds is not None and dtype.itemsize >= ITEM_BYTES[-1]:
        raise ValueError(f"items of {dtype.itemsize} bytes with kinds")
    return _Header(options, kinds, state, arrays)


def _parse_kinds(value: Any) -> tuple[str | None, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(name is None or isinstance(name, str) for name in value):
        raise ValueError(f"{value!r:.80} are no names of tasks")
    if not 1 <= len(value) <= _MAX_KINDS or len({*value}) != len(value):
        raise ValueError(f"{len(value)} kinds of tasks, {len({*value})} of them different")
    return tuple(value)


def _parse_field(given: Any) -> np.dtype[Any]:
    """Return the dtype of a field: a number, or a list of that of a vector's numbers and how many there are."""
    if not isinstance(given, list):
        return _parse_dtype(given)
    number, length = given
    return np.dtype((_parse_dtype(number), (_parse_count(length),)))


def _parse_dtype(value: Any) -> np.dtype[Any]:
    if not isinstance(value, str) or not _DTYPE.fullmatch(value):
        raise ValueError(f"{value!r:.80} is no dtype of a number")
    return np.dtype(value)


def _parse_shape(value: Any) -> tuple[int, ...]:
    if len(value) > _MAX_DIMENSIONS:  # the product of very many is never computed
        raise ValueError(f"{len(value)} dimensions, but an array has at most {_MAX_DIMENSIONS}")
    return tuple(map(_parse_count, value))


def _parse_count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r:.80} is no count")
    return value


def _check_targets(header: _Header, targets: Mapping[str, Array | PartitionedArray | ArrayForm]) -> None:
    if set(targets) != set(header.arrays):
        held, given = (", ".join(sorted(names)) or "none" for names in (header.arrays, targets))
        raise InvalidArgumentError(f"the checkpoint holds these arrays: {held}; pass one to be filled for each (got {given})")
    for name, (dtype, shape) in header.arrays.items():
        target = targets[name]
        if (target.dtype, target.shape) != (dtype, shape):
            raise InvalidArgumentError(
                f"array {name!r} of the checkpoint has shape {shape} and dtype {dtype},"
                f" but the one to be filled has shape {target.shape} and dtype {target.dtype}"
            )
        if target.readonly:
            raise InvalidArgumentError(f"array {name!r} is read-only and cannot be filled; pass a writable one")


def _read_into(path: Path, file: BinaryIO, target: memoryview) -> None:
    if file.readinto(target) != len(target):  # type: ignore[attr-defined]
        raise CheckpointError(path, "it was truncated while it was read")
