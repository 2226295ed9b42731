"""Limits of registers for kernels of the package: the first one to link with, or the only one where that is the fastest.

A kernel is linked with one limit after the other until it needs no stack (`linker`). Most take the least limit, with the first
link; for the others this saves one link or two in a first call, which take half a second or more each. A limit that is out of
date costs time at most. The first table is what ``python benchmarks/first_use.py --link sm_90 --limits`` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .kinds import Launchable, tasks_of

__all__ = ["first_limit", "only_limit", "spills_allowed"]

_PACKAGE = __name__.partition(".")[0] + "."
_PROGRAMS = _PACKAGE + "models.acc.frontier"  # whose tasks have the names of functions of users
_GATHERS = _PACKAGE + "operators.gather_rounds"  # the same
# By the names of the tasks of a launch, and by the worker; the least of all its kernels. Those that take more than any limit
# begin with the largest one, since the same task may need less for arguments of other types.
_FIRST = {
    ("accumulate", "cta"): 64,
    ("add_residual", "cta"): 48,
    ("assign, check", "cta"): 64,
    ("assign, check", "warp"): 48,
    ("chebyshev_round", "warp"): 64,
    ("collect_integer", "cta"): 48,
    ("count_in_rows", "cta"): 64,
    ("divide", "cta"): 48,
    ("orient", "cta"): 64,
    ("propagate", "cta"): 64,
    ("relax", "cta"): 64,
    ("relax_along", "cta"): 64,
    ("relax_in_row", "cta"): 64,
    ("row_difference", "warp"): 48,
    ("scale_by_degree", "cta"): 48,
    ("scan, remove_row", "cta"): 64,
    ("separate", "cta"): 64,
}


# Kernels that are fastest with this limit, although they need a stack then. They wait for memory most of the time, and more
# threads wait for more of it. On an H200 rounds of PageRank of road4900 take 4.5 ms instead of 5.2, its components 2.8 instead
# of 3.7, its coloring 1.10 instead of 1.20, its independent set 1.39 instead of 1.62, a forest of rmat22 14.0 instead of 16.7,
# and a search of rmat22 by levels, which spills 12 bytes, 0.33 instead of 0.35. A deletion takes as long with 64 registers as
# with the 120 that it asks for, and needs one link instead of four.
_ONLY = {
    ("assign_range, check_range, assign, check", "cta"): 40,
    ("chebyshev_round", "cta"): 48,
    ("connect", "cta"): 48,
    ("decide", "cta"): 32,
    ("expand, pull, list_level", "cta"): 40,
    ("expand, take_ranges", "cta"): 64,
    ("grow", "cta"): 40,
    ("list_rows, delete_in_rows", "cta"): 64,
    ("push_level", "cta"): 64,
}


def first_limit(task: Launchable, worker: str) -> int:
    """Return the limit to begin with; 0 if none is known."""
    return _FIRST.get((task.name, worker), 0) if _is_of_package(task) else 0


def only_limit(task: Launchable, worker: str) -> int | None:
    """Return the limit to link with, if that is not to be tried out."""
    return _ONLY.get((task.name, worker)) if _is_of_package(task) else None


def spills_allowed(task: Launchable, each_round: Callable[..., Any] | None) -> int:
    """Return how many bytes of loads and stores a thread may spill with the limit that is taken.

    Few, where all vertices gather in rounds: on an H200 a round of PageRank of road4900 takes 0.31 ms with 40 registers, 0.34
    with 48 and 0.39 with 64, and a round of rmat22 1.07, 1.06 and 1.06. Fewer, where a user's task has a function between
    rounds, since it is what spills: a search of rmat22 takes 1.49 ms with 40 registers and 1.58 with 48.
    """
    if _modules(task) == [_GATHERS]:
        return 128
    return 0 if each_round is None or _is_of_package(task) else 96


def _is_of_package(task: Launchable) -> bool:
    return all(module.startswith(_PACKAGE) and module != _PROGRAMS for module in _modules(task))


def _modules(task: Launchable) -> list[str]:
    return [getattr(member.body, "__module__", None) or "" for member in tasks_of(task)]  # none of what exec has made
