"""The axioms of PTX's memory model, tried on all executions of a program.

After Lustig, Sahasrabuddhe and Giroux, "A Formal Analysis of the NVIDIA PTX Memory Consistency Model" (ASPLOS 2019), and
chapter 8 of the PTX ISA, for plain memory: no proxies, no words that overlap in part.

An execution is a way for each thread, a write for each read (`rf`), an order of the writes of each word (`co`), and an order
of the fences with order sc. The checker goes over all executions in which the condition of the program holds; the first
execution that the axioms allow is the counterexample. No solver is needed: a program has at most 16 events.

A relation is a list of bit masks: bit j of mask i says that the relation holds from event i to event j. The order of writes
need not be total. Causality does not depend on the order of writes. So only writes that causality leaves unordered, and that
are morally strong, are tried both ways: an order of other writes could only forbid more.

The read of a `red` begins no acquire pattern, since nobody gets its value. Control dependencies reach writes alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import NamedTuple

from litmus.form import MOST_EVENTS, Event, FormError, Path, Program, Thread

Relation = list[int]


class Execution(NamedTuple):
    """An execution that the axioms allow: the events of all threads, behind the initial writes, and the write of each read."""

    program: Program
    events: list[Event]
    owners: list[int]  # the number of each event's thread, -1 of an initial write
    source: dict[int, int]
    order: Relation
    registers: dict[str, int]


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def closed(relation: Relation) -> Relation:
    """Return the transitive closure, by repeated squaring."""
    while True:
        squared = [mask | union(relation, mask) for mask in relation]
        if squared == relation:
            return relation
        relation = squared


def union(relation: Relation, mask: int) -> int:
    result = 0
    while mask:
        low = mask & -mask
        result |= relation[low.bit_length() - 1]
        mask ^= low
    return result


def has_cycle(relation: Relation) -> bool:
    return any(mask >> i & 1 for i, mask in enumerate(closed(relation)))


def includes(scope: str, mine: Thread, other: Thread) -> bool:
    """Whether a scope of a thread includes another one."""
    return scope == "sys" or (mine.gpu == other.gpu and (scope == "gpu" or mine.block == other.block))


class Candidates:
    """All executions in which each thread goes a certain way."""

    def __init__(self, program: Program, ways: tuple[Path, ...], dependencies: bool) -> None:
        self.program = program
        self.registers = {name: value for way in ways for name, value in way.registers.items()}
        places = dict.fromkeys(event.place for way in ways for event in way.events if event.kind in "RW")
        self.events = [Event("W", -1, "weak", "sys", place, program.init.get(place, 0)) for place in places]
        self.owners = [-1] * len(self.events)
        self.po: Relation = [0] * len(self.events)
        self.dep: Relation = [0] * len(self.events)
        self.rmw: dict[int, int] = {}  # the write of a read
        for number, way in enumerate(ways):
            first = len(self.events)
            last = first + len(way.events)
            for i, event in enumerate(way.events, first):
                self.events.append(event)
                self.owners.append(number)
                self.po.append((1 << last) - (2 << i))
                self.dep.append(0)
                for need in event.needs if dependencies else event.needs[:0]:
                    self.dep[first + need] |= 1 << i
                if event.partner >= 0:
                    self.rmw[first + event.partner] = i
        n = len(self.events)
        self.same = [0] * n  # memory operations of one word
        self.ms = [0] * n
        for i, j in product(range(n), range(n)):
            one, other = self.events[i], self.events[j]
            both = one.kind in "RW" and other.kind in "RW"
            if i != j and both and one.place == other.place:
                self.same[i] |= 1 << j
            if i != j and (not both or one.place == other.place) and self.is_morally_strong(i, j):
                self.ms[i] |= 1 << j
        self.writes = [i for i in range(n) if self.events[i].kind == "W"]
        self.reads = [i for i in range(n) if self.events[i].kind == "R"]
        self.po_loc = [self.po[i] & self.same[i] for i in range(n)]
        self.releases = list(self.patterns("W", "release"))
        self.acquires = list(self.patterns("R", "acquire"))
        self.ordered = [self.po[i] | self.barrier(i) for i in range(n)]
        self.bases: dict[frozenset[tuple[int, int]], Relation] = {}

    def is_morally_strong(self, i: int, j: int) -> bool:
        one, other = self.events[i], self.events[j]
        if -1 in (self.owners[i], self.owners[j]):
            return False
        if self.owners[i] == self.owners[j]:
            return True
        if "weak" in (one.order, other.order) or "B" in (one.kind, other.kind):
            return False
        threads = self.program.threads
        mine, its = threads[self.owners[i]], threads[self.owners[j]]
        return includes(one.scope, mine, its) and includes(other.scope, its, mine)

    def barrier(self, i: int) -> int:
        """The barriers of other threads at which this one meets them."""
        mask = 0
        for j, other in enumerate(self.events):
            if self.events[i].kind == other.kind == "B" and other.place == self.events[i].place and i != j:
                mask |= 1 << j
        return mask

    def patterns(self, kind: str, order: str) -> Iterator[tuple[int, int]]:
        """Go over the release patterns (first event, strong write) or the acquire patterns (strong read, last event)."""
        for i, event in enumerate(self.events):
            ordered = event.kind == kind and event.order == order
            fences = event.kind == "F"
            if ordered:
                yield i, i
            if not ordered and not fences:
                continue
            for j, other in enumerate(self.events):
                strong = other.kind == kind and other.order != "weak" and other.returns
                if kind == "W" and strong and self.po[i] >> j & 1 and (fences or self.same[i] >> j & 1):
                    yield i, j
                if kind == "R" and strong and self.po[j] >> i & 1 and (fences or self.same[i] >> j & 1):
                    yield j, i

    def sources(self) -> Iterator[dict[int, int]]:
        """Go over the ways to give each read a write."""
        choices = []
        for read in self.reads:
            later = self.po[read]
            fits = (write for write in self.writes if self.same[read] >> write & 1 and not later >> write & 1)
            choices.append([write for write in fits if self.events[write].value == self.events[read].value])

        def go(k: int, source: dict[int, int]) -> Iterator[dict[int, int]]:
            if k == len(self.reads):
                yield dict(source)
                return
            read = self.reads[k]
            for write in choices[k]:
                if any(self.excludes(read, other, write) for other, its in source.items() if its == write):
                    continue
                source[read] = write
                yield from go(k + 1, source)
                del source[read]

        if all(choices):
            yield from go(0, {})

    def excludes(self, read: int, other: int, write: int) -> bool:
        """Whether two read-modify-writes cannot change one value of a write: where all three are morally strong."""
        first = self.owners[write] < 0
        both = read in self.rmw and other in self.rmw and self.ms[read] >> other & 1
        return bool(both and (first or self.ms[write] >> read & self.ms[write] >> other & 1))

    def fence_orders(self) -> Iterator[frozenset[tuple[int, int]]]:
        """Go over the orders of the fences sc of which each one's scope includes the other's thread."""
        fences = [i for i, event in enumerate(self.events) if event.kind == "F" and event.order == "sc"]
        seen = set()
        for order in permutations(fences):
            pairs = [(i, j) for k, i in enumerate(order) for j in order[k + 1 :] if self.ms[i] >> j & 1]
            if not any(self.po[j] >> i & 1 for i, j in pairs):
                seen.add(frozenset(pairs))
        yield from seen

    def base(self, synchronized: frozenset[tuple[int, int]]) -> Relation:
        """Return base causality."""
        if synchronized not in self.bases:
            relation = list(self.ordered)
            for i, j in synchronized:
                relation[i] |= 1 << j
            self.bases[synchronized] = closed(relation)
        return self.bases[synchronized]

    def allowed(self) -> Iterator[Execution]:
        """Go over the executions that the axioms allow."""
        orders = list(self.fence_orders())
        for source in self.sources():
            n = len(self.events)
            rf = [0] * n
            for read, write in source.items():
                rf[write] |= 1 << read
            if has_cycle([rf[i] | self.dep[i] for i in range(n)]):
                continue  # no thin air
            seen = self.observation(rf)
            found = {
                (first, last)
                for first, write in self.releases
                for read, last in self.acquires
                if seen[write] >> read & 1 and self.ms[first] >> last & 1
            }
            for fences in orders:
                base = self.base(frozenset(found | fences))
                if any(base[j] >> i & 1 for i, j in fences):
                    continue  # fences sc
                cause = [base[i] | union(base, seen[i]) for i in range(n)]
                if any(cause[read] >> write & 1 for read, write in source.items()):
                    continue  # causality, of reads
                for order in self.write_orders(source, cause):
                    if self.agrees(source, rf, cause, order) and self.can_end(order):
                        yield Execution(self.program, self.events, self.owners, source, order, self.registers)

    def observation(self, rf: Relation) -> Relation:
        """Return which writes each read observes, also through a chain of read-modify-writes."""
        strong = [rf[i] & self.ms[i] for i in range(len(rf))]
        steps = list(strong)
        for read, write in self.rmw.items():
            steps[read] |= 1 << write
        reads = sum(1 << read for read in self.reads)
        return [mask & reads if self.events[i].kind == "W" else 0 for i, mask in enumerate(closed(steps))]

    def write_orders(self, source: dict[int, int], cause: Relation) -> Iterator[Relation]:
        """Go over the orders of writes."""
        n = len(self.events)
        order = [0] * n
        for i in self.writes:
            for j in bits(self.same[i]):
                if self.events[j].kind == "W" and (cause[i] >> j & 1 or self.owners[i] < 0):
                    order[i] |= 1 << j
        for read, write in source.items():  # what a thread writes comes after what it has read
            if self.ms[write] >> read & 1:
                for j in bits(self.po_loc[read]):
                    if self.events[j].kind == "W" and j != write:
                        order[write] |= 1 << j
        pairs = [(i, j) for i in self.writes for j in self.writes if i < j and self.ms[i] & self.same[i] & 1 << j]

        def go(k: int, order: Relation) -> Iterator[Relation]:
            order = closed(order)
            if any(mask >> i & 1 for i, mask in enumerate(order)):
                return
            while k < len(pairs) and (order[pairs[k][0]] >> pairs[k][1] & 1 or order[pairs[k][1]] >> pairs[k][0] & 1):
                k += 1
            if k == len(pairs):
                yield order
                return
            for i, j in (pairs[k], pairs[k][::-1]):
                yield from go(k + 1, [mask | 1 << j if at == i else mask for at, mask in enumerate(order)])

        yield from go(0, order)

    def agrees(self, source: dict[int, int], rf: Relation, cause: Relation, order: Relation) -> bool:
        """Whether an order of writes keeps the axioms of coherence, causality and atomicity."""
        n = len(self.events)
        fr = [0] * n
        for read, write in source.items():
            fr[read] = order[write]
            if any(cause[later] >> read & 1 for later in bits(fr[read])):
                return False  # causality, of reads that miss a write
            if read in self.rmw:
                mine = self.rmw[read]
                between = fr[read] & self.ms[read]
                if any(order[other] & self.ms[other] & 1 << mine for other in bits(between)):
                    return False  # atomicity
        return not has_cycle([self.ms[i] & (rf[i] | order[i] | fr[i]) | self.po_loc[i] for i in range(n)])

    def can_end(self, order: Relation) -> bool:
        """Whether the condition holds, with the last write of each word."""
        last: dict[str, set[int]] = {}
        for i in self.writes:
            if not order[i]:
                last.setdefault(self.events[i].place, set()).add(self.events[i].value)
        places = [place for place in last if f"[{place}]" in self.program.never]
        for values in product(*(sorted(last[place]) for place in places)):
            ends = dict(zip(places, values, strict=True))
            if self.program.holds(self.registers, lambda place, ends=ends: ends.get(place, self.program.init.get(place, 0))):
                return True
        return False


def meets_all(program: Program, ways: tuple[Path, ...]) -> bool:
    """Whether at each barrier all of its threads arrive."""
    for thread, way in zip(program.threads, ways, strict=True):
        named = {line.place for line in thread.instructions if line.kind == "bar"}
        if named - {event.place for event in way.events if event.kind == "B"}:
            return False
    return True


def executions(program: Program, dependencies: bool = True) -> Iterator[Execution]:
    """Go over the executions that must never be and that the axioms allow; as if there were no `dependencies`, if so asked."""
    if program.events > MOST_EVENTS:
        raise FormError(f"{program.name} has {program.events} events, more than {MOST_EVENTS}")
    for ways in product(*program.paths()):
        if meets_all(program, ways):
            yield from Candidates(program, ways, dependencies).allowed()


def counterexample(program: Program, dependencies: bool = True) -> Execution | None:
    """Return an execution that must never be and that the axioms allow; None if there is none."""
    return next(executions(program, dependencies), None)


def shown(execution: Execution) -> str:
    """Return an execution as text: each thread, what its reads return, and whose writes these read."""
    program, lines = execution.program, []
    width = max(len(line.text) for thread in program.threads for line in thread.instructions)
    for number, thread in enumerate(program.threads):
        where = "the host" if thread.gpu < 0 else f"block {thread.block}" + (f" of GPU {thread.gpu}" if thread.gpu else "")
        lines.append(f"  {thread.name}, {where}")
        for i, event in enumerate(execution.events):
            if execution.owners[i] != number or (event.kind == "W" and event.partner >= 0):
                continue
            text = thread.instructions[event.line].text
            if event.kind != "R":
                lines.append(f"    {text}")
                continue
            write = execution.source[i]
            owner = execution.owners[write]
            whose = (
                "as at the beginning" if owner < 0 else f"of {program.threads[owner].name}" if owner != number else "of its own"
            )
            lines.append(f"    {text:<{width}}  reads {event.value}, {whose}")
    places = [place for place in dict.fromkeys(event.place for event in execution.events) if f"[{place}]" in program.never]
    for place in places:
        last = [
            i
            for i, event in enumerate(execution.events)
            if event.kind == "W" and event.place == place and not execution.order[i]
        ]
        values = " or ".join(str(execution.events[i].value) for i in last)
        lines.append(f"  at the end {place} is {values}")
    return "\n".join([*lines, f"which must never be: {program.never}"])
