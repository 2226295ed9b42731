"""Compressed files with code of the package's own tasks, made when the wheel is built: kernels for GPUs, and tasks for CPUs.

An archive counts only under the key that it was written with, in which is a hash of the sources of the package and of the core.
So in a checkout whose sources have changed since, tasks are compiled as those of users are. A function of the package is named
by its place in the sources, which is the same for every version of Python, and by the values that it has from elsewhere.
``python setup.py build_kernels`` makes the archives (`tools.prelink`).
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from .codegen.introspect import UnhashableError
from .spec import ProgramSpec

__all__ = ["CORE_DIR", "check_name", "hash_sources", "is_current", "name_in_archive", "read_archive", "write_archive"]

_PACKAGE = Path(__file__).parent.parent
CORE_DIR = _PACKAGE / "_lib"  # the core, and the archives


def name_in_archive(spec: ProgramSpec) -> str | None:
    """Return the name of a launch's code in an archive; None if it depends on anything but the package and the spec."""
    return spec.fingerprint(describe_code=_place_of)


def check_name(spec: ProgramSpec) -> str:
    """Return the name of the code of a launch of the package itself.

    Raises
    ------
    ValueError
        If the code depends on something outside the package.
    """
    name = name_in_archive(spec)
    if name is None:
        raise ValueError(f"{spec.task.name} depends on something outside the package")
    return name


def write_archive(path: Path, key: bytes, entries: Mapping[str, Sequence[bytes]]) -> None:
    """Write the entries, each in parts, by name."""
    table = {name: [len(part) for part in parts] for name, parts in sorted(entries.items())}
    header = json.dumps(table).encode()
    content = b"".join(part for _, parts in sorted(entries.items()) for part in parts)
    packed = lzma.compress(len(header).to_bytes(8, "little") + header + content, preset=lzma.PRESET_EXTREME | 9)
    path.write_bytes(key + packed)


def is_current(path: Path, key: bytes) -> bool:
    """Whether an archive is there that was written with this key."""
    return path.is_file() and path.read_bytes().startswith(key)


def read_archive(path: Path, key: bytes) -> Mapping[str, Sequence[bytes]]:
    """Return the entries of an archive; none if it is missing, damaged, or was written with another key."""
    try:
        content = path.read_bytes()
    except OSError:
        return {}
    if not content.startswith(key):
        return {}
    try:
        data = lzma.decompress(content[len(key) :])  # checked by the sum that ends it
    except (lzma.LZMAError, EOFError):
        return {}
    at = 8 + int.from_bytes(data[:8], "little")
    entries = {}
    for name, sizes in json.loads(data[8:at]).items():
        ends = [at + sum(sizes[: k + 1]) for k in range(len(sizes))]
        entries[name] = [data[begin:end] for begin, end in zip([at, *ends], ends, strict=False)]
        at = ends[-1]
    return entries


def hash_sources() -> bytes:
    """Return a hash of the package's modules, and of what the core was built from."""
    content = hashlib.sha256((CORE_DIR / "built.json").read_bytes())
    for path in sorted(_PACKAGE.rglob("*.py")):
        content.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return content.digest()


def _place_of(code: CodeType) -> tuple[Any, ...]:
    """Return what says which code of the package it is."""
    path = Path(code.co_filename)
    if _PACKAGE not in path.parents:
        raise UnhashableError(f"{code.co_name} is not of this package")
    arguments = code.co_varnames[: code.co_argcount]
    return path.relative_to(_PACKAGE).as_posix(), code.co_firstlineno, code.co_name, arguments, code.co_freevars
