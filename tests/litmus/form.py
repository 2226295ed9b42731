"""The form of litmus programs: threads of instructions in the words of PTX, and what must never be.

    Program(
        "message passing",
        {
            "writer, block 0": '''
                st.weak data, 1
                fence.acq_rel.gpu
                st.relaxed.gpu flag, 1
            ''',
            "reader, block 1": '''
                seen = ld.relaxed.gpu flag
                need seen == 1
                fence.acq_rel.gpu
                got = ld.weak data
            ''',
        },
        never="got == 0",
    )

An instruction is `ld`, `st`, `atom`, `red` or `fence` with an order and a scope, or `bar.sync NAME`, at which all threads
with that instruction meet. An `atom` or `red` ends with its operation: `add`, `or`, `and`, `min`, `exch` or `cas` (expected,
desired). The value that a `ld` or `atom` returns goes to a register of the thread; operands are expressions of registers.
`slot[ticket]` is the word of that number. `need CONDITION`: the thread ends here if the condition does not hold. A loop that
polls is written as its last turn (a bound of one turn), since the reads of earlier turns would only add order.

Behind an instruction may be labels, the places of the core that have the instruction (source.py): after `@`, or after `~`
where another program shows what happens without the instruction. A label may go on in the next line, after a comma. Words are
0 at the beginning, but for the words in `init`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "sc")
SCOPES = ("cta", "gpu", "sys")
LABEL = re.compile(r"\s+([@~])\s+")
ACCESS = re.compile(
    r"(?:(?P<into>\w+) = )?(?P<kind>ld|st|atom|red)\.(?P<order>\w+)(?:\.(?P<scope>cta|gpu|sys))?(?:\.(?P<op>\w+))?"
    r" (?P<place>\w+)(?:\[(?P<index>[^\]]+)\])?(?:, (?P<operands>.+))?"
)
FENCE = re.compile(r"fence\.(?P<order>acq_rel|sc)\.(?P<scope>cta|gpu|sys)")
THREAD = re.compile(r"(?P<name>[^,]+), (?:block (?P<block>\d+)(?: of GPU (?P<gpu>\d+))?|(?P<host>host))")
PLACE = re.compile(r"\[(\w+)\]")
MOST_EVENTS = 16


class FormError(Exception):
    """A program that is not in the form."""


class Expression(NamedTuple):
    """An expression of registers, the registers in it, and its text."""

    code: Any
    names: frozenset[str]
    text: str


def expression(text: str) -> Expression:
    tree = ast.parse(text.strip(), mode="eval")
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Expression(compile(tree, text, "eval"), names, text.strip())


class Instruction(NamedTuple):
    """An instruction; `text` is what the program says, and `at` the places of the core."""

    text: str
    kind: str
    order: str = "weak"
    scope: str = "sys"
    op: str = ""
    place: str = ""
    index: Expression | None = None
    operands: tuple[Expression, ...] = ()
    into: str = ""
    at: tuple[str, ...] = ()
    in_question: bool = False


class Thread(NamedTuple):
    """A thread, the block and the GPU that it runs on, and its instructions. The host is a GPU of its own."""

    name: str
    block: int
    gpu: int
    instructions: tuple[Instruction, ...]


class Event(NamedTuple):
    """A read (R), a write (W), a fence (F) or a barrier (B) of a thread.

    `line` is the number of its instruction; `needs` are the numbers of the reads that its address, its value or whether it is
    done depend on; `partner` is the number of the read of the operation that writes here.
    """

    kind: str
    line: int
    order: str
    scope: str
    place: str = ""
    value: int = 0
    needs: tuple[int, ...] = ()
    partner: int = -1
    returns: bool = True


class Path(NamedTuple):
    """One way that a thread can go, if its reads return certain values: its events, and its registers at the end."""

    events: tuple[Event, ...]
    registers: Mapping[str, int]


def joined(tree: ast.expr, of: type[ast.boolop]) -> list[ast.expr]:
    """Return what `and` or `or` joins in an expression: without one, the expression itself."""
    return tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, of) else [tree]


def instruction(line: str) -> Instruction:
    text, *label = LABEL.split(line)
    more = {"at": tuple(re.split(r", (?=[\w:]+ )", label[1].strip())), "in_question": label[0] == "@"} if label else {}
    text = text.strip()
    if text.startswith("need "):
        return Instruction(text, "need", operands=(expression(text[5:]),), **more)
    if text.startswith("bar.sync "):
        return Instruction(text, "bar", scope="cta", place=text[9:], **more)
    if found := FENCE.fullmatch(text):
        return Instruction(text, "fence", found["order"], found["scope"], **more)
    found = ACCESS.fullmatch(text)
    if not found or found["order"] not in ORDERS or (found["order"] == "weak") != (found["scope"] is None):
        raise FormError(f"no instruction: {text!r}")
    index = expression(found["index"]) if found["index"] else None
    operands = tuple(expression(each) for each in found["operands"].split(", ")) if found["operands"] else ()
    if len(operands) != {"ld": 0, "st": 1}.get(found["kind"], 2 if found["op"] == "cas" else 1):
        raise FormError(f"operands of {text!r}")
    order, scope = found["order"], found["scope"] or "sys"
    return Instruction(
        text, found["kind"], order, scope, found["op"] or "", found["place"], index, operands, found["into"] or "", **more
    )


def thread(header: str, text: str) -> Thread:
    found = THREAD.fullmatch(header)
    if not found:
        raise FormError(f"no thread: {header!r}")
    lines = tuple(instruction(line) for line in re.sub(r",\s*\n\s*", ", ", text).splitlines() if line.strip())
    return Thread(
        found["name"], -1 if found["host"] else int(found["block"]), -1 if found["host"] else int(found["gpu"] or 0), lines
    )


class Program:
    """Threads, and what must never be: a condition of registers, and of words at the end, as in ``[tail] == 1``."""

    def __init__(self, name: str, threads: Mapping[str, str], never: str, init: Mapping[str, int] | None = None) -> None:
        self.name, self.never, self.init = name, never, dict(init or {})
        self.threads = [thread(header, text) for header, text in threads.items()]
        self._prepare()

    def _prepare(self) -> None:
        tree = ast.parse(PLACE.sub(r"at_end('\1')", self.never), mode="eval").body
        # The condition holds where all parts of one of the ways hold.
        self.ways = [[expression(ast.unparse(part)) for part in joined(way, ast.And)] for way in joined(tree, ast.Or)]
        taken: set[str] = set()
        for each in self.threads:
            mine = {line.into for line in each.instructions if line.into}
            if mine & taken:
                raise FormError(f"registers of two threads: {mine & taken}")
            taken |= mine
        if unknown := {name for way in self.ways for part in way for name in part.names} - taken - {"at_end"}:
            raise FormError(f"{self.name}: no thread has {unknown}")

    def changed(self, name: str, threads: list[Thread]) -> Program:
        """Return the program with other instructions."""
        other = Program.__new__(Program)
        other.name, other.never, other.init, other.threads = name, self.never, self.init, threads
        other._prepare()
        return other

    @property
    def events(self) -> int:
        """The most events of all threads together."""
        size = {"atom": 2, "red": 2, "need": 0}
        return sum(size.get(line.kind, 1) for each in self.threads for line in each.instructions)

    def paths(self) -> list[list[Path]]:
        """Return the ways that each thread can go on which the condition can hold."""
        values: dict[str, set[int]] = {}
        rounds = sum(line.kind in ("st", "atom", "red") for each in self.threads for line in each.instructions)
        for _ in range(rounds + 1):
            found = [list(self._walk(each, values)) for each in self.threads]
            before = {place: set(known) for place, known in values.items()}
            for path in (path for paths in found for path in paths):
                for event in path.events:
                    if event.kind == "W":
                        values.setdefault(event.place, {self.init.get(event.place, 0)}).add(event.value)
            if values == before:
                break
        return [[path for path in paths if self._fits(each, path)] for each, paths in zip(self.threads, found, strict=True)]

    def _fits(self, each: Thread, path: Path) -> bool:
        mine, known = {line.into for line in each.instructions if line.into}, dict(path.registers)

        def can_hold(part: Expression) -> bool:
            if not part.names & mine <= known.keys():
                return False  # the thread has ended before it had them
            return not part.names or not part.names <= mine or bool(eval(part.code, {}, known))

        return any(all(map(can_hold, way)) for way in self.ways)

    def holds(self, registers: Mapping[str, int], at_end: Any) -> bool:
        """Whether the condition holds: a part with a register that a thread has ended without does not."""
        known, more = dict(registers), {"at_end": at_end}
        has = known.keys() | more.keys()
        return any(all(part.names <= has and eval(part.code, more, known) for part in way) for way in self.ways)

    def _walk(self, each: Thread, values: Mapping[str, set[int]]) -> Iterator[Path]:
        """Go over the ways of a thread whose reads return any of the values that are known of their words."""

        def go(
            line: int, events: tuple[Event, ...], known: dict[str, tuple[int, frozenset[int]]], after: frozenset[int]
        ) -> Iterator[Path]:
            def value(of: Expression) -> tuple[int, frozenset[int]]:
                result = eval(of.code, {}, {name: known[name][0] for name in of.names})
                return int(result), frozenset().union(*(known[name][1] for name in of.names))

            while line < len(each.instructions):
                now = each.instructions[line]
                place, where = now.place, frozenset[int]()
                if now.kind == "need":
                    holds, on = value(now.operands[0])
                    after |= on
                    if not holds:
                        break
                    line += 1
                    continue
                if now.kind in ("fence", "bar"):
                    events += (Event("F" if now.kind == "fence" else "B", line, now.order, now.scope, place),)
                    line += 1
                    continue
                if now.index:
                    number, where = value(now.index)
                    place = f"{place}[{number}]"
                operands = [value(operand) for operand in now.operands]
                if now.kind == "st":
                    needs = tuple(sorted(where | operands[0][1] | after))
                    events += (Event("W", line, now.order, now.scope, place, operands[0][0], needs),)
                    line += 1
                    continue
                at = len(events)
                for read in sorted(values.get(place, {self.init.get(place, 0)})):
                    first = {"acq_rel": "acquire", "release": "relaxed"}.get(now.order, now.order)
                    more = (Event("R", line, first, now.scope, place, read, tuple(sorted(where)), returns=now.kind != "red"),)
                    written = None if now.kind == "ld" else written_by(now.op, read, [operand for operand, _ in operands])
                    if written is not None:
                        second = {"acq_rel": "release", "acquire": "relaxed"}.get(now.order, now.order)
                        on = where.union({at}, after, *(names for _, names in operands))
                        more += (Event("W", line, second, now.scope, place, written, tuple(sorted(on)), at),)
                    kept = {**known, now.into: (read, frozenset({at}))} if now.into else known
                    yield from go(line + 1, events + more, kept, after)
                return
            yield Path(events, {name: value for name, (value, _) in known.items()})

        yield from go(0, (), {}, frozenset())


def written_by(op: str, read: int, operands: list[int]) -> int | None:
    """Return what an atomic operation writes over a value; None: it does not write."""
    if op == "cas":
        return operands[1] if read == operands[0] else None
    (operand,) = operands
    results = {"add": read + operand, "or": read | operand, "and": read & operand, "min": min(read, operand), "exch": operand}
    if op not in results:
        raise FormError(f"no atomic operation: {op!r}")
    return results[op]
