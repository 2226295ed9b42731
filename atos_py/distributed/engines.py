"""Engines that carry messages between processes: MPI by mpi4py, and Gloo by torch.distributed. Neither is a dependency."""

from __future__ import annotations

import atexit
import contextlib
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.host_group import Engine
from ..errors import DistributedError, InvalidArgumentError, MissingPackageError

__all__ = ["ENGINES", "engine_of_launcher", "make_engine"]

ENGINES = ("mpi", "torch")

_PATIENCE = datetime.timedelta(days=7)  # with a host that is busy; of one that is gone its connection tells


def engine_of_launcher(environment: Mapping[str, str]) -> str:
    """Return the engine that the launcher of this process is for."""
    return "torch" if "TORCHELASTIC_RUN_ID" in environment else "mpi"


def make_engine(name: Any, timeout: float) -> Engine:
    """Return an engine by its name, connected to the other processes.

    Raises
    ------
    InvalidArgumentError
        If there is no such engine.
    MissingPackageError
        If its package is not installed.
    DistributedError
        If the processes do not find each other.
    """
    if not isinstance(name, str) or name not in ENGINES:
        raise InvalidArgumentError(f"engine must be one of {', '.join(ENGINES)} (got {name!r:.80})")
    try:
        return _MPI() if name == "mpi" else _Torch(timeout)
    except ImportError as error:
        package = "mpi4py and an MPI library, as by `pip install mpi4py mpich`" if name == "mpi" else "PyTorch"
        raise MissingPackageError(f"messages by engine={name!r} need {package}, in each process ({error})") from error


@contextlib.contextmanager
def _errors_of(library: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of a library into ours."""
    try:
        yield
    except kinds as error:
        raise DistributedError(
            f"{library} could not exchange messages: {error}; let all processes end, and start them again"
        ) from error


class _MPI:
    """Messages of MPI, in a communicator of their own. If a process dies, MPI ends the others."""

    def __init__(self) -> None:
        from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

        self._mpi, self._comm = MPI, MPI.COMM_WORLD.Dup()
        self._comm.Set_errhandler(MPI.ERRORS_RETURN)
        self.rank, self.world_size = self._comm.rank, self._comm.size

    def exchange(self, parts: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        with self._errors():
            sizes = np.array([part.size for part in parts], np.int64)
            sizes_in = np.empty_like(sizes)
            self._comm.Alltoall(sizes, sizes_in)
            room = np.empty(int(sizes_in.sum()), np.uint8)
            self._comm.Alltoallv([np.concatenate(parts), sizes], [room, sizes_in])
        return np.split(room, np.cumsum(sizes_in)[:-1])

    def all_gather(self, part: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        with self._errors():
            sizes = np.empty(self.world_size, np.int64)
            self._comm.Allgather(np.array([part.size], np.int64), sizes)
            room = np.empty(int(sizes.sum()), np.uint8)
            self._comm.Allgatherv(np.array(part), [room, sizes])
        return np.split(room, np.cumsum(sizes)[:-1])

    def all_reduce(self, values: NDArray[Any], operation: Literal["sum", "max"]) -> NDArray[Any]:
        result = np.empty_like(values)
        with self._errors():
            self._comm.Allreduce(values, result, op=self._mpi.SUM if operation == "sum" else self._mpi.MAX)
        return result

    def close(self) -> None:
        self._comm.Free()

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return _errors_of("MPI", self._mpi.Exception)


class _Torch:
    """Messages of torch.distributed over Gloo, which raises an error where a process is gone or late."""

    def __init__(self, timeout: float) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]
        import torch.distributed as dist  # type: ignore[import-not-found, unused-ignore]

        self._torch, self._dist = torch, dist
        self._began = not dist.is_initialized()
        limit = datetime.timedelta(seconds=timeout)
        with self._errors():
            if self._began:
                dist.init_process_group("gloo", timeout=limit)
            self._group = dist.new_group(backend="gloo", timeout=_PATIENCE)
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        atexit.register(self.close)  # a process that ends while Gloo's threads run may be aborted

    def exchange(self, parts: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        sizes = self.all_gather(np.array([part.size for part in parts], np.int64).view(np.uint8))
        rooms = [np.empty(int(each.view(np.int64)[self.rank]), np.uint8) for each in sizes]
        rooms[self.rank] = np.array(parts[self.rank])
        with self._errors():
            waiting = []
            for step in range(1, self.world_size):
                to, source = (self.rank + step) % self.world_size, (self.rank - step) % self.world_size
                if parts[to].size:
                    waiting.append(self._dist.isend(self._tensor(parts[to]), to, group=self._group))
                if rooms[source].size:
                    waiting.append(self._dist.irecv(self._torch.from_numpy(rooms[source]), source, group=self._group))
            for each in waiting:
                each.wait()
        return rooms

    def all_gather(self, part: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        sizes = self._gather_equal(np.array([part.size], np.int64))[:, 0]
        padded = np.zeros(int(sizes.max()), np.uint8)
        padded[: part.size] = part
        found = self._gather_equal(padded) if padded.size else np.empty((self.world_size, 0), np.uint8)
        return [np.array(row[:size]) for row, size in zip(found, sizes, strict=True)]

    def all_reduce(self, values: NDArray[Any], operation: Literal["sum", "max"]) -> NDArray[Any]:
        tensor = self._tensor(values)
        with self._errors():
            operations = self._dist.ReduceOp
            self._dist.all_reduce(tensor, operations.SUM if operation == "sum" else operations.MAX, group=self._group)
        return np.asarray(tensor.numpy())

    def close(self) -> None:
        atexit.unregister(self.close)
        if self._dist.is_initialized():
            self._dist.destroy_process_group(None if self._began else self._group)

    def _gather_equal(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the arrays of all processes, which have one size, as rows."""
        rooms = [self._torch.empty(values.size, dtype=self._tensor(values).dtype) for _ in range(self.world_size)]
        with self._errors():
            self._dist.all_gather(rooms, self._tensor(values), group=self._group)
        return np.stack([room.numpy() for room in rooms])

    def _tensor(self, values: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.array(values))

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return _errors_of("torch.distributed", RuntimeError, ValueError)
