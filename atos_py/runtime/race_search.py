"""The search for races in a launch with `debug="races"`: its tables before the launch, and its report after it."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile.debug_checks import Checks
from ..compile.kinds import Launchable, Tasks, tasks_of
from ..compile.race_report import Race, mend_of
from ..errors import DeviceMemoryError, RaceError
from ..support.validation import read_number
from ..support.warn import warn_caller
from .launch_errors import LaunchedQueue
from .launch_options import LaunchConfig
from .stats import LaunchStats
from .waiting import arrays_in

__all__ = ["RaceSearch"]

#: Tasks and iterations that a search follows: 128 bytes of each.
MOST_TASKS = 1 << 22
_MOST_RELEASES = 1 << 22
_MOST_WORDS = 1 << 21  # a power of two
_LISTS = 1 << 17  # of items that wait; a power of two
_NO_RESERVE = 0x4000  # Linux takes no account of pages that are not used, of which pools have many
_one_at_a_time = threading.Lock()  # since compiled code finds the tables of one launch
_nothing = np.ones(512, np.int64)  # tables for the tasks of a launch that has not ended: nothing is kept


class RaceSearch:
    """The tables in which the tasks of a launch leave what they do, while this is entered.

    Parameters
    ----------
    queue : LaunchedQueue
    config : LaunchConfig
    values : sequence
        The arguments of the launch, as `Arguments` has them.
    """

    def __init__(self, queue: LaunchedQueue, config: LaunchConfig, values: Sequence[Any]) -> None:
        from ..compile.codegen import race_events as events
        from ..compile.codegen import race_order as order

        self._queue, self._config = queue, config
        self._arrays = [array for array, _ in arrays_in(values)]
        sizes = {
            order.ARRAYS: -(-3 * max(len(self._arrays), 1) // 8) * 8,  # whole lines of the cache
            order.SHADOW: events.SHADOW * (self._elements() + 1),
            order.NODES: order.NODE * MOST_TASKS,
            order.PENDING: _LISTS,
            order.WORDS: order.WORD * _MOST_WORDS,
            order.SOURCES: order.SOURCE * _MOST_RELEASES,
            order.EDGES: order.EDGE_SIZE * _MOST_RELEASES,
            order.STACK: 3 * (order.MOST_STACK + 1),
            order.MEMO: 4 * order.MEMO_SIZE,
            order.REPORTS: events.REPORT * events.MOST_REPORTS,
        }
        self._tables = tables = _zeros(order.HEADER + sum(sizes.values()))
        place = order.HEADER
        for word, size in sizes.items():
            tables[word], place = place, place + size
        tables[order.PENDING_MASK], tables[order.WORDS_MASK] = _LISTS - 1, _MOST_WORDS - 1
        tables[order.MAX_NODES] = MOST_TASKS
        tables[order.MAX_SOURCES] = tables[order.MAX_EDGES] = _MOST_RELEASES
        tables[order.NUM_SOURCES] = tables[order.NUM_EDGES] = tables[order.STAMP] = tables[order.BARRIER] = 1
        # Node 1 is the launch itself, which pushes the items of the host.
        tables[order.NUM_NODES], tables[tables[order.NODES] + order.NODE + order.BODY] = 2, order.NEVER
        tables[order.RANDOM] = read_number("ATOS_RACES_SEED") * 0x2545F4914F6CDD1D % (1 << 62) + 1
        in_order = config.barrier or queue._buckets is not None or queue._take == "newest"
        tables[order.DEFERS] = not in_order
        for number, (begin, shift, first) in enumerate(self._rows):
            row = begin, shift, tables[order.SHADOW] + events.SHADOW * first
            tables[tables[order.ARRAYS] + 3 * number :][:3] = row

    def _elements(self) -> int:
        """Give each array its rows in the shadow, where arrays that share memory share elements; return how many there are."""
        self._rows = [(0, 0, 0)] * len(self._arrays)
        by_address = sorted(range(len(self._arrays)), key=lambda k: self._arrays[k].pointer)
        count, begin, end, unit = 0, 0, 0, 1
        for k in by_address:
            array = self._arrays[k]
            size = array.size * array.dtype.itemsize
            if array.pointer >= end:
                begin, end, unit, first = array.pointer, array.pointer, array.dtype.itemsize, count
            more = max(array.pointer + size - end, 0)
            count += -(-more // unit) + (1 if more else 0)
            end = max(end, array.pointer + size)
            self._rows[k] = (begin, unit.bit_length() - 1, first)
        return count

    def __enter__(self) -> RaceSearch:
        from ..compile.codegen import race_hooks

        _one_at_a_time.acquire()
        race_hooks.tables[0] = self._tables.ctypes.data
        return self

    def __exit__(self, *_: object) -> None:
        from ..compile.codegen import race_hooks

        race_hooks.tables[0] = _nothing.ctypes.data
        _one_at_a_time.release()

    def correct(self, stats: LaunchStats) -> None:
        """Take the items that were put off out of the counts of a launch."""
        from ..compile.codegen import race_order as order

        put_off = int(self._tables[order.DEFERRED])
        stats.tasks_run -= put_off
        stats.tasks_pushed -= put_off
        for number, name in enumerate(stats.tasks_run_by):
            stats.tasks_run_by[name] -= int(self._tables[order.DEFERRED_BY + number])

    def check(self, launched: Launchable, checks: Checks) -> None:
        """Raise what was found; warn if the search ended before the launch did.

        Raises
        ------
        RaceError
        """
        from ..compile.codegen import race_events as events
        from ..compile.codegen import race_order as order

        tables, first = self._tables, int(self._tables[order.REPORTS])
        rows = [tables[first + events.REPORT * k :][: events.REPORT].tolist() for k in range(tables[order.NUM_REPORTS])]
        races = tuple(self._race(row, launched, checks) for row in rows)
        ended = ""
        if tables[order.STATE] == order.TOO_MANY:
            ended = (
                f'debug="races" follows {MOST_TASKS:,} tasks of a launch, and {_MOST_RELEASES:,} releases, and this launch has'
                " more: what came after was not looked at, so try a smaller input"
            )
        if races:
            count = "1 race" if len(races) == 1 else f"{len(races)} races"
            most = " and looked no further" if tables[order.STATE] == order.FULL else ""
            lines = "".join(f"\n  {line}" for line in [*map(str, races), *([ended] if ended else [])])
            error = RaceError(f'debug="races" found {count} in the launch of {launched.name}{most}:{lines}')
            error.races = races
            raise error
        if ended:
            warn_caller(ended, RuntimeWarning)

    def _race(self, row: list[int], launched: Launchable, checks: Checks) -> Race:
        number, address, *accesses = row
        sites = [checks.sites[accesses[1]], checks.sites[accesses[4]]]
        nodes = [self._node(accesses[0], launched), self._node(accesses[3], launched)]
        iterations = [accesses[2] if accesses[2] >= 0 else None, accesses[5] if accesses[5] >= 0 else None]
        array, task = self._arrays[number], nodes[1][0]
        index = (address - array.pointer) // array.dtype.itemsize
        where = int(index) if array.ndim == 1 else tuple(int(i) for i in np.unravel_index(index, array.shape))
        operations = sites[0].detail, sites[1].detail
        counts = any(site.detail == "atomic_add" for site in checks.sites if site.kind == "access" and site not in sites)
        return Race(
            array=checks.arrays[task][number],
            index=where,
            operations=operations,
            tasks=(nodes[0][0], nodes[1][0]),
            functions=(sites[0].function, sites[1].function),
            filenames=(sites[0].filename, sites[1].filename),
            lines=(sites[0].line, sites[1].line),
            items=(nodes[0][1], nodes[1][1]),
            iterations=(iterations[0], iterations[1]),
            mend=mend_of(operations, counts),
        )

    def _node(self, number: int, launched: Launchable) -> tuple[str, Any]:
        """Return the task and the item of a node; of a function without an item, the first task."""
        from ..compile.codegen import race_order as order

        members = tasks_of(launched)
        words = self._tables[self._tables[order.NODES] + order.NODE * number + order.ITEM_WORDS :][:4]
        if words[0] == order.NEVER:
            return members[0].name, None
        stored, kind = words.tobytes(), 0
        if isinstance(launched, Tasks):
            from ..compile.codegen import stored_bytes

            kind = stored[stored_bytes(self._queue._dtype.itemsize, True) - 1]
        return members[kind].name, np.frombuffer(stored, self._queue._dtype, 1)[0].item()


def _zeros(size: int) -> NDArray[np.int64]:
    """Return so many words, which take memory as they are used."""
    try:
        memory = mmap.mmap(-1, 8 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    except (OSError, OverflowError) as error:
        raise DeviceMemoryError(f'debug="races" takes {8 * size:,} bytes, which the host does not have') from error
    return np.frombuffer(memory, np.int64, count=size)
