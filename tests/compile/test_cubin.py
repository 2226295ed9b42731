"""Registers and stack are read from a cubin as the linker's log tells them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import atos_py as atos
from atos_py.algorithms.bfs.tasks import visit
from atos_py.compile import linker as link
from atos_py.compile.arguments import describe
from atos_py.compile.cubin import registers_and_stack
from atos_py.compile.spec import ProgramSpec
from atos_py.errors import BuildError


@pytest.fixture(scope="module", params=[24, 40, None])
def kernel(request: pytest.FixtureRequest) -> link.LinkedKernel:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    graph = atos.generate.road(4, device="cpu")
    kinds = tuple(map(describe, (graph, atos.zeros(16, dtype=np.uint32, device="cpu"))))
    try:
        found = link.cubin(ProgramSpec(visit, None, kinds, np.dtype(np.uint32), max_registers=request.param), (9, 0))
    except BuildError as error:
        pytest.skip(str(error))
    if not found.log:
        pytest.skip("the linker keeps no log")
    return found


def test_as_in_the_log(kernel: link.LinkedKernel) -> None:
    registers = max(map(int, re.findall(r"Used (\d+) registers", kernel.log)))
    stack = max(map(int, re.findall(r"(\d+) bytes (?:stack frame|cumulative stack size)", kernel.log)))
    assert registers_and_stack(kernel.code) == (registers, stack)
    assert registers <= 24 or stack == 0


def test_what_is_no_cubin() -> None:
    assert registers_and_stack(b"") == (0, 0)
    assert registers_and_stack(b"\x7fELF\x01" + bytes(100)) == (0, 0)


@given(st.binary(max_size=60))
def test_sections_of_other_files(content: bytes) -> None:
    assert registers_and_stack(b"fatbin" + content) == (0, 0)
