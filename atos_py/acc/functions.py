"""The functions of a program, and whether they go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError, UnsupportedTypeError
from .combine import Combine

__all__ = ["Functions"]


@dataclass(frozen=True, eq=False)
class Functions:
    """The functions that a program is made of; `Program` says what each is."""

    compute: Callable[..., Any]
    combine: Combine
    active: Any = None
    wants: Any = None
    apply: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.combine, Combine):
            raise UnsupportedTypeError(
                f"combine must be MIN, MAX, SUM, SUBTRACT, VOTE or an acc.Combine (got {self.combine!r:.80})"
            )
        for name in ("compute", "active", "wants", "apply"):
            function = getattr(self, name)
            if not callable(function) and (name == "compute" or function is not None):
                raise UnsupportedTypeError(f"{name} must be a function (got {function!r:.80})")
        if self.apply is not None and self.combine.name != "SUM":
            raise InvalidArgumentError(f"apply= takes the sum of all updates, so it goes with SUM (got {self.combine!r})")
        if self.apply is not None and self.wants is not None:
            raise InvalidArgumentError("wants= says which vertices may change, and with apply= all do; leave one of them out")
        if not self.combine.idempotent and self.apply is None and self.active is None:
            raise InvalidArgumentError(
                f"{self.combine!r} needs each update exactly once, but a vertex that changes twice in a round could send twice:"
                " pass active=, true of at most one change of a vertex, or apply="
            )
        if self.active is None:
            object.__setattr__(self, "active", lambda before, after, *args: before != after)

    @property
    def name(self) -> str:
        """The name of the function `compute`."""
        return getattr(self.compute, "__name__", repr(self.compute))

    def suited_to(self, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
        """Return the function `wants`, the neutral update and a wide type, for metadata of a type."""
        if dtype.kind == "f":
            wide, least, most = dtype.type, -np.inf, np.inf
        else:
            wide, least, most = np.uint64 if dtype == np.uint64 else np.int64, np.iinfo(dtype).min, np.iinfo(dtype).max
        unset, neutral = wide(most), self.combine.neutral
        if neutral is None:
            neutral = wide(least if self.combine.name == "MAX" else most)
        else:
            neutral = float(neutral) if dtype.kind == "f" else wide(neutral)  # sums in float64
        wants = (lambda m_u, *args: m_u == unset) if self.combine.votes else (lambda m_u, *args: True)
        return self.wants or wants, neutral, wide
