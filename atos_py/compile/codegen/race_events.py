"""What happens in a launch with `debug="races"`: tasks begin and push, and access elements, which are looked at for races.

Of each element that tasks may write, the *shadow* keeps the last plain write, the last atomic operation after which a read
depends on the order (such as `atomic_add`), the last of any other atomic operation, and up to four plain reads. Of the atomic
operations it also keeps the last one of another task before: where tasks count, the last one is of the task that pushes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from . import race_order as order
from .race_order import acquire, add_node, forget_sources, is_ordered, release, sources_of

__all__ = [
    "ACCUMULATES",
    "ACQUIRES",
    "CHANGES",
    "LOADS",
    "MOST_REPORTS",
    "READS",
    "RELEASES",
    "REPORT",
    "SHADOW",
    "STORES",
    "WRITES",
    "access",
    "asked_for_index",
    "begin_item",
    "begin_iteration",
    "between_rounds",
    "fence",
    "pushed",
    "read",
    "synchronize",
]

# Kinds of accesses, and what the memory order adds to a kind.
READS, WRITES, ACCUMULATES, CHANGES, LOADS, STORES = range(6)
RELEASES, ACQUIRES = 8, 16

# Shadow of an element: accesses, of each of which it has the epoch, which is the node and the time in one word, and the site; 0
# is none. They are the last write, four readers, two that add and two others. A line of the cache has what a read looks at: the
# last write, what it wrote, which reader came last, and the epochs of readers, whose sites follow.
SHADOW = 24
_SITE, _WRITTEN, _LAST_READER, _READERS, _SITES_OF_READERS, _ADDERS, _OTHERS, _END = 1, 2, 3, 4, 8, 12, 16, 20
_HAS_ADDERS = 4  # with the number of the last reader
_SITES = (1 << 24) - 1
_DID_CHANGE = 1 << 24  # with the site of a write that changed the element; above it is the iteration
_OF_WRITE, _OF_READERS, _OF_ADDERS, _OF_OTHERS = 1, 2, 4, 8

_OF_WORKER = 8  # the address of no word, which stands for the worker

# A race: the array, the element, and of either access the node, the site, and the iteration.
REPORT = 8
MOST_REPORTS = 20


@njit
def _random(m: Any) -> int:
    """Return the next random number of 31 bits (xorshift)."""
    x = np.uint64(m[order.RANDOM])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    m[order.RANDOM] = np.int64(x)
    return np.int64(x >> np.uint64(33))


@njit
def _end_round(m: Any) -> None:
    m[order.STAMP] += 1
    m[order.BARRIER] = m[order.STAMP]


@njit
def _run(m: Any, node: int) -> None:
    """Go on with a node that begins."""
    if m[order.ASKED]:
        m[order.ASKED] = 0
        m[order.STAMP] += 1
        release(m, _OF_WORKER, m[order.STAMP])
    m[order.STAMP] += 1
    m[m[order.NODES] + order.NODE * node + order.BEGIN] = m[order.STAMP]
    m[order.CURRENT], m[order.SINCE], m[order.ITERATION] = node, 0, -1
    m[order.FENCE] = m[order.NUM_SEEN] = 0


@njit
def _bucket(m: Any, a: int, b: int, c: int, d: int) -> int:
    """Return the place of the list of pushed tasks with such items."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
    x ^= np.uint64(c) * np.uint64(0x165667B19E3779F9) ^ np.uint64(d) * np.uint64(0x27D4EB2F165667C5)
    x ^= x >> np.uint64(29)
    return m[order.PENDING] + np.int64(x & np.uint64(m[order.PENDING_MASK]))


@njit
def _set_item(m: Any, node: int, a: int, b: int, c: int, d: int) -> None:
    words = m[order.NODES] + order.NODE * node + order.ITEM_WORDS
    m[words], m[words + 1], m[words + 2], m[words + 3] = a, b, c, d


@njit
def pushed(m: Any, a: int, b: int, c: int, d: int) -> None:
    """Note a push by the running task of an item of so many words."""
    if m[order.STATE] != order.ON:
        return
    node = add_node(m, m[order.CURRENT])
    if node == 0:
        return
    _set_item(m, node, a, b, c, d)
    place = _bucket(m, a, b, c, d)
    m[m[order.NODES] + order.NODE * node + order.NEXT] = m[place]
    m[place] = node


@njit
def _take_pushed(m: Any, a: int, b: int, c: int, d: int) -> int:
    """Take a task that was pushed with this item out of those that wait; 0 if the host has pushed it.

    Items that are equal are not told apart: the queue might have handed them out in any order.
    """
    before = place = _bucket(m, a, b, c, d)
    node = m[place]
    while node:
        words = m[order.NODES] + order.NODE * node + order.ITEM_WORDS
        following = m[order.NODES] + order.NODE * node + order.NEXT
        if m[words] == a and m[words + 1] == b and m[words + 2] == c and m[words + 3] == d:
            m[before] = m[following]
            return node
        before, node = following, m[following]
    return 0


