"""Regions of scratch that a task sizes: those of all places and groups of a worker lie apart. No GPU needed."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding, ir

from atos_py.compile.codegen.lower_scratch import define_regions, sized_bytes
from atos_py.compile.codegen.target_cpu import host
from atos_py.compile.scratch import GROUPS, sized_scratch

PLACES = st.lists(st.tuples(st.sampled_from((0, *GROUPS)), st.integers(1, 6).map(lambda n: 16 * n)), min_size=1, max_size=12)


@pytest.mark.parametrize("num_threads", [1, 32, 96])
@settings(max_examples=25, deadline=None)
@given(places=PLACES)
def test_regions_lie_apart(num_threads, places):
    """The functions that a kernel asks for the beginning of a region, run on the host for each thread of a worker."""
    host()  # Numba has started LLVM
    notes = "".join(f"!{k} = !{{ i64 {k}, i32 {threads}, i32 {size} }}\n" for k, (threads, size) in enumerate(places))
    text = f"!atos.sized_scratch = !{{ {', '.join(f'!{k}' for k in range(len(places)))} }}\n{notes}"
    module = ir.Module()
    define_regions(module, [text])
    engine = binding.create_mcjit_compiler(
        binding.parse_assembly(str(module)), binding.Target.from_default_triple().create_target_machine()
    )
    engine.finalize_object()
    total = sized_scratch(sized_bytes([text]), num_threads)
    owners: dict[int, tuple[int, int]] = {}
    for k, (threads, size) in enumerate(places):
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int32, ctypes.c_int32)
        begin_of = kind(engine.get_function_address(f"atos_region_{k}"))
        for rank in range(num_threads):
            begin, owner = begin_of(num_threads, rank), (k, rank // threads if threads else 0)
            assert begin % 16 == 0
            assert 0 <= begin <= total - size
            assert all(owners.setdefault(at, owner) == owner for at in range(begin, begin + size, 16))
