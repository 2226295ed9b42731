"""Variables that have no value on some path to where they are read: with checks, an error there, as Python's UnboundLocalError.

Numba gives such a variable zero. Which reads may be without a value is found by the paths of a function, and each of these asks
a flag, which assignments of the variable set.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from .lower_checks import fail, is_collecting, is_user_code
from .numba_patches import patch_reconstruction

__all__ = ["check_assigned"]


def check_assigned(passes: Any) -> None:
    """Have one of Numba's targets add the checks to functions of tasks that are compiled with checks.

    Parameters
    ----------
    passes : module
        The target's module `untyped_passes`.
    """
    patch_reconstruction(passes, _add_checks)


def _has_value(flag: Any, name: Any) -> None:
    """Inside a function: fail if `flag` is false, since the variable `name` has no value."""


@infer_global(_has_value)
class HasValue(AbstractTemplate):
    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.none, types.boolean, args[1])


@lower_builtin(_has_value, types.Boolean, types.StringLiteral)
def lower_has_value(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    with builder.if_then(builder.not_(args[0]), likely=False):
        fail(builder, "raise", f"UnboundLocalError: {sig.args[1].literal_value!r} has no value on the way to here")
    return context.get_dummy_value()


def _add_checks(func_ir: Any) -> None:
    if not is_collecting() or not is_user_code(func_ir.func_id.code):
        return
    unsure = _unsure_reads(func_ir.blocks)
    if not unsure:
        return
    nodes = sys.modules[type(func_ir).__module__]  # each target has classes of its own
    names = {name for reads in unsure.values() for found in reads.values() for name in found}
    entry = min(func_ir.blocks)
    for label, block in func_ir.blocks.items():
        scope = block.scope
        body = []
        for place, statement in enumerate(block.body):
            for name in sorted(unsure.get(label, {}).get(place, ())):
                body += _check(nodes, scope, name, statement.loc)
            body.append(statement)
            target = _assigned(statement)
            if target in names:
                body.append(_set_flag(nodes, scope, target, True, statement.loc))
        if label == entry:
            body[:0] = [_set_flag(nodes, scope, name, False, block.loc) for name in sorted(names)]
        block.body = body


def _unsure_reads(blocks: dict[int, Any]) -> dict[int, dict[int, set[str]]]:
    """Return, by the label of a block and a place in it, the variables read there that some path has not assigned."""
    entry = min(blocks)
    local = {_assigned(statement) for block in blocks.values() for statement in block.body} - {None}
    before: dict[int, set[Any]] = {label: set(local) for label in blocks}
    before[entry] = set()
    waiting = [entry]
    reached = {entry}
    while waiting:
        label = waiting.pop()
        after = before[label] | {_assigned(statement) for statement in blocks[label].body}
        for following in blocks[label].terminator.get_targets():
            if following not in reached or before[following] - after:
                reached.add(following)
                before[following] &= after
                waiting.append(following)
    unsure: dict[int, dict[int, set[str]]] = {}
    for label in reached:
        assigned = set(before[label])
        for place, statement in enumerate(blocks[label].body):
            missing = {name for name in _read(statement) if name in local and name not in assigned}
            if missing:
                unsure.setdefault(label, {})[place] = missing
                assigned |= missing  # said once
            assigned.add(_assigned(statement))
    return unsure


def _assigned(statement: Any) -> str | None:
    """Return the variable of the user that a statement assigns; names of Numba's own begin with a dollar."""
    target = getattr(statement, "target", None)
    name = getattr(target, "name", None)
    return name if isinstance(name, str) and not name.startswith("$") else None


def _read(statement: Any) -> set[str]:
    if type(statement).__name__ == "Del":
        return set()
    value = statement.value if hasattr(statement, "target") and hasattr(statement, "value") else statement
    if hasattr(value, "list_vars"):
        return {variable.name for variable in value.list_vars()}
    return {value.name} if type(value).__name__ == "Var" else set()


def _set_flag(nodes: Any, scope: Any, name: str, value: bool, loc: Any) -> Any:
    flag = scope.get_or_define(f"$has_value.{name}", loc)
    return nodes.Assign(target=flag, value=nodes.Const(value, loc), loc=loc)


def _check(nodes: Any, scope: Any, name: str, loc: Any) -> list[Any]:
    flag = scope.get_or_define(f"$has_value.{name}", loc)
    function, text, result = (scope.redefine(f"$check.{part}", loc) for part in ("function", "name", "result"))
    call = nodes.Expr.call(function, (flag, text), (), loc)
    return [
        nodes.Assign(target=function, value=nodes.Global("_has_value", _has_value, loc), loc=loc),
        nodes.Assign(target=text, value=nodes.Const(re.sub(r"(\.\d+)+$", "", name), loc), loc=loc),
        nodes.Assign(target=result, value=call, loc=loc),
    ]
