"""The command line: ``python -m atos_py`` says what there is to run on, ``python -m atos_py demo`` runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from . import __version__
from .cli import COMMANDS
from .errors import AtosError, VerificationError

_DESCRIPTION = """\
atos_py runs many small tasks, which may push more tasks, on a GPU or on CPU threads.

Without a command it says what there is to run on, as `info` does."""

_EXAMPLES = """\
examples:
  python -m atos_py                      what is there, what is missing, and what to do about it
  python -m atos_py demo --device cpu    a minute's tour: BFS in all schedules, verified
  python -m atos_py bfs roads.gr.gz      depths from a vertex, proved right
  python -m atos_py COMMAND --help       what a command does, and more examples
  ATOS_DEVICE=cpu python program.py      run a program of yours on the CPU although there is a GPU

A graph is a file (DIMACS .gr, Matrix Market, edge list, .npz, each gzipped or not) or a generator and its parameters:
rmat:SCALE[:EDGE_FACTOR[:SEED]], scale-free, or road:SIDE[:KEEP[:SEED]], like a road network.

The exit code is 0 if all went well, 1 if a result was not right, 2 if something could not be done."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0, 1 if a result was wrong, 2 if something could not be done.

    130 is that of a command that Ctrl-C stopped.
    """
    options = _parser().parse_args(arguments)
    try:
        code = int(COMMANDS[options.command or "info"].command(options))
        print(end="", flush=True)  # which, unlike sys.stdout, is there if the output was closed from the start
        return code
    except BrokenPipeError:  # who reads the output has seen enough, as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes at its end
        return 2
    except KeyboardInterrupt:
        print("atos_py: interrupted", file=sys.stderr)
        return 130  # as of a program that the signal killed
    except (AtosError, OSError) as error:  # OSError: a file that cannot be written
        print(f"atos_py: {error}".replace("\n", " "), file=sys.stderr)
        return 1 if isinstance(error, VerificationError) else 2


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m atos_py", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(json=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in COMMANDS.items():
        epilog = f"examples:\n{module.EXAMPLES}"
        module.add_arguments(
            commands.add_parser(name, help=module.HELP, description=module.DESCRIPTION, epilog=epilog, formatter_class=raw)
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
