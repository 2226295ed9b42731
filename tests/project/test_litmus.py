"""The protocol against the axioms of PTX's memory model: a program for each row of its table of memory orders."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from litmus import plain, source
from litmus.axioms import counterexample, executions, shown
from litmus.form import FormError, Instruction, Program, instruction
from litmus.literature import ALL
from litmus.page import PAGE, made
from litmus.row import variants
from litmus.rows import ROWS, steps

PROGRAMS = {row.program.name: row for row in ROWS}
VARIANTS = {(name, left_out): program for name, row in PROGRAMS.items() for left_out, program in variants(row)}
SPARE = {(name, left_out) for name, row in PROGRAMS.items() for left_out in row.spare}


@pytest.mark.parametrize("test", ALL, ids=lambda test: test.program.name)
def test_a_published_verdict(test):
    assert (counterexample(test.program) is not None) == test.allowed, test.stated


def test_published_tests_are_many_and_each_says_where_its_verdict_is_stated():
    assert len(ALL) >= 30
    assert len({test.program.name for test in ALL}) == len(ALL)
    assert all(test.stated.startswith(("Manual/", "Nvidia/", "Memalloy/", "ASPLOS 2019")) for test in ALL)
    assert {test.allowed for test in ALL} == {False, True}


def outcomes(program: Program) -> set[plain.Outcome]:
    found = set()
    for execution in executions(program):
        registers = tuple(sorted(execution.registers.items()))
        for i, event in enumerate(execution.events):
            if event.kind == "W" and not execution.order[i]:
                found.add((registers, event.place, event.value))
    return found


def of_any_end(program: Program) -> Program:
    texts = {
        f"{thread.name}, " + (f"block {thread.block} of GPU {thread.gpu}" if thread.gpu >= 0 else "host"): "\n".join(
            line.text for line in thread.instructions
        )
        for thread in program.threads
    }
    return Program(program.name, texts, "1 == 1", program.init)


def random_program(number: int) -> Program:
    """Return two or three threads with up to 9 events on two words."""
    chance = random.Random(number)
    left, registers, texts = chance.randint(6, 9), 0, {}
    for name in "PQR"[: chance.choice([2, 2, 3])]:
        mine: list[str] = []
        lines = ["st.relaxed.gpu x, 1"] if name == "R" else []
        for _ in range(chance.randint(2, 4)):
            place, scope = chance.choice("xy"), chance.choice(["cta", "gpu", "gpu", "sys"])
            kind = chance.choice(["ld", "ld", "st", "st", "fence", "atom", "red", "need"])
            left -= {"atom": 2, "red": 2, "need": 0}.get(kind, 1)
            if left < 1 or (kind in ("st", "atom", "red") and "".join(lines).count(f" {place}, ") > 1):
                break
            order = chance.choice(["weak", "relaxed", {"ld": "acquire", "st": "release"}.get(kind, "acq_rel")])
            how = order if order == "weak" else f"{order}.{scope}"
            value = chance.choice(["1", "2", *mine, *(f"{each} + 1" for each in mine[:1])])
            if kind == "ld":
                lines.append(f"r{registers} = ld.{how} {place}")
            elif kind == "st":
                lines.append(f"st.{how} {place}, {value}")
            elif kind == "fence":
                lines.append(f"fence.{chance.choice(['acq_rel', 'acq_rel', 'sc'])}.{scope}")
            elif kind == "atom":
                order = chance.choice(["relaxed", "acquire", "release", "acq_rel"])
                lines.append(f"r{registers} = atom.{order}.{scope}.{chance.choice(['add', 'exch'])} {place}, 1")
            elif kind == "red":
                lines.append(f"red.{chance.choice(['relaxed', 'release'])}.{scope}.add {place}, 1")
            elif mine:
                lines.append(f"need {chance.choice(mine)} != 0")
            if kind in ("ld", "atom"):
                mine.append(f"r{registers}")
                registers += 1
        where = chance.choice(["block 0", "block 0", "block 1", "block 0 of GPU 1"])
        texts[f"{name}, {where}"] = "\n".join(lines or ["st.weak y, 1"])
    return Program(f"random {number}", texts, "1 == 1")


@pytest.mark.parametrize("test", [test for test in ALL if test.program.events <= 8], ids=lambda test: test.program.name)
def test_the_axioms_word_for_word_give_the_same_outcomes(test):
    program = of_any_end(test.program)
    assert outcomes(program) == plain.outcomes(program) != set()


def test_the_axioms_word_for_word_give_the_same_outcomes_of_random_programs():
    for number in range(100):
        program = random_program(number)
        found = [line.text for thread in program.threads for line in thread.instructions]
        assert outcomes(program) == plain.outcomes(program), found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_safe(name):
    row = PROGRAMS[name]
    found = counterexample(row.program)
    assert found is None, shown(found)


@pytest.mark.parametrize(("name", "left_out"), VARIANTS)
def test_what_is_left_out_is_found_or_spare(name, left_out):
    found = counterexample(VARIANTS[name, left_out])
    assert (found is None) == ((name, left_out) in SPARE), shown(found) if found else "no counterexample"
    if found:
        assert shown(found).endswith(f"which must never be: {PROGRAMS[name].program.never}")


def test_spare_orders_are_orders_of_their_programs():
    assert VARIANTS.keys() >= SPARE
    assert len(PROGRAMS) == len(ROWS)


def test_programs_have_the_orders_of_the_sources():
    assert [each for row in ROWS for each in source.disagreements(row.program)] == []


def test_every_row_of_the_table_has_a_program():
    assert {step.name for step in steps()} == {name for row in ROWS for name in row.steps}
    assert len(steps()) > 30


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.name)
def test_what_a_row_names_is_left_out_in_its_programs(step):
    rows = [row for row in ROWS if step.name in row.steps]
    lines = [line for row in rows for thread in row.program.threads for line in thread.instructions]
    asked = [label for line in lines if line.in_question or line.kind == "bar" for label in line.at]
    for function, numbers in step.functions.items():
        last = function.split("::")[-1]
        mine = [label for label in asked if label.split()[0].split("::")[-1] == last or label.split()[1] == function]
        assert mine, function
        assert set(numbers) <= {int(label.rpartition("#")[2]) for label in mine if "#" in label}, function


def fences_in_no_program() -> set[str]:
    asked = set()
    for line in (line for row in ROWS for thread in row.program.threads for line in thread.instructions if line.in_question):
        for label in line.at:
            function, call = source.found_by(label)
            asked.add((source.FUNCTIONS[function][0], call.at))
    return {name for place, name in source.fences_in_sources().items() if place not in asked}


def test_every_fence_is_left_out_somewhere_or_has_a_reason():
    assert len(source.fences_in_sources()) > 50
    assert fences_in_no_program() == source.OTHER_FENCES.keys()


def is_noticed() -> bool:
    source.forget()
    try:
        wrong = any(True for row in ROWS for _ in source.disagreements(row.program))
        return wrong or fences_in_no_program() != source.OTHER_FENCES.keys()
    finally:
        source.forget()


def test_each_fence_that_the_sources_lose_or_have_twice_is_noticed(monkeypatch):
    read = source.read
    assert not is_noticed()
    for (path, at), name in source.fences_in_sources().items():
        text = read(path)
        end = source.end_of(text, text.index("(", at), "()")
        for other in ("", f"{text[at:end]}; {text[at:end]}"):
            changed = {path: text[:at] + other + text[end:]}
            monkeypatch.setattr(source, "read", lambda asked, changed=changed: changed.get(asked) or read(asked))
            assert is_noticed(), name


# Changes of the sources, and what a program has that the sources have no longer, or the other way round.
CHANGES = {
    "a fence is new": ("csrc/protocol/queue_ref.cuh", "slot.commit(item", "fence(); slot.commit(item", "lacks fence"),
    "a fence of less": ("csrc/protocol/inbox.cuh", "fence_system();", "fence_device();", "end_delivery fence_system"),
    "a fence too late": (
        "csrc/protocol/split_item.cuh",
        "fence();\n  store(&split.chunks, kChunkBias + chunks);",
        "store(&split.chunks, kChunkBias + chunks);\n  fence();",
        "in another order",
    ),
    "an order is weaker": ("csrc/device/dependency_counters.cuh", "atom.release", "atom.relaxed", "not atom.release.gpu"),
    "an addition is a load": (
        "csrc/protocol/queue_ref.cuh",
        "fetch_add(&counters->untracked, 0)",
        "load(&counters->untracked)",
        "ended fetch_add(untracked)",
    ),
    "a scope is smaller": ("csrc/protocol/atomic.cuh", "fence.acq_rel.sys;", "fence.acq_rel.gpu;", "fence_system"),
    "an order of the CPU is weaker": (
        "csrc/protocol/atomic.cuh",
        "v, __ATOMIC_RELEASE",
        "v, __ATOMIC_RELAXED",
        "st.relaxed.sys",
    ),
    "a function of Python": (source.JOINS, 'memory_order="release"', 'memory_order="relaxed"', "_give_block release"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_sources_is_noticed(change, monkeypatch):
    path, old, new, said = CHANGES[change]
    text = (source.ROOT / path).read_text()
    assert old in text
    read = source.read
    monkeypatch.setattr(source, "read", lambda asked: text.replace(old, new) if asked == path else read(asked))
    source.forget()
    try:
        assert any(said in each for row in ROWS for each in source.disagreements(row.program))
    finally:
        source.forget()


def changed(program: Program, how: Iterable[tuple[Instruction, list[Instruction]]]) -> Program:
    lines = dict(how)
    return program.changed(
        program.name,
        [
            thread._replace(instructions=tuple(other for line in thread.instructions for other in lines.get(line, [line])))
            for thread in program.threads
        ],
    )


def on_cpu(line: Instruction) -> list[Instruction]:
    """Return an instruction as it is on the CPU: each operation has an order, and there are no fences."""
    if line.order == "weak" or line.kind in ("need", "bar"):
        return [line]
    order = source.orders_on_cpu()["atom" if line.kind == "red" else line.kind] if line.kind != "fence" else ""
    return [] if line.kind == "fence" else [instruction(line.text.replace(f".{line.order}.{line.scope}", f".{order}.sys", 1))]


def in_block(line: Instruction) -> list[Instruction]:
    return [instruction(line.text.replace(f".{line.scope}", ".cta", 1))] if line.kind != "bar" else [line]


def lines_of(program: Program) -> list[Instruction]:
    return [line for thread in program.threads for line in thread.instructions]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_safe_with_the_orders_of_the_cpu(name):
    program = PROGRAMS[name].program
    found = counterexample(changed(program, [(line, on_cpu(line)) for line in lines_of(program)]))
    assert found is None, shown(found)


GROWTH = "a ring with a first ticket has memory"
CONFIRMED = "no end before what a running task has pushed, and another worker has taken and finished"


def test_scopes_of_a_block_are_found_but_in_growth():
    safe = [
        name
        for name, row in PROGRAMS.items()
        if not counterexample(changed(row.program, [(line, in_block(line)) for line in lines_of(row.program)]))
    ]
    assert safe == [GROWTH]


def test_two_programs_rest_on_dependencies():
    safe = {name: row.program for name, row in PROGRAMS.items()}
    assert {name for name in safe if counterexample(safe[name], dependencies=False)} == {GROWTH, CONFIRMED}


def test_the_page_has_the_programs_as_they_are():
    assert made(PAGE.read_text()) == PAGE.read_text(), "run python tests/litmus/page.py"


@pytest.mark.parametrize(
    "line",
    ["ld.relaxed x", "st.relaxed.gpu x", "fence.relaxed.gpu", "a = atom.relaxed.gpu.cas x, 1", "load x", "st.weak.gpu x, 1"],
)
def test_what_is_no_instruction_is_refused(line):
    with pytest.raises(FormError):
        instruction(line)


def test_a_program_that_is_too_long_or_names_nothing_is_refused():
    with pytest.raises(FormError, match="18 events, more than 16"):
        counterexample(Program("long", {"P, block 0": "st.weak x, 1\n" * 18}, "1 == 1"))
    with pytest.raises(FormError, match="no thread has"):
        Program("unknown", {"P, block 0": "st.weak x, 1"}, "a == 1")
    with pytest.raises(FormError, match="registers of two threads"):
        Program("twice", {"P, block 0": "a = ld.weak x", "Q, block 1": "a = ld.weak x"}, "a == 1")
