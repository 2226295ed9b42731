"""Tasks of belief propagation: all messages that leave a vertex, by a team of threads, in logarithms.

The message that comes to v along its edge (v, u) is in row `edge` of the messages; so what a vertex reads lies side by side,
and what it sends goes to the rows of the reverse edges. A message is made of the belief of the vertex without what came along
the same edge. It is multiplied with the potentials as probabilities, since their exponentials are the same for all messages.

Beliefs are float64: they are sums of many messages, of which what one edge brought is taken away again. Where the potentials of
an edge differ by more than `most_spread`, a product that decides may have a factor that is 0 as a probability of floats: there
all terms are added up by their logarithms, in float64, which takes an exponential for each of them.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ....arrays.array import Array
from ....compile.atomics import atomic_add, atomic_exch, atomic_max
from ....compile.task import Task
from ...linalg.vectors import largest
from ..feature_gather import team_size

__all__ = ["PLACES", "VERTICES_PER_ITEM", "Problem", "most_spread", "residual_task", "sweep_task"]

VERTICES_PER_ITEM = 128
PLACES = 1024  # that the largest residual is spread over
_HIGH_DEGREE = 64
_MOST_THREADS = 1024


class Problem(NamedTuple):
    """Arrays and numbers that all tasks share."""

    indptr: Any
    indices: Any
    back: Any  # the number of the reverse of each edge
    unary: Array  # logarithms of the potentials of vertices, float64
    pairwise: Array  # potentials of edges or their logarithms, with one row for each or one for all
    messages: Array  # (2, edges, k), logarithms: what rounds of even and of odd numbers read, or the other way round
    side: int  # the messages that the first round reads
    residuals: Array  # the largest changes of messages
    damping: Any  # of the type of the messages
    rounds: int
    tolerance: Any
    waiting: Array  # whether a vertex is in the queue, of the residual schedule
    done: Array  # tasks of that schedule
    most_tasks: int


def most_spread(dtype: Any) -> float:
    """Return how far logarithms of potentials may be apart for sums of probabilities of a type.

    A sum is then at least that small. What underflows in it is less than what its type rounds away.
    """
    return float(np.log(np.finfo(dtype).eps) - np.log(np.finfo(dtype).tiny)) - 10


def _make_send(k: int, dtype: Any, in_logarithms: bool) -> Any:
    """Return the function that sends the message along an edge, and returns by how much it changes."""
    number = np.float64 if in_logarithms else dtype
    zero = number(0)

    def weigh(total):  # type: ignore[no-untyped-def]
        return total if in_logarithms else number(math.exp(number(total)))

    def add_up(weight, row, x, p):  # type: ignore[no-untyped-def]
        total = zero
        for y in range(k):
            total += weight[y] * p.pairwise[row, y, x]
        return total

    def add_up_logarithms(weight, row, x, p):  # type: ignore[no-untyped-def]
        top, total = weight[0] + p.pairwise[row, 0, x], 0.0
        for y in range(1, k):
            top = max(top, weight[y] + p.pairwise[row, y, x])
        for y in range(k):
            total += math.exp(weight[y] + p.pairwise[row, y, x] - top)
        return top + math.log(total)

    def share_of(team, mine):  # type: ignore[no-untyped-def]
        """Return what makes probabilities of numbers, or what is subtracted from their logarithms; collective."""
        whole = zero
        top = largest(team, mine, k) if in_logarithms else zero
        for x in team.split(k):
            whole += math.exp(mine[x] - top) if in_logarithms else mine[x]
        whole = team.sum(whole)
        return top + math.log(whole) if in_logarithms else number(1) / whole

    sum_of = add_up_logarithms if in_logarithms else add_up

    def send(team, edge, belief, weight, mine, before, source, target, p):  # type: ignore[no-untyped-def]
        back, top = p.back[edge], -math.inf
        for y in team.split(k):
            # The old message is loaded now, while the other one is under way, and not when it is wanted.
            old, opposite = p.messages[source, back, y], p.messages[source, edge, y]
            before[y], weight[y] = old, opposite
            top = max(top, belief[y] - opposite)
        top = team.max(top)
        for y in team.split(k):
            weight[y] = weigh(belief[y] - weight[y] - top)
        team.sync()
        row = min(edge, p.pairwise.shape[0] - 1)
        for x in team.split(k):
            mine[x] = sum_of(weight, row, x, p)
        share = share_of(team, mine)
        change = dtype(0)
        for x in team.split(k):
            new = mine[x] - share if in_logarithms else math.log(mine[x] * share)
            new = dtype(new + p.damping * (before[x] - new))
            change = max(change, abs(new - before[x]))
            p.messages[target, back, x] = new
        team.sync()  # before the scratch is used again
        return change

    return send


def _make_send_by_states(k: int, dtype: Any, in_logarithms: bool) -> Any:
    """Return the function that sends all messages of a vertex by a team with a thread for each state, and returns the change.

    Nothing but registers is used, and what the next message takes is loaded while this one is computed.
    """
    number = np.float64 if in_logarithms else dtype
    zero = number(0)

    def message(team, cavity, row, x, p):  # type: ignore[no-untyped-def]
        weight, total = number(math.exp(number(cavity - team.max(cavity)))), zero
        for y in range(k):
            total += team.shuffle(weight, y) * p.pairwise[row, y, x]
        return math.log(total * (number(1) / team.sum(total)))

    def message_in_logarithms(team, cavity, row, x, p):  # type: ignore[no-untyped-def]
        top, total = -math.inf, 0.0
        for y in range(k):
            top = max(top, team.shuffle(cavity, y) + p.pairwise[row, y, x])
        for y in range(k):
            total += math.exp(team.shuffle(cavity, y) + p.pairwise[row, y, x] - top)
        mine = top + math.log(total)
        top = team.max(mine)
        return mine - top - math.log(team.sum(math.exp(mine - top)))

    new_message = message_in_logarithms if in_logarithms else message

    def send_by_states(team, v, begin, end, source, target, p):  # type: ignore[no-untyped-def]
        x, belief, change = team.rank, p.unary[v, team.rank], dtype(0)
        for edge in range(begin, end):
            belief += p.messages[source, edge, x]
        back = p.back[begin]
        old, opposite = p.messages[source, back, x], p.messages[source, begin, x]
        for edge in range(begin, end):
            following = min(edge + 1, end - 1)
            next_back = p.back[following]
            next_old, next_opposite = p.messages[source, next_back, x], p.messages[source, following, x]
            new = new_message(team, belief - opposite, min(edge, p.pairwise.shape[0] - 1), x, p)
            new = dtype(new + p.damping * (old - new))
            change = max(change, abs(new - old))
            p.messages[target, back, x] = new
            back, old, opposite = next_back, next_old, next_opposite
        return change

    return send_by_states


def _collect_by_all(worker, team, v, k, parts, belief, source, p):  # type: ignore[no-untyped-def]
    """Find the belief of a vertex, up to a factor, in the scratch of every team of a worker, which share the edges."""
    begin, end = np.int64(p.indptr[v]), np.int64(p.indptr[v + 1])
    for x in team.split(k):
        total = 0.0
        for edge in range(begin + team.index, end, team.count):
            total += p.messages[source, edge, x]
        parts[team.index * k + x] = total
    worker.sync()
    for x in team.split(k):
        total = p.unary[v, x]
        for other in range(team.count):
            total += parts[other * k + x]
        belief[x] = total
    team.sync()


def _collect(team, v, k, belief, source, p):  # type: ignore[no-untyped-def]
    """Find the belief of a vertex, up to a factor, by its team."""
    for x in team.split(k):
        total = p.unary[v, x]
        for edge in range(p.indptr[v], p.indptr[v + 1]):
            total += p.messages[source, edge, x]
        belief[x] = total
    team.sync()


@functools.lru_cache(32)
def sweep_task(k: int, dtype: Any, in_logarithms: bool) -> Task:
    """Return the task that sends all messages of a range of vertices, once in each round."""
    threads = max(team_size(k), 2)
    send, cells = _make_send(k, dtype, in_logarithms), _MOST_THREADS // threads * k
    send_by_states = _make_send_by_states(k, dtype, in_logarithms)
    number = np.float64 if in_logarithms else dtype

    def belief_propagation(worker, item, p):  # type: ignore[no-untyped-def]
        team = worker.group(threads)
        belief, before = team.scratch(np.float64, k), team.scratch(dtype, k)
        weight, mine = team.scratch(number, k), team.scratch(number, k)
        source = worker.round + p.side & 1
        target = 1 - source
        first = item * VERTICES_PER_ITEM
        last = min(first + VERTICES_PER_ITEM, p.indptr.size - 1)
        change, any_high = dtype(0), False
        for v in range(first + team.index, last, team.count):
            begin, end = np.int64(p.indptr[v]), np.int64(p.indptr[v + 1])
            if end - begin > _HIGH_DEGREE:
                any_high = True
            elif team.size == k:
                if begin < end:
                    change = max(change, send_by_states(team, v, begin, end, source, target, p))
            else:
                _collect(team, v, k, belief, source, p)
                for edge in range(begin, end):
                    change = max(change, send(team, edge, belief, weight, mine, before, source, target, p))
        if worker.any(any_high):
            parts = worker.scratch(np.float64, cells)
            for v in range(first, last):
                begin, end = np.int64(p.indptr[v]), np.int64(p.indptr[v + 1])
                if end - begin > _HIGH_DEGREE:  # all teams of the worker add up the messages, and then share the edges
                    _collect_by_all(worker, team, v, k, parts, belief, source, p)
                    for edge in range(begin + team.index, end, team.count):
                        change = max(change, send(team, edge, belief, weight, mine, before, source, target, p))
                    worker.sync()  # before the next vertex
        change = worker.max(change)
        if worker.rank == 0:
            if worker.round == p.rounds - 1:
                atomic_max(p.residuals, item % PLACES, change)
            else:
                worker.push(item)

    return Task(belief_propagation)


@functools.lru_cache(32)
def residual_task(k: int, dtype: Any, in_logarithms: bool) -> Task:
    """Return the task that sends the messages of a vertex at once, and pushes neighbors for which they changed.

    A large change goes first. The messages are those of one side, and are read while others write them: so one may be
    missed, which a sweep finds afterwards. It is for thread and warp workers.
    """
    threads = max(team_size(k), 2)
    send, cells = _make_send(k, dtype, in_logarithms), 32 // threads * k
    number = np.float64 if in_logarithms else dtype

    def belief_propagation(worker, v, p):  # type: ignore[no-untyped-def]
        team = worker.group(threads)
        belief, before = team.scratch(np.float64, k), team.scratch(dtype, k)
        weight, mine = team.scratch(number, k), team.scratch(number, k)
        parts = worker.scratch(np.float64, cells)
        if worker.rank == 0:
            atomic_exch(p.waiting, v, 0)  # before it reads: what changes later pushes it again
            if atomic_add(p.done, 0, 1) >= p.most_tasks:
                worker.stop()
        worker.sync()
        _collect_by_all(worker, team, v, k, parts, belief, p.side, p)
        for edge in range(np.int64(p.indptr[v]) + team.index, np.int64(p.indptr[v + 1]), team.count):
            change = team.max(send(team, edge, belief, weight, mine, before, p.side, p.side, p))
            if change > p.tolerance and team.rank == 0:
                u = p.indices[edge]
                if atomic_exch(p.waiting, u, 1) == 0:
                    worker.push(u, -4 * math.log(change))
        worker.sync()  # before the next vertex

    return Task(belief_propagation)
