"""Arguments of launches over several devices, or hosts: what their tasks cannot reach or use yet is refused."""

from __future__ import annotations

from typing import Any

from ..arrays.array import Array, is_of_core
from ..arrays.ownership import Ownership
from ..arrays.shared import SharedArray
from ..errors import InvalidArgumentError, LaunchConfigError
from .launch_arguments import Arguments, on_other_device

__all__ = ["ArgumentsOverDevices", "ArgumentsOverHosts"]


class ArgumentsOverHosts(Arguments):
    """The arguments of a launch over several hosts, on the device of this one."""

    __slots__ = ()
    _may_be_steady = False


class ArgumentsOverDevices(Arguments):
    """The arguments of a launch over several devices."""

    __slots__ = ()
    _owner: Ownership
    _where = "has another partition as its owner"
    _may_be_steady = False

    def _check_over(self, position: int, value: Any) -> None:
        super()._check_over(position, value)
        rows = None if hasattr(value, "_check_owner") else getattr(value, "indptr", None)
        if self._owner.ids is not None and rows is not None and rows.size == self._owner.size + 1:
            raise InvalidArgumentError(
                f"argument {position} is a graph whose vertices have other numbers inside the tasks of this queue; pass what"
                " Graph.partition returned"
            )

    def _refuse(self, what: str) -> None:
        if not self._owner.is_alone:
            raise LaunchConfigError(f"the tasks of a launch over several devices {what} yet; use one device")

    def _check_array(self, position: int, array: Array) -> None:
        owned = self._owner
        if owned.group is not None and not isinstance(array, SharedArray) and not array.readonly:
            raise InvalidArgumentError(
                f"argument {position} is an array of this process alone, so what tasks of other processes write to it would not"
                " be seen: make it with atos.full(..., partition=) or atos.distributed.zeros, or with readonly=True if tasks"
                " only read it"
            )
        if array.device not in owned.devices:
            raise on_other_device(position, array, owned.devices)
        if owned.over_gpus and not is_of_core(array):
            raise InvalidArgumentError(
                f"argument {position} is in memory that another library has allocated on {array.device}, which the other GPUs"
                " do not reach; make a copy with atos.asarray(..., copy=True)"
            )
