"""Options and outputs that the commands share: options of the same name mean the same everywhere."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..algorithms.registry import Algorithm, find_algorithms
from ..compile.program import WORKERS
from ..errors import FileWriteError, MissingPackageError
from ..graph.spec import SPEC_HELP

__all__ = [
    "LAUNCH",
    "add_algorithm_options",
    "add_device",
    "add_file_changes",
    "add_graphs",
    "add_json",
    "add_launch",
    "add_source",
    "check_outputs",
    "collect_given",
    "file_changes",
    "make_progress_bar",
    "name_changed",
    "say",
    "write_json",
    "write_text",
]

#: Options of a launch, by the names that they have in Python.
LAUNCH = ("worker", "fetch_size", "num_blocks", "num_threads", "persistent", "barrier")


_CHANGES = {
    "symmetrize": "add the reverse of each edge; if a file has both directions of some, give --simplify too",
    "simplify": "drop edges from a vertex to itself, and all but the lightest of parallel edges",
    "renumber": "number the vertices that edges name from 0 on; sources and results go by the ids of the file",
}


def _add(parser: Any, several: bool, name: str, kind: Callable[[str], Any], text: str, **more: Any) -> None:
    many = {"nargs": "+", "action": "extend"} if several else {}
    parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text, **many, **more)


def _parse_switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"0 or 1 (got {text!r})")
    return text == "1"


def add_device(parser: argparse.ArgumentParser, *, several: bool = False, default: str = "the best device") -> None:
    """Add ``--device``."""
    _add(parser, several, "device", str, f"cpu, cuda or cuda:N (default: {default})", metavar="DEVICE")


def add_graphs(parser: argparse.ArgumentParser, default: str, *, several: bool = True, required: bool = False) -> None:
    """Add ``--graph``; commands on one graph alone take it as an argument."""
    text = SPEC_HELP if required else f"{SPEC_HELP} (default: {default})"
    _add(parser, several, "graph", str, text, metavar="GRAPH", required=required)


def add_file_changes(parser: argparse.ArgumentParser) -> None:
    """Add what is to be changed in a graph that is read from a file."""
    group = parser.add_argument_group("options of a graph file", "The same as of Graph.load in Python.")
    for name, text in _CHANGES.items():
        group.add_argument(f"--{name}", action="store_true", help=text)


def file_changes(options: argparse.Namespace) -> dict[str, bool]:
    """Return what the user wants to be changed in graphs that are read from files."""
    return {name: True for name in _CHANGES if getattr(options, name)}


def name_changed(options: argparse.Namespace, spec: str) -> str:
    """Return the name of a graph in reports, in which it is another one if it was changed."""
    return " ".join([spec, *(f"--{name}" for name in file_changes(options))])


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add ``--source``, one vertex, to a command that runs any algorithm."""
    names = ", ".join(name for name, algorithm in find_algorithms().items() if algorithm.has_source)
    text = f"vertex where a search begins, for {names} (default: a vertex of largest degree, a grid's middle)"
    parser.add_argument("--source", type=int, metavar="V", help=text)


def add_launch(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add the options of a launch: one value of each, or several to be combined."""
    group = parser.add_argument_group(
        "launch options", "The same as in Python; the algorithm chooses those that are not given."
    )
    _add(
        group,
        several,
        "worker",
        str,
        "threads that run a task together: thread, warp or cta",
        choices=WORKERS,
        metavar="WORKER",
    )
    _add(group, several, "fetch_size", int, "largest number of items that a worker takes at once", metavar="N")
    _add(group, several, "num_blocks", int, "blocks; on the CPU, threads", metavar="N")
    _add(group, several, "num_threads", int, "threads of a block, a multiple of 32", metavar="N")
    _add(group, several, "persistent", _parse_switch, "1: one resident kernel; 0: kernel after kernel", metavar="{0,1}")
    _add(group, several, "barrier", _parse_switch, "1: level after level; 0: none", metavar="{0,1}")
    group.add_argument("--tuned", action="store_true", help="use the setting that `tune` found for options that are not given")


def add_algorithm_options(parser: argparse.ArgumentParser, *algorithms: Algorithm, several: bool = False) -> None:
    """Add the options of algorithms, each name once: of one its switches too, of several to be combined none."""
    added: set[str] = set()
    for algorithm in algorithms:
        group = parser.add_argument_group(f"options of {algorithm.name}")
        for name, option in algorithm.options.items():
            if name in added:
                continue
            if option.convert is not None:
                _add(group, several, name, option.convert, option.help, metavar=name.upper())
            elif not several:
                group.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=option.help)
            added.add(name)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    text = 'write the results as JSON; "-": to standard output, and the text for people to standard error'
    parser.add_argument("--json", metavar="FILE", help=text)


def collect_given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the options of these names that the command has and the user gave."""
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}


def say(options: argparse.Namespace, *lines: object) -> None:
    """Print text for people: on standard error if JSON goes to standard output."""
    print(*lines, sep="\n", file=sys.stderr if options.json == "-" else sys.stdout, flush=True)


def check_outputs(*files: str | Path | None, picture: Path | None = None) -> None:
    """Refuse files that cannot be written, before anything runs; None stands for a file that is not wanted.

    Raises
    ------
    FileWriteError
        If there is no such directory, or no permission, or it is a directory itself.
    InvalidArgumentError, MissingPackageError
        If the ending of the picture names no kind of it, or there is no matplotlib to draw it.
    """
    for path in (Path(name) for name in (*files, picture) if name not in (None, "-")):
        fault = None
        if "\0" in str(path):
            fault = "there is a null character in its name"
        elif path.is_dir():
            fault = "it is a directory"
        elif not path.parent.is_dir():
            fault = f"there is no directory '{path.parent}'"
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            fault = "permission denied"
        if fault:
            raise FileWriteError(f"cannot write {str(path)!r}: {fault}")
    if picture is not None:
        try:
            from ..tools.figures import find_picture_format
        except ImportError as error:
            raise MissingPackageError("drawing needs matplotlib: python -m pip install matplotlib") from error
        find_picture_format(picture)


def write_text(path: Path, text: str) -> None:
    """Write a text file, which may be a pipe."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileWriteError(f"cannot write '{path}': {error.strerror}") from error


def write_json(options: argparse.Namespace, value: Any) -> None:
    """Write JSON for programs, if ``--json`` asks for it."""
    if options.json is None:
        return
    text = value if isinstance(value, str) else json.dumps(value, indent=1) + "\n"
    if options.json == "-":
        print(text, end="", flush=True)  # which, unlike sys.stdout, is there if the output was closed from the start
    else:
        write_text(Path(options.json), text)


def make_progress_bar() -> Callable[[Iterable[Any], str, int], Iterable[Any]]:
    """Return a wrapper of steps that shows progress: a bar, or without tqdm a line for each part."""
    try:
        from tqdm import tqdm
    except ImportError:

        def announce(steps: Iterable[Any], description: str, total: int) -> Iterable[Any]:
            print(f"{description} ({total} settings)", file=sys.stderr, flush=True)
            return steps

        return announce
    return lambda steps, description, total: tqdm(steps, desc=description, total=total)  # type: ignore[no-any-return]
