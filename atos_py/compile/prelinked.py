"""Kernels of the package's own algorithms, linked when the wheel was built, so that their first call compiles nothing.

An archive holds them, for one compute capability. It has a hash of the sources of the package and of the core, and counts for
these alone: in a checkout whose sources have changed since, kernels are compiled as those of users are. So a function of the
package is named by its place in the sources, which is the same for every version of Python, and by the values that it has from
elsewhere. ``python setup.py build_kernels`` makes the archive (`tools.prelink`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from .arguments import Kind
from .codegen.introspect import UnhashableError, fingerprint
from .kinds import Launchable, Tasks, tasks_of
from .toolchain import is_configured

__all__ = ["ARCHIVE", "CAPABILITY", "find_prelinked", "hash_sources", "name_prelinked", "write_archive"]

CAPABILITY = (9, 0)
_PACKAGE = Path(__file__).parent.parent
ARCHIVE = _PACKAGE / "_lib" / "kernels_sm_90.xz"


def name_prelinked(
    task: Launchable,
    idle: Callable[..., Any] | None,
    kinds: tuple[Kind, ...],
    item_dtype: np.dtype[Any],
    worker: str,
    max_registers: int | tuple[int, ...] | None,
    buckets: bool,
    each_round: Callable[..., Any] | None,
    mailbox: bool,
) -> str | None:
    """Return the name of a kernel in the archive; None if it depends on anything but the package."""
    functions = [(member.body, member.workload, member.group) for member in tasks_of(task)]
    names = [member.name for member in task.members] if isinstance(task, Tasks) else None
    options = worker, max_registers, buckets, mailbox
    try:
        return fingerprint(
            functions, names, idle, each_round, tuple(map(str, kinds)), item_dtype, options, describe_code=_place_of
        )
    except UnhashableError:
        return None


def find_prelinked(cc: tuple[int, int], *of: Any) -> Sequence[bytes] | None:
    """Return the parts of a kernel of the archive, or None; parameters after the first as those of `name_prelinked`."""
    if cc != CAPABILITY or not ARCHIVE.is_file() or is_configured():
        return None
    name = name_prelinked(*of)
    return _kernels().get(name) if name else None


def write_archive(kernels: Mapping[str, Sequence[bytes]], path: Path = ARCHIVE) -> None:
    """Write the kernels, each in parts, by name."""
    table = {name: [len(part) for part in parts] for name, parts in sorted(kernels.items())}
    header = json.dumps(table).encode()
    content = b"".join(part for _, parts in sorted(kernels.items()) for part in parts)
    packed = lzma.compress(len(header).to_bytes(8, "little") + header + content)
    path.write_bytes(hash_sources() + packed)


@functools.cache
def _kernels() -> Mapping[str, Sequence[bytes]]:
    """Return what is in the archive; nothing if it is not of these sources, or damaged."""
    content = ARCHIVE.read_bytes()
    sources = hash_sources()
    if not content.startswith(sources):
        return {}
    try:
        data = lzma.decompress(content[len(sources) :])  # checked by the sum that ends it
    except (lzma.LZMAError, EOFError):
        return {}
    at = 8 + int.from_bytes(data[:8], "little")
    kernels = {}
    for name, sizes in json.loads(data[8:at]).items():
        ends = [at + sum(sizes[: k + 1]) for k in range(len(sizes))]
        kernels[name] = [data[begin:end] for begin, end in zip([at, *ends], ends, strict=False)]
        at = ends[-1]
    return kernels


def hash_sources() -> bytes:
    """Return a hash of the package's modules, and of what the core was built from."""
    content = hashlib.sha256((_PACKAGE / "_lib" / "built.json").read_bytes())
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
