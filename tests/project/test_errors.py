"""Errors are whole in another process."""

from __future__ import annotations

import pickle

import pytest

from atos_py import errors
from atos_py.errors import AtosError

ERRORS = [
    *[
        getattr(errors, name)("said")
        for name in errors.__all__
        if name
        not in (
            "JoinsFullError",
            "PoolFullError",
            "QueueFullError",
            "LaunchTimeoutError",
            "TaskError",
            "GraphFormatError",
            "CheckpointError",
        )
    ],
    errors.JoinsFullError("said", capacity=3, needed=4),
    errors.PoolFullError("said", capacity=3, needed=4),
    errors.QueueFullError("said", capacity=3, pending=4, lost=0),
    errors.LaunchTimeoutError("said", pending=3, stuck=False),
    errors.TaskError(
        "said", task="f", kind="index", function="g", filename="a.py", line=3, item=(1, 2), index=4, bound=4, lost=0
    ),
    errors.GraphFormatError("a.gr", 7, "said"),
    errors.CheckpointError("a.atos", "said"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_pass_from_process_to_process(error):
    """As those raised in a pool of processes do."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))
    assert isinstance(copy, AtosError)
    assert len([base for base in type(copy).__mro__ if base.__module__ == "builtins"]) >= 4 or type(copy) is AtosError
