"""Which accesses of a launch happen before others: the tasks as a tree of pushes, and what releases and acquires add to it.

All tables of a launch are in one array of words, `m`, whose first words say where the tables begin. Time is a count, `STAMP`,
which goes on where a task or an iteration begins, pushes or releases. Tasks run one after the other, so that an access is the
pair of its task, a *node*, and the time. At a time `until` a node knows of its own accesses those before, but of iterations of
a nested task those of one iteration alone, the one that began at the time `since`. An access happens before what runs now if

- a round has ended in between (`BARRIER` is the time when the last round did),
- the running task knows the access as its own, or a task that pushed the running task, or one that pushed that, knew it at
  the push,
- or a task that knew the access released, and the running task, or one of those that pushed the running task, acquired that
  before.

The ancestors of a node are found by jump pointers (Myers, "An applicative random-access stack", 1983), in a number of steps
that is the logarithm of the depth. Releases of one word are a list with such pointers too. Where one release leads to others, a
search follows them backwards; a search that takes more than `MOST_STEPS` is given up, and the accesses count as ordered.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["HEADER", "acquire", "add_node", "is_ordered", "release"]

# Words of `m`.
STAMP, BARRIER, ROUND, CURRENT, NUM_NODES, MAX_NODES, STATE, RANDOM, DEFERRED = range(9)
FENCE, NUM_SEEN, DEFERS, STEP, OFFSET, QUERY, GIVEN_UP, NUM_REPORTS = range(9, 17)
ARRAYS, SHADOW, NODES, PENDING, PENDING_MASK, WORDS, WORDS_MASK, NUM_WORDS = range(18, 26)
SOURCES, NUM_SOURCES, MAX_SOURCES, EDGES, NUM_EDGES, MAX_EDGES, STACK, REPORTS, SINCE, ITERATION, ASKED, MEMO = range(26, 38)
SEEN, MOST_SEEN = 40, 16  # releases that a fence may acquire
DEFERRED_BY = 64  # by the kind of the task
HEADER = 64 + 256

# Values of STATE.
ON, TOO_MANY, FULL = range(3)

# Fields of a node. Its parent pushed the node at the time BORN, in an iteration that began at the time OF. Iterations begin
# from the time BODY on, which for a flat task never comes. The item has four words.
NODE = 16
PARENT, BORN, OF, BODY, DEPTH, JUMP, BEGIN, EDGE, ABOVE, NEXT, VISITED, VISITED_AT, ITEM_WORDS = range(13)
NEVER = 1 << 62
# Fields of a source: a release of a word, after the one at S_NEXT.
SOURCE = 6
S_NODE, S_STAMP, S_OF, S_NEXT, S_JUMP, S_DEPTH = range(SOURCE)
# Fields of an edge: an acquisition of a list of sources.
EDGE_SIZE = 3
E_HEAD, E_STAMP, E_NEXT = range(EDGE_SIZE)
# Fields of a word that has been released.
WORD = 2
W_ADDRESS, W_HEAD = range(WORD)

MOST_STEPS, MOST_STACK = 4096, 1024
MEMO_SIZE = 4096  # searches whose end is remembered: the node, the time, and the running task and iteration; a power of two


@njit
def add_node(m: Any, parent: int) -> int:
    """Add a task that `parent` has pushed now; return its number, or 0 if there are too many."""
    k = m[NUM_NODES]
    if k >= m[MAX_NODES]:
        m[STATE] = TOO_MANY
        return 0
    m[NUM_NODES] = k + 1
    m[STAMP] += 1
    node, up = m[NODES] + NODE * k, m[NODES] + NODE * parent
    m[node + PARENT], m[node + BORN], m[node + DEPTH] = parent, m[STAMP], m[up + DEPTH] + 1
    jump = m[up + JUMP]
    first, second = m[NODES] + NODE * jump, m[NODES] + NODE * m[m[NODES] + NODE * jump + JUMP]
    even = m[up + DEPTH] - m[first + DEPTH] == m[first + DEPTH] - m[second + DEPTH]
    m[node + JUMP] = m[first + JUMP] if even else parent
    m[node + ABOVE] = parent if m[up + EDGE] else m[up + ABOVE]
    m[node + OF], m[node + BODY] = m[SINCE], NEVER
    return k


@njit
def _ancestor(m: Any, node: int, depth: int) -> int:
    """Return the ancestor of a node at a depth that is at most the node's own."""
    nodes = m[NODES]
    while m[nodes + NODE * node + DEPTH] > depth:
        jump = m[nodes + NODE * node + JUMP]
        node = jump if m[nodes + NODE * jump + DEPTH] >= depth else m[nodes + NODE * node + PARENT]
    return node


