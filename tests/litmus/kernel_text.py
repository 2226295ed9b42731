"""A litmus program as CUDA C++: its instructions with just their order and scope, and its condition.

    st.weak data, 1          LITMUS_ST("st.weak.s32", its.word(0), 1);
    fence.acq_rel.gpu        LITMUS_FENCE("fence.acq_rel.gpu");
    need r == 1              if (!(r_r == 1)) { at = 1; break; }

`harness.cuh` says what these macros are, and what runs the programs. A word is an int. A thread that has ended still arrives at
the barriers of its program, since the threads of other instances wait there with it; an instance in which a thread has ended
before a barrier counts for nothing, as it is no execution for the checker.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from litmus.form import FormError, Instruction, Program, Thread

BLOCK_SIZE, MOST_GPUS, MOST_BLOCKS, MOST_THREADS, MOST_WORDS = 256, 2, 4, 4, 16  # as harness.cuh has them
SIGNS: Mapping[type[ast.AST], str] = {
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Add: "+", ast.Sub: "-", ast.USub: "-", ast.Not: "!"},
}


def in_cpp(text: str, names: Mapping[str, str], last: Mapping[str, str]) -> str:
    """Return an expression of Python in C++: `names` has the registers, `last` the words at the end."""

    def go(node: Any) -> str:
        match node:
            case ast.Name():
                return names[node.id]
            case ast.Constant(value=int(value)):
                return str(int(value))
            case ast.Call(func=ast.Name("at_end"), args=[ast.Constant(value=str(place))]):
                return last[place]
            case ast.BoolOp():
                return "(" + (" && " if isinstance(node.op, ast.And) else " || ").join(map(go, node.values)) + ")"
            case ast.Compare(ops=[sign], comparators=[other]) if type(sign) in SIGNS:
                return f"({go(node.left)} {SIGNS[type(sign)]} {go(other)})"
            case ast.BinOp() if type(node.op) in SIGNS:
                return f"({go(node.left)} {SIGNS[type(node.op)]} {go(node.right)})"
            case ast.UnaryOp() if type(node.op) in SIGNS:
                return f"({SIGNS[type(node.op)]}{go(node.operand)})"
        raise FormError(f"an expression that has no C++: {text!r}")

    return go(ast.parse(text, mode="eval").body)


def places_of(program: Program) -> list[str]:
    """Return the words of a program; of `slot[t]`, those up to the last that some thread may use."""
    lines = [line for thread in program.threads for line in thread.instructions if line.place and line.kind != "bar"]
    named = dict.fromkeys(line.place for line in lines if not line.index)
    used = {event.place for paths in program.paths() for path in paths for event in path.events if "[" in event.place}
    sizes: dict[str, int] = {}
    for name, _, number in (place.rstrip("]").partition("[") for place in sorted(used)):
        sizes[name] = max(sizes.get(name, 0), int(number) + 1)
    return [*named, *(f"{name}[{number}]" for name, size in sizes.items() for number in range(size))]


def registers_of(thread: Thread) -> list[str]:
    return list(dict.fromkeys(line.into for line in thread.instructions if line.into))


def meets(thread: Thread, barrier: str) -> bool:
    return any(line.kind == "bar" and line.place == barrier for line in thread.instructions)


def mnemonic(line: Instruction) -> str:
    """Return the instruction as PTX has it, without operands."""
    if line.kind == "fence":
        return line.text
    scope = "" if line.order == "weak" else f".{line.scope}"
    kind = {"": "s32", "add": "s32", "min": "s32"}.get(line.op, "b32")
    return f"{line.kind}.{line.order}{scope}{'.' + line.op if line.op else ''}.{kind}"


class Text:
    """The text of a program, by its number in the list of all programs."""

    def __init__(self, number: int, program: Program) -> None:
        self.number, self.program, self.places = number, program, places_of(program)
        self.registers = [name for thread in program.threads for name in registers_of(thread)]
        self.barriers = list(
            dict.fromkeys(line.place for thread in program.threads for line in thread.instructions if line.kind == "bar")
        )
        self.blocks = [sorted({thread.block for thread in program.threads if thread.gpu == gpu}) for gpu in range(MOST_GPUS)]
        for barrier in self.barriers:
            if len({(thread.gpu, thread.block) for thread in program.threads if meets(thread, barrier)}) > 1:
                raise FormError(f"{program.name}: threads of several blocks meet at {barrier}")
        rows = max(len(self.threads_of(gpu, block)) for gpu in range(MOST_GPUS) for block in self.blocks[gpu])
        self.slots = BLOCK_SIZE // (1 << (rows - 1).bit_length())
        if rows > MOST_THREADS or max(map(len, self.blocks)) > MOST_BLOCKS or len(self.places) > MOST_WORDS:
            raise FormError(f"{program.name} is too large for the chip's harness")

    @property
    def gpus(self) -> int:
        return 1 + max(thread.gpu for thread in self.program.threads)

    def threads_of(self, gpu: int, block: int) -> list[int]:
        return [number for number, thread in enumerate(self.program.threads) if thread.gpu == gpu and thread.block == block]

    def word(self, line: Instruction, names: Mapping[str, str]) -> str:
        if not line.index:
            return f"its.word({self.places.index(line.place)})"
        size = sum(place.startswith(f"{line.place}[") for place in self.places)
        index = in_cpp(line.index.text, names, {})
        # The axioms allow no other index than those that have words.
        return f"its.word({self.places.index(f'{line.place}[0]')} + (unsigned({index}) < {size} ? unsigned({index}) : 0))"

    def statement(self, number: int, line: Instruction, names: Mapping[str, str]) -> str:
        operands = [in_cpp(each.text, names, {}) for each in line.operands]
        how = f'"{mnemonic(line)}"' if line.kind not in ("need", "bar") else ""
        match line.kind:
            case "need":
                return f"if (!{operands[0]}) {{ at = {number}; break; }}"
            case "bar":
                meet = sum(meets(thread, line.place) for thread in self.program.threads)
                return f"LITMUS_BAR({1 + self.barriers.index(line.place)}, {meet * self.slots});"
            case "fence":
                return f"LITMUS_FENCE({how});"
            case "st":
                return f"LITMUS_ST({how}, {self.word(line, names)}, {operands[0]});"
            case "red":
                return f"LITMUS_ST({how}, {self.word(line, names)}, {operands[0]});"
        into = names.get(line.into, "nobody_needs_it")
        macro = {"ld": "LD", "atom": "CAS" if line.op == "cas" else "ATOM"}[line.kind]
        return f"LITMUS_{macro}({', '.join([into, how, self.word(line, names), *operands])});"

    def thread(self, number: int) -> list[str]:
        """Return the function of a thread."""
        thread = self.program.threads[number]
        names = {name: f"r_{name}" for name in registers_of(thread)}
        lines = [f"int {', '.join(f'{name} = 0' for name in [*names.values(), 'nobody_needs_it'])};"]
        lines += [f"unsigned at = {len(thread.instructions)};", "(void)nobody_needs_it;"]
        lines += ["do {"]
        for i, line in enumerate(thread.instructions):
            text = self.statement(i, line, names)
            lines += (
                ["} while (false);", text, f"if (at == {len(thread.instructions)}) do {{"]
                if line.kind == "bar"
                else [f"  {text}"]
            )
        lines += ["} while (false);"]
        lines += [f"its.put({self.registers.index(name)}, {names[name]});" for name in names]
        lines += [f"its.end({number}, at);"]
        head = f"  template <class Instance> LITMUS void thread{number}(const Instance &its) {{  // {thread.name}"
        return [head, *(f"    {line}" for line in lines), "  }"]

    def conditions(self) -> list[str]:
        """Return the functions of how an instance has ended: whether all needs were met, and whether it must never be so."""
        threads = self.program.threads
        names = {name: f"registers[{number}]" for number, name in enumerate(self.registers)}
        last = {place: f"last[{number}]" for number, place in enumerate(self.places)}
        # Each register's thread, and the instruction that writes the register.
        given = {
            line.into: f"ended[{number}] > {i}"
            for number, thread in enumerate(threads)
            for i, line in enumerate(thread.instructions)
            if line.into
        }
        met = " && ".join(f"ended[{number}] == {len(thread.instructions)}" for number, thread in enumerate(threads))
        arrived = [
            f"ended[{number}] > {max(i for i, line in enumerate(thread.instructions) if line.kind == 'bar')}"
            for number, thread in enumerate(threads)
            if any(line.kind == "bar" for line in thread.instructions)
        ]
        ways = []
        for way in self.program.ways:
            has = dict.fromkeys(given[name] for part in way for name in sorted(part.names) if name in given)
            ways.append(" && ".join(f"({each})" for each in [*has, *(in_cpp(part.text, names, last) for part in way)]))
        holds = " && ".join([*(f"({each})" for each in arrived), "(" + " || ".join(f"({way})" for way in ways) + ")"])
        parameters = "const int *registers, const unsigned *ended, const int *last"
        return [
            f"  LITMUS bool met(const unsigned *ended) {{ return {met}; }}",
            f"  LITMUS bool holds({parameters}) {{",
            *(["    (void)registers;"] if "registers[" not in holds else []),
            *(["    (void)last;"] if "last[" not in holds else []),
            f"    return {holds};",
            "  }",
        ]

    def struct(self) -> str:
        """Return the struct of a program."""
        name = f"Program{self.number}"
        lines = [f"// {self.program.name}", f"struct {name} {{"]
        lines += [
            f"  static constexpr unsigned kThreads = {len(self.program.threads)}, kRegisters = {len(self.registers)},"
            f" kWords = {len(self.places)};"
        ]
        for number in range(len(self.program.threads)):
            lines += self.thread(number)
        lines += ["  template <class Instance> LITMUS void run(unsigned thread, const Instance &its) {"]
        lines += [f"    if (thread == {number}) thread{number}(its);" for number in range(len(self.program.threads))]
        return "\n".join([*lines, "  }", *self.conditions(), "};", ""])

    def description(self) -> str:
        """Return what the host knows of a program."""
        table = [
            [[*self.threads_of(gpu, block), *([-1] * MOST_THREADS)][:MOST_THREADS] for block in self.blocks[gpu]]
            for gpu in range(MOST_GPUS)
        ]
        begin = [self.program.init.get(place, 0) for place in self.places]
        name = f"Program{self.number}"
        values = [self.number, len(self.program.threads), len(self.registers), len(self.places), self.slots, self.gpus]
        return (
            f"{{{', '.join(map(str, values))}, {braces([*map(len, self.blocks)])}, {braces(table)}, {braces(begin)},"
            f" run<{name}>, count<{name}>}}"
        )


def braces(values: Any) -> str:
    return "{" + ", ".join(map(braces, values)) + "}" if isinstance(values, Sequence) else str(values)


def unit(programs: Mapping[int, Program]) -> str:
    """Return a file of CUDA C++ with some programs, by their numbers."""
    texts = [Text(number, program) for number, program in programs.items()]
    rows = ",\n    ".join(text.description() for text in texts)
    mine = (BLOCK_SIZE, MOST_GPUS, MOST_BLOCKS, MOST_THREADS, MOST_WORDS)
    sizes = zip(("kBlockSize", "kMostGpus", "kMostBlocks", "kMostThreads", "kMostWords"), mine, strict=True)
    return (
        '#include "harness.cuh"\n\nnamespace litmus {\nnamespace {\n\n'
        + f"static_assert({' && '.join(f'{name} == {size}' for name, size in sizes)});\n\n"
        + "\n".join(text.struct() for text in texts)
        + f"\nconst bool added = add_programs({{\n    {rows}}});\n\n}}  // namespace\n}}  // namespace litmus\n"
    )
