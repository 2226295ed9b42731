"""Arrays over several devices of which tasks use the elements of their own device alone."""

from __future__ import annotations

from .partitioned import PartitionedArray

__all__ = ["OwnedArray"]


class OwnedArray(PartitionedArray):
    """An array over the devices of a partition, of which a task reads and writes elements of its own device alone.

    `atos_py.full` makes one with ``placement="owned"``. It says of an array that no access crosses a link. In a launch with
    ``debug=True`` another access is a `TaskError`; without, it is as in any array over the parts.

    Examples
    --------
    >>> parts = atos.Graph.from_edges([0, 1], [1, 2], device="cpu").partition(["cpu:0", "cpu:1"])
    >>> atos.full(3, 0.5, partition=parts, placement="owned")
    <atos array shape=(3,) dtype=float64 over cpu, cpu:1>
    """

    __slots__ = ()
