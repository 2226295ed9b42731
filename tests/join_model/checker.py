"""A model checker for joins: it runs the functions of `join_records.py`, as they are, in all interleavings of a few threads.

Threads take items from a queue, in any order, and run a task on each. Between two operations on shared memory a thread depends
only on the item that it has, and on what its operations have returned since it took that item. Both are part of the state. To
do a step, the thread runs the task again, is given what its operations returned before, does one operation on shared memory,
and is cut off at the next one (check.hpp does that in C++). The search is breadth first, and tells states apart by 128 bits of
hash.

Memory order: the memory holds one value for each word. Each thread, each item in the queue, and each word by which threads
synchronize has a clock, a set of bits. Of each word there is a bit for the last write, and for each thread's last read and last
combination (`accumulate`, `atomic_min`, an arrival). A bit of a clock is set if that access happens before what has the clock.
A new access clears its bit in all clocks but the thread's own, so clocks do not grow. A plain read has to come after the last
write and all combinations, a plain write after all accesses, and a combination after the last write and all reads. Where that
holds, a relaxed load returns the value that the memory holds. Two reads may race. `_pop` reads the rest of a list, which must
have been read in order only if the compare-and-swap succeeds. `is_stale` may get a handle of a join that has ended.

In a `coarse` scenario, accesses that must not race are no steps of their own. Nothing is lost by that: up to the first race
these accesses commute with the steps of other threads, and clocks depend only on the order of synchronization.
"""

from __future__ import annotations

import ast
import marshal
import re
import sys
from array import array
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from model.source import Change, ModelError

from atos_py.arrays import join_layout as layout
from atos_py.compile.codegen import join_records

SOURCE = Path(join_records.__file__)
MISSING, LINK, INFO, NEXT, INDEX = layout.MISSING, layout.LINK, layout.INFO, layout.NEXT, layout.INDEX
OWN = 3  # words of a thread beside its records
PRIORITY = 77  # of items that joins push
NOT_REFUSED = 2**63 - 1
IDENTITY = {None: 0, "sum": 0, "min": 2**63 - 1, "max": -(2**63)}
UNUSED, OPEN, ON_LIST, HELD = range(4)  # where a record is; from HELD on, by a thread
ACCESSES_OF_ITEM = 200  # beyond which a task does not end

UNORDERED = "in no order with another thread's access"

Item = tuple[Any, ...]


class RuleError(Exception):
    """A rule is broken."""


class PausedError(Exception):
    """The thread has done its step."""


class Scenario(NamedTuple):
    """A scenario: its threads and memory, the items that are in the queue at the beginning, and the task on an item.

    Before an item of a kind that `opens` names, a thread reserves so many records. `setup` runs before all threads, on the
    first of them. What `root` is at the end, and how many records were used at most, is known beforehand.
    """

    body: Callable[[Worker, Item], None]
    root: int
    items: tuple[Item, ...] = ()
    begun: tuple[Item, ...] = ()  # that the threads have taken
    setup: Callable[[Worker], None] | None = None
    threads: int = 2
    records: int = 4
    block: int = 1
    lists: int = 1
    looks: int = 1
    opens: dict[str, int] = {}  # noqa: RUF012
    combine: str = "sum"
    in_word: bool = False  # whether values share the word MISSING, as those of 32 bits do
    coarse: bool = False
    once: bool = False  # whether a launch that has found too few records is the end, for which there may be far too few
    exact: bool = False  # whether records are refused only if all lists were empty at one time since the thread looked


class Variant(NamedTuple):
    """A variant of the protocol: changed places in the source, or other memory orders of `subtract`."""

    change: Change | None = None
    releases: bool = True
    acquires: bool = True
    is_atomic: bool = True
    ordered: bool = True  # whether memory order is checked


RIGHT = Variant()


class Outcome(NamedTuple):
    """The result of an exploration: the broken rule, if any, and the steps to it; otherwise the numbers of states and ends."""

    broken: str
    steps: list[str]
    states: int
    ends: int


