"""Text and table of a queue. Both are there at once: while another thread launches, without the number of waiting items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..support.shown import Shown

__all__ = ["ShownQueue"]


class ShownQueue(Shown):
    """Base class of `Queue`: its text and its table."""

    __slots__ = ()

    def __repr__(self: Any) -> str:
        waiting, devices = self._core.pending_now(), ", ".join(map(str, self.devices))
        count = f"{waiting:,} of {self.capacity:,}" if waiting is not None else f"in a launch, with room for {self.capacity:,}"
        return f"<atos queue {count} items of {self.dtype} on {devices}>"

    def _shown(self: Any) -> Mapping[str, object]:
        waiting, delta = self._core.pending_now(), self.delta
        width = "of a width that adapts" if delta == "auto" else f"{delta} wide"
        return {
            "items waiting": "not known during a launch" if waiting is None else f"{waiting:,}",
            "room": f"{self.capacity:,} items now, {self.max_capacity:,} at most",
            "dtype": f"{self.dtype}, {self.dtype.itemsize} bytes",
            "order": f"{self.take} first" if delta is None else f"lowest priority first, in {self.buckets} buckets {width}",
            "device": ", ".join(map(str, self.devices)),
        }
