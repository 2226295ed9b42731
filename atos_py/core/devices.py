"""Devices that tasks run on: the GPUs that the driver finds, and the CPU, which is as many devices as one likes."""

from __future__ import annotations

import functools
import os
import re
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import DeviceNotFoundError, InvalidArgumentError
from ..support.validation import check_int, read_number
from .library import check, ffi, lib, message

__all__ = ["Device", "device", "devices", "driver_version", "on_release", "release_memory", "why_no_gpu"]


MOST_THREADS = 64  # of a worker on a CPU


@dataclass(frozen=True, repr=False)
class Device:
    """Something that runs tasks.

    Attributes
    ----------
    kind : str
        "cpu" or "cuda".
    index : int
        The driver's number of the GPU. CPU devices of any number are there: they have the machine's memory in common, and a
        launch over several of them divides the cores.
    threads_per_worker : int
        Of a CPU device, how many threads a warp or CTA worker has: 1, or a power of two up to 64 to try tasks as a GPU runs
        them. Devices that differ in this alone are equal, and use each other's arrays.

    Examples
    --------
    >>> cpu = atos.device("cpu")
    >>> print(cpu.kind, cpu.processors >= 1)
    cpu True
    """

    kind: str
    index: int = 0
    threads_per_worker: int = field(default=1, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in ("cpu", "cuda"):
            raise InvalidArgumentError(f"a device is of kind 'cpu' or 'cuda' (got {self.kind!r:.80})")
        index = check_int("the index of a device", self.index, 0, 2**31 - 1)
        object.__setattr__(self, "index", index)  # a plain int, whatever kind of integer was given
        threads = check_int("threads_per_worker", self.threads_per_worker, 1, MOST_THREADS)
        if threads & (threads - 1):
            raise InvalidArgumentError(f"threads_per_worker is a power of two, at most {MOST_THREADS} (got {threads})")
        if self.kind == "cuda" and threads > 1:
            raise InvalidArgumentError(
                f"threads_per_worker={threads} is for CPU devices; workers of a GPU have the threads of its warps and blocks"
            )
        object.__setattr__(self, "threads_per_worker", threads)

    def __repr__(self) -> str:
        threads = f", threads_per_worker={self.threads_per_worker}" if self.threads_per_worker > 1 else ""
        return f"Device(kind={self.kind!r}, index={self.index}{threads})"

    def __str__(self) -> str:
        return "cpu" if self.kind == "cpu" and self.index == 0 else f"{self.kind}:{self.index}"

    @functools.cached_property
    def number(self) -> int:
        """The device as the core counts, to which all CPU devices are one."""
        return lib.ATOS_CPU if self.kind == "cpu" else self.index

    @property
    def name(self) -> str:
        """The name of the model."""
        return ffi.string(_query(self.number).name).decode()  # type: ignore[union-attr]

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor version of a GPU's architecture; (0, 0) for the CPU."""
        info = _query(self.number)
        return info.compute_major, info.compute_minor

    @property
    def processors(self) -> int:
        """Multiprocessors of a GPU, or the CPU cores that this process may use, by its affinity and quota of time."""
        return _query(self.number).multiprocessor_count

    @property
    def max_threads_per_block(self) -> int:
        """The most threads that a block of a GPU may have; 0 for the CPU, which has no blocks."""
        return _query(self.number).max_threads_per_block

    @property
    def memory(self) -> tuple[int, int]:
        """Free and total memory now, in bytes; what is kept for new arrays and queues counts as free."""
        info = _ask(self.number)
        return info.free_bytes, info.total_bytes


class _Info:
    """The fields of `atos_device_info` that cffi fills in."""

    name: object
    compute_major: int
    compute_minor: int
    multiprocessor_count: int
    driver_version: int
    max_threads_per_block: int
    shared_bytes_per_block: int
    total_bytes: int
    free_bytes: int


def _ask(number: int) -> _Info:
    info = ffi.new("atos_device_info *")
    check(lib.atos_device_query(number, info))
    return info  # type: ignore[return-value]


_query = functools.cache(_ask)


def _gpus() -> int:
    count = ffi.new("int32_t *")
    check(lib.atos_device_count(count))
    return count[0]


def why_no_gpu() -> str | None:
    """Say why no GPU can be used, or return None if one can."""
    return None if _gpus() else message()


def driver_version() -> tuple[int, int] | None:
    """Return the CUDA version that the driver supports, or None without a GPU."""
    if not _gpus():
        return None
    version = _query(0).driver_version
    return version // 1000, version % 1000 // 10


def devices() -> list[Device]:
    """Return every device of this machine, the best first.

    Returns
    -------
    list of Device
        The GPUs in the driver's order, then the CPU as one device.

    Examples
    --------
    >>> print(atos.devices()[-1])
    cpu
    """
    return [Device("cuda", i) for i in range(_gpus())] + [Device("cpu")]


def device(spec: Device | str | None = None, threads_per_worker: int | None = None) -> Device:
    """Return the device that `spec` names.

    Parameters
    ----------
    spec : Device, str or None
        "cpu", which is "cpu:0", "cpu:1", "cuda", "cuda:1", a device as it is, or None for the best there is: what the
        environment variable ``ATOS_DEVICE`` names, otherwise the first GPU, otherwise the CPU.
    threads_per_worker : int, optional
        Of a CPU device: how many threads a warp or CTA worker has, a power of two up to 64; by default what the environment
        variable ``ATOS_THREADS_PER_WORKER`` says, otherwise 1. With more than one, tasks that count on a worker of one thread
        go wrong as on a GPU, and launches have the checks of ``debug=True``.

    Raises
    ------
    DeviceNotFoundError
        If this machine has no such device.
    InvalidArgumentError
        If `spec` is not the name of a device, or `threads_per_worker` is not for it.

    Examples
    --------
    >>> atos.device("cpu")
    Device(kind='cpu', index=0)
    >>> print(atos.device("cpu:1"))
    cpu:1
    >>> @atos.task
    ... def count(worker, item, total):
    ...     total[0] += 1  # by each thread, since no line says `if worker.rank == 0`
    >>> queue = atos.Queue(capacity=10, device=atos.device("cpu", threads_per_worker=4))
    >>> total = atos.zeros(1, dtype=np.int64, device="cpu")
    >>> queue.push([0])
    >>> stats = queue.launch_cta(count, total)
    >>> print(stats.num_threads, total[0] > 1)
    4 True
    """
    if threads_per_worker is not None:
        found = device(spec)
        return Device(found.kind, found.index, threads_per_worker)
    if isinstance(spec, Device):
        return spec
    if spec is None:
        spec = os.environ.get("ATOS_DEVICE")
        if not spec:
            return Device("cuda", 0) if _gpus() else _cpu(0)
    match = re.fullmatch(r"(cpu|cuda)(?::(\d+))?", spec) if isinstance(spec, str) else None
    if not match:
        raise InvalidArgumentError(f"a device is 'cpu', 'cpu:N', 'cuda' or 'cuda:N' (got {spec!r})")
    index = int(match[2] or 0)
    if match[1] == "cpu":
        return _cpu(index)
    count = _gpus()
    if index >= count:
        reason = message() if count == 0 else f"this machine has {count}"
        raise DeviceNotFoundError(f"there is no device {spec!r}: {reason}")
    return Device("cuda", index)


def _cpu(index: int) -> Device:
    """Return a CPU device whose workers have as many threads as the environment says."""
    return Device("cpu", index, read_number("ATOS_THREADS_PER_WORKER", 1))


def release_memory() -> None:
    """Give back to the drivers and to the system what is kept for new arrays, queues and launches; what is in use stays.

    Memory of arrays and queues that are gone is kept, up to an eighth of a GPU's memory, since asking the driver is slow; so
    are streams and addresses, and small queues of algorithms, with the graph. Call this before other programs, or other
    libraries in this one, need the memory. It waits for what runs on the GPUs. What is kept on the CPU, the system takes back
    by itself when it needs it.

    Raises
    ------
    DeviceStuckError
        If a task that was asked to stop still holds a GPU.
    InvalidArgumentError
        If a `Run` is open on a GPU, whose end it would wait for.

    Examples
    --------
    >>> queue = atos.Queue(capacity=1000)
    >>> del queue
    >>> atos.release_memory()
    """
    for release in [reference() for reference in _releases]:
        if release is not None:
            release()
    check(lib.atos_release_memory())


_releases: list[weakref.WeakMethod[Callable[[], None]]] = []


def on_release(release: Callable[[], None]) -> None:
    """Have `release_memory` call a method, as long as its object lives."""
    _releases[:] = [each for each in _releases if each() is not None]
    _releases.append(weakref.WeakMethod(release))
