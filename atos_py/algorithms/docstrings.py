"""Texts that the docstrings of all algorithms share, each in place of a line that names it.

``{launch_options}`` stands for the last two parameters, `worker` and ``**launch_options``; what a docstring adds to the options
follows it. ``{launch_errors}`` stands for the errors that the worker and the options raise, at the end of the section Raises.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from ..runtime.launch_options import LaunchOptions

__all__ = ["fill_docstring"]

_WIDTH = 120

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
    If there is no such option, or its value has a wrong type.
InvalidArgumentError
    If there is no such worker, or the value of an option is out of its range.
LaunchTimeoutError
    If the call takes longer than `timeout`.
DeviceMemoryError
    If the device or the host has too little memory.
LaunchConfigError
    If a persistent launch asks for more blocks than can be resident, or a block for more than a multiprocessor has."""
_REFUSES_OTHERS = "\n    Also if `barrier` is False, or `each_round` is given."


def fill_docstring(function: Callable[..., Any], rounds: bool = False) -> None:
    """Put the shared texts into the docstring of an algorithm; with `rounds`, its options must not take those away.

    Where a docstring describes `worker` itself, that description stays the only one. Without docstrings (``python -OO``)
    nothing is done.
    """
    if not function.__doc__ or not LaunchOptions.__doc__:
        return
    text = inspect.cleandoc(function.__doc__)
    worker = "" if "\nworker : " in text else _WORKER
    options = worker + _OPTIONS.replace("{list}", _list_options(rounds)) + _HAS_ROUNDS * rounds
    text = text.replace("{launch_options}", options, 1)
    function.__doc__ = text.replace("{launch_errors}", _ERRORS + _REFUSES_OTHERS * rounds, 1)


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
