"""Registers, stack, spills and code size of the kernels in wheels: tests/compile/shipped_kernels.txt. No GPU needed.

python setup.py build_kernels                   # makes the kernels; `make dist` does so with the linker that wheels have
python tests/compile/shipped_kernels.py         # writes the file
python tests/compile/shipped_kernels.py --diff  # says what differs from it, and by how much all code has grown

What differs, where the same compilers have made both, ends the program with status 1: `make wheel-test` runs it.

A line has a kernel's name: the functions of its tasks, its worker, the type of its items, and the first digits of a hash of the
rest of its spec; then the registers of a thread, bytes of its stack and of its spills, bytes of shared memory of a block, and
bytes of machine code. The first line says which compilers made them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import re
import struct
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from atos_py.compile.linker import LinkedKernel, cubin
from atos_py.compile.spec import ProgramSpec

FILE = Path(__file__).with_suffix(".txt")
CAPABILITY = (9, 0)
COMPILERS = ("numba", "nvidia-nvvm", "nvidia-nvjitlink")


class Facts(NamedTuple):
    """Registers, stack, spills, shared memory and code size of a kernel."""

    registers: int
    stack: int
    spills: int
    shared: int
    code: int


def compilers() -> str:
    """Return the versions that machine code depends on."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in COMPILERS)


def code_bytes(elf: bytes) -> int:
    """Return the bytes of the sections of a cubin with machine code."""
    (headers,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", elf, headers + number * size) for number in range(count)]
    strings = sections[names][4]
    return sum(length for name, _, _, _, _, length in sections if elf[strings + name :].startswith(b".text."))


def name_of(spec: ProgramSpec) -> str:
    """Return the name of a kernel: that of its tasks, its worker and its items, and a hash of its types and options."""
    rest = " ".join(map(str, (*spec.kinds, spec.max_registers, spec.buckets, spec.inbox, spec.peers, spec.counters)))
    others = [getattr(function, "__name__", "-") for function in (spec.idle, spec.each_round)]
    digest = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", rest + " ".join(others)).encode()).hexdigest()[:8]
    return f"{spec.task.name.replace(', ', ',')} {spec.worker} {spec.item_dtype.str[1:]} {digest}"


def facts_of(kernel: LinkedKernel) -> Facts:
    """Return the registers, stack, spills, shared memory and code size of a linked kernel."""
    code = code_bytes(kernel.code)
    return Facts(kernel.registers, kernel.stack_bytes, kernel.spill_bytes, kernel.shared_bytes, code)


def linked() -> dict[str, Facts]:
    """Return what each kernel that wheels ship takes, by name; those that were not built are linked, with an empty cache."""
    from atos_py.tools.prelink import record_all

    specs = record_all()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(sorted(pool.map(lambda spec: (name_of(spec), facts_of(cubin(spec, CAPABILITY))), specs)))


def read() -> tuple[str, dict[str, Facts]]:
    """Return the compilers that the file names, and what it says of each kernel."""
    first, *lines = FILE.read_text().splitlines()
    rows = (line.rsplit(maxsplit=len(Facts._fields)) for line in lines)
    return first, {name: Facts(*map(int, numbers)) for name, *numbers in rows}


def differences(expected: dict[str, Facts], found: dict[str, Facts]) -> Iterator[str]:
    """Say which kernels are missing or new, or take something else; a hundredth of code, more or less, is no difference."""
    for name in sorted(expected.keys() | found.keys()):
        before, now = expected.get(name), found.get(name)
        if before is None or now is None:
            yield f"{name}: {'new' if before is None else 'missing'}"
        elif before[:4] != now[:4] or abs(now.code - before.code) > before.code / 100:
            changes = zip(Facts._fields, before, now, strict=True)
            yield f"{name}: " + ", ".join(f"{field} {old} -> {new}" for field, old, new in changes if old != new)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--diff", action="store_true", help="say what differs from the file, and leave it as it is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ATOS_CACHE_DIR"] = cache
        found = linked()
    if not options.diff:
        rows = (f"{name} {' '.join(map(str, facts))}" for name, facts in found.items())
        FILE.write_text("\n".join([compilers(), *rows, ""]))
        return 0
    made_by, expected = read()
    if made_by != compilers():
        print(f"the file was made with {made_by}; here are {compilers()}")
    different = list(differences(expected, found))
    print(*different, sep="\n", end="\n" if different else "")
    sums = [sum(facts.code for facts in table.values()) for table in (expected, found)]
    print(f"code of all {len(found)} kernels: {sums[0]:,} bytes -> {sums[1]:,}")
    if different and made_by == compilers():
        print(f"where this is meant, write {FILE.name}: python tests/compile/{Path(__file__).name}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
