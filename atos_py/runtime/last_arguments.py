"""The arguments of the last call of a launch, with which those of the next one are compared.

An algorithm that is called again and again on one graph makes its launches with the same arrays, but for those of its result:

    launch(graph, depth)        # packs all arguments into words
    launch(graph, other_depth)  # writes the address of `other_depth` over that of `depth`

"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import ref

from ..arrays.array import Array
from ..compile.arguments import ArrayKind, describe
from ..compile.arguments import words as words_of
from ..core.devices import Device

__all__ = ["LastArguments"]


class LastArguments:
    """Arrays, numbers and None, alone or in named tuples, and where the words of each are; no array is kept alive.

    Parameters
    ----------
    args : iterable
        What a launch was filled for: arguments that are steady (`Arguments.is_steady`).
    device : Device
        Of the arrays.
    """

    __slots__ = ("_device", "_known")

    def __init__(self, args: Iterable[Any], device: Device) -> None:
        self._device, place = device, 0
        # Of each value a reference to the array or the number itself, its kind, and the place of its first word.
        self._known: list[tuple[Any, Any, int]] = []
        for value in _list_values(args, []):
            if isinstance(value, type):
                self._known.append((value, None, place))
            else:
                before = ref(value) if type(value) is Array else value
                self._known.append((before, describe(value), place))
                place += len(words_of(value))

    def write_changes(self, args: Iterable[Any], *targets: Any) -> bool:
        """Write the words of arguments that are not those of the last call, and return whether all have the same types.

        If they have not, the launch is to be filled anew.

        Parameters
        ----------
        args : iterable
        *targets : list or cdata
            The words of all arguments, as often as they are kept.
        """
        try:
            return self._write(args, 0, targets) == len(self._known)
        except _OtherTypeError:
            return False

    def _write(self, values: Iterable[Any], number: int, targets: tuple[Any, ...]) -> int:
        """Write the words of what has changed among values from a number on; return the number of what comes after them."""
        known = self._known
        for value in values:
            if number == len(known):
                raise _OtherTypeError
            before, kind, place = known[number]
            number += 1
            if before is value:
                continue
            cls: Any = type(value)
            if cls is Array:
                if type(before) is ref and before() is value:
                    continue
                found = ArrayKind(value.dtype, len(value.shape), value.readonly)
                if found is not kind or value.library is not None or value.device != self._device:
                    raise _OtherTypeError
                before, words = ref(value), (value.pointer, *value.shape)
            elif isinstance(value, tuple):
                if before is not cls:
                    raise _OtherTypeError
                number = self._write(value, number, targets)
                continue
            elif cls is not type(before) or kind is None:
                raise _OtherTypeError
            elif value and value == before:  # a zero may have another sign
                continue
            elif describe(value) is not kind:
                raise _OtherTypeError
            else:
                before, words = value, words_of(value)
            known[number - 1] = before, kind, place
            for each, word in enumerate(words, place):
                for target in targets:
                    target[each] = word
        return number


class _OtherTypeError(Exception):
    """An argument has another type than in the last call."""


def _list_values(values: Iterable[Any], found: list[Any]) -> list[Any]:
    """Return a list to which all values are added, of a tuple its type and its members."""
    for value in values:
        if isinstance(value, tuple):
            found.append(type(value))
            _list_values(value, found)
        else:
            found.append(value)
    return found
