"""The reference of public names: what users of the package can write, as lines of text. tests/public_names.txt holds them.

python tests/public_names.py    # writes tests/public_names.txt, after a change of a name, a signature or a command is meant
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from atos_py import errors
from atos_py.__main__ import _make_parser
from atos_py.cli import find_commands
from atos_py.compile.task import Task

__all__ = ["FILE", "MODULES", "describe_all"]

FILE = Path(__file__).with_suffix(".txt")
PACKAGE = Path(errors.__file__).parent
MODULES = (
    *("atos_py", "atos_py.acc", "atos_py.acc.programs", "atos_py.distributed", "atos_py.errors", "atos_py.features"),
    *("atos_py.graph.generate", "atos_py.linalg", "atos_py.nx_backend"),
)  # whose `__all__` is public
_HEAD = "Public names of atos_py, their kinds and signatures. Written by `python tests/public_names.py`; see there."
_WIDTH = 128


class _Text:
    """What `inspect.Signature` is to print as it stands: an annotation without quotes, a default without an address."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def describe_all() -> str:
    """Return the text of the reference."""
    sections = [_HEAD]
    for name in MODULES:
        module = importlib.import_module(name)
        lines = [line for each in sorted(module.__all__) for line in _describe(module, each)]
        sections.append("\n".join([f"# {name}", "", *lines]))
    sections.append("\n".join(["# command line", "", *_describe_commands()]))
    return "\n\n".join(sections) + "\n"


def _describe(module: ModuleType, name: str) -> Iterator[str]:
    """Yield the lines of a public name; a module has a section of its own, and a name of two modules is described in one."""
    thing = getattr(module, name)
    if isinstance(thing, ModuleType):
        yield f"module {name} = {thing.__name__}"
    elif module.__name__ != errors.__name__ and name in errors.__all__:
        yield f"exception {name}"
    elif isinstance(thing, Task):
        yield f"task {name}"
    elif inspect.isclass(thing):
        yield from _describe_class(name, thing)
    elif callable(thing):
        yield from _describe_function("function ", name, thing)
    else:
        yield f"data {name}: {type(thing).__name__} = {_text_of(thing)}"


def _describe_class(name: str, cls: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    own = [base for base in reversed(cls.__mro__) if base.__module__.startswith("atos_py")]
    members = {key: value for base in own for key, value in vars(base).items()}
    if any(_is_written(members.get(key)) for key in ("__init__", "__new__")) or "__match_args__" in members:
        yield from _describe_function("    constructor", "", cls)
    annotated = {key: text for base in own for key, text in inspect.get_annotations(base).items()}
    annotated = {key: "" for base in own for key in _assigned(base)} | annotated
    for key in sorted(key for key in {*annotated, *members} if not key.startswith("_")):
        yield from _describe_member(key, members.get(key), annotated.get(key))
    if special := sorted(key for key, value in members.items() if key.startswith("__") and _is_written(value)):
        yield f"    special {' '.join(special)}"


def _assigned(cls: type) -> Iterator[str]:
    """Yield the attributes that the methods of a class assign."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls)))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def _describe_member(name: str, value: Any, annotation: Any) -> Iterator[str]:
    kinds: dict[type, str] = {classmethod: "classmethod", staticmethod: "staticmethod"}
    function = getattr(value, "__func__", value)
    if inspect.isfunction(function):
        yield from _describe_function(f"    {kinds.get(type(value), 'method')} ", name, function)
    elif isinstance(value, property) or hasattr(value, "func"):  # or functools.cached_property
        get = value.fget if isinstance(value, property) else value.func
        written = ", writable" if getattr(value, "fset", None) else ""
        yield f"    property {name}: {_annotation(inspect.signature(get).return_annotation)}{written}"
    elif annotation is not None:
        yield f"    field {name}: {_annotation(annotation)}".rstrip(": ")
    elif not inspect.ismemberdescriptor(value):
        yield f"    data {name}: {type(value).__name__}"


def _describe_function(kind: str, name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yield a line, or one for each parameter if it was too long."""
    signature = inspect.signature(function)
    parameters = [
        each.replace(
            annotation=each.annotation if each.annotation is each.empty else _Text(_annotation(each.annotation)),
            default=each.default if each.default is each.empty else _Text(_text_of(each.default)),
        )
        for each in signature.parameters.values()
    ]
    returns = "" if signature.return_annotation is signature.empty else f" -> {_annotation(signature.return_annotation)}"
    line = f"{kind}{name}{inspect.Signature(parameters)}{returns}"
    if len(line) <= _WIDTH:
        yield line
        return
    indent = " " * (len(kind) - len(kind.lstrip()))
    yield f"{kind}{name}("
    yield from (f"{indent}    {each}" for each in _lines_of(parameters))
    yield f"{indent}){returns}"


def _lines_of(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield the parameters with the marks `/` and `*` between them, as `inspect.Signature` has them."""
    before: Any = None
    for parameter in parameters:
        if before is parameter.POSITIONAL_ONLY is not parameter.kind:
            yield "/"
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            yield "*"
        before = parameter.kind
        yield str(parameter)


def _annotation(annotation: Any) -> str:
    annotation = getattr(annotation, "__forward_arg__", annotation)  # a field of a named tuple or a typed dictionary
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return " ".join(text.split())


def _text_of(value: Any) -> str:
    """Return what stands for a value on any machine and in any process."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}".removeprefix("builtins.")
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value.item() if isinstance(value, np.generic) else value))


def _is_written(value: Any) -> bool:
    """Return whether a method stands in the package's source, rather than `dataclass` or Python having made it."""
    function = inspect.unwrap(getattr(value, "__func__", value))
    return inspect.isfunction(function) and PACKAGE in Path(function.__code__.co_filename).parents


def _describe_commands() -> Iterator[str]:
    parser = _make_parser(find_commands(), "atos")
    yield from _describe_arguments("atos", parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in sorted(action.choices.items()):
                yield from _describe_arguments(f"atos {name}", command)


def _describe_arguments(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"command {name}"
    for action in parser._actions:
        if isinstance(action, (argparse._SubParsersAction, argparse._HelpAction)):
            continue
        words = ", ".join(action.option_strings) or str(action.dest)
        takes = f" {action.metavar or action.dest.upper()}" if action.option_strings and action.nargs != 0 else ""
        choices = f" {{{', '.join(map(str, action.choices))}}}" if action.choices else ""
        count = f" nargs={action.nargs}" if action.nargs not in (None, 0) else ""
        default = f" = {_text_of(action.default)}" if action.default not in (None, argparse.SUPPRESS) else ""
        yield f"    {words}{takes}{choices}{count}{default}"


if __name__ == "__main__":
    FILE.write_text(describe_all(), encoding="utf-8")
