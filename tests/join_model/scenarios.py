"""The scenarios of the model of joins, and its rules, each with what breaks it."""

from __future__ import annotations

from typing import NamedTuple

from join_model.checker import UNORDERED, Item, RuleError, Scenario, Variant, Worker
from model.source import Change


def tree(worker: Worker, item: Item) -> None:
    """Fork into two nodes, or leaves at depth 0, whose values are 1 and 2; a leaf arrives."""
    kind, n, up = item
    if kind == "leaf":
        return worker.arrive_at(up, n)
    j = worker.open(2, parent=up)
    for k in range(2):
        worker.push(("node", n - 1, j) if n else ("leaf", k + 1, j))
    return None


def branch(worker: Worker, item: Item) -> None:
    """Fork into a node and a leaf; with negation, as players in turns."""
    kind, n, up = item
    if kind == "leaf":
        return worker.arrive_at(up, n)
    j = worker.open(2, parent=up, negate=True)
    worker.push(("leaf", 3 - 10 * n, j))
    worker.push(("node" if n else "leaf", n - 1, j))
    return None


def nothing(worker: Worker, item: Item) -> None:
    """Fork into a leaf and a node, whose own leaves have no values; or use a record with a value."""
    kind, n, up = item
    if kind == "two":
        return worker.arrive_at(worker.open(1), 9)
    if kind == "leaf":
        return worker.arrive_at(up, n)
    if kind == "none":
        return worker.arrive_at(up, None)
    j = worker.open(2, parent=up, negate=True)
    worker.push(("leaf", -7, j) if n else ("none", 0, j))
    worker.push(("node" if n else "none", 0, j))
    return None


def two_wait(worker: Worker) -> None:
    j = worker.open(2)
    worker.push(("leaf", 5, j))
    worker.push(("leaf", 7, j))


def waits_for_more(worker: Worker, item: Item) -> None:
    """Open a join of one arrival, which another task makes two, by an item before its own arrival."""
    kind, n, j = item
    if kind == "node":
        j = worker.open(1)
        worker.push(("more", 4, j))
    elif kind == "more":
        worker.expect(j, 1)
        worker.push(("leaf", n, j))
        worker.arrive_at(j, 1)
    else:
        worker.arrive_at(j, n)


def again(worker: Worker, item: Item) -> None:
    """Open a join, and another one when it has ended, with a handle of the first one."""
    kind, n, j = item
    if kind == "node":
        j = worker.open(1)
        worker.push(("old", n, j))
    elif kind == "old":
        worker.arrive_at(j, 1)
        if not worker.is_stale(j, may_race=True):
            raise RuleError("the handle of a join that has ended is not stale")
        worker.push(("new", n, j))
    else:
        k = worker.open(1)
        if not worker.is_stale(j, may_race=True):
            raise RuleError("the handle of a join that has ended is not stale")
        if n:
            worker.push(("new", n - 1, j))
        worker.arrive_at(k, 1)


def then_take(worker: Worker, item: Item) -> None:
    """Open a join that ends by a push, and take its value in the item."""
    kind, n, j = item
    if kind == "node":
        j = worker.open(2)
        worker.then(j, ("take", n, j))
        worker.push(("leaf", 5, j))
        worker.push(("leaf", 7, j))
    elif kind == "leaf":
        worker.arrive_at(j, n)
    else:
        value = worker.take(j)
        worker.arrive_at(0, value)
        if n:
            worker.push(("node", n - 1, 0))


def blocks(worker: Worker, item: Item) -> None:
    """Take up to n blocks of the first list, and give them back."""
    taken = [worker.records["_pop"](worker.joins, 0) for _ in range(item[1])]
    for first in taken:
        if first >= 0:
            worker.records["_give_block"](worker.joins, 0, first)


