"""The LLVM text that a task is compiled to for GPUs, as NVVM gets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_arrays import FakeArray

import atos_py as atos
from atos_py.compile.arguments import describe
from atos_py.compile.spec import ProgramSpec


def nvvm_text(function: Any, *arrays: np.ndarray) -> str:
    """Return the text of a task for arrays like these."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    from atos_py.compile.codegen import target_cuda

    seen: list[str] = []
    compile_modules = target_cuda.compile_modules

    def watch(texts: list[str], *options: Any) -> Any:
        seen.extend(texts)
        return compile_modules(texts, *options)

    kinds = tuple(describe(FakeArray(array)) for array in arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_cuda, "compile_modules", watch)
        target_cuda.compile_cuda(ProgramSpec(atos.task(function), None, kinds, np.dtype(np.uint32)), (9, 0))
    return "\n".join(seen)
