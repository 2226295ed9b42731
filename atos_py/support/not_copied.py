"""Objects that stand for one thing on a device, or for a running process, and so are neither copied nor pickled."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from ..errors import UnsupportedTypeError

__all__ = ["NotCopied"]


class NotCopied:
    """Base class of objects that `copy.copy`, `copy.deepcopy` and `pickle` refuse, with a reason.

    Otherwise copies would share a queue, memory or a connection with the original, and each would change what is the other's.
    """

    __slots__ = ()

    _not_copied: ClassVar[str]
    """The message: why an object of the class is neither copied nor pickled, and what to do."""

    def __reduce__(self) -> NoReturn:
        raise UnsupportedTypeError(self._not_copied)