@njit
def _knows(m: Any, node: int, stamp: int, since: int, until: int) -> bool:
    """Whether a node, at the time `until` in an iteration that began at `since`, knows what it did at the time `stamp`."""
    return stamp < until and (stamp >= since or stamp < m[m[NODES] + NODE * node + BODY])


@njit
def _by_pushes(m: Any, node: int, stamp: int, later: int, since: int, until: int) -> bool:
    """Whether an access of `node` is before what `later` does at a time, by program order and pushes."""
    if node == later:
        return _knows(m, node, stamp, since, until)
    nodes = m[NODES]
    depth = m[nodes + NODE * node + DEPTH]
    if depth >= m[nodes + NODE * later + DEPTH]:
        return False
    child = nodes + NODE * _ancestor(m, later, depth + 1)
    return m[child + PARENT] == node and _knows(m, node, stamp, m[child + OF], m[child + BORN])


@njit
def _is_source(m: Any, head: int, node: int, stamp: int) -> bool:
    """Whether `node` has released in a list, after the time `stamp`."""
    nodes, sources = m[NODES], m[SOURCES]
    key = m[nodes + NODE * node + BEGIN]
    while head:
        source = sources + SOURCE * head
        if m[nodes + NODE * m[source + S_NODE] + BEGIN] <= key:
            while head and m[source + S_NODE] == node:
                if _knows(m, node, stamp, m[source + S_OF], m[source + S_STAMP]):
                    return True
                head = m[source + S_NEXT]
                source = sources + SOURCE * head
            return False
        jump = m[source + S_JUMP]
        beyond = jump and m[nodes + NODE * m[sources + SOURCE * jump + S_NODE] + BEGIN] > key
        head = jump if beyond else m[source + S_NEXT]
    return False


@njit
def _by_releases(m: Any, node: int, stamp: int) -> bool:
    """Whether an access is before what runs now by releases and acquisitions, and pushes between them."""
    nodes, sources, edges, stack = m[NODES], m[SOURCES], m[EDGES], m[STACK]
    key = m[nodes + NODE * node + BEGIN]
    m[QUERY] += 1
    query, steps, top = m[QUERY], 0, 1
    m[stack], m[stack + 1], m[stack + 2] = m[CURRENT], m[SINCE], m[STAMP] + 1
    while top:
        top -= 1
        later, since, until = m[stack + 3 * top], m[stack + 3 * top + 1], m[stack + 3 * top + 2]
        while later:
            edge = m[nodes + NODE * later + EDGE]
            while edge:
                steps += 1
                place = edges + EDGE_SIZE * edge
                head = m[place + E_HEAD]
                if _knows(m, later, m[place + E_STAMP], since, until):
                    if _is_source(m, head, node, stamp):
                        return True
                    while head:
                        source = sources + SOURCE * head
                        other, of, then = m[source + S_NODE], m[source + S_OF], m[source + S_STAMP]
                        it = nodes + NODE * other
                        if m[it + BEGIN] <= key:
                            break
                        if _by_pushes(m, node, stamp, other, of, then):
                            return True
                        steps += 1
                        if steps > MOST_STEPS or top >= MOST_STACK:
                            m[GIVEN_UP] += 1
                            return True
                        seen = m[it + VISITED] == query and m[it + VISITED_AT] >= then and m[it + BODY] == NEVER
                        if not seen and (m[it + EDGE] or m[it + ABOVE]):
                            m[it + VISITED], m[it + VISITED_AT] = query, then
                            m[stack + 3 * top], m[stack + 3 * top + 1], m[stack + 3 * top + 2] = other, of, then
                            top += 1
                        head = m[source + S_NEXT]
                edge = m[place + E_NEXT]
            above = m[nodes + NODE * later + ABOVE]
            if above:
                child = _ancestor(m, later, m[nodes + NODE * above + DEPTH] + 1)
                since, until = m[nodes + NODE * child + OF], m[nodes + NODE * child + BORN]
            later = above
    return False