def functions(scenario: Scenario, machine: Machine) -> dict[str, Any]:
    """Return the functions of join_records.py, changed, over the memory of a machine."""
    text = SOURCE.read_text()
    if change := machine.variant.change:
        text, times = re.subn(change.old, change.new, text, flags=re.S)
        if times != 1:
            raise ModelError(f"{change.old!r} should match one place in {SOURCE.name}, and matches {times}")
    tree = ast.parse(text)
    is_future = [isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in tree.body]
    kept = [
        each
        for each, future in zip(tree.body, is_future, strict=True)
        if future or isinstance(each, ast.Assign | ast.FunctionDef)
    ]
    names = {name: value for name, value in vars(join_records).items() if isinstance(value, int)}
    names |= {"BLOCK": scenario.block, "LISTS": scenario.lists}
    names |= {"UNDECLARED": scenario.lists, "FIRST_GENERATION": scenario.lists + 1}
    exec(compile(ast.Module(kept, []), str(SOURCE), "exec"), names)
    names |= {"_LOOKS": scenario.looks, "thread_number": lambda worker: worker.machine.thread, "subtract": machine.subtract}
    names |= {
        name: getattr(machine, name) for name in ("atomic_load", "atomic_store", "atomic_cas", "atomic_add", "accumulate")
    }
    names |= {"atomic_min": machine.atomic_min, "atomic_max": machine.atomic_max}
    close = names["_close"]

    def noted_close(worker: Worker, joins: Any, i: int, info: int) -> None:
        machine.note_close(i)
        close(worker, joins, i, info)

    names["_close"] = noted_close
    if scenario.in_word:
        names |= {name: names[f"{name}_in_word"] for name in ("_begin", "_arrive", "_value", "_missing")}
    names |= {"subtract_and_combine": machine.subtract_and_combine}
    names |= {name: globals()[name] for name in ("link_and_info", "write_link_and_info", "write_words")}
    names |= {"bits_of": lambda joins, value: value, "value_of": lambda joins, bits: bits}
    return names


def link_and_info(joins: Any, i: int) -> tuple[int, int]:
    return joins.records.words[i, LINK], joins.records.words[i, INFO]


def write_link_and_info(joins: Any, i: int, *given: int) -> None:
    joins.records.words[i, LINK], joins.records.words[i, INFO] = given


def write_words(joins: Any, i: int, *given: int) -> None:
    for k, word in enumerate(given):
        joins.records.words[i, k] = word


class Words:
    """An array of the machine: a place in its memory, whose elements are accessed by plain reads and writes."""

    def __init__(self, machine: Machine, name: str, first: int, rows: int, columns: int = 0) -> None:
        self.machine, self.name, self.first, self.shape, self.columns = machine, name, first, (rows, columns), columns

    def at(self, place: Any) -> int:
        i, k = place if self.columns else (place, 0)
        if not 0 <= i < self.shape[0]:
            raise RuleError(f"{self.name}[{i}] is beyond the end of an array")
        return self.first + i * (self.columns or 1) + k

    def __getitem__(self, place: Any) -> int:
        return self.machine.read(self.at(place))

    def __setitem__(self, place: Any, value: int) -> None:
        self.machine.write(self.at(place), value)


class Own(Words):
    """The columns of threads' own free records: each has one that no other thread may touch, so accesses are no steps."""

    def at(self, place: Any) -> int:
        if place[1] != self.machine.thread:
            raise RuleError("a thread uses the free records of another one")
        return super().at(place)

    def __getitem__(self, place: Any) -> int:
        at = self.at(place)
        return self.machine.local(lambda: self.machine.memory[at])

    def __setitem__(self, place: Any, value: int) -> None:
        at = self.at(place)
        self.machine.local(lambda: self.machine.memory.__setitem__(at, value))


