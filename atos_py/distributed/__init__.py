"""Several processes that work together: of one host over shared memory, each with a device, or of several hosts by messages.

They are started by torchrun, mpirun or anything else that tells each its number, run the same program, and call `init` first.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import DTypeLike

from ..arrays.array import Array
from ..arrays.memory import check_shape
from ..arrays.over_hosts import HostArray
from ..arrays.shared import shared_zeros
from ..core.devices import Device
from ..core.host_group import HostGroup, current_hosts, set_hosts
from ..core.process_group import ProcessGroup, current_group, set_group
from ..errors import DistributedError, InvalidArgumentError, UnsupportedTypeError
from ..graph.host_partition import HostPartition
from ..support.host_memory import host_memory_for
from ..support.validation import check_int, check_timeout
from .cores import threads_of
from .engines import engine_of_launcher, make_engine
from .environment import Place, is_on_several_hosts, place_of
from .group_devices import devices_of_all
from .rendezvous import connect_all

__all__ = ["HostArray", "HostGroup", "HostPartition", "ProcessGroup", "init", "zeros"]

_MOST, _LONGEST = 1024, 1e6  # processes; seconds


@host_memory_for("atos.distributed.init")
def init(
    rank: int | None = None,
    world_size: int | None = None,
    *,
    device: Device | str | None = None,
    job: str | None = None,
    timeout: float = 60.0,
    engine: str | None = None,
) -> ProcessGroup | HostGroup:
    """Meet the other processes of this job, once, before anything is made together with them.

    Parameters
    ----------
    rank : int, optional
        The number of this process. By default what torchrun, Open MPI's mpirun or another launcher of MPI says in the
        environment.
    world_size : int, optional
        How many processes there are; given if `rank` is.
    device : Device or str, optional
        The device of this process, where they share memory. By default it is ``cpu:rank``. "cuda" is the GPU with the number of
        the process on this host, and "cuda:1" a certain one; it has to reach the memory of the other processes' GPUs. All of
        them give a GPU, or none does.
    job : str, optional
        A name that the processes have in common and others on this host have not. By default what the launcher says, or else
        which process is their parent.
    timeout : float
        Seconds to wait for the others.
    engine : {"mpi", "torch", "nccl"}, optional
        Has the processes exchange messages by mpi4py, or by torch.distributed, and share no memory. "torch" uses Gloo; "nccl"
        uses NCCL for long messages, and needs a GPU for each process. They may then be on several hosts. By default that is
        done where the launcher says that there are several: by MPI, or, started by torchrun, by Gloo.

    Returns
    -------
    ProcessGroup, or HostGroup with an engine
        Keep it if you need its `rank` or its `barrier`.

    Raises
    ------
    DistributedError
        If the others are not there in time, nothing says which process this is, or another one has no such device.
    MissingPackageError
        If the engine is not installed.
    DeviceNotFoundError
        If the engine is "nccl", and a process has no GPU, or there is no such device.
    InvalidArgumentError
        If this process has met others before, or processes have devices of different kinds.

    See Also
    --------
    atos_py.Graph.partition : without devices, makes a part for each process.

    Examples
    --------
    A process alone is the smallest group. In a program for ``torchrun --nproc-per-node 4`` the call has no arguments.

    >>> with atos.distributed.init(rank=0, world_size=1):
    ...     parts = atos.generate.road(3, 1.0, device="cpu").partition()
    >>> parts
    Partition(9 vertices, 24 directed edges, over cpu)
    """
    if (met := current_group() or current_hosts()) is not None:
        raise InvalidArgumentError(f"this process has met others already, as {met}; close() that group first")
    check_timeout(timeout)
    if job is not None and not isinstance(job, str):
        raise UnsupportedTypeError(f"job must be a name (got {job!r:.80})")
    if engine is not None and not (rank is None and world_size is None and job is None):
        raise InvalidArgumentError(f"engine={engine!r:.80} knows rank, world_size and job by itself; leave those out")
    if engine is not None and device is not None:
        raise InvalidArgumentError(
            f"device= is for processes that share memory (got device={device!r:.80} and engine={engine!r:.80}); with an engine,"
            " the device of a process is that of its graph"
        )
    if engine is None and rank is None and is_on_several_hosts(os.environ):
        if device is not None:
            raise InvalidArgumentError(
                f"device= is for processes of one host, which share memory (got device={device!r:.80}), and the launcher says"
                " that there are several hosts; leave device= out, or start processes on one host"
            )
        engine = engine_of_launcher(os.environ)
    if engine is not None:
        hosts = HostGroup(make_engine(engine, min(timeout, _LONGEST)))
        launched = place_of(os.environ)
        if launched is not None and (launched.rank, launched.world_size) != (hosts.rank, hosts.world_size):
            raise DistributedError(
                f"the launcher calls this process {launched.rank} of {launched.world_size}, and {engine} {hosts.rank} of"
                f" {hosts.world_size}: start it with the launcher of that library, such as the mpiexec of mpi4py's MPI"
            )
        set_hosts(hosts)
        return hosts
    place = _place(rank, world_size, job)
    check_int("world_size", place.world_size, 1, _MOST)
    check_int("rank", place.rank, 0, place.world_size - 1)
    group = ProcessGroup(place.rank, connect_all(place, min(timeout, _LONGEST)))
    group.devices = devices_of_all(group, device)
    group.threads = threads_of(group)
    set_group(group)
    return group


@host_memory_for("atos.distributed.zeros")
def zeros(shape: int | tuple[int, ...], *, dtype: DTypeLike = np.float32) -> Array:
    """Return a new array of zeros that all processes have in common; all of them call this.

    For what tasks of all processes write and is not indexed by vertices, such as a sum. What is, `atos_py.full` makes over the
    parts of a graph.

    Raises
    ------
    DistributedError
        If this process is in no group, another one is gone, or calls something else.

    Examples
    --------
    >>> with atos.distributed.init(rank=0, world_size=1):
    ...     total = atos.distributed.zeros(1, dtype=np.int64)
    >>> print(total[:])
    [0]
    """
    group = current_group()
    if current_hosts() is not None:
        raise DistributedError(
            "processes that exchange messages have no memory in common: use atos.zeros, and add up what each has, or"
            " atos.full(..., partition=parts, combine='sum') for numbers of vertices"
        )
    if group is None:
        raise DistributedError("this process is in no group; call atos.distributed.init() first, or atos.zeros")
    return shared_zeros(group, check_shape(shape), dtype)


def _place(rank: int | None, world_size: int | None, job: str | None) -> Place:
    """Return which process this is, as the caller or the launcher says."""
    if (rank is None) != (world_size is None):
        raise InvalidArgumentError(
            f"rank and world_size are given together (got rank={rank!r:.40}, world_size={world_size!r:.40})"
        )
    if rank is not None and world_size is not None:
        size = check_int("world_size", world_size, 1, _MOST)
        return Place(check_int("rank", rank, 0, size - 1), size, job or f"child-of-{os.getppid()}")
    found = place_of(os.environ)
    if found is None:
        raise DistributedError(
            "nothing says which process this is: start the program with `torchrun --nproc-per-node 2 program.py` or"
            " `mpirun -n 2 python program.py`, or pass rank= and world_size="
        )
    return found if job is None else found._replace(job=job)
