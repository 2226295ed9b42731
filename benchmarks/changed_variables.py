"""Time what a launch takes to find out whether the variables that its task reads have changed.

    python benchmarks/changed_variables.py

Prints a row in Markdown for each number of global variables: of integers, of helpers that the task calls, and of small arrays.
Times are the least of many runs, in microseconds.
"""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np

import atos_py as atos
from atos_py.compile.versions import versions_of

CALLS = 500


def task_with(values: list[Any], term: str) -> atos.Task:
    """Return a task that adds up a term for each of some global variables."""
    names: dict[str, Any] = {f"variable_{k}": value for k, value in enumerate(values)}
    terms = " + ".join(term.format(name) for name in names)
    exec(f"def add(worker, item, out):\n    out[item] = {terms or 0}\n", names)
    return atos.task(names["add"])


def microseconds(task: atos.Task) -> float:
    """Return what a look takes where nothing has changed."""
    versions = versions_of(task)
    return 1e6 * min(timeit.repeat(versions.current, number=CALLS, repeat=1000)) / CALLS


def main() -> None:
    """Print the table."""
    print("| variables | integers | helpers | arrays of 4 kB |\n| --- | --- | --- | --- |")
    for count in (0, 1, 5, 10, 20):
        tasks = (
            task_with(list(range(count)), "{}"),
            task_with([eval("lambda x: x + 1") for _ in range(count)], "{}(item)"),
            task_with([np.zeros(512) for _ in range(count)], "{}[0]"),
        )
        print(f"| {count} | " + " | ".join(f"{microseconds(task):.2f} us" for task in tasks) + " |", flush=True)


if __name__ == "__main__":
    main()
