"""Engines that carry messages between processes: MPI by mpi4py, Gloo and NCCL by torch.distributed. None is a dependency."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.host_group import Engine
from ..errors import DeviceNotFoundError, DistributedError, InvalidArgumentError, MissingPackageError
from .environment import local_rank_of

__all__ = ["ENGINES", "engine_of_launcher", "make_engine"]

ENGINES = ("mpi", "torch", "nccl")

_PATIENCE = datetime.timedelta(days=7)  # with a host that is busy; of one that is gone its connection tells
_LONG = 1 << 16  # bytes; with engine="nccl" a message that is not shorter goes by NCCL
_PAUSE = 0.1  # seconds between two questions whether all processes have a message of NCCL
_DONE, _RUNNING, _FAILED = range(3)  # a message of NCCL in a process


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
    DeviceNotFoundError
        If it is "nccl", and a process has no GPU.
    """
    if not isinstance(name, str) or name not in ENGINES:
        raise InvalidArgumentError(f"engine must be one of {', '.join(ENGINES)} (got {name!r:.80})")
    try:
        if name == "mpi":
            return _MPI()
        return _Torch(timeout) if name == "torch" else _NCCL(timeout)
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
        return self._carry(parts, self._gather_equal(np.array([part.size for part in parts], np.int64)))

    def _carry(self, parts: Sequence[NDArray[np.uint8]], sizes: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
        """Exchange parts whose sizes, of each process in a row, all processes know."""
        rooms = [np.empty(size, np.uint8) for size in sizes[:, self.rank]]
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


class _NCCL(_Torch):
    """Messages of torch.distributed: long ones by NCCL, through the memory of a GPU of each process, and short ones by Gloo.

    A kernel of NCCL waits for ever for a process that is gone. PyTorch's watchdog would end this process then, at once or after
    minutes, without an error that can be caught, so it is told not to. While a message of NCCL is under way, the processes ask
    each other by Gloo again and again whether all have it. Gloo raises an error as soon as a connection is closed.
    """

    _backend = "nccl"

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        try:
            self._gpu = self._choose_gpu()
            self._stream = self._make_stream()
            with self._errors(), _environment(TORCH_NCCL_ASYNC_ERROR_HANDLING="0", TORCH_NCCL_BLOCKING_WAIT="0"):
                # With PyTorch's own timeout, of minutes: processes start a message of NCCL together, after one of Gloo.
                self._nccl = self._dist.new_group(backend=self._backend)
            # These connect, for either kind of message, and raise an error if two processes have one GPU.
            self._gather_on_gpu(np.zeros(1, np.uint8))
            one = np.ones((self.world_size, self.world_size), np.int64)
            self._carry_on_gpu([np.zeros(1, np.uint8)] * self.world_size, one)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._dist.is_initialized() and hasattr(self, "_nccl"):
            self._dist.destroy_process_group(self._nccl)
        super().close()

    def _choose_gpu(self) -> Any:
        """Return the GPU of this process, if all processes have one."""
        count = self._torch.cuda.device_count()
        missing = np.flatnonzero(super()._gather_equal(np.array([count]))[:, 0] == 0)
        if missing.size:
            raise DeviceNotFoundError(
                f"engine='nccl' needs a GPU for each process, and PyTorch finds none in process {', '.join(map(str, missing))};"
                " take engine='torch'"
            )
        local = local_rank_of(os.environ)
        return self._torch.device("cuda", (self.rank if local is None else local) % count)

    def _make_stream(self) -> Any:
        """Return a stream that waits for no other work of this process."""
        return self._torch.cuda.Stream(self._gpu)

    def _carry(self, parts: Sequence[NDArray[np.uint8]], sizes: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
        return super()._carry(parts, sizes) if sizes.max() < _LONG else self._carry_on_gpu(parts, sizes)

    def _carry_on_gpu(self, parts: Sequence[NDArray[np.uint8]], sizes: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
        sizes_in, sizes_out = sizes[:, self.rank].tolist(), sizes[self.rank].tolist()

        def prepare() -> tuple[Any, Callable[[], Any]]:
            sent = self._torch.from_numpy(np.concatenate(parts)).to(self._gpu)
            room = self._torch.empty(sum(sizes_in), dtype=sent.dtype, device=self._gpu)
            options = {"group": self._nccl, "async_op": True}
            return room, lambda: self._dist.all_to_all_single(room, sent, sizes_in, sizes_out, **options)

        return np.split(self._finish(prepare), np.cumsum(sizes_in)[:-1])

    def _gather_equal(self, values: NDArray[Any]) -> NDArray[Any]:
        return super()._gather_equal(values) if values.nbytes < _LONG else self._gather_on_gpu(values)

    def _gather_on_gpu(self, values: NDArray[Any]) -> NDArray[Any]:
        def prepare() -> tuple[Any, Callable[[], Any]]:
            sent = self._tensor(values).to(self._gpu)
            room = self._torch.empty(self.world_size * values.size, dtype=sent.dtype, device=self._gpu)
            gather = getattr(self._dist, "all_gather_single", None) or self._dist.all_gather_into_tensor  # its older name
            return room, lambda: gather(room, sent, group=self._nccl, async_op=True)

        return self._finish(prepare).reshape(self.world_size, values.size)

    def _finish(self, prepare: Callable[[], tuple[Any, Callable[[], Any]]]) -> NDArray[Any]:
        """Prepare a message of NCCL, start it, wait until all processes have it, and return what has come.

        It starts once all have prepared it: a process that starts alone may wait inside NCCL, where no error reaches it.
        """
        with self._errors(), self._torch.cuda.stream(self._stream):
            with self._telling_of_errors():
                room, start = prepare()
            try:
                state = self._most(_RUNNING)
                if state == _RUNNING:
                    with self._telling_of_errors():
                        work = start()
                        end = self._end_of(work)
                while state == _RUNNING:
                    with self._telling_of_errors():
                        mine = _DONE if _has_ended(work, end) else _RUNNING
                    state = self._most(mine)
                if state == _FAILED:
                    raise DistributedError("NCCL has failed in another process, which has the error; start all of them again")
            except DistributedError:
                self._abort()
                raise
            return np.asarray(room.cpu().numpy())

    def _most(self, state: int) -> int:
        """Return the greatest state of all processes."""
        return int(self.all_reduce(np.array([state]), "max")[0])

    def _end_of(self, work: Any) -> Any:
        """Return an event after a message."""
        work.wait()  # the stream waits, and not this thread
        return self._stream.record_event()

    @contextlib.contextmanager
    def _telling_of_errors(self) -> Iterator[None]:
        """Let the other processes, which wait for this one, know of an error here."""
        try:
            yield
        except Exception:
            self._abort()  # first, since others may wait inside NCCL, where Gloo does not reach them
            self._most(_FAILED)
            raise

    def _abort(self) -> None:
        """End the kernel of NCCL that waits on the GPU. The group cannot be used after that."""
        with contextlib.suppress(RuntimeError):  # the cause is raised
            self._nccl.abort()


def _has_ended(work: Any, end: Any) -> bool:
    """Return whether this process has a message of NCCL; wait a little for it."""
    completed = work.is_completed()  # also by an error of NCCL, whose kernel may go on
    limit = time.monotonic() + _PAUSE
    while not end.query():
        if time.monotonic() > limit:
            if completed:
                raise RuntimeError("NCCL reports an error; set NCCL_DEBUG=WARN to see it")
            return False
        time.sleep(1e-4)
    return True


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set variables of the environment for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
