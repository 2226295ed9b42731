"""Type of arrays in results, for type checkers and editors: `AnyArray`, an `Array` or another library's array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .array import Array

__all__ = ["AnyArray"]

if TYPE_CHECKING:

    class AnyArray(Array, Any):
        """An array with the members of `Array`, of which an editor tells, and with any others that its library has.

        It may be handed to whatever takes an array. As a field of a class it is read as an `AnyArray`: without this method, a
        class that may have any others would be a descriptor of unknown values to pyright. Where a result is made of an
        `Array`, mypy has to be told to ignore that.
        """

        def __get__(self, instance: object, owner: Any = None) -> AnyArray:
            return self  # which jedi looks at
else:
    AnyArray = Any
