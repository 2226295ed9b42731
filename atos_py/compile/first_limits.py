"""Limits of registers that kernels of the package are linked with first, since they are known to need no stack then.

A kernel is linked with one limit after the other until it needs no stack (`linker`). Most take the least limit, with the first
link; for the others this saves one link or two in a first call, which take half a second or more each. A limit that is out of
date costs time at most. The table is what ``python benchmarks/first_use.py --link sm_90 --limits`` prints.
"""

from __future__ import annotations

from .kinds import Launchable, tasks_of

__all__ = ["first_limit"]

_PACKAGE = __name__.partition(".")[0] + "."
_PROGRAMS = _PACKAGE + "operators.frontier"  # whose tasks have the names of functions of users
# By the names of the tasks of a launch, and by the worker; the least of all its kernels. Those that take more than any limit
# begin with the largest one, since the same task may need less for arguments of other types.
_FIRST = {
    ("accumulate", "cta"): 64,
    ("add_residual", "cta"): 48,
    ("assign, check", "cta"): 64,
    ("assign, check", "warp"): 48,
    ("assign_range, check_range, assign, check", "cta"): 48,
    ("chebyshev_round", "cta"): 64,
    ("chebyshev_round", "warp"): 64,
    ("collect_integer", "cta"): 48,
    ("connect", "cta"): 64,
    ("count_in_rows", "cta"): 64,
    ("divide", "cta"): 48,
    ("grow", "cta"): 64,
    ("orient", "cta"): 64,
    ("propagate", "cta"): 64,
    ("relax", "cta"): 64,
    ("relax_in_row", "cta"): 64,
    ("row_difference", "warp"): 48,
    ("scale_by_degree", "cta"): 48,
    ("scan, remove_row", "cta"): 64,
    ("separate", "cta"): 64,
}


def first_limit(task: Launchable, worker: str) -> int:
    """Return the limit to begin with; 0 if none is known."""
    modules = [getattr(member.body, "__module__", None) or "" for member in tasks_of(task)]  # none of what exec has made
    if all(module.startswith(_PACKAGE) and module != _PROGRAMS for module in modules):
        return _FIRST.get((task.name, worker), 0)
    return 0
