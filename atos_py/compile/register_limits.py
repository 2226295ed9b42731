"""Limits of registers that a task says for its kernels: `task` tells what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..errors import InvalidArgumentError
from ..support.validation import check_int

__all__ = ["Limits", "check_limits"]

#: One limit, or several that are tried in turn, of which None is no limit.
Limits: TypeAlias = int | tuple[int | None, ...]
_WORKERS = ("thread", "warp", "cta")
_LEAST_REGISTERS, _MOST_REGISTERS = 16, 255  # that a linker takes as a limit


def check_limits(given: Any) -> Limits | dict[str, Limits] | None:
    """Return limits of registers, after a check."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return _check_limits_of_worker("max_registers", given)
    if unknown := next((worker for worker in given if worker not in _WORKERS), None):
        raise InvalidArgumentError(
            f"max_registers has limits for the workers {', '.join(_WORKERS)}; there is no worker {unknown!r:.80}"
        )
    return {worker: _check_limits_of_worker(f"max_registers[{worker!r}]", limits) for worker, limits in given.items()}


def _check_limits_of_worker(name: str, limits: Any) -> Limits:
    if not isinstance(limits, tuple):
        return check_int(name, limits, _LEAST_REGISTERS, _MOST_REGISTERS)
    if not limits:
        raise InvalidArgumentError(f"{name} is an empty tuple; leave it out for the limits by default")
    return tuple(None if limit is None else check_int(name, limit, _LEAST_REGISTERS, _MOST_REGISTERS) for limit in limits)