@njit
def begin_item(m: Any, round: int, kind: int, a: int, b: int, c: int, d: int) -> int:
    """Begin the task of an item, and return 1; or 0 if the item is to be pushed again, since another order was drawn."""
    if m[order.STATE] != order.ON:
        return 1
    if m[order.DEFERS] and _random(m) & 1:
        m[order.DEFERRED] += 1
        m[order.DEFERRED_BY + kind] += 1
        return 0
    if round != m[order.ROUND]:
        m[order.ROUND] = round
        _end_round(m)
    node = _take_pushed(m, a, b, c, d)
    if node == 0:
        m[order.SINCE] = 0
        node = add_node(m, 1)
        if node == 0:
            return 1
        _set_item(m, node, a, b, c, d)
    _run(m, node)
    return 1


@njit
def asked_for_index(m: Any) -> None:
    """Order the running task after those before it that asked for the number of their worker: it was the same one."""
    if m[order.STATE] == order.ON and m[order.ASKED] == 0:
        acquire(m, sources_of(m, _OF_WORKER))
        m[order.ASKED] = 1


@njit
def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@njit
def begin_iteration(m: Any, i: int, n: int) -> int:
    """Begin the next of the `n` iterations of an item; return which one it is, in an order drawn by chance."""
    if m[order.STATE] != order.ON:
        return i
    if i == 0:
        m[order.STEP], m[order.OFFSET] = 1, 0
        m[m[order.NODES] + order.NODE * m[order.CURRENT] + order.BODY] = m[order.STAMP] + 1
        if 2 < n < 1 << 30:
            step = _random(m) % n
            m[order.STEP] = step if _gcd(step, n) == 1 else n - 1
            m[order.OFFSET] = _random(m) % n
    i = m[order.OFFSET]
    following = i + m[order.STEP]
    m[order.OFFSET] = following if following < n else following - n
    m[order.STAMP] += 1
    m[order.SINCE], m[order.ITERATION] = m[order.STAMP], i
    m[order.FENCE] = m[order.NUM_SEEN] = 0
    return i


@njit
def between_rounds(m: Any) -> None:
    """Begin an idle function, or the one between rounds, which is ordered with all that is before and after it."""
    if m[order.STATE] != order.ON:
        return
    _end_round(m)
    m[order.SINCE] = 0
    node = add_node(m, 1)
    if node:
        m[m[order.NODES] + order.NODE * node + order.ITEM_WORDS] = order.NEVER
        _run(m, node)
    m[order.ROUND] = -1  # so that the next task ends a round too


@njit
def synchronize(m: Any, address: int, kind: int, stores: int) -> None:
    """Release and acquire as an atomic operation on a word does; it `stores` 1, or nothing where it changes nothing, 0."""
    if m[order.STATE] != order.ON:
        return
    access, head = kind & 7, 0
    if m[order.NUM_WORDS]:
        head = sources_of(m, address)
    if stores and access != READS and access != LOADS:
        if access in (WRITES, STORES) and head:
            forget_sources(m, address)
        if kind & RELEASES:
            m[order.STAMP] += 1
            release(m, address, m[order.STAMP])
        elif m[order.FENCE]:
            release(m, address, m[order.FENCE])
    if kind & ACQUIRES:
        acquire(m, head)
    elif head and access != WRITES and access != STORES:
        m[order.SEEN + m[order.NUM_SEEN] % order.MOST_SEEN] = head
        m[order.NUM_SEEN] += 1


@njit
def fence(m: Any, kind: int) -> None:
    """Let later stores of the running task release, or let it acquire what its loads have seen."""
    if m[order.STATE] != order.ON:
        return
    if kind & ACQUIRES:
        for k in range(min(m[order.NUM_SEEN], order.MOST_SEEN)):
            acquire(m, m[order.SEEN + k])
        m[order.NUM_SEEN] = 0
    if kind & RELEASES:
        m[order.STAMP] += 1
        m[order.FENCE] = m[order.STAMP]


@njit
def _is_known(m: Any, one: int, other: int) -> bool:
    """Whether a race of these two sites has been reported."""
    for k in range(m[order.NUM_REPORTS]):
        report = m[order.REPORTS] + REPORT * k
        first, second = m[report + 3], m[report + 6]
        if (first == one and second == other) or (first == other and second == one):
            return True
    return False


@njit
def _report(m: Any, number: int, address: int, epoch: int, of_other: int, site: int) -> None:
    """Report a race with an access of a shadow, unless there is an order, or its lines are known."""
    node, stamp, other = epoch >> 32, epoch & 0xFFFF_FFFF, of_other & _SITES
    if epoch == 0:
        return
    if node == m[order.CURRENT] and stamp >= m[order.SINCE]:
        return
    if (m[order.NUM_REPORTS] and _is_known(m, other, site)) or m[order.STATE] != order.ON or is_ordered(m, node, stamp):
        return
    k = m[order.NUM_REPORTS]
    report = m[order.REPORTS] + REPORT * k
    m[report], m[report + 1] = number, address
    m[report + 2], m[report + 3], m[report + 4] = node, other, of_other >> 32
    m[report + 5], m[report + 6], m[report + 7] = m[order.CURRENT], site, m[order.ITERATION]
    m[order.NUM_REPORTS] = k + 1
    if k + 1 == MOST_REPORTS:
        m[order.STATE] = order.FULL


