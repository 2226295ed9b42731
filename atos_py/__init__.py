"""Task-parallel irregular work on GPUs: one shared queue, tasks in Python, persistent and discrete launches."""

from . import generate
from .algorithms.bfs import UNREACHED, BFSResult, bfs
from .array import Array, asarray, empty, full, zeros
from .devices import Device, device, devices
from .errors import *  # noqa: F403
from .graph import Graph
from .queue import Queue
from .stats import LaunchStats
from .task import (
    Task,
    Worker,
    atomic_add,
    atomic_and_,
    atomic_cas,
    atomic_exch,
    atomic_max,
    atomic_min,
    atomic_or_,
    task,
)

__version__ = "0.1.0"
