"""Litmus programs as kernels: their instructions, their conditions, and what `results.csv` has of runs on a GPU."""

from __future__ import annotations

import ast
import ctypes
import random
import re
import shutil
import subprocess
from collections import Counter
from itertools import chain, permutations

import pytest
from litmus import on_chip
from litmus.form import FormError, Instruction, Program, written_by
from litmus.kernel_text import Text, in_cpp, mnemonic, unit
from litmus.page import PAGE, made
from litmus.results import ALLOWED, FORBIDDEN, PUBLISHED, SAFE, Entry, Result, counted, entries, not_run, read, write
from repository import CXX, HAS_CXX

CHIP = {number: entry for number, entry in enumerate(entries()) if entry.needs != "needs the host"}
# What the programs do not have yet: all operations, and a thread that ends before a barrier with instructions behind it.
MADE_UP = Program(
    "made up",
    {
        "P, block 0": """
            a = atom.acquire.cta.exch x, 3
            b = atom.release.sys.min x, -4
            red.relaxed.gpu.or y, 6
            red.release.sys.and y, a + 3
            c = ld.acquire.sys slot[1]
            need not c != 5
            bar.sync one
            red.relaxed.gpu.min z, c - 9
            d = atom.acq_rel.gpu.cas z, -4, 9
            need d == -4
            st.weak slot[d + 4], 2
        """,
        "Q, block 0": "st.release.cta slot[1], 5; red.relaxed.cta.add y, 1; bar.sync one; e = ld.acquire.cta y".replace(
            "; ", "\n"
        ),
    },
    never="d == -4 and [y] != 7 or not e > 1 and [z] <= 1",
    init={"y": 1},
)
PROGRAMS = {number: entry.program for number, entry in CHIP.items()} | {len(entries()): MADE_UP}
TEXTS = {number: Text(number, program) for number, program in PROGRAMS.items()}
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc compiles the programs")
ASM = re.compile(r"// begin inline asm\s+([\w.]+)(.*?)// end inline asm", re.DOTALL)
ENTRY = re.compile(r"\.entry _ZN6litmus3run\w*?Program(\d+)E\w*\(.*?^\}", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def ptx(tmp_path_factory):
    """All programs in one file, in PTX."""
    directory = tmp_path_factory.mktemp("litmus")
    (directory / "all.cu").write_text(unit(PROGRAMS))
    command = [*on_chip.NVCC, "-arch=sm_90", "-ptx", str(directory / "all.cu"), "-o", str(directory / "all.ptx")]
    subprocess.run(command, check=True)
    return directory / "all.ptx"


def in_ptx(program: Program) -> list[list[str]]:
    """Return the instructions of each thread, a barrier with its number and how many threads meet there."""
    barriers = list(dict.fromkeys(line.place for line in lines_of(program) if line.kind == "bar"))
    shares = max(Counter((thread.gpu, thread.block) for thread in program.threads).values())
    each = 256 // {1: 1, 2: 2, 3: 4, 4: 4}[shares]  # threads of the kernel that run the same thread of the program in a block

    def text(line: Instruction) -> str:
        if line.kind != "bar":
            return mnemonic(line)
        meet = sum(other.kind == "bar" and other.place == line.place for other in lines_of(program))
        return f"barrier.sync {1 + barriers.index(line.place)}, {meet * each};"

    return [[text(line) for line in thread.instructions if line.kind != "need"] for thread in program.threads]


def lines_of(program: Program) -> list[Instruction]:
    return [line for thread in program.threads for line in thread.instructions]


@needs_nvcc
def test_kernels_have_the_instructions_of_their_programs_in_order(ptx):
    bodies = {int(found[1]): found[0] for found in ENTRY.finditer(ptx.read_text())}
    assert bodies.keys() == PROGRAMS.keys()
    for number, body in bodies.items():
        # The harness has words without a sign.
        asm = [(name, operands) for name, operands in ASM.findall(body) if not name.endswith(".u32")]
        found = [f"{name} {operands.strip()}" if name == "barrier.sync" else name for name, operands in asm]
        threads = in_ptx(PROGRAMS[number])
        assert any(list(chain.from_iterable(order)) == found for order in permutations(threads)), (PROGRAMS[number].name, found)


@needs_nvcc
def test_three_blocks_of_threads_fit_on_an_sm(ptx, tmp_path):
    """The blocks of a group meet at a gate, so all blocks of a launch have to run at once."""
    command = ["ptxas", "-v", "-arch=sm_90", str(ptx), "-o", str(tmp_path / "all.cubin")]
    said = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", said)]
    assert len(registers) == 2 * len(PROGRAMS)
    assert 3 * 256 * max(registers) <= 64 * 1024


def test_mnemonics_are_what_the_programs_say():
    for program in PROGRAMS.values():
        for line in lines_of(program):
            if line.kind not in ("need", "bar"):
                said = line.text.partition(" = ")[2] or line.text
                assert re.sub(r"\.[sb]32$", "", mnemonic(line)) == said.split()[0]


def test_the_host_knows_where_threads_run_and_how_words_begin():
    for number, text in TEXTS.items():
        program = text.program
        values = text.description().replace("{", "[").replace("}", "]")
        values = re.sub(r", run.*", "]", values)
        its_number, threads, registers, words, slots, gpus, blocks, table, begin = ast.literal_eval(values)
        assert (its_number, threads, gpus) == (number, len(program.threads), 1 + max(each.gpu for each in program.threads))
        assert registers == len({line.into for line in lines_of(program) if line.into})
        assert words == len(begin) == len(text.places)
        assert dict(zip(text.places, begin, strict=True)) == {place: program.init.get(place, 0) for place in text.places}
        assert program.init.keys() <= set(text.places)
        found = {}
        for gpu, rows in enumerate(table):
            assert len(rows) == blocks[gpu]
            for block, row in enumerate(rows):
                assert len(row) == 4
                assert sum(thread >= 0 for thread in row) * slots <= 256
                found |= {thread: (gpu, block) for thread in row if thread >= 0}
        assert sorted(found) == list(range(threads))
        for one, other in permutations(range(threads), 2):
            mine, its = program.threads[one], program.threads[other]
            assert (found[one] == found[other]) == ((mine.gpu, mine.block) == (its.gpu, its.block))
            assert (found[one][0] == found[other][0]) == (mine.gpu == its.gpu)


# The macros of harness.cuh for a CPU: a thread runs after the other, so orders do not matter.
PRELUDE = r"""
#include <algorithm>
#include <cstring>
#define LITMUS static inline
static bool has(const char *how, const char *op) { return std::strstr(how, op) != nullptr; }
static int change(const char *how, int *word, int a) {
  const int before = *word;
  if (has(how, ".add.")) *word = before + a;
  else if (has(how, ".min.")) *word = std::min(before, a);
  else if (has(how, ".and.")) *word = before & a;
  else if (has(how, ".or.")) *word = before | a;
  else *word = a;
  return before;
}
static int compare(int *word, int expected, int desired) {
  const int before = *word;
  if (before == expected) *word = desired;
  return before;
}
#define LITMUS_LD(into, how, word) into = *(word)
#define LITMUS_ST(how, word, value) change(how, word, value)
#define LITMUS_ATOM(into, how, word, value) into = change(how, word, value)
#define LITMUS_CAS(into, how, word, expected, desired) into = compare(word, expected, desired)
#define LITMUS_FENCE(how)
#define LITMUS_BAR(number, threads)
struct Instance {
  int *words, *registers;
  unsigned *ended;
  int *word(unsigned place) const { return words + place; }
  void put(unsigned place, int value) const { registers[place] = value; }
  void end(unsigned thread, unsigned at) const { ended[thread] = at; }
};
"""


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    """All programs for a CPU: functions `run`, `met` and `holds` of each, with the program's number in their names."""
    if not HAS_CXX:
        pytest.skip("a C++ compiler is needed")
    directory = tmp_path_factory.mktemp("litmus")
    lines = [PRELUDE, *(text.struct() for text in TEXTS.values()), 'extern "C" {']
    for number in TEXTS:
        lines += [
            f"void run{number}(unsigned thread, int *words, int *registers, unsigned *ended) {{"
            f" Program{number}::run(thread, Instance{{words, registers, ended}}); }}",
            f"bool met{number}(const unsigned *ended) {{ return Program{number}::met(ended); }}",
            f"bool holds{number}(const int *registers, const unsigned *ended, const int *last) {{"
            f" return Program{number}::holds(registers, ended, last); }}",
        ]
    (directory / "all.cpp").write_text("\n".join([*lines, "}", ""]))
    target = directory / "all.so"
    subprocess.run([*CXX, "-std=c++17", "-shared", "-fPIC", str(directory / "all.cpp"), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    for number in TEXTS:
        for name in ("met", "holds"):
            getattr(library, f"{name}{number}").restype = ctypes.c_bool
    return library


def one_after_another(program: Program, order: tuple[int, ...]) -> tuple[dict[str, int], list[int], dict[str, int]]:
    """Run threads one after another: registers, the instruction at which each thread has ended, and words."""
    words, registers, ended = dict(program.init), dict[str, int](), [0] * len(program.threads)
    for number in order:
        thread = program.threads[number]
        ended[number] = len(thread.instructions)
        for i, line in enumerate(thread.instructions):
            operands = [eval(each.code, {}, registers) for each in line.operands]
            place = f"{line.place}[{eval(line.index.code, {}, registers)}]" if line.index else line.place
            before = words.get(place, 0)
            if line.kind == "need" and not operands[0]:
                ended[number] = i
                break
            if line.kind == "st":
                words[place] = operands[0]
            elif line.kind in ("atom", "red"):
                after = written_by(line.op, before, operands)
                words[place] = before if after is None else after
            if line.into:
                registers[line.into] = before
    return registers, ended, words


def test_threads_one_after_another_are_as_on_paper(on_cpu):
    for number, text in TEXTS.items():
        program = text.program
        for order in permutations(range(len(program.threads))):
            expected, at, last = one_after_another(program, order)
            words = (ctypes.c_int * len(text.places))(*(program.init.get(place, 0) for place in text.places))
            registers = (ctypes.c_int * (len(text.registers) + 1))()
            ended = (ctypes.c_uint * len(program.threads))()
            for thread in order:
                getattr(on_cpu, f"run{number}")(thread, words, registers, ended)
            assert list(ended) == at, program.name
            found = dict(zip(text.registers, registers, strict=False))
            assert {name: found[name] for name in expected} == expected, program.name
            assert dict(zip(text.places, words, strict=True)) == {place: last.get(place, 0) for place in text.places}
            assert getattr(on_cpu, f"met{number}")(ended) == (at == [len(each.instructions) for each in program.threads])


def ends_as_never(program: Program, registers: dict[str, int], ended: list[int], last: dict[str, int]) -> bool:
    """Whether an end is as must never be: with the registers that threads had, and if all had come to their barriers."""
    known = {}
    for at, thread in zip(ended, program.threads, strict=True):
        if any(line.kind == "bar" for line in thread.instructions[at:]):
            return False
        known.update({line.into: registers[line.into] for line in thread.instructions[:at] if line.into})
    return program.holds(known, lambda place: last[place])


def test_conditions_are_those_of_the_programs(on_cpu):
    chance, never = random.Random(1), set()
    for number, text in TEXTS.items():
        program = text.program
        for _ in range(300):
            registers = {name: chance.choice([0, 0, 1, 1, 2, 5, 7, 8, 10]) for name in text.registers}
            last = {place: chance.choice([0, 1, 2, 5]) for place in text.places}
            ended = [chance.choice([len(each.instructions)] * 3 + [1]) for each in program.threads]
            expected = ends_as_never(program, registers, ended, last)
            found = getattr(on_cpu, f"holds{number}")(
                (ctypes.c_int * (len(registers) + 1))(*registers.values()),
                (ctypes.c_uint * len(ended))(*ended),
                (ctypes.c_int * len(last))(*last.values()),
            )
            assert found == expected, (program.name, registers, ended, last)
            never |= {number} if found else set()
    assert len(never) > 0.9 * len(TEXTS)  # each condition is tried where it holds, but for some that chance does not find


def number_of(name: str, left_out: str = "") -> int:
    return next(number for number, entry in CHIP.items() if (entry.name, entry.left_out) == (name, left_out))


@pytest.mark.parametrize(
    ("name", "registers", "ended", "last", "seen"),
    [
        ("store buffering", {"a": 0, "b": 0}, [2, 2], {}, True),
        ("store buffering", {"a": 0, "b": 1}, [2, 2], {}, False),
        ("a ready slot has its item", {"r": 1, "x": 0}, [3, 4], {}, True),
        ("a ready slot has its item", {"r": 0, "x": 0}, [3, 1], {}, False),  # the taker has found no item
        ("a task sees what was written before its push", {"r": 1, "x": 0}, [2, 3, 4, 2], {}, True),
        ("a task sees what was written before its push", {"r": 0, "x": 0}, [2, 3, 1, 2], {}, False),  # no barrier
        ("the number of taken items only grows", {"b": 2}, [3, 4], {"taken": 1}, True),
        ("the number of taken items only grows", {"b": 2}, [3, 4], {"taken": 2}, False),
    ],
)
def test_outcomes_made_by_hand_are_counted(name, registers, ended, last, seen, on_cpu):
    number = number_of(name)
    text = TEXTS[number]
    assert sorted(text.registers) == sorted(registers)
    found = getattr(on_cpu, f"holds{number}")(
        (ctypes.c_int * len(text.registers))(*(registers[name] for name in text.registers)),
        (ctypes.c_uint * len(ended))(*ended),
        (ctypes.c_int * len(text.places))(*(last.get(place, 0) for place in text.places)),
    )
    assert found == seen


@pytest.mark.parametrize("text", ["a * 2", "a if b else 0", "1 < a < 3", "f(a)", "a in b"])
def test_an_expression_that_has_no_cpp_is_refused(text):
    with pytest.raises(FormError, match="an expression that has no C"):
        in_cpp(text, {"a": "a", "b": "b"}, {})


def test_a_program_that_is_too_large_for_the_chip_is_refused():
    threads = {f"P{number}, block 0": "st.weak x, 1" for number in range(5)}
    with pytest.raises(FormError, match="too large"):
        Text(0, Program("five threads of a block", threads, "1 == 1"))


def test_a_barrier_of_two_blocks_is_refused():
    with pytest.raises(FormError, match="several blocks meet at one"):
        Text(0, Program("apart", {"P, block 0": "bar.sync one", "Q, block 1": "bar.sync one"}, "1 == 1"))


def made_up(entry: Entry, seen: int = 0) -> Result:
    return Result(*entry.key, entry.verdict, entry.digest, 10**8, 10**7, seen, "a card", "CUDA", "")


def wrong_rows(rows: dict[tuple[str, str, str], Result]) -> list[str]:
    """Return what is wrong in the rows of a file."""
    if not rows:
        return []
    found = ["other programs"] if list(rows) != [entry.key for entry in entries()] else []
    for entry in entries():
        row = rows.get(entry.key)
        if row is None:
            continue
        if row.digest != entry.digest or row.verdict != entry.verdict:
            found.append(f"{entry.key}: another program; python tests/litmus/on_chip.py --seconds 0")
        if row.verdict == FORBIDDEN and row.seen:
            found.append(f"{entry.key}: forbidden, but seen")
        if not (0 <= row.seen <= row.instances and 0 <= row.met <= row.instances):
            found.append(f"{entry.key}: counts that cannot be")
        if {bool(row.card), bool(row.cuda), not row.why_not} != {bool(row.instances)}:
            found.append(f"{entry.key}: instances without a card, or none without a reason")
    return found


def test_results_are_of_all_programs_and_have_no_forbidden_outcome():
    assert wrong_rows(read()) == []


def test_wrong_results_are_noticed(tmp_path):
    write(tmp_path / "results.csv", {entry.key: made_up(entry) for entry in entries()})
    rows = read(tmp_path / "results.csv")
    assert rows == {entry.key: made_up(entry) for entry in entries()}
    assert wrong_rows(rows) == []
    first = entries()[0]
    row = rows[first.key]
    for other, said in (
        (row._replace(seen=1), "forbidden, but seen"),
        (row._replace(seen=-1), "cannot be"),
        (row._replace(met=10**9), "cannot be"),
        (row._replace(digest="0"), "another program"),
        (row._replace(card=""), "without a card"),
        (row._replace(instances=0, met=0), "without a card"),
    ):
        assert said in " ".join(wrong_rows(rows | {first.key: other})), other
    del rows[first.key]
    assert wrong_rows(rows) == ["other programs"]


def test_what_was_not_run_says_why_and_what_changed_was_not_run(tmp_path):
    first = entries()[0]
    write(tmp_path / "results.csv", {first.key: made_up(first)._replace(digest="another")})
    rows = read(tmp_path / "results.csv")
    assert {row.why_not for row in rows.values()} == {"not run", "needs two GPUs", "needs the host"}
    assert wrong_rows(rows) == []
    assert counted(first, {first.key: made_up(first)._replace(digest="another")}).instances == 0


def test_what_the_executable_prints_becomes_rows():
    two = next(number for number, entry in CHIP.items() if entry.needs)
    selected = {number: entries()[number] for number in (0, 1, two)}
    rows = on_chip.results(selected, "A card,CUDA 13.0\n0,100,50,0\n1,100,60,7\n")
    assert [(row.instances, row.met, row.seen, row.card) for row in rows[:2]] == [
        (100, 50, 0, "A card"),
        (100, 60, 7, "A card"),
    ]
    assert rows[2] == not_run(selected[two], "needs two GPUs")
    assert on_chip.wrong(rows) == []
    rows = on_chip.results(selected, f"A card,CUDA 13.0\n0,100,50,2\n{two},9,8,0\n")
    assert rows[2].card == "2 x A card"
    assert [each.partition(":")[0] for each in on_chip.wrong(rows)] == ["forbidden, but seen", "not run"]


def test_the_page_says_what_ran_on_a_chip():
    page = PAGE.read_text()
    nothing = made(page, {})
    assert "The programs have not run on a chip." in nothing
    assert "not run: needs two GPUs |" in nothing
    assert " M" not in nothing.partition("<!-- table -->")[2]
    rows = {entry.key: made_up(entry, 1234 * (entry.verdict == ALLOWED)) for entry in CHIP.values() if not entry.needs}
    some = made(page, rows)
    assert f"{len(rows)} programs, variants and published tests ran on a chip (a card, CUDA), each at least 100 M" in some
    assert "| store buffering | allowed | 1,234 of 100 M |" in some
    assert "| store buffering, fences sc | forbidden | not seen in 100 M |" in some
    assert "as written: not seen in 100 M, 10 M to their end; `publish` (2), `publish`: 1,234 of 100 M; " in some
    assert made(some, {}) == nothing


@pytest.mark.gpu
@needs_nvcc
def test_a_gpu_shows_weak_outcomes_and_no_forbidden_ones():
    names = (
        "store buffering",
        "relaxed flag",
        "fences",
        "a ticket lock",
        "additions of the system",
        "a ready slot has its item",
    )
    selected = {number: entry for number, entry in CHIP.items() if not entry.needs and entry.name.startswith(names)}
    rows = on_chip.run(selected, 120, 10**7, 1)
    assert on_chip.wrong(rows) == []
    assert all(row.instances >= 10**7 for row in rows)
    counts = {(row.kind, row.program, row.left_out): row for row in rows}
    assert counts[PUBLISHED, "store buffering", ""].seen > 0
    assert counts[SAFE, "a ready slot has its item", ""].met > 0