@njit
def is_ordered(m: Any, node: int, stamp: int) -> bool:
    """Whether an access of `node` at the time `stamp` happens before what the running task does now."""
    if stamp < m[BARRIER] or _by_pushes(m, node, stamp, m[CURRENT], m[SINCE], m[STAMP] + 1):
        return True
    if m[NUM_EDGES] <= 1:
        return False
    known = m[MEMO] + 4 * (node & MEMO_SIZE - 1)
    is_same = m[known] == node and m[known + 2] == m[CURRENT] and m[known + 3] == m[SINCE]
    # Who knows what a flat task did at a time knows what the task did before.
    is_flat = m[m[NODES] + NODE * node + BODY] == NEVER
    if is_same and (stamp == m[known + 1] or (stamp < m[known + 1] and is_flat)):
        return True
    if not _by_releases(m, node, stamp):
        return False
    m[known], m[known + 1], m[known + 2], m[known + 3] = node, stamp, m[CURRENT], m[SINCE]
    return True


@njit
def _word(m: Any, address: int, adds: bool) -> int:
    """Return the place of what is known of a word in memory that is released; 0 if nothing is, unless it `adds` the word."""
    mask = m[WORDS_MASK]
    place = (address >> 2) * 0x9E3779B1 & mask
    while m[m[WORDS] + WORD * place + W_ADDRESS] != address:
        if m[m[WORDS] + WORD * place + W_ADDRESS] == 0:
            if not adds:
                return 0
            if 2 * m[NUM_WORDS] > mask:
                m[STATE] = TOO_MANY
                return 0
            m[NUM_WORDS] += 1
            m[m[WORDS] + WORD * place + W_ADDRESS] = address
            break
        place = place + 1 & mask
    return m[WORDS] + WORD * place


@njit
def release(m: Any, address: int, stamp: int) -> None:
    """Add the running task to the sources of a word; it releases what it did before the time `stamp`."""
    word, k = _word(m, address, True), m[NUM_SOURCES]
    if word == 0 or k >= m[MAX_SOURCES]:
        m[STATE] = TOO_MANY
        return
    m[NUM_SOURCES] = k + 1
    sources, head = m[SOURCES], m[word + W_HEAD]
    source, following = sources + SOURCE * k, sources + SOURCE * head
    m[source + S_NODE], m[source + S_STAMP], m[source + S_OF], m[source + S_NEXT] = m[CURRENT], stamp, m[SINCE], head
    m[source + S_DEPTH] = m[following + S_DEPTH] + 1
    jump = m[following + S_JUMP]
    first = sources + SOURCE * jump
    second = sources + SOURCE * m[first + S_JUMP]
    even = m[following + S_DEPTH] - m[first + S_DEPTH] == m[first + S_DEPTH] - m[second + S_DEPTH]
    m[source + S_JUMP] = m[first + S_JUMP] if even else head
    m[word + W_HEAD] = k


@njit
def sources_of(m: Any, address: int) -> int:
    """Return the list of releases of a word, 0 if it has none."""
    word = _word(m, address, False)
    return m[word + W_HEAD] if word else 0


@njit
def forget_sources(m: Any, address: int) -> None:
    """Forget the releases of a word, which a store has replaced."""
    word = _word(m, address, False)
    if word:
        m[word + W_HEAD] = 0


@njit
def acquire(m: Any, head: int) -> None:
    """Let the running task know what a list of sources has released."""
    k = m[NUM_EDGES]
    if head == 0:
        return
    if k >= m[MAX_EDGES]:
        m[STATE] = TOO_MANY
        return
    node, edge = m[NODES] + NODE * m[CURRENT], m[EDGES] + EDGE_SIZE * k
    m[edge + E_HEAD], m[edge + E_STAMP], m[edge + E_NEXT] = head, m[STAMP], m[node + EDGE]
    m[node + EDGE] = k
    m[NUM_EDGES] = k + 1
