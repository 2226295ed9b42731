"""Registry of the ready-made algorithms: one entry for each, which the command line, the tools and tests read.

A module of this package registers its algorithm when it is imported. Nothing else lists the algorithms but
`atos_py/__init__.pyi`, which has all public names.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec

from ..arrays.array import Array
from ..errors import InvalidArgumentError
from ..graph.graph import Graph

__all__ = ["SEED", "Algorithm", "Option", "find_algorithms", "pick_options", "register"]

_P = ParamSpec("_P")


@dataclass(frozen=True)
class Option:
    """Option of an algorithm on the command line; the options of a launch need none.

    Attributes
    ----------
    help : str
        A line for ``--help``.
    convert : callable or None
        Makes the value of the word on the command line. None for a switch that takes no word: it is True where it is given,
        and only the algorithm's own command has it.
    vertices : str
        Whether the value names vertices, which the user calls by their labels: "" if it does not, "any", or "lists" if only
        a list does, and one number is a count. Algorithms whose option has the same name and text may differ in this.
    """

    help: str
    convert: Callable[[str], Any] | None = str
    vertices: str = field(default="", compare=False)

    def names_vertices(self, value: Any) -> bool:
        """Whether a value names vertices."""
        return self.vertices == "any" or (self.vertices == "lists" and isinstance(value, list))


@dataclass(frozen=True)
class Algorithm:
    """Entry of one algorithm.

    Attributes
    ----------
    run : callable
        The function that users call: ``run(graph, **options)``. Its result has the `LaunchStats` as `stats`.
    verify : callable
        ``verify(graph, result, options)`` proves a result right or raises `VerificationError`. `options` are those of the run,
        with `defaults` and `source`. It returns the numbers that `bench` prints of the result, or None for those of `describe`.
    describe : callable
        ``describe(result)`` returns what the command prints of a result; a dictionary in it goes by vertices.
    arrays : callable
        ``arrays(result)`` returns the arrays that the command saves, by name; an .npy file has the first. None stands for one
        that was not asked for.
    help, description, examples : str
        Texts of the command: a line, what ``--help`` teaches, and lines of arguments, each an example.
    options : mapping of str to Option
        The options of `run` beside those of a launch.
    has_source : bool
        Whether `run` takes `source`, one vertex or several. The tools choose one where none is given.
    weighted : bool
        Whether `run` reads the weights of edges, if there are some. For other algorithms the tools leave them out.
    defaults : mapping
        Values of options that commands and tools give unless the user does, where they are not those of `run`.
    tunable : callable
        ``tunable(graph)`` returns the values that `tune` tries of each option, beside those of a launch. None of an option
        that trades the quality of a result for time, since `tune` compares times alone.
    launch_defaults : bool
        Whether `run` leaves the options of a launch to the launch. Then `tune` does not try the defaults of a launch by name,
        since they are what runs without options.
    least_tasks : callable
        ``least_tasks(result)`` returns how many tasks would have been enough, or None if that is not known.
    paper : mapping of str to mapping
        Names of its runs in the tables of `reproduce`, and the options of each. Empty if the paper has not measured it.
    """

    run: Callable[..., Any]
    verify: Callable[[Graph, Any, Mapping[str, Any]], dict[str, Any] | None]
    describe: Callable[[Any], dict[str, Any]]
    arrays: Callable[[Any], dict[str, Array | None]]
    help: str
    description: str
    examples: Sequence[str]
    options: Mapping[str, Option] = field(default_factory=dict)
    has_source: bool = False
    weighted: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    tunable: Callable[[Graph], Mapping[str, Sequence[Any]]] = lambda _graph: {}
    launch_defaults: bool = True
    least_tasks: Callable[[Any], int | None] = lambda _result: None
    paper: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the function, and of the command."""
        return self.run.__name__


#: Option of several algorithms.
SEED = Option("what chance decides depends on it", int)

_registered: dict[str, Algorithm] = {}


def pick_options(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of some options that a run was given, for a verifier that takes them by the same names."""
    return {name: options[name] for name in names if name in options}


def _registers(make: Callable[_P, Algorithm]) -> Callable[_P, None]:
    """Return a function that makes an algorithm and adds it, with the parameters, and their types, of that which makes it."""

    def register(*args: _P.args, **attributes: _P.kwargs) -> None:
        made = make(*args, **attributes)
        if made.name in _registered:
            raise InvalidArgumentError(f"an algorithm named {made.name!r} is registered already: give this one another name")
        _registered[made.name] = made

    return register


#: Adds an algorithm by the attributes of its `Algorithm`; its module calls this once, when it is imported.
register = _registers(Algorithm)


def find_algorithms() -> dict[str, Algorithm]:
    """Return every algorithm of this package by its name, in alphabetical order."""
    package = importlib.import_module(__name__.rpartition(".")[0])
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    return dict(sorted(_registered.items()))
