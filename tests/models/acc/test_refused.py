"""Refusals of programs that would be wrong, each with the reason and what to do."""

from __future__ import annotations

import numpy as np
import pytest

import atos_py as atos
from atos_py import acc
from atos_py.errors import AtosError, InvalidArgumentError, LaunchConfigError, UnsupportedTypeError
from atos_py.models.acc import programs


def same(m_v, weight, m_u):
    return m_v


@pytest.mark.parametrize(
    ("make", "kind", "says"),
    [
        (lambda: acc.Program(same, min), UnsupportedTypeError, "acc.Combine"),
        (lambda: acc.Program(3, acc.MIN), UnsupportedTypeError, "compute must be a function"),
        (lambda: acc.Program(same, acc.MIN, active=True), UnsupportedTypeError, "active must be a function"),
        (lambda: acc.Program(same, acc.SUM), InvalidArgumentError, "exactly once.* pass active="),
        (lambda: acc.Program(same, acc.SUBTRACT), InvalidArgumentError, "exactly once"),
        (lambda: acc.Program(same, acc.Combine(same, neutral=0)), InvalidArgumentError, "exactly once"),
        (lambda: acc.Program(same, acc.MIN, apply=same), InvalidArgumentError, "goes with SUM"),
        (lambda: acc.Program(same, acc.SUM, apply=same, wants=same), InvalidArgumentError, "leave one of them out"),
        (lambda: acc.Combine(3, neutral=0), UnsupportedTypeError, "function of two values"),
        (lambda: acc.Combine(same, neutral=0, idempotent=1), AtosError, "idempotent"),
    ],
)
def test_programs(make, kind, says):
    with pytest.raises(kind, match=says):
        make()


VOTE, MIN, SUM = programs.BFS, programs.SSSP, programs.WEIGHTED_SUMS


@pytest.mark.parametrize(
    ("program", "options", "kind", "says"),
    [
        (VOTE, {"barrier": False}, LaunchConfigError, "the same within a round only.*barrier=False.*MIN"),
        (VOTE, {"delta": 1}, LaunchConfigError, "the same within a round only.*delta=1"),
        (SUM, {"barrier": False}, LaunchConfigError, "sums of whole rounds"),
        (SUM, {"direction": "push"}, LaunchConfigError, "all vertices gather"),
        (SUM, {"start": 0}, LaunchConfigError, "all vertices gather"),
        (programs.REACHABLE, {"delta": 1}, LaunchConfigError, "for MIN and MAX"),
        (MIN, {"barrier": False, "filter": "jit"}, LaunchConfigError, "listed online"),
        (MIN, {"barrier": False, "direction": "auto"}, LaunchConfigError, "vertices push"),
        (MIN, {"delta": 1, "rounds": 3}, LaunchConfigError, "rounds=3"),
        (MIN, {"delta": 0}, InvalidArgumentError, "delta"),
        (MIN, {"each_round": same}, LaunchConfigError, "each_round"),
        (MIN, {"idle": same}, LaunchConfigError, "idle"),
        (MIN, {"direction": "both"}, InvalidArgumentError, "push, pull, auto"),
        (MIN, {"filter": "batch"}, InvalidArgumentError, "jit, online, ballot"),
        (MIN, {"fuse": 1}, InvalidArgumentError, "direction, none, all"),
        (MIN, {"threshold": -1}, InvalidArgumentError, "threshold"),
        (MIN, {"rounds": 0}, InvalidArgumentError, "rounds"),
        (MIN, {"start": 9}, InvalidArgumentError, "9 is not a vertex"),
        (MIN, {"worker": "grid"}, InvalidArgumentError, "worker"),
        (MIN, {"policy": "both"}, InvalidArgumentError, "'data', 'topology' or .'hybrid'"),
        (MIN, {"policy": ("hybrid", -1)}, InvalidArgumentError, "share of at least 0"),
        (MIN, {"policy": ("hybrid", "half")}, UnsupportedTypeError, "must be a number"),
        (MIN, {"policy": "topology", "direction": "push"}, LaunchConfigError, "leave policy and direction out"),
        (MIN, {"policy": "topology", "barrier": False}, LaunchConfigError, "policy='topology'"),
        (VOTE, {"policy": "topology"}, LaunchConfigError, "send again"),
        (SUM, {"policy": ("hybrid", 0.5)}, LaunchConfigError, "combine by MIN or MAX"),
        (programs.K_CORE, {"policy": "topology"}, LaunchConfigError, "send again"),
        (MIN, {"unique": 1}, UnsupportedTypeError, "unique must be True or False"),
        (MIN, {"unique": True, "barrier": False}, LaunchConfigError, "once in a round.*barrier=False"),
        (MIN, {"unique": True, "policy": "topology"}, LaunchConfigError, "no list.*policy='topology'"),
        (VOTE, {"unique": True, "direction": "pull"}, LaunchConfigError, "no list.*direction='pull'"),
        (SUM, {"unique": True}, LaunchConfigError, "no list"),
        (MIN, {"unroll": 0}, InvalidArgumentError, "unroll"),
        (MIN, {"unroll": 7}, InvalidArgumentError, "unroll"),
        (VOTE, {"unroll": 2}, LaunchConfigError, "which votes do not"),
        (MIN, {"unroll": 2, "policy": "topology"}, LaunchConfigError, "none where all pull"),
        (MIN, {"unroll": 2, "direction": "pull"}, LaunchConfigError, "none where all pull"),
        (SUM, {"unroll": 2}, LaunchConfigError, "ahead of rounds"),
        (MIN, {"monotone_stores": 1}, UnsupportedTypeError, "monotone_stores must be True or False"),
        (MIN, {"monotone_stores": True}, LaunchConfigError, "no worklist says.*policy='data'"),
        (MIN, {"monotone_stores": True, "policy": ("hybrid", 0.5)}, LaunchConfigError, "no worklist says"),
        (VOTE, {"monotone_stores": True, "policy": "topology"}, LaunchConfigError, "send again"),
        (programs.K_CORE, {"monotone_stores": True, "policy": "topology"}, LaunchConfigError, "send again"),
        (MIN, {"wrong": 1}, UnsupportedTypeError, "wrong"),
    ],
)
def test_options(program, options, kind, says):
    graph = atos.generate.road(3, 1.0, device="cpu")
    metadata = atos.zeros(9, device="cpu")
    with pytest.raises(kind, match=says):
        program.run(graph, metadata, **options)
    assert not metadata.to_numpy().any()


