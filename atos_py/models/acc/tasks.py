"""Tasks of a program with a frontier: its three functions as those that `frontier` asks for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...compile.codegen.introspect import reads_parameter
from ...compile.task import Task
from ...operators.edge_map import weight_of
from ...operators.filters import Fold
from .frontier import frontier_tasks, store_task

__all__ = ["make_tasks", "suited_to"]


def suited_to(program: Any, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Return the function `wants` of a program, the neutral update and a wide type, for metadata of a type."""
    is_float, combine = dtype.kind == "f", program.combine
    wide: Any = dtype.type if is_float else np.uint64 if dtype == np.uint64 else np.int64
    least, most = (-np.inf, np.inf) if is_float else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    unset, kind = wide(most), float if is_float and not combine.idempotent else wide  # sums in float64
    wants = (lambda m_u, *args: m_u == unset) if combine.votes else (lambda m_u, *args: True)
    return program.wants or wants, kind(min(max(combine.neutral, least), most)), wide


@functools.lru_cache(maxsize=256)
def make_tasks(
    program: Any, dtype: Any, levels: int = 1, stores: bool = False, is_ordered: bool = False, with_values: bool = False
) -> tuple[list[Task], list[Task], Fold | None]:
    """Return the tasks of a program for metadata of a type, those that do nothing in their places, and how updates are folded.

    They are push, scan and pull. If `is_ordered`, vertices of low metadata go first. Pushes are unrolled to so many levels.
    If the program `stores`, all vertices send without atomics in the place of the pull. `with_values` is as for
    `frontier_tasks`.
    """
    compute, active, combine = program.compute, program.active, program.combine
    wants, neutral, wide = suited_to(program, dtype)
    onto, change, sign = combine.onto, combine.change, -1 if combine.name == "MAX" else 1
    priority = (lambda after: sign * after) if is_ordered else (lambda after: None)
    # What an update meets is read only if it matters. Where it does not, the neutral value loses to any update.
    reads_old = program.wants is not None or combine.by_all is None or reads_parameter(compute, 2)
    read_old = (lambda metadata, u: metadata[u]) if reads_old else (lambda metadata, u: neutral)

    def relax(u, edge, sent, run, *args):  # type: ignore[no-untyped-def]
        old = read_old(run.values, u)
        if not wants(old, *args):
            return False, wide(old)
        update = wide(compute(sent, weight_of(run.rows.weights, edge), old, *args))
        before = change(run.values, u, old, update)
        after = wide(onto(before, update))
        return after != before and active(before, after, *args), after

    def update_along(v, edge, run, *args):  # type: ignore[no-untyped-def]
        m_v, m_u = run.values[run.back.indices[edge]], read_old(run.values, v)  # u is v here: the edge is turned round
        return wide(compute(m_v, weight_of(run.back.weights, edge), m_u, *args))

    def settle(found, update, *args):  # type: ignore[no-untyped-def]
        after = wide(onto(found, wide(update)))
        return after != found and active(found, after, *args), after

    def relax_by_store(u, edge, sent, run, *args):  # type: ignore[no-untyped-def]
        before = run.values[u]
        update = wide(compute(sent, weight_of(run.rows.weights, edge), before, *args))
        after = wide(onto(before, update))
        changes = wants(before, *args) and after != before
        if changes:
            run.values[u] = after
        return changes and active(before, after, *args), after

    fold = None if combine.votes else Fold(combine.merge, neutral, combine.by_all)
    tasks, stubs = frontier_tasks(program.name, relax, update_along, settle, active, wants, fold, priority, levels, with_values)
    return [*tasks[:2], store_task(relax_by_store, levels) if stores else tasks[2]], stubs, fold