@njit
def _conflicts(mine: int, is_new: bool, changes: bool, did_change: bool) -> int:
    """Return which accesses of a shadow an access is in a race with, unless an order says otherwise, as bits.

    A write that `is_new` stores other bits than the last write, and one that `changes` other bits than the element has; the
    last write `did_change` if it stored other bits than the element had. A write of the bits that were there takes nothing from
    a reader.
    """
    if mine == WRITES:
        return (_OF_WRITE if is_new else 0) | (_OF_ADDERS | _OF_OTHERS | _OF_READERS if changes else 0)
    if mine == READS:
        return (_OF_WRITE if did_change else 0) | _OF_ADDERS
    if mine == LOADS:
        return _OF_WRITE if did_change else 0
    return _OF_WRITE | (_OF_READERS if mine == ACCUMULATES else 0)


@njit
def _note(m: Any, element: int, mine: int, epoch: int, site: int) -> None:
    """Keep an access that is no write."""
    if mine == READS:
        last = m[element + _LAST_READER]
        place = last & 3
        if m[element + _READERS + place] >> 32 != epoch >> 32:
            place = last + 1 & 3
            m[element + _LAST_READER] = last & _HAS_ADDERS | place
        m[element + _READERS + place], m[element + _SITES_OF_READERS + place] = epoch, site
        return
    if mine == ACCUMULATES:
        m[element + _LAST_READER] |= _HAS_ADDERS
    at = element + (_ADDERS if mine == ACCUMULATES else _OTHERS)
    if m[at] < (m[order.CURRENT] << 32 | m[order.SINCE]) or m[at] >> 32 != m[order.CURRENT]:
        m[at + 2], m[at + 3] = m[at], m[at + 1]
    m[at], m[at + 1] = epoch, site


def read(m: Any, site: int, number: int, address: int) -> bool:
    """Keep a plain read of an element, as `access` does, and return True; or False where there is more to look at.

    It is compiled into tasks, of whose accesses nearly all are such reads.
    """
    if m[order.STATE] != order.ON:
        return True
    array = m[order.ARRAYS] + 3 * number
    element = m[array + 2] + SHADOW * (address - m[array] >> m[array + 1])
    is_old = m[element] & 0xFFFF_FFFF < m[order.BARRIER] or not m[element + _SITE] & _DID_CHANGE
    last = m[element + _LAST_READER]
    if (m[element] and not is_old) or last & _HAS_ADDERS or m[order.NUM_WORDS] | m[order.FENCE]:
        return False
    current, place = m[order.CURRENT], last & 3
    if m[element + _READERS + place] >> 32 != current:
        place = last + 1 & 3
        m[element + _LAST_READER] = place
    m[element + _READERS + place] = current << 32 | m[order.STAMP]
    m[element + _SITES_OF_READERS + place] = m[order.ITERATION] << 32 | site
    return True


@njit
def access(m: Any, kind: int, site: int, number: int, address: int, old: int, new: int) -> None:
    """Look at an access of an element, whose bits were `old` and are `new`, and keep it."""
    if m[order.STATE] != order.ON:
        return
    array = m[order.ARRAYS] + 3 * number
    element = m[array + 2] + SHADOW * (address - m[array] >> m[array + 1])
    epoch, mine, changes = m[order.CURRENT] << 32 | m[order.STAMP], kind & 7, old != new
    did_change = m[element + _SITE] & _DID_CHANGE != 0
    of_mine = m[order.ITERATION] << 32 | site
    conflicts = _conflicts(mine, m[element + _WRITTEN] != new, changes, did_change)
    if conflicts & _OF_WRITE:
        _report(m, number, address, m[element], m[element + _SITE], site)
    if conflicts & _OF_ADDERS and m[element + _LAST_READER] & _HAS_ADDERS:
        for at in range(element + _ADDERS, element + _OTHERS, 2):
            _report(m, number, address, m[at], m[at + 1], site)
    if conflicts & _OF_OTHERS:
        for at in range(element + _OTHERS, element + _END, 2):
            _report(m, number, address, m[at], m[at + 1], site)
    if conflicts & _OF_READERS:
        for at in range(element + _READERS, element + _SITES_OF_READERS):
            _report(m, number, address, m[at], m[at + _SITES_OF_READERS - _READERS], site)
    if mine != WRITES and (mine != CHANGES or changes):
        _note(m, element, mine, epoch, of_mine)
    elif mine == WRITES and (changes or not did_change):
        if changes:
            for k in range(_LAST_READER, _END):
                m[element + k] = 0
        m[element], m[element + _SITE] = epoch, of_mine | (_DID_CHANGE if changes else 0)
        m[element + _WRITTEN] = new
    if kind >= 8 or m[order.NUM_WORDS] or m[order.FENCE]:
        synchronize(m, address, kind, 1 if mine != CHANGES or changes else 0)
