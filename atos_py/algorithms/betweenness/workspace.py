"""Workspace of workers: arrays with a row for each of them (`Worker.index`), of which memory holds only so many."""

from __future__ import annotations

from ...core.devices import Device
from ...runtime.launch_options import LaunchOptions
from ...support.validation import check_int

__all__ = ["share_of_memory"]

_MOST_BYTES = 8 << 30  # that all rows may take, unless those of one block take more
_BLOCKS = {"cpu": 1, "cuda": 4}  # of each processor


def share_of_memory(device: Device, items: int, row_bytes: int, worker: str, options: LaunchOptions) -> tuple[int, int]:
    """Return the number of blocks, as was asked for or as many as are of use, and how many workers they have at most.

    That is for a launch in which each worker works on one of so many items at a time, in a row of so many bytes.
    """
    threads = options.get("num_threads") or 256
    lanes = {"cta": 1, "warp": check_int("num_threads", threads, 1, 1024) // 32, "thread": threads}
    of_block = 1 if device.kind == "cpu" else max(lanes[worker], 1)
    useful = min(_BLOCKS[device.kind] * device.processors, -(-items // of_block))
    fitting = _MOST_BYTES // (of_block * row_bytes)
    asked = options.get("num_blocks")
    blocks = max(1, min(useful, fitting)) if asked is None else check_int("num_blocks", asked, 1, 2**31 - 1)
    return blocks, blocks * of_block
