"""The cache on disk of what was compiled: entries by name, trusted only if nobody but us can have written them.

Whoever plants machine code in a cache runs it as us. So an entry counts only if it is a regular file of ours that nobody else
can write, in a directory of ours that nobody else can write, and is whole and under its own name. Anything else is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from ..errors import FileWriteError
from .atomic_files import replacing

__all__ = ["find_cache_fault", "get_cache_directory", "is_ours_alone", "read_entry", "write_entry"]

_MOST_BYTES = 256 << 20  # of all entries together: some thousand tasks
_ENTRY = re.compile(r"[0-9a-f]{64}|\.[0-9a-f]{64}\.[0-9a-f]{16}\.part")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def get_cache_directory() -> Path:
    """Return where linked tasks are kept: `$ATOS_CACHE_DIR`, or `atos_py` in the user's cache directory."""
    if directory := os.environ.get("ATOS_CACHE_DIR"):
        return Path(directory)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "atos_py"


def find_cache_fault() -> str | None:
    """Say why nothing can be kept in the cache directory, as it is now, or return None."""
    try:
        os.close(_open_directory())
    except FileNotFoundError:
        return None  # it will be made
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        return str(getattr(error, "strerror", None) or error)
    return None


def read_entry(name: str) -> list[bytes] | None:
    """Return the parts of an entry, or None if there is none to be trusted."""
    try:
        directory = _open_directory()
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        finally:
            os.close(directory)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not is_ours_alone(status):
                return None
            content = file.read()
            with contextlib.suppress(OSError):  # on a disk that is read-only, say
                os.utime(descriptor)  # the least recently used entries are the first to go
    except (OSError, RuntimeError):
        return None
    checksum, payload = content[:32], content[32:]
    if checksum != _compute_checksum(name, payload):
        return None
    parts = []
    while payload:
        end = 8 + int.from_bytes(payload[:8], "little")
        parts.append(payload[8:end])
        payload = payload[end:]
    return parts


def write_entry(name: str, parts: Sequence[bytes]) -> None:
    """Keep an entry; a directory that cannot be used only means that nothing is kept."""
    payload = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    with contextlib.suppress(OSError, RuntimeError, FileWriteError):
        path = get_cache_directory() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(_open_directory())
        with replacing(path, "cache entry", mode=0o600) as file:
            file.write(_compute_checksum(name, payload) + payload)
        _prune(path.parent)


def _open_directory() -> int:
    """Return a descriptor of the cache directory, so that what was checked is what is used."""
    directory = get_cache_directory()
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if not is_ours_alone(os.fstat(descriptor)):
        os.close(descriptor)
        raise PermissionError(0, f"others can write to {directory}")
    return descriptor


def is_ours_alone(status: os.stat_result) -> bool:
    """Whether nobody else can write to a file or directory."""
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE


def _compute_checksum(name: str, payload: bytes) -> bytes:
    return hashlib.sha256(name.encode() + payload).digest()


def _prune(directory: Path) -> None:
    """Remove the entries that were not used for longest, until the others are few enough. What is no entry stays."""
    entries = []
    with os.scandir(directory) as found:
        for entry in found:
            if _ENTRY.fullmatch(entry.name):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    entries.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= _MOST_BYTES:
            break
        with contextlib.suppress(OSError):  # another process was faster
            os.unlink(path)
        total -= size
