"""Calls of functions that a task defines inside of itself, whose arguments Numba takes by position alone.

Numba inlines such a function, a lambda too, and drops keyword arguments, adds all defaults behind whatever is given, and reads
variables of the task as they were at the `def`. Here a call is rewritten before that, as Python means it.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, NoReturn

from .lower_checks import is_user_code
from .numba_patches import patch_inlining
from .numba_private import changed_expression

__all__ = ["RefusedCallError", "follow_python"]


class RefusedCallError(Exception):
    """A function inside of a task is called with arguments that it does not take."""


def follow_python(inline: Any) -> None:
    """Have one of Numba's targets inline functions inside of tasks as Python calls them.

    Parameters
    ----------
    inline : module
        The target's module `inline_closurecall`.
    """
    patch_inlining(inline, _prepare)


def _prepare(func_ir: Any, block: Any, place: int, callee: Any) -> Any:
    """Give the call at a place of a block all of its arguments by position; return the function without defaults."""
    call = block.body[place].value
    if not is_user_code(func_ir.func_id.code) or getattr(callee, "op", None) != "make_function" or call.op != "call":
        return callee
    code = callee.code
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        _refuse(call, code.co_name, "which has *args or **kwargs; give it a fixed number of parameters")
    block.body[place] = statement = copy.copy(block.body[place])
    statement.value = changed_expression(call, args=_by_position(call, code, _defaults(func_ir, callee)), kws=())
    _read_at_call(func_ir, callee)
    return changed_expression(callee, defaults=None)


def _defaults(func_ir: Any, callee: Any) -> tuple[Any, ...]:
    """Return the variables that hold the defaults since the `def`."""
    if not callee.defaults:
        return ()
    if isinstance(callee.defaults, tuple):
        return callee.defaults
    return tuple(func_ir.get_definition(callee.defaults).items)


def _by_position(call: Any, code: Any, defaults: tuple[Any, ...]) -> tuple[Any, ...]:
    names = code.co_varnames[: code.co_argcount]
    if len(call.args) > len(names):
        _refuse(call, code.co_name, f"which takes {len(names)} arguments, with {len(call.args)}")
    given = dict(zip(names, call.args, strict=False))
    for name, value in call.kws:
        if name in given or name not in names[code.co_posonlyargcount :]:
            _refuse(call, code.co_name, f"with {name}= " + ("a second time" if name in given else "which it does not take"))
        given[name] = value
    given = {**dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)), **given}
    missing = [name for name in names if name not in given]
    if missing:
        _refuse(call, code.co_name, f"without its argument {missing[0]!r}")
    return tuple(given[name] for name in names)


def _read_at_call(func_ir: Any, callee: Any) -> None:
    """Have the function read variables of the task as they are when it is called, not as they were at the `def`."""
    if callee.closure is None:
        return
    cells = func_ir.get_definition(callee.closure)
    if getattr(cells, "op", None) != "build_tuple":
        return
    temporary = {item.name: number for number, item in enumerate(cells.items)}
    for block in func_ir.blocks.values():
        for statement in block.body:
            number = temporary.get(getattr(getattr(statement, "target", None), "name", None))
            if number is not None and type(statement.value) is type(cells.items[number]):  # a variable of the task
                cells.items[number] = statement.value


def _refuse(call: Any, name: str, what: str) -> NoReturn:
    place = f'File "{call.loc.filename}", line {call.loc.line}'
    raise RefusedCallError(f"«it calls {name}, a function inside of it, {what}»\n{place}")
