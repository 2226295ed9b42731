"""Stubs: tasks that do nothing, by the names of others.

The items of a queue are told apart by the names of their tasks. So launches of several kernels can share a queue, where each
kernel has the tasks that it needs, and stubs in the places of the others: it takes registers for its own tasks only.
"""

from __future__ import annotations

from ...compile.task import Task

__all__ = ["make_stub"]


def make_stub(name: str) -> Task:
    """Return a flat task of that name that does nothing."""

    def stub(worker, item, *args):  # type: ignore[no-untyped-def]
        pass

    stub.__name__ = name
    return Task(stub)
