"""The tables and the counterexample of `docs/protocol/axioms.md`; ``python tests/litmus/page.py`` writes them there.

``python tests/litmus/page.py written before its push`` prints the programs with these words in their names, and the
counterexample of each of their variants.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from litmus.axioms import counterexample, shown
from litmus.form import Program
from litmus.literature import ALL
from litmus.results import ALLOWED, LEFT_OUT, PUBLISHED, SAFE, Result, counted, entries, read
from litmus.row import Row, variants
from litmus.rows import ROWS
from litmus.source import FUNCTIONS, JOINS, LABEL, ROOT

PAGE = ROOT / "docs" / "protocol" / "axioms.md"
EXAMPLE = ("a slot is not overwritten while it is read", "publish fence#1")
HEAD = "| step | what must hold | found when left out | spare | on the chip |\n| --- | --- | --- | --- | --- |\n"
HEAD_OF_PUBLISHED = "| published test | the axioms | on the chip |\n| --- | --- | --- |\n"
Rows = Mapping[tuple[str, str, str], Result]


def named(label: str, order: str = "") -> str:
    """Return a label as the page has it: a function, and which of its fences, or the order of which of its operations."""
    found = LABEL.fullmatch(label)
    if not found:
        return label
    function, name = found["function"], FUNCTIONS[found["function"]][1]
    text = f"`{function if '::' in function else name}`"
    if FUNCTIONS[function][0] == JOINS or order:
        text += f" {order or found['call']}"
    elif found["call"] != "fence":
        text += f" `{found['call']}`"
    return text + (f" ({found['number']})" if found["number"] else "")


def told(variant: str) -> str:
    """Return what a variant leaves out."""
    *labels, last = variant.split(", ")
    word, _, order = last.rpartition(" ")
    if order in ("acquire", "release") and LABEL.fullmatch(word):
        return named(word, order)
    if variant.startswith("barrier "):
        return "the barrier of threads"
    return ", ".join(
        dict.fromkeys(
            named(label) if LABEL.fullmatch(label) and label.split()[0] in FUNCTIONS else label for label in [*labels, last]
        )
    )


def spare(row: Row, name: str) -> str:
    return f"{told(name)}: {row.spare[name]}"


def millions(count: int) -> str:
    return f"{count / 1e6:.0f} M" if count >= 10**6 else f"{count:,}"


def outcome(result: Result) -> str:
    """Return how often an outcome was seen."""
    if not result.instances:
        return f"not run: {result.why_not}" if result.why_not.startswith("needs") else "not run"
    return f"{result.seen:,} of {millions(result.instances)}" if result.seen else f"not seen in {millions(result.instances)}"


def on_chip(row: Row, rows: Rows) -> str:
    """Return what the program of a row, and its variants, did on the chip."""
    mine = {entry.key: counted(entry, rows) for entry in entries() if entry.name == row.program.name}
    safe = mine[SAFE, row.program.name, ""]
    if not any(result.instances for result in mine.values()):
        return outcome(safe)
    has_needs = any(line.kind == "need" for thread in row.program.threads for line in thread.instructions)
    met = f", {millions(safe.met)} to their end" if has_needs and safe.instances else ""
    return "; ".join(
        [f"as written: {outcome(safe)}{met}"]
        + [f"{told(name)}: {outcome(mine[LEFT_OUT, row.program.name, name])}" for name, _ in variants(row)]
    )


def chip(rows: Rows) -> str:
    """Return what ran on the chip, in a sentence, and the table of the published tests."""
    all_of_them = [counted(entry, rows) for entry in entries()]
    ran = [result for result in all_of_them if result.instances]
    if not ran:
        return "The programs have not run on a chip."
    allowed = [result for result in ran if result.verdict == ALLOWED]
    forbidden = [result for result in ran if result.verdict != ALLOWED]
    left = [result.why_not for result in all_of_them if not result.instances]
    why = ", ".join(f"{left.count(reason)} {reason.replace('needs', 'that need')}" for reason in sorted(set(left)) if reason)
    where = "; ".join(dict.fromkeys(f"{result.card}, {result.cuda}" for result in ran))
    text = fill(
        f"{len(ran)} programs, variants and published tests ran on a chip ({where}), each at least "
        f"{millions(min(result.instances for result in ran))} times. Of {len(forbidden)} outcomes that the axioms forbid, "
        f"{sum(result.seen > 0 for result in forbidden)} were seen; of {len(allowed)} that they allow, "
        f"{sum(result.seen > 0 for result in allowed)}. Not run: {why or len(left)}.",
        width=120,
    )
    tests = [result for result in all_of_them if result.kind == PUBLISHED]
    return (
        f"{text}\n\n{HEAD_OF_PUBLISHED}" + "".join(f"| {test.program} | {test.verdict} | {outcome(test)} |\n" for test in tests)
    ).rstrip()


def table(rows: Rows) -> str:
    """Return the table of all programs."""
    return HEAD + "".join(
        f"| {'; '.join(row.steps)} | {row.program.name} | "
        f"{'; '.join(dict.fromkeys(told(name) for name, _ in variants(row) if name not in row.spare))} | "
        f"{'; '.join(spare(row, name) for name in row.spare)} | {on_chip(row, rows)} |\n"
        for row in ROWS
    )


def printed(program: Program) -> str:
    """Return a program as text."""
    lines = []
    for thread in program.threads:
        where = "the host" if thread.gpu < 0 else f"block {thread.block}" + (f" of GPU {thread.gpu}" if thread.gpu else "")
        width = max(len(line.text) for line in thread.instructions)
        lines.append(f"  {thread.name}, {where}")
        lines += [f"    {line.text:<{width}}   {', '.join(line.at)}".rstrip() for line in thread.instructions]
    begin = "".join(f", {place} is {value}" for place, value in program.init.items())
    return "\n".join([*lines, f"never: {program.never}{'; at the beginning' + begin[1:] if begin else ''}"])


def example() -> str:
    """Return the program of the example, and its counterexample."""
    row = next(row for row in ROWS if row.program.name == EXAMPLE[0])
    found = counterexample(dict(variants(row))[EXAMPLE[1]])
    assert found
    return f"```text\n{printed(row.program)}\n```\n\nWithout the fence in `publish`:\n\n```text\n{shown(found)}\n```\n"


def counts() -> str:
    """Return the sentence with the numbers of programs."""
    left_out = [(row, name) for row in ROWS for name, _ in variants(row)]
    number = sum(name in row.spare for row, name in left_out)
    steps = {step for row in ROWS for step in row.steps}
    return fill(
        f"There are {len(ROWS)} programs for the {len(steps)} rows, all of them safe, and {len(left_out)} variants that lack "
        f"something: {len(left_out) - number} have a counterexample, and {number} have none. The checker agrees with the "
        f"verdicts of {len(ALL)} published tests.",
        width=120,
    )


def parts(rows: Rows) -> Iterator[tuple[str, str]]:
    """Go over the parts of the page that are made: the comment before each, and its text."""
    yield "counts", counts() + "\n"
    yield "example", example()
    yield "chip", chip(rows) + "\n"
    yield "table", table(rows)


def made(page: str, rows: Rows | None = None) -> str:
    """Return a page with its made parts as they have to be, by the rows of `results.csv` unless others are given."""
    for name, text in parts(read() if rows is None else rows):
        begin, end = f"<!-- {name} -->\n\n", f"\n<!-- end of {name} -->\n"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page has no place for {name}")
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = before + begin + text + end + after
    return page


def main() -> None:
    if words := " ".join(sys.argv[1:]):
        for row in ROWS:
            if words in row.program.name:
                print(f"{row.program.name}\n{printed(row.program)}\n")
                for name, program in variants(row):
                    found = counterexample(program)
                    print(f"{program.name}\n{shown(found) if found else row.spare[name]}\n")
    else:
        PAGE.write_text(made(PAGE.read_text()))


if __name__ == "__main__":
    main()