def fill(worker: Worker) -> None:
    """Put all records on the first list."""
    scenario = worker.machine.scenario
    for first in [worker.records["_take_block"](worker.joins, 0) for _ in range(scenario.records // scenario.block)]:
        worker.records["_give_block"](worker.joins, 0, first)


def second_list(worker: Worker) -> None:
    """Put a record on the second list."""
    worker.records["_give_block"](worker.joins, 1, worker.records["_take_block"](worker.joins, 0))


def come_and_go(worker: Worker, item: Item) -> None:
    """Open n joins, and close them."""
    for j in [worker.open(1) for _ in range(item[1])]:
        worker.arrive_at(j, 1)


def close_and_open(worker: Worker, item: Item) -> None:
    """Close the join of the item, before n others are opened; or open n joins."""
    kind, n, j = item
    if kind == "close":
        worker.arrive_at(j, 1)
    for k in [worker.open(1) for _ in range(n)]:
        worker.arrive_at(k, 1)


def one_waits(worker: Worker) -> None:
    worker.push(("close", 3, worker.open(1)))
    worker.push(("open", 2, 0))


NODE = {"node": 1}
ONE, TWO = ("go", 1), ("go", 2)
SCENARIOS = {
    "two arrivals": Scenario(tree, 12, setup=two_wait),
    "one level": Scenario(tree, 3, (("node", 0, 0),), opens=NODE),
    "two levels": Scenario(tree, 6, (("node", 1, 0),), opens=NODE, coarse=True),
    "more arrivals": Scenario(waits_for_more, 5, (("node", 0, 0),), opens=NODE),
    "reused": Scenario(again, 4, (("node", 2, 0),), opens={"node": 1, "new": 1}, records=2),
    "then": Scenario(then_take, 24, (("node", 1, 0),), opens=NODE, records=2),
    "min, negated": Scenario(branch, -min(-7, -min(3, -1)), (("node", 1, 0),), opens=NODE, combine="min", coarse=True),
    "max, negated": Scenario(branch, -max(-7, -max(3, -1)), (("node", 1, 0),), opens=NODE, combine="max", coarse=True),
    "min of nothing": Scenario(
        nothing, 7, (("node", 1, 0), ("two", 0, 0)), opens={"node": 1, "two": 1}, combine="min", coarse=True
    ),
    "two arrivals, one word": Scenario(tree, 12, setup=two_wait, in_word=True),
    "two levels, one word": Scenario(tree, 6, (("node", 1, 0),), opens=NODE, coarse=True, in_word=True),
    "then, one word": Scenario(then_take, 24, (("node", 1, 0),), opens=NODE, records=2, in_word=True),
    "more arrivals, one word": Scenario(waits_for_more, 5, (("node", 0, 0),), opens=NODE, in_word=True),
    "min of nothing, one word": Scenario(
        nothing, 7, (("node", 1, 0), ("two", 0, 0)), opens={"node": 1, "two": 1}, combine="min", coarse=True, in_word=True
    ),
    "max, negated, one word": Scenario(
        branch, -max(-7, -max(3, -1)), (("node", 1, 0),), opens=NODE, combine="max", coarse=True, in_word=True
    ),
    "one list": Scenario(blocks, 0, begun=(("", 1), ("", 2)), setup=fill, records=2),
    "one list, three threads": Scenario(
        blocks, 0, begun=(("", 1), ("", 2), ("", 1)), setup=fill, threads=3, records=2, coarse=True
    ),
    "three threads": Scenario(come_and_go, 3, begun=(ONE, ONE, ONE), threads=3, opens={"go": 1}, records=3, coarse=True),
    "two lists": Scenario(tree, 6, (("node", 1, 0),), lists=2, opens=NODE, coarse=True),
    "blocks of two": Scenario(come_and_go, 4, begun=(TWO, TWO), opens={"go": 3}, block=2, records=8, coarse=True),
    "full": Scenario(tree, 6, (("node", 1, 0),), opens=NODE, records=2, coarse=True),
    "full, two lists": Scenario(come_and_go, 2, begun=(ONE, ONE), lists=2, opens={"go": 2}, records=3, coarse=True),
    "refused": Scenario(
        come_and_go,
        2,
        begun=(ONE, ("", 0), ONE),
        setup=second_list,
        threads=3,
        lists=2,
        opens={"go": 1},
        records=2,
        coarse=True,
        exact=True,
    ),
    "closed and opened": Scenario(
        close_and_open, 6, setup=one_waits, block=2, opens={"close": 3, "open": 2}, coarse=True, once=True
    ),
    "full, one record": Scenario(tree, 6, (("node", 0, 0), ("node", 0, 0)), opens=NODE, records=1, coarse=True),
}


class Rule(NamedTuple):
    """A rule: what breaks it, the scenario that catches it, and part of what is said then."""

    broken_by: Variant
    caught_in: str
    found: str


def change(old: str, new: str) -> Variant:
    return Variant(Change(old, new))


AT_CLOSE = r"\n        if info & NEGATES:\n            value = -value\n        _close\(worker, joins, i, info\)"
BROKEN = {
    # Arrivals.
    "an arrival releases": Rule(Variant(releases=False), "two arrivals", f"read {UNORDERED}"),
    "the last arrival acquires": Rule(Variant(acquires=False), "two arrivals", f"read {UNORDERED}"),
    "an arrival is one subtraction": Rule(Variant(is_atomic=False), "two arrivals", "open at the end"),
    "only the last one closes": Rule(change("if state != 1:", "if state < 0:"), "two arrivals", UNORDERED),
    "values come before the arrival": Rule(
        change(
            r"(    if code:\n        _combine\([^\n]*\n)    return (subtract\([^\n]*\n)",
            r"    state = \2\1    return state\n",
        ),
        "two arrivals",
        UNORDERED,
    ),
    "the value is read before the record is free": Rule(
        change(
            r"_value\(joins, i\), 1(.*?)" + AT_CLOSE,
            r"0, 1\1\n        _close(worker, joins, i, info)\n        value = _value(joins, i)",
        ),
        "one level",
        "the value of a record is read that is not open",
    ),
    "the parent is read before the record is free": Rule(
        change(r"handle = parent" + AT_CLOSE, "_close(worker, joins, i, info)\n        handle = words[i, LINK]"),
        "two levels",
        "open at the end",
    ),
    "a join is closed once": Rule(
        change(r"(value = -value\n)(\s+_close\(worker, joins, i, info\))", r"\1\2\n\2"), "two arrivals", "closed twice"
    ),
    "a join is closed": Rule(
        change(r"(value = -value)\n\s+_close\(worker, joins, i, info\)", r"\1"), "two arrivals", "open at the end"
    ),
    "one arrival goes on to the parent": Rule(
        change(r"value, n = _value\(joins, i\), 1\n", r"value, n = _value(joins, i), n + 1\n"),
        "two levels",
        "at a record that is not open",
    ),
    "the value is negated": Rule(change(r"value = -value", "pass"), "min, negated", "at the end, not"),
    "a join starts from the identity": Rule(
        change(r"value\[i\] = first_value", "value[i] = 0"), "max, negated", "at the end, not"
    ),
    "a value is noted": Rule(change(r"atomic_store\(words, \(i, NEXT\), 1\)", "pass"), "min, negated", "at the end, not"),
    "nothing is noted of the join before": Rule(
        change(", 0, parent, info", ", joins.records.words[i, NEXT], parent, info"), "min of nothing", "at the end, not"
    ),
    "there is no minimum of nothing": Rule(change(r" and words\[i, NEXT\] != 0", ""), "min of nothing", "at the end, not"),
    "the record of another join is not read before the arrival": Rule(
        change(r"parent, info = link_and_info\(joins, i", "parent, info = link_and_info(joins, i ^ 1"),
        "two levels",
        "open at the end",
    ),
    # Values in the word that counts.
    "an arrival with a value releases": Rule(Variant(releases=False), "two arrivals, one word", f"read {UNORDERED}"),
    "the last arrival with a value acquires": Rule(Variant(acquires=False), "two arrivals, one word", f"read {UNORDERED}"),
    "an arrival with a value is one operation": Rule(Variant(is_atomic=False), "two arrivals, one word", "open at the end"),
    "a value stays in its half": Rule(
        change(r"\[i, MISSING\] >> 32", "[i, MISSING]"), "two arrivals, one word", "at the end, not"
    ),
    "arrivals stay in their half": Rule(
        change(r"bits_of\(joins, first_value\) << 32 \| count", "count << 32 | bits_of(joins, first_value)"),
        "two arrivals, one word",
        "more have arrived",
    ),
    "the word begins with the identity": Rule(
        change(r"bits_of\(joins, first_value\) << 32", "0"), "max, negated, one word", "at the end, not"
    ),
    # Ends by a push.
    "a join with then arrives nowhere": Rule(
        change(r"if info & PUSHES:", "if False:"), "then", "is beyond the end of an array"
    ),
    "take reads before the record is free": Rule(
        change(r"(    value = _value\(joins, i\)\n)(    _, info = .*?_close\(worker, joins, i, info\)\n)", r"\2\1"),
        "then",
        "the value of a record is read that is not open",
    ),
    "take ends the join": Rule(
        change(r"(    _, info = [^\n]*\n)    _close\(worker, joins, i, info\)\n", r"\1"), "then", "open at the end"
    ),
    # Records.
    "a reuse is a new generation": Rule(change(r"\+ 1\) & GENERATIONS", "+ 0) & GENERATIONS"), "reused", "is not stale"),
    "a free record is not open": Rule(change(r"info & ~\(IS_OPEN \| ", "info & ~("), "reused", "is not stale"),
    "an open record leaves the thread's list": Rule(
        change(r"own\[HEAD, thread\] = link", "pass"), "full, two lists", "own list is not"
    ),
    "an open record is not counted": Rule(change(r"own\[COUNT, thread\] -= 1", "pass"), "one level", "own list is not"),
    "a block that is given leaves the thread's list": Rule(
        change(r"(last = _last_of_block\(words, i\).*?)words\[last, LINK\], count - BLOCK", r"\1i + 1, count - BLOCK"),
        "two lists",
        "own list is not",
    ),
    "a block is behind what a thread has": Rule(
        change(r"words\[_last_of_block\(words, first\), LINK\] = own\[HEAD, thread\]", "pass"),
        "blocks of two",
        "ends too early",
    ),
    "records are reserved before the task": Rule(
        change(r"reserve\(worker, joins, opens\)", "reserve(worker, joins, 0)"), "full", "fails inside a task"
    ),
    "an item without records is pushed again": Rule(
        change(r"worker\.push\(item, task=task\)", "pass"), "full", "open at the end"
    ),
    # Lists.
    "the head has a tag": Rule(change(r" \+ TAG \|", " |"), "one list", f"rest of a list is read {UNORDERED}"),
    "the head has a tag, also where all memory is in order": Rule(
        Variant(Change(r" \+ TAG \|", " |"), ordered=False), "one list", "a block that is not on it"
    ),
    "a block is given by compare-and-swap": Rule(
        change(
            r"found = atomic_cas\((joins\.free, number), head, (head & ~INDEX \| first \+ 1), memory_order=\"release\"\)",
            r'found = head; atomic_store(\1, \2, memory_order="release")',
        ),
        "one list",
        "loses a block",
    ),
    "a block is taken by compare-and-swap": Rule(
        change(
            r"found = atomic_cas\((joins\.free, number), head, (\(head & ~INDEX\) \+ TAG \| rest), memory_order=\"acq_rel\"\)",
            r"found = head; atomic_store(\1, \2)",
        ),
        "one list",
        "a block that is not on it",
    ),
    "who gives a block releases": Rule(
        change(r'first \+ 1, memory_order="release"', "first + 1"), "one list", f"rest of a list is read {UNORDERED}"
    ),
    "who looks at a list acquires": Rule(
        change(r'number, memory_order="acquire"', "number"), "one list", f"rest of a list is read {UNORDERED}"
    ),
    "who looks again acquires": Rule(change('"acq_rel"', '"release"'), "one list", f"rest of a list is read {UNORDERED}"),
    "the rest is read before the block is taken": Rule(
        change(r"(rest = )joins\.records\.words\[first, NEXT\]", r"\g<1>0"), "one list", "a block that is not on it"
    ),
}
