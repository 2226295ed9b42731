"""The code of a task for GPUs before it is linked, as it is kept on disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .debug_checks import Checks

__all__ = ["CudaCode", "freeze_code", "thaw_code"]


@dataclass(frozen=True)
class CudaCode:
    """The code of a task before it is linked.

    Attributes
    ----------
    modules : list of bytes
        LTO-IR modules that define `atos_task_workload`, `atos_task_body`, `atos_task_flat`, `atos_task_idle`,
        `atos_task_each_round` and the constants of the link (`csrc/protocol/link_constants.cuh`).
    value_words : int
        How many values the workload hands to the body, a word each.
    scratch_itemsize : int
        The size of the largest element that the task takes scratch of the launch's size for; 0 if it takes none.
    sized_scratch : tuple of int
        As `scratch.sized_scratch` takes it: the scratch whose size the task gives.
    asks_for_round : bool
        Whether the task uses the number or the mode of the round.
    checks : Checks or None
        The checks in the code.
    texts : tuple of str
        What the modules were made of, where there is no `ptx` yet.
    ptx : bytes
        The same as the modules, for links without optimization.
    """

    modules: list[bytes]
    value_words: int
    scratch_itemsize: int = 0
    sized_scratch: tuple[int, ...] = ()
    asks_for_round: bool = False
    checks: Checks | None = None
    texts: tuple[str, ...] = ()
    ptx: bytes = b""


def freeze_code(code: CudaCode) -> Sequence[bytes]:
    """Return code that has PTX and no checks as the bytes that `thaw_code` takes."""
    facts = code.value_words, code.scratch_itemsize, code.sized_scratch, code.asks_for_round
    return [json.dumps(facts).encode(), code.ptx, *code.modules]


def thaw_code(parts: Sequence[bytes]) -> CudaCode:
    """Return the code that `freeze_code` was given."""
    value_words, itemsize, sized, asks_for_round = json.loads(parts[0])
    return CudaCode(list(parts[2:]), value_words, itemsize, tuple(sized), asks_for_round, ptx=parts[1])
