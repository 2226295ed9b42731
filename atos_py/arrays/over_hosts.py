"""Arrays over several hosts: each has all elements, its own as they are, and of the others what it has to tell them."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..core.devices import Device
from ..core.host_group import HostGroup
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.host_memory import host_memory_for
from ..support.not_copied import NotCopied
from .array import one_number, zeros
from .casting import cast_values
from .memory import check_shape
from .on_host import Elementwise
from .ownership import Ownership

__all__ = ["HostArray", "HostPlaces"]


@dataclass(frozen=True, eq=False)
class HostPlaces:
    """The hosts that own vertices, and the device of this one.

    Attributes
    ----------
    hosts : HostGroup
    ownership : Ownership
        The vertices of each host and their numbers inside tasks, as if each were a device.
    device : Device
    """

    hosts: HostGroup
    ownership: Ownership
    device: Device

    @property
    def own(self) -> slice:
        """Numbers of the vertices of this host."""
        borders = self.ownership.borders
        return slice(borders[self.hosts.rank], borders[self.hosts.rank + 1])


class HostArray(Elementwise, NotCopied):
    """An array over several hosts, of which each owns the elements of its vertices. `atos_py.full` makes it.

    Tasks change it by one word, which travels: `worker.push_min` if `combine` is "min", `atos_py.accumulate` if it is "sum".
    What that does to a vertex of another host is kept in the memory of this one, and sent to the owner after the launch, once
    for all that was done meanwhile. So an element of another host is a bound of it ("min"), or what is to be added to it
    ("sum").

    A host reads the elements that it owns, by the ids of vertices; `to_numpy`, which all hosts call, returns all of them. What
    they write, all hosts write alike.

    Attributes
    ----------
    dtype : numpy.dtype
    combine : {"min", "sum"}

    Examples
    --------
    >>> with atos.distributed.init(engine="mpi"):
    ...     parts = atos.generate.road(3, 1.0, device="cpu").partition()
    ...     depth = atos.full(9, 7, partition=parts)
    ...     depth[4] = 0
    ...     print(depth[4], depth.to_numpy())
    0 [7 7 7 7 0 7 7 7 7]
    """

    __slots__ = ("__weakref__", "_places", "_sent", "_values", "combine")

    _not_copied = "an array over several hosts is neither copied nor pickled: to_numpy() returns its elements"

    def __init__(self, shape: Any, dtype: DTypeLike, places: HostPlaces, combine: Literal["min", "sum"]) -> None:
        size = places.ownership.size
        if check_shape(shape) != (size,):
            raise InvalidArgumentError(
                f"an array over several hosts has an element for each of its {size:,} vertices (got shape {shape!r:.80})"
            )
        self._places, self.combine = places, combine
        self._values = zeros(size, dtype=dtype, device=places.device)
        if self.dtype.kind not in "iuf" or self.dtype.itemsize < 4:
            raise UnsupportedTypeError(f"an array over several hosts is of 32 or 64 bits (got {self.dtype})")
        self._sent = np.zeros(size if combine == "min" else 0, self.dtype)  # what the owners know

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """One dimension, an element for each vertex."""
        return self._values.shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._values.size

    @property
    def pointer(self) -> int:
        """Address of the first element."""
        return self._values.pointer

    @property
    def places(self) -> HostPlaces:
        """Which host owns each element."""
        return self._places

    def _check_owner(self, _argument: str, owner: Any, _where: str) -> None:
        if self._places is not owner:
            raise InvalidArgumentError(
                "an array over several hosts is for a queue with owner=, the part of the graph that it was made for"
            )

    @property
    def own(self) -> slice:
        """Numbers of the elements of this host."""
        return self._places.own

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if (
            self._places.hosts.world_size > 1
        ):  # NumPy would call it where the program does not say so, perhaps on one host alone
            raise UnsupportedTypeError("to_numpy(), which all hosts call, returns the elements of an array over several hosts")
        return self.to_numpy().astype(self.dtype if dtype is None else dtype, copy=False)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        hosts = self._places.hosts.world_size
        return f"<atos array shape={self.shape} dtype={self.dtype} over {hosts} hosts, combine={self.combine!r}>"

    @host_memory_for("HostArray.to_numpy")
    def to_numpy(self) -> NDArray[Any]:
        """Return a copy of all elements, in the order of the vertices' ids. All hosts call this, and wait for each other.

        Examples
        --------
        >>> with atos.distributed.init(engine="mpi"):
        ...     parts = atos.generate.road(2, 1.0, device="cpu").partition()
        ...     print(atos.full(4, 7, partition=parts).to_numpy())
        [7 7 7 7]
        """
        found = self._places.hosts.messages.gather(self._values[self.own])
        numbers = self._places.ownership.numbers
        return found if numbers is None else found[numbers]

    @host_memory_for("HostArray.fill")
    def fill(self, value: ArrayLike) -> None:
        """Write the same value everywhere; it has to fit the dtype. All hosts call this.

        Examples
        --------
        >>> with atos.distributed.init(engine="mpi"):
        ...     parts = atos.generate.road(2, 1.0, device="cpu").partition()
        ...     array = atos.full(4, 7, partition=parts)
        ...     array.fill(2)
        ...     print(array.to_numpy())
        [2 2 2 2]
        """
        number = cast_values(one_number(value), self.dtype)
        if self.combine == "min":
            self._values[:] = self._sent[:] = number
        else:
            self._values[self.own] = number

    def __getitem__(self, vertex: int) -> Any:
        """Return an element that this host owns, as a NumPy scalar."""
        number = self._number_of(vertex)
        if not self.own.start <= number < self.own.stop:
            owner = min(number // self._places.ownership.chunk, self._places.hosts.world_size - 1)
            raise InvalidArgumentError(
                f"vertex {vertex} is on host {owner}, and this is {self._places.hosts.rank}; to_numpy(),"
                " which all hosts call, returns all elements"
            )
        return self._values[number]

    def __setitem__(self, vertex: int | slice, value: ArrayLike) -> None:
        """Write the element of a vertex, or, by ``[:]``, all in the order of ids. All hosts do this."""
        with self._on_host() as values:
            if isinstance(vertex, slice):
                if vertex != slice(None):
                    raise InvalidArgumentError(f"an array over several hosts is written as a whole, by [:] (got {vertex})")
                given = np.broadcast_to(cast_values(np.asarray(value), self.dtype), self.shape)
                ids = self._places.ownership.ids
                changed: Any = self.own if self.combine == "sum" else slice(None)
                values[changed] = (given if ids is None else given[ids])[changed]
            else:
                changed = self._number_of(vertex)
                if self.combine == "min" or self.own.start <= changed < self.own.stop:
                    values[changed] = cast_values(one_number(value), self.dtype)
            if self.combine == "min":
                self._sent[changed] = values[changed]

    def _number_of(self, vertex: Any) -> int:
        try:
            index = operator.index(vertex)
        except TypeError:
            raise UnsupportedTypeError(f"an array over several hosts is indexed by a vertex (got {vertex!r:.80})") from None
        if not 0 <= index < self.size:
            raise InvalidArgumentError(f"there is no vertex {index}, of {self.size:,}")
        numbers = self._places.ownership.numbers
        return index if numbers is None else int(numbers[index])

    @contextlib.contextmanager
    def _on_host(self) -> Iterator[NDArray[Any]]:
        """Give the elements in the memory of the host, by number; what is changed there is changed in the array."""
        if self._values.device.kind == "cpu":
            yield np.asarray(self._values)
            return
        copy = self._values.to_numpy()
        yield copy
        self._values[...] = copy

    def _exchange(self) -> NDArray[np.int64]:
        """Send the owners what tasks did to their elements; return the numbers of own vertices that others have lowered.

        All hosts call this after a launch.
        """
        places, own = self._places, self.own
        with self._on_host() as values:
            changed = np.flatnonzero(values < self._sent if self.combine == "min" else values != 0)
            changed = changed[(changed < own.start) | (changed >= own.stop)]
            cuts = np.searchsorted(changed, places.ownership.borders[1:-1])
            told = values[changed]
            if self.combine == "min":
                self._sent[changed] = told
            else:
                values[changed] = 0
            vertices = np.concatenate(places.hosts.messages.exchange(np.split(changed, cuts)))
            numbers = np.concatenate(places.hosts.messages.exchange(np.split(told, cuts)))
            before = values[vertices]
            (np.minimum if self.combine == "min" else np.add).at(values, vertices, numbers)
            return np.unique(vertices[values[vertices] < before]) if self.combine == "min" else np.empty(0, np.int64)
