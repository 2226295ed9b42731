"""The comparison of shipped kernels with tests/compile/shipped_kernels.txt, which `make wheel-test` makes."""

from __future__ import annotations

import shipped_kernels as shipped


def test_a_kernel_that_takes_more_is_noticed():
    _, expected = shipped.read()
    name, facts = next(iter(expected.items()))
    for field, more in {"registers": 1, "stack": 8, "spills": 4, "shared": 16, "code": facts.code // 50}.items():
        worse = {**expected, name: facts._replace(**{field: getattr(facts, field) + more})}
        assert len(list(shipped.differences(expected, worse))) == 1
    assert list(shipped.differences(expected, {**expected, name: facts._replace(code=facts.code + facts.code // 200)})) == []
    del worse[name]
    assert list(shipped.differences(expected, worse)) == [f"{name}: missing"]
