"""The variables by which torchrun, mpirun and others tell a process which one it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import DistributedError

__all__ = ["Place", "is_on_several_hosts", "local_rank_of", "place_of"]


class Place(NamedTuple):
    """Number of a process, how many there are, and the name of their job on this host."""

    rank: int
    world_size: int
    job: str


class _Launcher(NamedTuple):
    """The variables of a launcher: numbers of the process, processes in all and on this host, and what tells its jobs apart."""

    rank: str
    world_size: str
    local_size: str
    job: tuple[str, ...]


_LAUNCHERS = (
    _Launcher(
        "RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"),
    ),
    _Launcher(
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    _Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", ("PMI_JOBID", "PMIX_NAMESPACE")),
)


def is_on_several_hosts(environment: Mapping[str, str]) -> bool:
    """Return whether a launcher says that it has started processes on other hosts too."""
    for launcher in _LAUNCHERS:
        if launcher.rank in environment and launcher.world_size in environment:
            size = _number(environment, launcher.world_size)
            return launcher.local_size in environment and _number(environment, launcher.local_size) != size
    return False


def place_of(environment: Mapping[str, str]) -> Place | None:
    """Return what the environment says; None if no launcher has started this process.

    Raises
    ------
    DistributedError
        If the variables make no sense.
    """
    for launcher in _LAUNCHERS:
        if launcher.rank not in environment or launcher.world_size not in environment:
            continue
        rank, size = _number(environment, launcher.rank), _number(environment, launcher.world_size)
        named = [environment[name] for name in launcher.job if name in environment]
        return Place(rank, size, "-".join(named) or f"child-of-{os.getppid()}")
    return None


def local_rank_of(environment: Mapping[str, str]) -> int | None:
    """Return the number of this process among those of its host; None if torchrun has not started it.

    Raises
    ------
    DistributedError
        If it is not a number.
    """
    return _number(environment, "LOCAL_RANK") if "LOCAL_RANK" in environment else None


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise DistributedError(
            f"the environment variable {name} is not a number (got {environment[name]!r:.80}); start the processes with"
            " torchrun or mpirun, or pass rank= and world_size="
        ) from None
