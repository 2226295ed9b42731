"""Gathering of the items in the queues of all processes of a group, in the first of them, through memory that they share."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.process_group import ProcessGroup
from ..core.shared_blocks import share_blocks
from .checkpoint import QueueState
from .core_queue import Form

__all__ = ["Part", "gather_parts"]

# The form of the items of a queue, these as they are stored, and how it stood then: what `CoreQueue.read` returns.
Part = tuple[Form, NDArray[np.uint8], QueueState]


def gather_parts(
    group: ProcessGroup, part: Part, priorities: NDArray[np.float64] | None
) -> tuple[Sequence[Part], NDArray[np.float64] | None]:
    """Return what waits in each process, by rank, and all priorities, in process 0; in any other the part that it has given.

    All processes call this, with priorities or without.
    """
    form, stored, state = part
    given = [stored.reshape(-1)]
    if priorities is not None:
        given.insert(0, priorities.view(np.uint8))  # first, so that they are aligned
    blocks = share_blocks(group, sum(values.size for values in given) if group.rank else 0)
    if (block := blocks[group.rank]) is not None:
        for values in given:
            block.write(values.data)
    told = [json.loads(each) for each in group.gather(json.dumps([form.kinds, state]).encode())]  # all have written
    if group.rank:
        return [part], priorities
    parts, all_priorities = [part], [np.empty(0) if priorities is None else priorities]
    for block, (kinds, counts) in zip(blocks[1:], told[1:], strict=True):
        theirs, its_state = form._replace(handle=None, kinds=None if kinds is None else tuple(kinds)), QueueState(*counts)
        found, count = np.frombuffer(b"" if block is None else block, np.uint8), its_state.pending
        border = 0 if priorities is None else 8 * count
        all_priorities.append(found[:border].view(np.float64))
        parts.append((theirs, found[border:].reshape(count, theirs.stride), its_state))
    return parts, None if priorities is None else np.concatenate(all_priorities)
