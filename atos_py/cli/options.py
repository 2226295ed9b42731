"""What the commands have in common: options of the same name mean the same everywhere, and output goes the same ways."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..compile.program import WORKERS
from ..errors import FileWriteError, MissingPackageError
from ..graph.spec import SPEC_HELP
from ..tools.workloads import OPTIONS

__all__ = [
    "LAUNCH",
    "add_device",
    "add_graphs",
    "add_json",
    "add_launch",
    "add_own",
    "check_outputs",
    "given",
    "progress_bar",
    "say",
    "write_json",
    "write_text",
]

#: Options of a launch, by the names that they have in Python.
LAUNCH = ("worker", "fetch_size", "num_blocks", "num_threads", "persistent", "barrier")

_OWN: dict[str, tuple[Callable[[str], Any], str]] = {
    "direction": (str, "push, or auto: unreached vertices look for reached ones where that saves work (undirected graphs)"),
    "tolerance": (float, "relative error that the ranks may have (default: 5e-4)"),
    "dtype": (str, "of the ranks: float32 or float64"),
    "find": (str, "how vertices with work are found: sweep, gather or push"),
    "order": (str, "which vertices come first: natural, random or degree"),
    "window": (int, "vertices under way at once"),
    "patience": (int, "how often a vertex waits for another"),
}


def _add(parser: Any, several: bool, name: str, kind: Callable[[str], Any], text: str, **more: Any) -> None:
    many = {"nargs": "+", "action": "extend"} if several else {}
    parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text, **many, **more)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"0 or 1 (got {text!r})")
    return text == "1"


def add_device(parser: argparse.ArgumentParser, *, several: bool = False, default: str = "the best there is") -> None:
    """Add ``--device``."""
    _add(parser, several, "device", str, f"cpu, cuda or cuda:N (default: {default})", metavar="DEVICE")


def add_graphs(parser: argparse.ArgumentParser, default: str, *, several: bool = True, required: bool = False) -> None:
    """Add ``--graph``; commands on one graph alone take it as an argument."""
    text = SPEC_HELP if required else f"{SPEC_HELP} (default: {default})"
    _add(parser, several, "graph", str, text, metavar="GRAPH", required=required)


def add_launch(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add the options of a launch: one value of each, or several to be combined."""
    group = parser.add_argument_group("launch options", "As in Python; what is not given is the algorithm's choice.")
    _add(group, several, "worker", str, "what runs a task: thread, warp or cta", choices=WORKERS, metavar="WORKER")
    _add(group, several, "fetch_size", int, "items that a worker takes at once, at most", metavar="N")
    _add(group, several, "num_blocks", int, "blocks; on the CPU, threads", metavar="N")
    _add(group, several, "num_threads", int, "threads of a block, a multiple of 32", metavar="N")
    _add(group, several, "persistent", _switch, "1: one resident kernel; 0: kernel after kernel", metavar="{0,1}")
    _add(group, several, "barrier", _switch, "1: level after level; 0: none", metavar="{0,1}")
    group.add_argument("--tuned", action="store_true", help="take what `tune` found for what is not given")


def add_own(parser: argparse.ArgumentParser, *algorithms: str, several: bool = False) -> None:
    """Add the options that are an algorithm's own."""
    for algorithm in algorithms:
        group = parser.add_argument_group(f"options of {algorithm}")
        for name in OPTIONS.get(algorithm, ()):
            kind, text = _OWN[name]
            _add(group, several, name, kind, text, metavar=name.upper())


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    text = 'write everything there as JSON; "-": on standard output, and what else is said on standard error'
    parser.add_argument("--json", metavar="FILE", help=text)


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the options that were given, by name."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def say(options: argparse.Namespace, *lines: object) -> None:
    """Print what people read."""
    print(*lines, sep="\n", file=sys.stderr if options.json == "-" else sys.stdout, flush=True)


def check_outputs(*files: str | Path | None, picture: Path | None = None) -> None:
    """Refuse files that could not be written in the end, before anything runs; None stands for one that is not wanted.

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
            from ..tools.figures import picture_format
        except ImportError as error:
            raise MissingPackageError("drawing needs matplotlib: python -m pip install matplotlib") from error
        picture_format(picture)


def write_text(path: Path, text: str) -> None:
    """Write a file that people or programs read, which may be a pipe."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileWriteError(f"cannot write '{path}': {error.strerror}") from error


def write_json(options: argparse.Namespace, value: Any) -> None:
    """Write what programs read, if it was asked for."""
    if options.json is None:
        return
    text = value if isinstance(value, str) else json.dumps(value, indent=1) + "\n"
    if options.json == "-":
        print(text, end="", flush=True)  # which, unlike sys.stdout, is there if the output was closed from the start
    else:
        write_text(Path(options.json), text)


def progress_bar() -> Callable[[Iterable[Any], str, int], Iterable[Any]]:
    """Return what shows how far a command is: a bar, or what says each part once where tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:

        def announce(steps: Iterable[Any], description: str, total: int) -> Iterable[Any]:
            print(f"{description} ({total} settings)", file=sys.stderr, flush=True)
            return steps

        return announce
    return lambda steps, description, total: tqdm(steps, desc=description, total=total)  # type: ignore[no-any-return]