class Records:
    """The pool of records (lower_pool.py)."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine, self.words = machine, Words(machine, "words", 0, number, 4)
        self.value, self.item = Words(machine, "value", 4 * number, number), Words(machine, "item", 5 * number, number)

    def __len__(self) -> int:
        machine = self.machine
        counter = machine.step("load", machine.counter, machine.begin_look)
        return min(counter, machine.step("load", machine.counter + 1, lambda: machine.memory[machine.counter + 1]))

    def take(self, n: int) -> int:
        machine, memory = self.machine, self.machine.memory
        first = machine.step("add", machine.counter, lambda: machine.take(n))
        if first + n <= machine.scenario.records:
            return first
        machine.step(
            "min", machine.counter + 1, lambda: memory.__setitem__(machine.counter + 1, min(memory[machine.counter + 1], first))
        )
        machine.step("or", machine.counter + 2, lambda: memory.__setitem__(machine.counter + 2, 1))
        return -1


class Worker:
    """The worker of a task: its methods call the functions of join_records.py, as lower_joins.py lowers them with checks."""

    rank = 0

    def __init__(self, machine: Machine) -> None:
        self.machine, self.records = machine, functions(machine.scenario, machine)
        number, root = machine.scenario.records, Words(machine, "root", machine.root, 1)
        own = Own(machine, "own", machine.own, OWN, machine.scenario.threads)
        free = Words(machine, "free", machine.free, machine.scenario.lists + 2)
        self.joins = SimpleNamespace(records=Records(machine, number), own=own, free=free, root=root)

    def all(self, condition: bool) -> bool:
        return condition

    def push(self, item: Item, task: Any = None) -> None:
        self.machine.push(item)

    def open(self, count: int, parent: int = 0, negate: bool = False) -> int:
        combine = self.machine.scenario.combine
        handle = self.records["open_record"](self, self.joins, count, parent, layout.CODES[combine], negate, IDENTITY[combine])
        if handle < 0:
            raise RuleError("opening a join fails inside a task")
        self.machine.note_open((handle & INDEX) - 1)
        return int(handle)

    def then(self, j: int, item: Item) -> None:
        self.joins.records.item[self.records["push_at_end"](self.joins, j, PRIORITY)] = item

    def arrive_at(self, j: int, value: int | None, n: int = 1) -> None:
        self.check_open(j)
        given = 0 if value is None else value, value is not None, n
        state = self.records["arrive_at"](self, self.joins, j, *given, layout.CODES[self.machine.scenario.combine])
        if state < 0:
            raise RuleError("more have arrived than a join waits for")
        if state > 0:
            assert self.joins.records.words[state - 1, LINK] == PRIORITY
            self.push(self.joins.records.item[state - 1])

    def take(self, j: int) -> int:
        self.check_open(j)
        return int(self.records["take_value"](self, self.joins, j))

    def expect(self, j: int, n: int) -> None:
        self.records["expect"](self.joins, j, n)

    def check_open(self, j: int) -> None:
        if j and self.is_stale(j):
            raise RuleError("the handle of an open join is stale")

    def is_stale(self, j: int, may_race: bool = False) -> bool:
        self.machine.may_race = may_race
        found = self.records["is_stale"](self.joins, j)
        self.machine.may_race = False
        return bool(found)

    def run(self, item: Item) -> None:
        scenario = self.machine.scenario
        if opens := scenario.opens.get(item[0], 0):
            begin = self.records["beginning"](SimpleNamespace(opens=opens))
            if not begin(self, item, self.joins):
                return
        scenario.body(self, item)


class Machine:
    """The memory, the queue and the threads; it does one step of one thread from a given state."""

    def __init__(self, scenario: Scenario, variant: Variant) -> None:
        self.scenario, self.variant = scenario, variant
        number, self.thread, self.may_race, self.tell = scenario.records, 0, False, None
        self.root, self.free = 6 * number, 6 * number + 1
        self.counter = self.free + scenario.lists + 2  # and what was refused, and whether workers stop
        self.own = self.counter + 3
        self.memory: list[Any] = [0] * (self.own + OWN * scenario.threads)
        self.memory[self.root], self.memory[self.counter + 1] = IDENTITY[scenario.combine], NOT_REFUSED
        self.kinds = 1 + 2 * scenario.threads  # of accesses to a word: the write, and each thread's read and combination
        self.everything = (1 << self.kinds * 6 * number) - 1
        self.clocks = [self.everything] * scenario.threads  # of threads, and then of words by which they synchronize
        self.clocks += [0] * (number + scenario.lists)
        self.queue = [(item, self.everything) for item in scenario.items]
        self.places = [UNUSED] * number
        self.lists: list[Any] = [()] * scenario.lists  # the blocks on each, the first one last
        self.items: list[Any] = [*scenario.begun, *[None] * scenario.threads][: scenario.threads]
        self.logs: list[Any] = [()] * scenario.threads
        self.notes = [0] * scenario.threads  # 1: the rest of a list was read out of order; 2: all lists were empty
        self.log: list[Any] = []
        self.cursor, self.stepped, self.alone = 0, False, False
        self.worker = Worker(self)
        if scenario.setup:
            self.alone = True
            scenario.setup(self.worker)
            self.check_own()
            self.log, self.alone = [], False
            self.clocks = [self.everything] * scenario.threads + [0] * (number + scenario.lists)
            self.queue = [(item, self.everything) for item, _ in self.queue]

    def state(self) -> tuple[Any, ...]:
        self.queue.sort()
        shared = tuple(self.memory), tuple(self.clocks), tuple(self.queue), tuple(self.places), tuple(self.lists)
        return (*shared, tuple(self.items), tuple(self.logs), tuple(self.notes))

    def set_state(self, state: tuple[Any, ...]) -> None:
        self.memory[:], self.clocks[:], self.queue[:], self.places[:] = state[:4]
        self.lists[:], self.items[:], self.logs[:], self.notes[:] = state[4:]

    # Threads.

    def choices(self) -> Iterator[tuple[int, int]]:
        """Go over the steps that are possible: threads, and which item they take; -1 is the host, which launches again."""
        stopped, idle = self.memory[self.counter + 2], True
        for thread, item in enumerate(self.items):
            if item is not None:
                idle = False
                yield thread, 0
            elif not stopped:
                yield from ((thread, k) for k, each in enumerate(self.queue) if k == 0 or self.queue[k - 1] != each)
        if stopped and idle and self.queue and not self.scenario.once:
            yield -1, 0

    def move(self, thread: int, choice: int) -> None:
        """Do one step."""
        if thread < 0:
            return self.launch_again()
        self.thread = thread
        if self.items[thread] is None:
            self.items[thread], clock = self.queue.pop(choice)
            self.clocks[thread] |= clock
            self.told("take an item", str(self.items[thread]))
            return None
        self.log, self.cursor, self.stepped, self.may_race = list(self.logs[thread]), 0, False, False
        try:
            self.worker.run(self.items[thread])
        except PausedError:
            self.logs[thread] = tuple(self.log)
            return None
        self.items[thread], self.logs[thread], self.notes[thread] = None, (), 0
        return self.check_own()

    def launch_again(self) -> None:
        """Begin the launch that follows one that has found too few records, as the host does."""
        self.told("launch again", "")
        self.check_lists()
        self.memory[self.counter] = min(self.memory[self.counter : self.counter + 2])
        self.memory[self.counter + 1], self.memory[self.counter + 2] = NOT_REFUSED, 0
        self.clocks[:] = [self.everything] * len(self.items) + [0] * (len(self.clocks) - len(self.items))
        self.queue[:] = [(item, self.everything) for item, _ in self.queue]

    # Operations.

    def step(self, kind: str, word: int, operation: Callable[[], Any], is_step: bool = True) -> Any:
        """One operation of the running thread: given, or done, or put off to a later step."""
        if self.cursor < len(self.log):
            self.cursor += 1
            return self.log[self.cursor - 1]
        if is_step and not self.alone:
            if self.stepped:
                raise PausedError
            self.stepped = True
        result = operation()
        self.log.append(result)
        self.cursor += 1
        if len(self.log) > ACCESSES_OF_ITEM and not self.alone:
            raise RuleError("a task does not end")
        if kind:
            self.told(kind, self.name(word), result)
            if self.scenario.exact and not any(self.memory[self.free : self.free + self.scenario.lists]):
                self.notes[:] = [note | 2 for note in self.notes]
        return result

    def local(self, operation: Callable[[], Any]) -> Any:
        return self.step("", 0, operation, is_step=False)

    def order(self, word: int, needs: int, what: str, supersedes: int, mine: int) -> None:
        """Note an access of this thread, which has to come behind others of this word."""
        missing = needs & ~self.clocks[self.thread]
        if missing and self.variant.ordered and not self.alone:
            raise RuleError(f"{self.name(word)} is {what} {UNORDERED}")
        cleared = ~mine
        self.clocks[:] = [(clock | supersedes) & cleared for clock in self.clocks]
        self.queue[:] = [(item, (clock | supersedes) & cleared) for item, clock in self.queue]
        self.clocks[self.thread] |= mine

    def bits(self, word: int) -> tuple[int, int, int, int]:
        """Return the bits of a word: its last write, all reads, all combinations; and where those of this thread are."""
        first, threads = word * self.kinds, len(self.items)
        each = (1 << threads) - 1
        return 1 << first, each << first + 1, each << first + 1 + threads, first + 1 + self.thread

    def read(self, word: int) -> Any:
        if word == self.counter - 1:  # the generation of new records, which is constant in a launch
            return self.memory[word]
        if word >= self.root:
            raise RuleError(f"{self.name(word)} is read without an atomic operation")
        may_race = self.may_race
        is_rest = word % 4 == NEXT and word < 4 * len(self.places) and sys._getframe(2).f_code.co_name == "_pop"

        def operation() -> Any:
            write, _, combinations, mine = self.bits(word)
            if is_rest:
                self.notes[self.thread] |= not write & self.clocks[self.thread]
            elif not may_race:
                if 4 * len(self.places) <= word and self.places[self.record(word)] != OPEN:
                    raise RuleError("the value of a record is read that is not open")
                self.order(word, write | combinations, "read", 0, 1 << mine)
            return self.memory[word]

        return self.step("read", word, operation, is_rest or may_race or not self.scenario.coarse)

    def write(self, word: int, value: Any) -> None:
        if word >= self.root:
            raise RuleError(f"{self.name(word)} is written without an atomic operation")

        def operation() -> None:
            write, reads, combinations, _ = self.bits(word)
            if self.places[self.record(word)] not in (OPEN, HELD + self.thread):
                raise RuleError("a record is written that the thread does not have")
            self.order(word, write | reads | combinations, "written", reads | combinations, write)
            if (at := self.sync(word)) >= 0:
                self.clocks[at] = 0
            self.memory[word] = value

        self.step("write", word, operation, not self.scenario.coarse)

    def record(self, word: int) -> int:
        number = len(self.places)
        return word // 4 if word < 4 * number else word % number

    def sync(self, word: int) -> int:
        """Return which clock is that of a word, or -1 if threads do not synchronize by it."""
        if self.free <= word < self.free + self.scenario.lists:
            return len(self.items) + len(self.places) + word - self.free
        return len(self.items) + word // 4 if word < 4 * len(self.places) and word % 4 == MISSING else -1

    def combine(self, kind: str, words: Words, place: Any, f: Callable[[int], int], is_step: bool, then: Any = None) -> Any:
        """Modify a word that others may modify at the same time; `then` makes the result, of the value before."""
        word = words.at(place)

        def operation() -> Any:
            before = self.memory[word]
            if word < self.root:
                write, reads, _, mine = self.bits(word)
                if self.places[self.record(word)] != OPEN:
                    raise RuleError("an arrival at a record that is not open")
                self.order(word, write | reads, "combined", 0, 1 << mine + len(self.items))
            self.memory[word] = f(before)
            if kind == "store" and before != self.memory[word] and self.bits(word)[2] & ~self.clocks[self.thread]:
                raise RuleError(f"{self.name(word)} is stored {UNORDERED}")
            return then(before) if then else before

        return self.step(kind, word, operation, is_step or not self.scenario.coarse)

    def accumulate(self, words: Words, place: Any, value: int, memory_order: str = "relaxed") -> None:
        self.combine("add", words, place, lambda old: old + value, False)

    def atomic_min(self, words: Words, place: Any, value: int, memory_order: str = "relaxed") -> None:
        self.combine("min", words, place, lambda old: min(old, value), False)

    def atomic_max(self, words: Words, place: Any, value: int, memory_order: str = "relaxed") -> None:
        self.combine("max", words, place, lambda old: max(old, value), False)

    def atomic_add(self, words: Words, place: Any, value: int, memory_order: str = "relaxed") -> int:
        return int(self.combine("add", words, place, lambda old: old + value, True))

    def subtract(self, words: Words, place: Any, n: int) -> int:
        """Arrive at a counter (dependency_counters.cuh)."""
        return self.arrive(words, place, n, lambda old: old - n)

    def subtract_and_combine(self, joins: Any, i: int, n: int, code: int, value: int) -> int:
        """Arrive at a counter in the lower half of a word, with a value for the upper half (`change_word`)."""

        def change(old: int) -> int:
            first = old >> 32
            combined = (first, first + value, min(first, value), max(first, value))[code]
            return combined << 32 | old % 2**32 - n

        return self.arrive(joins.records.words, (i, MISSING), n, change)

    def arrive(self, words: Words, place: Any, n: int, change: Callable[[int], int]) -> int:
        at, variant = self.sync(words.at(place)), self.variant

        def after(before: int) -> int:
            if variant.releases:
                self.clocks[at] |= self.clocks[self.thread]
            missing = before % 2**32
            if missing == n and variant.acquires:
                self.clocks[self.thread] |= self.clocks[at]
            return 1 if missing == n else -1 if missing < n else 0

        if variant.is_atomic:
            return int(self.combine("arrive", words, place, change, True, after))
        seen = self.combine("load", words, place, lambda old: old, True)
        return int(self.combine("write", words, place, lambda old: change(seen), True, lambda old: after(seen)))

    def acquire(self, word: int, order: str) -> None:
        if order in ("acquire", "acq_rel"):
            self.clocks[self.thread] |= self.clocks[self.sync(word)]

    def atomic_load(self, words: Words, place: int, memory_order: str = "relaxed") -> int:
        word = words.at(place)

        def operation() -> int:
            self.acquire(word, memory_order)
            return int(self.memory[word])

        return int(self.step("load", word, operation))

    def atomic_store(self, words: Words, place: Any, value: int, memory_order: str = "relaxed") -> None:
        if words.columns:  # others may store in any order what is equal
            self.combine("store", words, place, lambda _: value, False)
        else:
            self.store_head(words, place, value, memory_order)

    def store_head(self, words: Words, place: int, value: int, memory_order: str) -> None:
        word, caller = words.at(place), sys._getframe(2).f_code.co_name

        def operation() -> None:
            self.note_head(caller, place, self.memory[word], value)
            self.clocks[self.sync(word)] = self.clocks[self.thread] if memory_order == "release" else 0
            self.memory[word] = value

        self.step("store", word, operation)

    def atomic_cas(self, words: Words, place: int, expected: int, desired: int, memory_order: str = "relaxed") -> int:
        word, caller = words.at(place), sys._getframe(1).f_code.co_name

        def operation() -> int:
            found = int(self.memory[word])
            if found == expected:
                self.note_head(caller, place, found, desired)
                self.memory[word] = desired
                if memory_order in ("release", "acq_rel"):
                    self.clocks[self.sync(word)] |= self.clocks[self.thread]
            self.notes[self.thread] &= ~1
            self.acquire(word, memory_order)
            return found

        return int(self.step("swap", word, operation))

    def push(self, item: Item) -> None:
        self.step("push", -1, lambda: self.queue.append((item, self.clocks[self.thread])))

    # Where the records are.

    def begin_look(self) -> int:
        self.notes[self.thread] &= ~2
        return int(self.memory[self.counter])

    def take(self, n: int) -> int:
        first = int(self.memory[self.counter])
        self.memory[self.counter] += n
        if first + n <= len(self.places):
            self.get(range(first, first + n), UNUSED)
        elif self.scenario.exact and not self.notes[self.thread] & 2:
            raise RuleError("records are refused, and a block was on a list at all times")
        return first

    def get(self, block: Any, where: int) -> None:
        for i in block:
            if self.places[i] != where:
                raise RuleError("a record is given twice")
            self.places[i] = HELD + self.thread

    def note_open(self, i: int) -> None:
        def operation() -> None:
            if self.places[i] != HELD + self.thread:
                raise RuleError("a record is opened that the thread does not have")
            self.places[i] = OPEN

        self.local(operation)

    def note_close(self, i: int) -> None:
        def operation() -> None:
            if self.places[i] != OPEN:
                raise RuleError("a join is closed twice")
            self.places[i] = HELD + self.thread

        self.local(operation)

    def note_head(self, caller: str, number: int, old: int, new: int) -> None:
        """Compare the new head of a list with the blocks on it."""
        blocks = self.lists[number]
        rest = blocks[-1][0] + 1 if blocks else 0
        if caller == "_give_block":
            block = tuple(self.block((new & INDEX) - 1))
            if self.memory[4 * block[0] + NEXT] != rest:
                raise RuleError("a list loses a block")
            if any(self.places[i] != HELD + self.thread for i in block):
                raise RuleError("a block is given with records that the thread does not have")
            for i in block:
                self.places[i] = ON_LIST
            self.lists[number] = (*blocks, block)
            return
        if self.notes[self.thread] & 1 and self.variant.ordered:
            raise RuleError(f"the rest of a list is read {UNORDERED}")
        if not blocks or old & INDEX != rest:
            raise RuleError("a block is taken twice")
        if new & INDEX != (blocks[-2][0] + 1 if len(blocks) > 1 else 0):
            raise RuleError("a list leads to a block that is not on it")
        self.get(blocks[-1], ON_LIST)
        self.lists[number] = blocks[:-1]

    def chain(self, first: int, number: int) -> Iterator[int]:
        """Go over the links of so many records."""
        for _ in range(number):
            if not 0 <= first < len(self.places):
                raise RuleError("a list of free records ends too early")
            yield first
            first = self.memory[4 * first + LINK] - 1

    def block(self, first: int) -> Iterator[int]:
        return self.chain(first, self.scenario.block)

    def check_own(self) -> None:
        """After a task: the thread's list has the free records that it holds, each once, and none is open."""
        head, count, _ = self.memory[self.own + self.thread :: self.scenario.threads][:OWN]
        held = [i for i, place in enumerate(self.places) if place == HELD + self.thread]
        if count != len(held) or sorted(self.chain(head - 1, count)) != held:
            raise RuleError("a thread's own list is not of the records that it holds")
        if any(self.memory[4 * i + INFO] & 7 for i in held):
            raise RuleError("a free record says that it is open")

    def check_lists(self) -> None:
        """When no task runs: each list leads to the blocks on it, and each record is in one place."""
        for number, blocks in enumerate(self.lists):
            head = self.memory[self.free + number] & INDEX
            for block in reversed(blocks):
                if head != block[0] + 1 or tuple(self.block(head - 1)) != block:
                    raise RuleError("a list loses a block")
                head = self.memory[4 * block[0] + NEXT]
            if head:
                raise RuleError("a list leads to a block that is not on it")
        on_lists = sorted(i for blocks in self.lists for block in blocks for i in block)
        if on_lists != [i for i, place in enumerate(self.places) if place == ON_LIST]:
            raise RuleError("a record is in two places")

    def check_end(self) -> None:
        self.check_lists()
        if self.scenario.once and self.memory[self.counter + 2]:
            return
        if OPEN in self.places:
            raise RuleError("a join is open at the end")
        if self.memory[self.root] != self.scenario.root:
            raise RuleError(f"the root has {self.memory[self.root]} at the end, not {self.scenario.root}")

    # What is told.

    def name(self, word: int) -> str:
        number, k = len(self.places), word - self.free
        if word < 0:
            return "the queue"
        if word < 4 * number:
            return f"{('MISSING', 'NEXT', 'LINK', 'INFO')[word % 4]} of record {word // 4}"
        if word < self.root:
            return f"the {'value' if word < 5 * number else 'item'} of record {word % number}"
        return (
            "the root" if k < 0 else f"list {k}" if word < self.counter else ("counter", "refused", "stop")[word - self.counter]
        )

    def told(self, kind: str, what: str, result: Any = None) -> None:
        if self.tell is not None:
            frame = sys._getframe(1)
            while frame.f_back and frame.f_code.co_filename != str(SOURCE):
                frame = frame.f_back
            place = frame.f_code.co_name if frame.f_code.co_filename == str(SOURCE) else "task"
            got = "" if result is None else f", got {result:#x}" if isinstance(result, int) else f", got {result}"
            self.tell.append(f"thread {self.thread}  {place:12} {kind:6} {what}{got}")


