"""A row of the table of memory orders: its program, and its variants without one of its fences or with a weaker order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from litmus.form import FormError, Instruction, Program, Thread, instruction


class Row(NamedTuple):
    """A program for some rows of the table in `docs/protocol/memory-order.md`, which are named by their steps.

    `spare` has a reason for each order that is in question and without which the axioms allow nothing more. `instead` has
    variants that leave out something else than an order: an instruction, and the one in place of it.
    """

    steps: tuple[str, ...]
    program: Program
    spare: Mapping[str, str] = {}
    instead: Mapping[str, tuple[str, str]] = {}


WEAKER = {"acquire": ("relaxed",), "release": ("relaxed",), "acq_rel": ("acquire", "release")}


def without(threads: list[Thread], at: tuple[str, ...], order: str = "") -> list[Thread]:
    """Return threads without the fences at some places, or with an operation there that has a weaker order."""

    def changed(line: Instruction) -> Iterator[Instruction]:
        if not set(line.at) & set(at):
            yield line
        elif line.kind != "fence":
            yield instruction(line.text.replace(f".{line.order}", f".{order}", 1))

    return [
        thread._replace(instructions=tuple(each for line in thread.instructions for each in changed(line)))
        for thread in threads
    ]


def variants(row: Row) -> Iterator[tuple[str, Program]]:
    """Go over the variants of a program, each with one order fewer, and with a name that says which."""
    program = row.program
    done = set()
    for line in (line for thread in program.threads for line in thread.instructions if line.in_question):
        if line.at in done:
            continue
        done.add(line.at)
        name = ", ".join(line.at)
        if line.kind == "fence":
            yield name, program.changed(f"{program.name}: without {name}", without(program.threads, line.at))
        for order in WEAKER.get(line.order, ()) if line.kind != "fence" else ():
            yield (
                f"{name} {line.order}",
                program.changed(
                    f"{program.name}: {name} {order} and not {line.order}", without(program.threads, line.at, order)
                ),
            )
    for barrier in dict.fromkeys(
        line.place for thread in program.threads for line in thread.instructions if line.kind == "bar"
    ):
        kept = [
            thread._replace(
                instructions=tuple(line for line in thread.instructions if line.kind != "bar" or line.place != barrier)
            )
            for thread in program.threads
        ]
        yield f"barrier {barrier}", program.changed(f"{program.name}: without the barrier {barrier}", kept)
    for name, (old, new) in row.instead.items():
        yield name, replaced(program, f"{program.name}: {name}", old, new)


def replaced(program: Program, name: str, old: str, new: str) -> Program:
    """Return a program with another instruction in place of one."""
    if old not in [line.text for thread in program.threads for line in thread.instructions]:
        raise FormError(f"{program.name} has no {old!r}")
    threads = [
        thread._replace(instructions=tuple(instruction(new) if line.text == old else line for line in thread.instructions))
        for thread in program.threads
    ]
    return program.changed(name, threads)
