"""Registers, stack, spills and code of every kernel that wheels ship, as tests/compile/shipped_kernels.txt has them."""

from __future__ import annotations

import pytest
from repository import ROOT

from atos_py.compile import linker

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda-core is not installed")
if not any(linker.CORE_DIR.glob("core_*.fatbin")):
    pytest.skip("the core was built without GPU support", allow_module_level=True)

import shipped_kernels as shipped

REFERENCE = ROOT / "tests" / "compile" / "shipped_kernels.txt"


@pytest.mark.part("programs")
@pytest.mark.timeout(900)
def test_kernels_take_what_they_took(monkeypatch, tmp_path):
    made_by, expected = shipped.read()
    if made_by != shipped.compilers():
        pytest.skip(f"{REFERENCE.name} was made with {made_by}, and here are {shipped.compilers()}")
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path))
    differences = list(shipped.differences(expected, shipped.linked()))
    assert not differences, "\n".join([*differences, "where this is meant: python tests/compile/shipped_kernels.py"])


def test_a_kernel_that_takes_more_is_noticed():
    _, expected = shipped.read()
    name, facts = next(iter(expected.items()))
    for field, more in {"registers": 1, "stack": 8, "spills": 4, "shared": 16, "code": facts.code // 50}.items():
        worse = {**expected, name: facts._replace(**{field: getattr(facts, field) + more})}
        assert len(list(shipped.differences(expected, worse))) == 1
    assert list(shipped.differences(expected, {**expected, name: facts._replace(code=facts.code + facts.code // 200)})) == []
    del worse[name]
    assert list(shipped.differences(expected, worse)) == [f"{name}: missing"]