def digest(state: tuple[Any, ...]) -> bytes:
    return blake2b(marshal.dumps(state, 2), digest_size=16).digest()


def explore(scenario: Scenario, variant: Variant = RIGHT) -> Outcome:
    """Explore all states, until a rule is broken."""
    try:
        machine = Machine(scenario, variant)
    except RuleError as error:
        return Outcome(str(error), [], 0, 0)
    state = machine.state()
    numbers, parents = {digest(state): 0}, [(0, -1, 0)]
    level, ends = [(0, state)], [False]
    sources, targets = array("I"), array("I")
    while level:
        following = []
        for number, state in level:
            machine.set_state(state)
            choices, step = list(machine.choices()), None
            try:
                if not choices:
                    machine.check_end()
                    ends[number] = True
                for step in choices:
                    machine.set_state(state)
                    machine.move(*step)
                    new = machine.state()
                    key = digest(new)
                    reached = numbers.setdefault(key, len(parents))
                    if reached == len(parents):
                        parents.append((number, *step))
                        ends.append(False)
                        following.append((reached, new))
                    sources.append(number)
                    targets.append(reached)
            except RuleError as error:
                return Outcome(str(error), steps_to(scenario, variant, parents, number, step), len(parents), sum(ends))
        level = following
    stuck = without_end(sources, targets, ends)
    if stuck is not None:
        steps = steps_to(scenario, variant, parents, stuck, None)
        return Outcome("no way leads to the end", steps, len(parents), sum(ends))
    return Outcome("", [], len(parents), sum(ends))


def without_end(sources: array[int], targets: array[int], ends: list[bool]) -> int | None:
    """Return the first state from which no way leads to an end."""
    before: list[list[int]] = [[] for _ in ends]
    for source, target in zip(sources, targets, strict=True):
        before[target].append(source)
    reach, todo = list(ends), [number for number, is_end in enumerate(ends) if is_end]
    while todo:
        for number in before[todo.pop()]:
            if not reach[number]:
                reach[number] = True
                todo.append(number)
    return None if all(reach) else reach.index(False)


def steps_to(scenario: Scenario, variant: Variant, parents: Any, number: int, last: Any) -> list[str]:
    """Return what the threads do on the shortest way to a state, and at a step from there."""
    way = [] if last is None else [last]
    while number:
        number, *step = parents[number]
        way.append(step)
    machine = Machine(scenario, variant)
    machine.tell = []
    try:
        for step in reversed(way):
            machine.queue.sort()
            machine.move(*step)
    except RuleError as error:
        machine.tell.append(str(error))
    return machine.tell
