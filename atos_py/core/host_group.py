"""Processes on several hosts that exchange messages: the engine that carries them, and the group of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import DistributedError
from ..support.host_memory import host_memory_for
from ..support.not_copied import NotCopied

__all__ = ["Engine", "HostGroup", "current_hosts", "set_hosts"]


class Engine(Protocol):
    """Message passing of a library, such as MPI. Every process makes the same calls in the same order."""

    rank: int
    world_size: int

    def exchange(self, parts: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        """Send each process its part, and return what each has sent to this one."""

    def all_gather(self, part: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        """Return what every process has given."""

    def all_reduce(self, values: NDArray[Any], operation: Literal["sum", "max"]) -> NDArray[Any]:
        """Return the sums, or the largest, of the numbers of all processes."""

    def close(self) -> None:
        """End what this engine has begun."""


class Messages:
    """Messages between all processes, of bytes and arrays, and whether these are at the same call."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def agree(self, what: str) -> None:
        """Wait for every process to come to the same call, and raise an error in all of them if it is another one.

        Raises
        ------
        DistributedError
            If a process says something else.
        """
        for rank, text in enumerate(self.engine.all_gather(np.frombuffer(what.encode(), np.uint8))):
            if text.tobytes() != what.encode():
                raise DistributedError(
                    f"process {self.engine.rank} is at {what}, and process {rank} at {text.tobytes().decode()}; all processes"
                    " make the same calls in the same order"
                )

    def gather(self, mine: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all processes, of one type and width, one after another."""
        found = self.engine.all_gather(np.ascontiguousarray(mine).reshape(-1).view(np.uint8))
        return np.concatenate([part.view(mine.dtype).reshape(-1, *mine.shape[1:]) for part in found])

    def exchange(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Send each process its part, all of one type, and return what each has sent to this one."""
        dtype = parts[0].dtype
        found = self.engine.exchange([np.ascontiguousarray(part).view(np.uint8) for part in parts])
        return [part.view(dtype) for part in found]

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of the numbers of all processes."""
        return self.engine.all_reduce(values, "sum")

    def any(self, holds: bool) -> bool:
        """Return whether something holds in any process."""
        return bool(self.engine.all_reduce(np.array([holds], np.int64), "max")[0])


class HostGroup(NotCopied):
    """Processes that exchange messages, as one of them sees them; `atos_py.distributed.init` makes it.

    It can be used in a ``with`` statement, whose end is `close`.

    Attributes
    ----------
    rank : int
        The number of this process.
    world_size : int
        How many there are.

    Examples
    --------
    >>> with atos.distributed.init(engine="mpi") as group:  # a process by itself, which no launcher has started
    ...     print(group.rank, group.world_size)
    0 1
    """

    _not_copied = "a group of processes is neither copied nor pickled: each process calls atos.distributed.init()"

    def __init__(self, engine: Engine) -> None:
        self.messages = Messages(engine)
        self.rank, self.world_size = engine.rank, engine.world_size

    def __enter__(self) -> HostGroup:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<process {self.rank} of {self.world_size}, by messages>"

    @host_memory_for("HostGroup.close")
    def close(self) -> None:
        """Leave the group, after which `atos_py.distributed.init` may be called again.

        Examples
        --------
        >>> group = atos.distributed.init(engine="mpi")
        >>> group.close()
        """
        if current_hosts() is self:
            set_hosts(None)
            self.messages.engine.close()

    @host_memory_for("HostGroup.barrier")
    def barrier(self) -> None:
        """Wait until every process has called this.

        Raises
        ------
        DistributedError
            If another process is at another call, or gone.

        Examples
        --------
        >>> with atos.distributed.init(engine="mpi") as group:
        ...     group.barrier()
        """
        self.messages.agree("a barrier")


_groups: list[HostGroup] = []  # that of this process, or none


def current_hosts() -> HostGroup | None:
    """Return the group that this process is in."""
    return _groups[0] if _groups else None


def set_hosts(group: HostGroup | None) -> None:
    """Note which group this process is in."""
    _groups[:] = [] if group is None else [group]
