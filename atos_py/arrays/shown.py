"""Text and table of arrays, pools and joins: what they are, where, and their elements as far as reading them costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import AtosError
from ..support.shown import Shown, format_bytes

__all__ = ["ShownArray", "ShownJoins", "ShownPool"]

_MOST_FROM_GPU = 1 << 16  # bytes that are copied to be shown
_MOST_IN_FULL = 100  # elements; of more, the first three and the last three of each dimension are shown


class ShownArray(Shown):
    """Base class of `Array`: its text and its table."""

    __slots__ = ()

    def __repr__(self: Any) -> str:
        elements = _elements_of(self)
        parts = [] if elements is None else [_format(elements, "Array(")]
        if elements is None or elements.size > _MOST_IN_FULL or not elements.size:
            parts.append(f"shape={self.shape}")
        parts += [f"dtype={self.dtype}", f"device={str(self.device)!r}", *["readonly=True"] * self.readonly]
        return f"Array({', '.join(parts)})"

    def _shown(self: Any) -> Mapping[str, object]:
        rows: dict[str, object] = {
            "shape": self.shape,
            "dtype": self.dtype,
            "device": self.device,
            "size": format_bytes(self.nbytes),
            "in tasks": "read-only" if self.readonly else "read and written",
        }
        elements = _elements_of(self)
        return rows if elements is None else {**rows, "elements": _format(elements, "")}


def _elements_of(array: Any) -> NDArray[Any] | None:
    """Return the elements of an array on the CPU, which are not copied, or of a small one on a GPU; None of any other."""
    try:
        if array.device.kind == "cpu":
            return np.asarray(array)
        if array.nbytes <= _MOST_FROM_GPU:
            copied: NDArray[Any] = array.to_numpy()
            return copied
    except AtosError:  # of a GPU whose context is lost, say: the array is to be shown all the same
        pass
    return None


def _format(elements: NDArray[Any], prefix: str) -> str:
    return np.array2string(elements, separator=", ", prefix=prefix, threshold=_MOST_IN_FULL, edgeitems=3)


class ShownPool(Shown):
    """Base class of `Pool`: its text and its table."""

    __slots__ = ()

    def __repr__(self: Any) -> str:
        return f"<atos pool of {self.dtype}: {len(self):,} of {self.max_capacity:,} elements in use on {self.device}>"

    def _shown(self: Any) -> Mapping[str, object]:
        fields = {f"field {name}": f"{each.dtype}{list(each.shape[1:]) or ''}" for name, each in self._parts.arrays.items()}
        return {"elements in use": f"{len(self):,} of at most {self.max_capacity:,}", **fields, "device": self.device}


class ShownJoins(Shown):
    """Base class of `Joins`: their text and their table."""

    __slots__ = ()

    def __repr__(self: Any) -> str:
        return f"<atos joins of {self.dtype}, combine={self.combine!r}, on {self.device}>"

    def _shown(self: Any) -> Mapping[str, object]:
        return {"dtype": self.dtype, "combine": repr(self.combine), "device": self.device}