@pytest.mark.parametrize(
    ("metadata", "kind", "says"),
    [
        (np.zeros(8, np.float32), InvalidArgumentError, "one number for each of 9 vertices"),
        (np.zeros((9, 1), np.float32), InvalidArgumentError, "one number for each"),
        (np.zeros(18, np.float32)[::2], InvalidArgumentError, "contiguous"),
        (np.broadcast_to(np.float32(0), 9), InvalidArgumentError, "writable"),
        (np.zeros(9, bool), UnsupportedTypeError, "integers or floats"),
        ([0.0] * 9, UnsupportedTypeError, "array"),
        (7, UnsupportedTypeError, "array"),
    ],
    ids=range(7),
)
def test_metadata(metadata, kind, says):
    with pytest.raises(kind, match=says):
        MIN.run(atos.generate.road(3, 1.0, device="cpu"), metadata)


def test_metadata_of_atos():
    graph = atos.generate.road(3, 1.0, device="cpu")
    with pytest.raises(InvalidArgumentError, match="read-only"):
        MIN.run(graph, atos.asarray(np.zeros(9), device="cpu", readonly=True))
    with pytest.raises(UnsupportedTypeError, match="make metadata signed"):
        programs.K_CORE.run(graph, atos.zeros(9, dtype=np.uint32, device="cpu"), 3)
    with pytest.raises(UnsupportedTypeError, match=r"graph must be an atos\.Graph"):
        MIN.run(np.eye(3), np.zeros(3))
    with pytest.raises(InvalidArgumentError, match="63 bits"):
        programs.reachable(atos.generate.road(9, 1.0, device="cpu"), range(64))


@pytest.mark.gpu
def test_metadata_on_another_device():
    graph = atos.generate.road(3, 1.0, device="cuda")
    for metadata in (np.zeros(9), atos.zeros(9, device="cpu")):
        with pytest.raises(InvalidArgumentError, match="changed in place, on cuda"):
            MIN.run(graph, metadata)
