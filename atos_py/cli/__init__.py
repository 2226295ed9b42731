"""Commands of the command line: a module each, but for those of the algorithms, which are made from the registry."""

from __future__ import annotations

import argparse
from typing import Protocol

from ..algorithms.registry import find_algorithms
from . import bench, demo, info, reproduce, tune
from .algorithm import AlgorithmCommand

__all__ = ["Command", "find_commands"]


class Command(Protocol):
    """Command: a module or an object with these members.

    Attributes
    ----------
    HELP : str
        A line.
    DESCRIPTION : str
        Explanation for ``--help``.
    EXAMPLES : str
        Lines of use, which name the program ``atos``.
    """

    HELP: str
    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Describe the command to `argparse`."""

    def command(self, options: argparse.Namespace, /) -> int:
        """Run the command; return its exit code."""


def find_commands() -> dict[str, Command]:
    """Return the commands by name, in the order of ``--help``."""
    algorithms: dict[str, Command] = {name: AlgorithmCommand(entry) for name, entry in find_algorithms().items()}
    return {"info": info, "demo": demo, **algorithms, "bench": bench, "tune": tune, "reproduce": reproduce}
