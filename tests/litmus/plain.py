"""The axioms a second time, word for word: relations are sets of pairs, and writes have any partial order.

This program takes the events from `form.py` and nothing from `axioms.py`, with which it has to agree about small programs. It
is slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations, permutations, product

from litmus.form import Event, Path, Program

Pairs = frozenset[tuple[int, int]]
Outcome = tuple[tuple[tuple[str, int], ...], str, int]  # registers, a word, and a value that it may have at the end


def then(*relations: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    first, *rest = relations
    result = set(first)
    for relation in rest:
        result = {(a, d) for a, b in result for c, d in relation if b == c}
    return result


def plus(relation: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    result = set(relation)
    while more := then(result, result) - result:
        result |= more
    return result


def is_cyclic(relation: Iterable[tuple[int, int]]) -> bool:
    return any(a == b for a, b in plus(relation))


@cache
def orders(size: int) -> list[Pairs]:
    """Return all partial orders of the numbers below `size`: each one of fewer numbers, with the last one put in everywhere."""
    if not size:
        return [frozenset()]
    last, found = size - 1, []
    for order in orders(last):
        sets = [set(some) for count in range(size) for some in combinations(range(last), count)]
        below = [some for some in sets if all(a in some for a, b in order if b in some)]
        above = [some for some in sets if all(b in some for a, b in order if a in some)]
        for low, high in product(below, above):
            if all((a, b) in order for a in low for b in high):
                found.append(order | {(a, last) for a in low} | {(last, b) for b in high})
    return found


def outcomes(program: Program) -> set[Outcome]:
    """Return all ways in which a program can end."""
    found: set[Outcome] = set()
    for ways in product(*program.paths()):
        registers = tuple(sorted((name, value) for way in ways for name, value in way.registers.items()))
        found |= {(registers, place, value) for place, value in ends(program, ways)}
    return found


def ends(program: Program, ways: tuple[Path, ...]) -> Iterator[tuple[str, int]]:
    events: list[tuple[int, Event]] = []
    po, dep, rmw = set(), set(), set()
    for number, way in enumerate(ways):
        first = len(events)
        for i, event in enumerate(way.events):
            po |= {(first + j, first + i) for j in range(i)}
            dep |= {(first + need, first + i) for need in event.needs}
            rmw |= {(first + event.partner, first + i)} if event.partner >= 0 else set()
            events.append((number, event))
    for place in sorted({event.place for _, event in events if event.kind in "RW"}):
        events.append((-1, Event("W", -1, "weak", "sys", place, program.init.get(place, 0))))
    numbers = range(len(events))
    thread = [number for number, _ in events]
    event = [each for _, each in events]
    same = {
        (i, j)
        for i in numbers
        for j in numbers
        if event[i].place == event[j].place and {event[i].kind, event[j].kind} <= {"R", "W"}
    }

    def reaches(i: int, j: int) -> bool:
        mine, its = program.threads[thread[i]], program.threads[thread[j]]
        near = {"cta": (mine.gpu, mine.block) == (its.gpu, its.block), "gpu": mine.gpu == its.gpu, "sys": True}
        return event[i].order != "weak" and event[i].kind != "B" and near[event[i].scope]

    by_order = po | {(j, i) for i, j in po}
    ms = {
        (i, j)
        for i in numbers
        for j in numbers
        if i != j and min(thread[i], thread[j]) >= 0
        if (i, j) in by_order or (reaches(i, j) and reaches(j, i))
        if (i, j) in same or not {event[i].kind, event[j].kind} <= {"R", "W"}
    }
    barrier = {
        (i, j)
        for i in numbers
        for j in numbers
        if i != j and event[i].kind == event[j].kind == "B" and event[i].place == event[j].place
    }
    strong_w = [i for i in numbers if event[i].kind == "W" and event[i].order != "weak"]
    strong_r = [i for i in numbers if event[i].kind == "R" and event[i].order != "weak" and event[i].returns]
    fences = [i for i in numbers if event[i].kind == "F"]
    releases = {(w, w) for w in strong_w if event[w].order == "release"}
    releases |= {(w, v) for w, _ in releases for v in strong_w if (w, v) in po & same}
    releases |= {(f, w) for f in fences for w in strong_w if (f, w) in po}
    acquires = {(r, r) for r in strong_r if event[r].order == "acquire"}
    acquires |= {(s, r) for r, _ in acquires for s in strong_r if (s, r) in po & same}
    acquires |= {(r, f) for f in fences for r in strong_r if (r, f) in po}
    reads = [i for i in numbers if event[i].kind == "R"]
    writes = [i for i in numbers if event[i].kind == "W"]
    places = sorted({event[w].place for w in writes})
    of_place = [[w for w in writes if event[w].place == place and thread[w] >= 0] for place in places]
    initial = {(i, w) for i in writes for w in writes if thread[i] < 0 <= thread[w] and (i, w) in same}
    choices = [[w for w in writes if (w, r) in same and event[w].value == event[r].value] for r in reads]
    sc = [f for f in fences if event[f].order == "sc"]
    for chosen in product(*choices):
        rf = set(zip(chosen, reads, strict=True))
        if is_cyclic(rf | dep):
            continue
        seen = ms & rf
        while more := then(seen, rmw, seen) - seen:
            seen |= more
        sync = ms & then(releases, seen, acquires)
        for ordered in permutations(sc):
            sync_fence = {pair for pair in combinations(ordered, 2) if pair in ms}
            if any((j, i) in po for i, j in sync_fence):
                continue
            base = plus(po | sync | sync_fence | barrier)
            cause = base | then(seen, base)
            if any((j, i) in cause for i, j in sync_fence) or any(a == b for a, b in then(rf, cause)):
                continue
            must = {(i, j) for i, j in cause & same if event[i].kind == event[j].kind == "W" and i != j}
            either = {(i, j) for i, j in ms & same if event[i].kind == event[j].kind == "W"}
            choices_of_co = []
            for its in of_place:
                renamed = ({(its[a], its[b]) for a, b in order} for order in orders(len(its)))
                fits = (co for co in renamed if {(i, j) for i, j in must if i in its} <= co)
                choices_of_co.append([co for co in fits if all((i, j) in co or (j, i) in co for i, j in either if i in its)])
            for parts in product(*choices_of_co):
                co = initial.union(*parts)
                fr = {(r, v) for w, r in rf for u, v in co if u == w}
                if any(a == b for a, b in then(fr, cause)) or then(ms & fr, ms & co) & rmw:
                    continue
                if is_cyclic((ms & (rf | co | fr)) | (po & same)):
                    continue
                for place, its in zip(places, of_place, strict=True):
                    last = its or [w for w in writes if event[w].place == place]
                    yield from ((place, event[w].value) for w in last if not any(i == w for i, _ in co))
