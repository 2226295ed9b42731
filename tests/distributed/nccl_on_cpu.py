"""The engine "nccl" without GPUs: Gloo stands in for NCCL, and the memory of the host for that of GPUs."""

from __future__ import annotations

from typing import Any

from atos_py.distributed.engines import _NCCL


class Message:
    """A message that never ends if a process is gone, as with NCCL, and tells no error of it."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def query(self) -> bool:
        try:
            return bool(self._work.is_completed() and self._work.wait())
        except RuntimeError:
            return False

    is_completed = query


class OnCPU(_NCCL):
    _backend = "gloo"

    def _choose_gpu(self) -> Any:
        return self._torch.device("cpu")

    def _make_stream(self) -> None:
        return None

    def _finish(self, prepare: Any) -> Any:
        def prepare_message() -> tuple[Any, Any]:
            room, start = prepare()
            return room, lambda: Message(start())

        return super()._finish(prepare_message)

    def _end_of(self, work: Message) -> Message:
        return work
