"""The commands of ``python -m atos_py``, a file each, and `options`, what they have in common.

A command is a module with HELP, a line; DESCRIPTION, what ``--help`` teaches; EXAMPLES of use; ``add_arguments(parser)``; and
``command(options)``, which returns the exit code.
"""

from types import ModuleType

from . import bench, bfs, color, demo, info, pagerank, reproduce, tune

__all__ = ["COMMANDS"]

COMMANDS: dict[str, ModuleType] = {
    "info": info,
    "demo": demo,
    "bfs": bfs,
    "pagerank": pagerank,
    "color": color,
    "bench": bench,
    "tune": tune,
    "reproduce": reproduce,
}
