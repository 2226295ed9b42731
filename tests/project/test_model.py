"""The protocol in csrc, model-checked: every interleaving of a few workers, and broken variants that have to be caught."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from model.rules import BROKEN
from model.scenarios import SCENARIOS, Kind, kind_of
from model.source import Change, ModelError, copy_changed
from repository import CXX, HAS_CXX, ROOT

MODEL = ROOT / "tests" / "model"
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Wno-clobbered"]


class Common(NamedTuple):
    """What is the same for all models, and so compiled once: the model checker, and its header for those that are broken."""

    checker: Future[Path]
    header: Future[Path]


class Outcome(NamedTuple):
    """How an exploration ended: 0 if no rule was broken, 1 if one was; and what it said."""

    status: int
    said: str


def compiled(output: Path, *arguments: object) -> Path:
    """Compile something."""
    command = [*CXX, *FLAGS, *map(str, arguments), "-o", str(output)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise ModelError(built.stderr)
    return output


def program(directory: Path, common: Common, kind: Kind, changes: Sequence[Change] = ()) -> Path:
    """Compile a model over a changed copy of csrc."""
    directory.mkdir()
    copy_changed(directory, changes)
    # What is broken is soon found: it is the compiler that takes the time. A header is compiled for one level of optimization.
    speed = ["-O0", "-include", common.header.result().with_suffix("")] if changes else ["-O2"]
    where = ["-I", directory, "-I", MODEL, f"-DBYTES={kind.item_bytes}"]
    return compiled(directory / "model", *speed, *where, MODEL / kind.source, common.checker.result())


def explore(model: Path, scenario: str) -> Outcome:
    """Run a model."""
    bounds = [f"{name}={value}" for name, value in SCENARIOS[scenario].items() if name != "item_bytes"]
    done = subprocess.run([model, *bounds], capture_output=True, text=True, timeout=600, check=False)
    return Outcome(done.returncode, done.stdout + done.stderr)


# One process has them all: each would begin all models for its own part. The first wait for what was begun before.
pytestmark = [pytest.mark.xdist_group("model"), pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Outcome]]]:
    """What comes of the models that the chosen tests want, as many at a time as there are cores."""
    if not HAS_CXX:
        pytest.skip(f"there is no C++ compiler {CXX[0]}")
    wanted = {
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    scenarios = [name for name in SCENARIOS if name in wanted]
    rules = [name for name in BROKEN if name in wanted]
    root = tmp_path_factory.mktemp("model")

    def check(scenario: str) -> Outcome:
        return explore(right[kind_of(scenario)].result(), scenario)

    def check_broken(name: str) -> Outcome:
        scenario = BROKEN[name].caught_in
        directory = root / f"broken {rules.index(name)}"
        return explore(program(directory, common, kind_of(scenario), BROKEN[name].broken_by), scenario)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # What others wait for is begun before them; the short ones come last.
        checker = pool.submit(compiled, root / "check.o", "-O2", "-c", MODEL / "check.cpp")
        header = pool.submit(compiled, root / "check.hpp.gch", "-O0", "-x", "c++-header", MODEL / "check.hpp")
        common = Common(checker, header)
        kinds = {kind_of(scenario) for scenario in scenarios}
        right = {kind: pool.submit(program, root / f"right {kind}", common, kind) for kind in kinds}
        yield {name: pool.submit(check, name) for name in scenarios} | {name: pool.submit(check_broken, name) for name in rules}


@pytest.mark.part("model")
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_state_keeps_the_rules(outcomes, name, record_property):
    status, said = outcomes[name].result()
    assert status == 0, said[-8000:]
    states = re.fullmatch(r"(\d+) states, (\d+) steps, depth \d+, (\d+) ends\n", said)
    assert states
    assert int(states[1]) > (1000 if SCENARIOS[name]["workers"] > 1 else 100)
    assert int(states[3]) > 0
    record_property("states", int(states[1]))


@pytest.mark.part("mutants")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_caught(outcomes, name):
    status, said = outcomes[name].result()
    assert status == 1, said[-8000:]
    assert BROKEN[name].found in said.splitlines()[-1]


def test_every_rule_is_broken_in_a_scenario():
    assert {rule.caught_in for rule in BROKEN.values()} <= set(SCENARIOS)
    assert not set(SCENARIOS) & set(BROKEN)
