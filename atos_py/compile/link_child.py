"""A link in a process of its own, which `best_links` starts as a script: nothing but the standard library is imported.

It reads the path of nvJitLink, options and inputs from its standard input, and writes an error or what was linked. It ends with
the thread that started it.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import IO, Any

__all__ = ["read_message", "write_message"]

_KILL_WITH_PARENT, _SIGKILL = 1, 9  # PR_SET_PDEATHSIG
_LENGTH_BYTES = 8


def write_message(stream: IO[bytes], header: dict[str, Any], *parts: bytes) -> None:
    """Write a header, which JSON can hold, and bytes."""
    text = json.dumps({**header, "sizes": [len(part) for part in parts]}).encode()
    stream.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
    for part in parts:
        stream.write(part)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Return the header and the bytes that `write_message` was given.

    Raises
    ------
    EOFError
        If the other process has ended before it wrote all.
    """

    def read(size: int) -> bytes:
        content = stream.read(size)
        if len(content) < size:
            raise EOFError
        return content

    header = json.loads(read(int.from_bytes(read(_LENGTH_BYTES), "little")))
    return header, [read(size) for size in header["sizes"]]


def _link(library: Any, options: list[str], kinds: list[int], inputs: list[bytes]) -> tuple[bytes, str]:
    """Return a cubin and what the linker said of it."""
    handle = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])

    def text_of(name: str) -> str:
        size = ctypes.c_size_t()
        if getattr(library, f"nvJitLinkGet{name}Size")(handle, ctypes.byref(size)) or not size.value:
            return ""
        text = ctypes.create_string_buffer(size.value)
        getattr(library, f"nvJitLinkGet{name}")(handle, text)
        return text.value.decode(errors="replace")

    def check(status: int) -> None:
        if status:
            raise RuntimeError(text_of("ErrorLog") or f"nvJitLink failed with status {status}")

    check(library.nvJitLinkCreate(ctypes.byref(handle), len(options), texts))
    for number, (kind, content) in enumerate(zip(kinds, inputs, strict=True)):
        check(library.nvJitLinkAddData(handle, kind, content, ctypes.c_size_t(len(content)), b"input %d" % number))
    check(library.nvJitLinkComplete(handle))
    size = ctypes.c_size_t()
    check(library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    check(library.nvJitLinkGetLinkedCubin(handle, code))
    return code.raw, text_of("InfoLog")


def _main() -> None:
    ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, _SIGKILL)
    header, inputs = read_message(sys.stdin.buffer)
    try:
        code, log = _link(ctypes.CDLL(header["library"]), header["options"], header["kinds"], inputs)
    except (OSError, RuntimeError) as error:
        write_message(sys.stdout.buffer, {"error": str(error)})
    else:
        write_message(sys.stdout.buffer, {"log": log}, code)


if __name__ == "__main__":
    _main()
