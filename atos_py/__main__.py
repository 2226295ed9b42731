"""Command line: ``atos``, or ``python -m atos_py`` without an installed script."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import __version__
from .cli import Command, find_commands
from .errors import AtosError, VerificationError

_DESCRIPTION = """\
atos_py runs many small tasks, which may push more tasks, on a GPU or on CPU threads.

Without a command it lists devices, compilers and packages, as `info` does."""

_EXAMPLES = """\
examples:
  atos                      list devices and packages, and how to get what is missing
  atos demo --device cpu    run BFS in all schedules and verify it, in a minute
  atos bfs roads.gr.gz      find the depths from a vertex and prove them right
  atos COMMAND --help       explain a command, with more examples

ATOS_DEVICE=cpu python program.py runs your program on the CPU of a machine with a GPU.

A graph is a file (DIMACS .gr, Matrix Market, edge list, .csv, .npz, .parquet) or a generator and its parameters:
rmat:SCALE[:EDGE_FACTOR[:SEED]] is scale-free, road:SIDE[:KEEP[:SEED]] is like a road network.

The exit code is 0 on success, 1 if a result is wrong, 2 if the command failed for another reason."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code.

    The code is 0 on success, 1 if a result is wrong, 2 if the command failed for another reason, 130 if Ctrl-C stopped it.
    """
    commands = find_commands()
    options = _make_parser(commands, _name_program(arguments)).parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = int(commands[options.command or "info"].command(options))
        print(end="", flush=True)  # which, unlike sys.stdout, is there if the output was closed from the start
        return code
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes at its end
        return 2
    except KeyboardInterrupt:
        print("atos_py: interrupted", file=sys.stderr)
        return 130  # as of a program that the signal killed
    except (AtosError, OSError) as error:  # OSError: a file that cannot be written
        print(f"atos_py: {error}".replace("\n", " "), file=sys.stderr)
        return 1 if isinstance(error, VerificationError) else 2


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning as errors are shown: the line of Python that gave it says nothing to who runs a command."""
    print(f"atos_py: {message}", file=sys.stderr)


def _name_program(arguments: Sequence[str] | None) -> str:
    """Return how the program was called, as usage lines and examples show it; a call with arguments is none from a shell."""
    if arguments is not None:
        return "atos"
    name = Path(sys.argv[0]).name
    return "python -m atos_py" if name == "__main__.py" else name


def _make_parser(commands: Mapping[str, Command], program: str) -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    epilog = _name_in_examples(_EXAMPLES, program)
    parser = argparse.ArgumentParser(program, description=_DESCRIPTION, epilog=epilog, formatter_class=raw)
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(json=None)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in commands.items():
        epilog = _name_in_examples(f"examples:\n{command.EXAMPLES}", program)
        command.add_arguments(
            subparsers.add_parser(name, help=command.HELP, description=command.DESCRIPTION, epilog=epilog, formatter_class=raw)
        )
    return parser


def _name_in_examples(text: str, program: str) -> str:
    return text.replace("\n  atos ", f"\n  {program} ")


if __name__ == "__main__":
    sys.exit(main())
