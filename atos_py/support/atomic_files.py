"""Files that others may have written, or that we write: opened only where that is safe, and replaced only by whole ones."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import AtosError, FileWriteError, MissingFileError, UnsupportedTypeError

__all__ = ["as_path", "open_regular", "replacing"]


def as_path(path: object) -> Path:
    """Return what names a file as a path.

    Raises
    ------
    UnsupportedTypeError
        If it is no path, such as a number or an open file.
    """
    try:
        return Path(path)  # type: ignore[arg-type]
    except TypeError:
        raise UnsupportedTypeError(f"a file is named by a str or a path (got {path!r:.80})") from None


def open_regular(path: Path, what: str) -> BinaryIO:
    """Open a file to read; one that is no regular file, such as a pipe, which may never end, is refused.

    Raises
    ------
    MissingFileError
        If it does not exist, cannot be read, or is a directory, a pipe or a device.
    """
    try:
        # Opening a pipe that nobody writes to would wait for ever without O_NONBLOCK; to a regular file it makes no difference.
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except OSError as error:
        raise MissingFileError(f"cannot read {what} '{path}': {error.strerror}") from error
    except ValueError as error:  # a null byte
        raise MissingFileError(f"cannot read {what} {str(path)!r}: {error}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise MissingFileError(f"cannot read {what} '{path}': it is not a regular file; write its content to one")
    return file


@contextlib.contextmanager
def replacing(path: Path, what: str, *, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a file to write that takes the place of `path` when it is whole and on disk; a kill leaves what was there.

    A file that is there keeps its permissions, unless `mode` says which; a link is replaced and not followed. A pipe, a device
    or the like is refused.

    It is written as ``.NAME.RANDOM.part`` beside `path`, which is always a new file: what others put there is never written to.
    A process that is killed leaves it behind, and the next one that writes to `path` removes it, which the lock that a writer
    holds tells from one that is in use. Of several that write at once the last one stays.

    Raises
    ------
    FileWriteError
        If the system refuses.
    """
    try:
        kept = None
        with contextlib.suppress(FileNotFoundError):
            there = os.lstat(path).st_mode
            if stat.S_ISREG(there):
                kept = stat.S_IMODE(there) if mode is None else None
            elif not stat.S_ISLNK(there) and not stat.S_ISDIR(there):  # that of a directory the system refuses
                raise FileWriteError(f"cannot write {what} '{path}': what is there is no regular file")
        _remove_left_over(path)
        part, file = _create(path, 0o666 if mode is None else mode)
        with file:
            if kept is not None:
                os.fchmod(file.fileno(), kept)
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(part, path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        directory = os.open(path.parent, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some file systems cannot, and the new file is there
            os.fsync(directory)
        os.close(directory)
    except (OSError, ValueError) as error:  # ValueError: a null byte, or no name as in "."
        if isinstance(error, AtosError):
            raise
        raise FileWriteError(f"cannot write {what} '{path}': {getattr(error, 'strerror', None) or error}") from error


def _create(path: Path, mode: int) -> tuple[Path, BinaryIO]:
    """Make a new file beside `path`, locked as long as it is open."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        with contextlib.suppress(FileExistsError):
            file = open(part, "xb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, mode))  # noqa: SIM115
            with contextlib.suppress(OSError):  # some file systems have no locks, and do without
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:
                return part, file
            file.close()  # taken for one that was left, before it was locked


def _remove_left_over(path: Path) -> None:
    """Remove what writers of `path` that were killed have left beside it; whoever writes holds a lock."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.part")
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        left = [entry.path for entry in entries if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)]
        for part in left:
            with (
                contextlib.suppress(OSError),  # it is in use, or another's, or there are no locks
                open(part, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file,
            ):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(part)
