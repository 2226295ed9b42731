"""Register count and stack size of a kernel, read from the section `.nv.info` of a cubin, which is an ELF file.

The log of nvJitLink has them too, but not on every machine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["registers_and_stack"]

_FRAME_SIZE, _REGISTERS = 0x11, 0x2F  # attributes of a function in .nv.info: a symbol, and a number
_LONG = 4  # the format of an attribute with a payload of any length; the others have two bytes


def registers_and_stack(cubin: bytes) -> tuple[int, int]:
    """Return the registers of a thread, and the bytes of its stack, of the function that takes most of each; 0 if not said."""
    most = {_FRAME_SIZE: 0, _REGISTERS: 0}
    for attribute, number in _attributes(_section(cubin, b".nv.info")):
        most[attribute] = max(most[attribute], number)
    return most[_REGISTERS], most[_FRAME_SIZE]


def _section(elf: bytes, wanted: bytes) -> bytes:
    """Return a section of a 64-bit ELF file; nothing if there is none."""
    if elf[:5] != b"\x7fELF\x02":
        return b""
    (headers,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)

    def section(number: int) -> tuple[int, bytes]:
        name, _, _, _, offset, length = struct.unpack_from("<IIQQQQ", elf, headers + number * size)
        return name, elf[offset : offset + length]

    strings = section(names)[1]
    for number in range(count):
        name, content = section(number)
        if strings[name:].startswith(wanted + b"\0"):
            return content
    return b""


def _attributes(info: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _LONG:
            if attribute in (_FRAME_SIZE, _REGISTERS) and size == 8:
                yield attribute, struct.unpack_from("<I", info, at + 4)[0]
            at += size
