"""Texts that the docstrings of all algorithms share, and those of all verifiers: they are in one place, and put into each.

The line ``{launch_options}`` of an algorithm's docstring stands for the last two parameters, `worker` and ``**launch_options``;
what the docstring adds to the options follows that line. The errors that these raise are added to the section Raises. Where the
docstring has no section Returns, that is the annotation of the result. Without docstrings (``python -OO``) nothing is done.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from ..runtime.launch_options import LaunchOptions

__all__ = ["document_algorithm", "document_verifier"]

_WIDTH = 120
_SECTIONS = ["Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples"]  # in the order of numpydoc

_WORKER = """\
worker : {'thread', 'warp', 'cta'}, optional
    What one worker is: a thread, a warp of 32 threads, or a block (CTA). On the CPU each has one thread. By default "cta".
"""
_OPTIONS = """\
**launch_options : LaunchOptions
    Options of the launches of the call, whose queue is on the device of the graph; `atos_py.LaunchOptions` describes each:

{list}

    `timeout` is for the whole call, which keeps nothing when that is over."""
_HAS_ROUNDS = " The launch has rounds, so `barrier` is True, and a\n    function between them, so there is no `each_round`."
_ERRORS = """\
UnsupportedTypeError
    If the graph is none, there is no such option, or its value has a wrong type.
InvalidArgumentError
    If there is no such worker, or the value of an option is out of its range.
LaunchTimeoutError
    If the call takes longer than `timeout`.
DeviceMemoryError
    If the device or the host has too little memory.
LaunchConfigError
    If a persistent launch asks for more blocks than can be resident, or a block for more than a multiprocessor has."""
_REFUSES_OTHERS = "\n    Also if `barrier` is False, or `each_round` is given."
_IS_WRONG = """\
VerificationError
    If the result is wrong. The message names the first vertex or edge that is.
"""
_ARGUMENTS = """\
UnsupportedTypeError, InvalidArgumentError
    If an argument has a wrong type, shape or value.
DeviceMemoryError
    If the host has too little memory."""


def document_algorithm(function: Callable[..., Any], rounds: bool = False) -> None:
    """Complete the docstring of an algorithm that has ``{launch_options}``; with `rounds`, options must not take those away.

    Where a docstring describes `worker` itself, that description stays the only one.
    """
    text = inspect.cleandoc(function.__doc__ or "")
    if "{launch_options}" in text:
        options = ("" if "\nworker : " in text else _WORKER) + _OPTIONS.replace("{list}", _list_options(rounds))
        text = text.replace("{launch_options}", options + _HAS_ROUNDS * rounds)
        function.__doc__ = _with_sections(text, _ERRORS + _REFUSES_OTHERS * rounds, function.__annotations__["return"])


def document_verifier(function: Callable[..., Any]) -> None:
    """Complete the docstring of a verifier with the errors of all; what it says itself of `VerificationError` stays."""
    text = inspect.cleandoc(function.__doc__ or "")
    if text:
        function.__doc__ = _with_sections(text, ("" if "\nVerificationError\n" in text else _IS_WRONG) + _ARGUMENTS)


def _with_sections(text: str, errors: str, result: str | None = None) -> str:
    """Return a docstring with errors added to those that it raises, and with the type of its result unless it has that."""
    head, *sections = re.split(r"\n\n(?=\w[\w ]+\n---)", text)
    found = {each.partition("\n")[0]: each for each in sections}
    if result is not None:
        found.setdefault("Returns", f"Returns\n-------\n{result}")
    found["Raises"] = "Raises\n------\n" + _merge_errors(found.get("Raises", "").removeprefix("Raises\n------"), errors)
    return "\n\n".join([head, *(found[name] for name in sorted(found, key=_SECTIONS.index))])


def _merge_errors(own: str, added: str) -> str:
    """Return errors and when each is raised, each error once: its own reasons, then those that are added."""
    reasons: dict[str, str] = {}
    for error, reason in re.findall(r"^(\w.*)\n((?:    .*(?:\n|$))+)", f"{own}\n{added}", re.MULTILINE):
        reasons[error] = reasons.get(error, "") + reason.rstrip() + "\n"
    return "\n".join(f"{error}\n{reason}".rstrip() for error, reason in reasons.items())


@functools.cache
def _list_options(rounds: bool) -> str:
    """Return a list of the options of a launch, with the type and the first sentence of each, from their own docstring."""
    attributes = inspect.cleandoc(str(LaunchOptions.__doc__)).split("Attributes\n----------\n")[1].split("\n\n")[0]
    entries = re.findall(r"^(\w+) : (.+)\n((?:    .+\n?)+)", attributes, re.MULTILINE)
    taken = {"barrier", "each_round"} if rounds else set()
    lines = [f"- `{name}` ({kind}): {_first_sentence(text)}" for name, kind, text in entries if name not in taken]
    layout: dict[str, Any] = {"width": _WIDTH, "initial_indent": "    ", "subsequent_indent": "      "}
    return "\n".join(textwrap.fill(line, break_long_words=False, break_on_hyphens=False, **layout) for line in lines)


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text of several lines, on one."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".") + "."
