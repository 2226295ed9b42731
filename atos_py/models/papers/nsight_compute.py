"""Nsight Compute, as a program that counts what the kernels of a child process do: atomic transactions, and loads."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import DeviceError

__all__ = ["Counts", "command_of_profiler", "count"]

_ATOMICS = "l1tex__t_set_accesses_pipe_lsu_mem_global_op_atom.sum", "l1tex__t_set_accesses_pipe_lsu_mem_global_op_red.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
_USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
_MOST_SECONDS = 1800


class Counts(NamedTuple):
    """Counts of all launches of a process together.

    Attributes
    ----------
    launches : int
    atomic_transactions : int
        Those on global memory, with and without a result: what nvprof called `atomic_transactions`.
    load_sectors : int
        Sectors of 32 bytes that loads from global memory touched.
    load_efficiency : float
        The part of the bytes in these that was asked for: `gld_efficiency` of nvprof.
    """

    launches: int
    atomic_transactions: int
    load_sectors: int
    load_efficiency: float


def command_of_profiler() -> str | None:
    """Return where Nsight Compute is, or None."""
    return shutil.which("ncu")


def count(program: str, *arguments: str) -> Counts:
    """Run a program of Python, given as text, in a process of its own, and count what its task kernels do.

    Raises
    ------
    DeviceError
        If the program fails, or the profiler, which may need more rights.
    """
    metrics = ",".join((*_ATOMICS, _SECTORS, _USED))
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log.csv"
        profiler = command_of_profiler() or "ncu", "--kernel-name", "atos_kernel", "--metrics", metrics, "--log-file", str(log)
        form = "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"
        child = [*profiler, *form, sys.executable, "-c", program, *arguments]
        try:
            done = subprocess.run(child, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise DeviceError(f"Nsight Compute did not run: {error}") from error
        said = log.read_text() if log.exists() else ""
    lines = [line for line in said.splitlines() if line.startswith('"')]
    if done.returncode or len(lines) < 3:  # names, units, and launches
        words = (said + done.stdout + done.stderr).strip()
        raise DeviceError(f"Nsight Compute counted nothing (its exit status is {done.returncode}): {words[-2000:]}")
    return summarize(lines)


def summarize(lines: Sequence[str]) -> Counts:
    """Add up the lines of a table: names, units, and a line for each launch."""
    launches = list(csv.DictReader(lines))[1:]  # without the units

    def number(launch: dict[str, str], metric: str) -> float:
        return float(launch[metric].replace(",", ""))

    atomics = sum(number(launch, metric) for launch in launches for metric in _ATOMICS)
    sectors = sum(number(launch, _SECTORS) for launch in launches)
    used = sum(number(launch, _SECTORS) * number(launch, _USED) / 100 for launch in launches)
    return Counts(len(launches), int(atomics), int(sectors), used / sectors if sectors else 1.0)
